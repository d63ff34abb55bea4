"""Stage promote: the trained trio becomes champion, all three or none, if it passes the gate on the test window."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from jobcast.domain.errors import OverlapError
from jobcast.models.care import Care
from jobcast.models.predictors import load_predictor
from jobcast.models.registry import Registry, open_registry
from jobcast.models.registry.cards import ModelVersion
from jobcast.models.registry.references import CHAMPION
from jobcast.pipelines.experiments.backtest import matrix
from jobcast.pipelines.experiments.care_rehearsal import replay_trio
from jobcast.pipelines.experiments.forecast_specs import PREDICTORS
from jobcast.pipelines.experiments.simulation import warmup_end
from jobcast.pipelines.lifecycle.comparison import CANDIDATE, why_slower
from jobcast.pipelines.lifecycle.comparison import CHAMPION as INCUMBENT
from jobcast.pipelines.lifecycle.gate import NOTHING, POLICY, gate_cells, outcome, paired, trio_spec, why_not
from jobcast.pipelines.lifecycle.model_files import PROMOTION, model_folder, trio_of, variant_folder
from jobcast.pipelines.report.backtest_tables import summaries
from jobcast.pipelines.report.files import read_json, write_json
from jobcast.pipelines.report.model_tables import version_row
from jobcast.pipelines.stages.backtest import firsts, registered, replayed, test_windows
from jobcast.pipelines.stages.context import Context
from jobcast.schedulers.policies import POOLS
from jobcast.simulator.metrics import after_warmup

Trio = Mapping[str, ModelVersion]
FIGURES = ("confidence", *(f"{name}{end}" for name in ("slowed_pct", "speedup") for end in ("", "_low", "_high")))
"""Of the last try, for people."""


def work(context: Context, item: str = "") -> None:
    """Try the trio, then with other care; the first that passes becomes champion, unless champions are better."""
    registry, versions = open_registry(context.home), registered(context)
    held = _champions(registry)
    tries = _tries(context, firsts(versions))
    passed = not tries[-1]["reasons"]
    write_json(
        context.root / PROMOTION,
        {
            "passed": passed,
            "policy": POLICY,
            "wanted": context.params.promote.model_dump(),
            "trio": {name: context.params.train.algorithms(name)[0] for name in PREDICTORS},
            "tries": tries,
        },
    )
    trio = trio_of(context.root, context.home)
    worse, figures = _beside(context, trio, held) if passed else ([], None)
    promoted = passed and not worse
    if promoted:
        registry.promote_together(trio[name] for name in PREDICTORS)
    result = {
        "promoted": promoted,
        "reasons": [*(() if passed else tries[0]["reasons"]), *worse],
        "tries": len(tries),
        "figures": {key: tries[-1][key] for key in FIGURES},
        "trio": {name: version.version for name, version in trio.items()},
        "before": {name: version.version for name, version in held.items()},
        "beside": figures,
        "models": [version_row(registry.resolve(one.name, one.version)) for one in _all(versions, trio)],
    }
    context.write_receipt("promote", result, beside=PROMOTION)
    context.console.note(f"promote: {outcome(result).lead}")


def _tries(context: Context, trio: Trio) -> list[dict[str, Any]]:
    """What the gate said of each care in order, the last of which passes if any does.

    `care`, `number` in the order of stage care, the figures of `gate.evidence`, `reasons`.
    The first comes from stage backtest; whoever does not pass costs a replay of the next.
    """
    wanted, first, *others = context.params.promote, *_cares(context)
    gains = read_json(context.root / "processed/gate.json")
    reasons = why_not(gains, wanted.slowed_pct, wanted.speedup)
    tries = [{"care": asdict(first), "number": 0, **gains, "reasons": reasons}]
    if not reasons:
        return tries
    # Read only where another care is tried: most runs pass at once.
    windows, days = test_windows(context), context.params.backtest.warmup_days
    scenarios = [one.scenario(POOLS) for one in windows]
    cells = [cell for cell in gate_cells(trio, len(windows)) if cell.label == NOTHING]
    # Lending nothing is the same whatever the care: replayed once.
    nothing = [result.log for result in replayed(context, windows, cells)]
    counted = [after_warmup(log, warmup_end(scenario, days)) for log, scenario in zip(nothing, scenarios, strict=True)]
    for number, care in enumerate(others, 1):
        if any(one["slowed_pct"] <= wanted.slowed_pct and care.covers(Care(**one["care"])) for one in tries):
            continue  # what slows few but gains too little gains no more with more care
        with context.console.progress(f"promote: care {number + 1} of {len(others) + 1}"):
            logs = [replay_trio(_variants(context, care), scenario) for scenario in scenarios]
        gains = paired(list(zip(logs, nothing, counted, strict=True)), context.params.backtest.draws)
        reasons = why_not(gains, wanted.slowed_pct, wanted.speedup)
        tries.append({"care": asdict(care), "number": number, **gains, "reasons": reasons})
        if not reasons:
            break
    return tries


def _cares(context: Context) -> list[Care]:
    """What stage care found: the one that models were trained with, then those that may be tried instead."""
    return [Care(**care) for care in read_json(context.root / "interim/care.json")["cares"]]


def _variants(context: Context, care: Care) -> Any:
    """The trained predictors with another care."""
    first, root = _cares(context)[0], context.root
    return tuple(
        load_predictor(
            name,
            model_folder(context.root, name, context.params.train.algorithms(name)[0])
            if care.of(name) == first.of(name)
            else variant_folder(root, name, care.of(name)),
        )
        for name in PREDICTORS
    )


def _champions(registry: Registry) -> dict[str, ModelVersion]:
    """By predictor, where there is one."""
    return {name: registry.resolve(name) for name in PREDICTORS if CHAMPION in registry.show(name).aliases}


def _beside(context: Context, trio: Trio, held: Trio) -> tuple[list[str], dict[str, Any] | None]:
    """Why the trio is worse than the champions, and the figures of both; nothing where these are no other trio."""
    # Two champions are no trio to compare with.
    if len(held) < len(PREDICTORS) or all(held[name].version == trio[name].version for name in PREDICTORS):
        return [], None
    windows = test_windows(context)
    specs = {CANDIDATE: trio_spec(trio), INCUMBENT: trio_spec(held)}
    cells = matrix([(POLICY, spec, label) for label, spec in specs.items()], len(windows), 1)
    try:
        results = replayed(context, windows, cells)
    except OverlapError as error:  # champions that have seen the test window would look too good there
        return [f"cannot be compared with the champions ({error})"], None
    figures = {one.label: dict(one.figures) for one in summaries([result.row() for result in results])}
    return why_slower(figures[CANDIDATE], figures[INCUMBENT]), figures


def _all(versions: Mapping[str, Mapping[str, ModelVersion]], trio: Trio) -> Sequence[ModelVersion]:
    """Every version of the run once, the trio's among them."""
    # By name and number: a variant may be the trained version itself.
    found = {(one.name, one.version): one for by_name in versions.values() for one in by_name.values()}
    return list((found | {(one.name, one.version): one for one in trio.values()}).values())
