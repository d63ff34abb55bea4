"""Stage promote: the trained trio becomes champion, all three or none, if it passes the gate on the test window."""

from collections.abc import Mapping
from typing import Any

from jobcast.domain.errors import OverlapError
from jobcast.models.registry import Registry, open_registry
from jobcast.models.registry.cards import ModelVersion
from jobcast.models.registry.references import CHAMPION
from jobcast.pipelines.backtest import Cell, matrix
from jobcast.pipelines.files import read_json, write_json
from jobcast.pipelines.forecast_specs import PREDICTORS
from jobcast.pipelines.lifecycle.gate import POLICY, REMEDY, trio_spec, why_not
from jobcast.pipelines.lifecycle.verdict import CANDIDATE, why_slower
from jobcast.pipelines.lifecycle.verdict import CHAMPION as INCUMBENT
from jobcast.pipelines.model_tables import version_row
from jobcast.pipelines.stages.backtest import firsts, registered, replayed, test_scenes
from jobcast.pipelines.stages.context import Context
from jobcast.pipelines.summaries import summaries

Trio = Mapping[str, ModelVersion]


def work(context: Context, item: str = "") -> None:
    """Say whether the trio passes, and move the aliases where it does and is no worse than champions that there are."""
    allowed, gains = context.params.promote.slowed_pct, read_json(context.root / "processed/gate.json")
    registry, versions = open_registry(context.home), registered(context)
    trio, held = firsts(versions), _champions(registry)
    failed = why_not(gains, allowed)
    write_json(
        context.root / "processed/promotion.json",
        {"passed": not failed, "reasons": failed, "slowed_pct_allowed": allowed, "policy": POLICY, **gains},
    )
    worse, figures = ([], None) if failed else _beside(context, trio, held)
    promoted = not failed and not worse
    if promoted:
        for name in PREDICTORS:
            registry.promote(name, trio[name].version)
    told = {
        "promoted": promoted,
        "reasons": [*failed, *worse],
        "trio": {name: version.version for name, version in trio.items()},
        "before": {name: version.version for name, version in held.items()},
        "beside": figures,
        "models": [version_row(_again(registry, one)) for by_name in versions.values() for one in by_name.values()],
    }
    context.write_receipt("promote", told)
    context.console.note(f"promote: {sentence(told)}")


def sentence(told: Mapping[str, Any]) -> str:
    """What the stage came to, from its receipt: which versions are champions, or why there is none, and what to do."""
    trio = ", ".join(f"{name}:{version}" for name, version in told["trio"].items())
    if told["promoted"]:
        return f"champions: {trio}"
    kept = ", ".join(f"{name}:{version}" for name, version in told["before"].items())
    lead = f"champions stay {kept}" if kept else "no champion"
    commands = "; ".join(f"jobcast models promote {name}:{version} --force" for name, version in told["trio"].items())
    return f"{lead}: the new trio ({trio}) {'; '.join(told['reasons'])}. What to do: {REMEDY} {commands}"


def _champions(registry: Registry) -> dict[str, ModelVersion]:
    """By predictor, where there is one."""
    return {
        name: registry.resolve(name, CHAMPION) for name in PREDICTORS if CHAMPION in registry.show(name).aliases
    }


def _beside(context: Context, trio: Trio, held: Trio) -> tuple[list[str], dict[str, Any] | None]:
    """Why the trio is worse than the champions, and the figures of both; nothing where these are no other trio."""
    if len(held) < len(PREDICTORS) or all(held[name].version == trio[name].version for name in PREDICTORS):
        return [], None
    specs = {CANDIDATE: trio_spec(trio), INCUMBENT: trio_spec(held)}
    scenes = test_scenes(context)
    cells: list[Cell] = matrix([(POLICY, spec, label) for label, spec in specs.items()], len(scenes), 1)
    try:
        results = replayed(context, scenes, cells)
    except OverlapError as error:  # champions that have seen the test window would look too good there
        return [f"cannot be compared with the champions ({error})"], None
    figures = {one.label: dict(one.figures) for one in summaries([result.row() for result in results])}
    return why_slower(figures[CANDIDATE], figures[INCUMBENT]), figures


def _again(registry: Registry, version: ModelVersion) -> ModelVersion:
    return registry.resolve(version.name, version.version)
