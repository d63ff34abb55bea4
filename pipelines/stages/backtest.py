"""Stage backtest: what the trained versions are worth to schedulers, on the test window."""

from collections.abc import Mapping, Sequence
from typing import Any

import joblib

from jobcast.domain.hardware import Cluster
from jobcast.models.registry.cards import ModelVersion
from jobcast.pipelines.experiments import backtest
from jobcast.pipelines.experiments.backtest_results import RESULTS, results_of, speedup_table, write_results
from jobcast.pipelines.experiments.experiment import Experiment
from jobcast.pipelines.experiments.forecast_specs import PREDICTORS, ForecastSpec, parse_forecasts
from jobcast.pipelines.experiments.settings import check_settings
from jobcast.pipelines.lifecycle.gate import evidence, gate_cells
from jobcast.pipelines.lifecycle.model_files import register_files
from jobcast.pipelines.report.backtest_tables import summaries
from jobcast.pipelines.report.files import write_json, write_text
from jobcast.pipelines.report.model_tables import log_on_versions, version_row
from jobcast.pipelines.stages.config import Cells
from jobcast.pipelines.stages.context import Context
from jobcast.traces.pools import read_pools

HEADLINE = ("speedup_gmean", "slowed_pct")
"""Figures that `dvc metrics diff` compares, of each policy with the versions in use; the rest lies in results.json."""


def work(context: Context, item: str = "") -> None:
    """Replay the test window under every cell of the parameters."""
    params = context.params.backtest
    windows = test_windows(context)
    versions = registered(context)
    asked = _with_settings(backtest.matrix(_pairs(context, versions), len(windows), params.seeds), params.cells)
    bases = backtest.baselines_of(asked, params.baseline, windows[0])
    cells = backtest.with_baseline(asked, bases)
    # What the gate needs is replayed in the same matrix, but is no row of the backtest.
    gate = gate_cells(firsts(versions), len(windows))
    there = {cell.identity for cell in cells}
    lacking = [cell for cell in gate if cell.identity not in there]
    every = replayed(context, windows, [*cells, *lacking], bases)
    # The gate's own cells come last.
    results = every[: len(cells)]
    result = results_of(results, bases=bases, draws=params.draws)
    write_results(context.root / "processed/backtest", result, results)
    write_json(context.root / "processed/gate.json", evidence(every, gate, params.draws))
    write_json(context.root / "processed/metrics/backtest.json", _headlines(result["rows"]))
    write_text(context.root / "processed/plots/speedup_cdf.csv", speedup_table(results))
    context.write_receipt(
        "backtest",
        {
            "models": [version_row(version) for by_algorithm in versions.values() for version in by_algorithm.values()],
            "input": context.input_hash(),
            "runs": [
                {"label": one.cell.label, "seed": one.cell.seed, "window": one.cell.window}
                | {"cpu_s": one.run.cpu_s, "wall_s": one.run.wall_s, "models": dict(one.run.models)}
                for one in results
            ],
        },
        beside=f"processed/backtest/{RESULTS}",
    )
    rows = [one.full_row() for one in results]
    replayed_s = (windows[0].from_s, windows[-1].until_s)
    logged = log_on_versions(
        context.home, {**result, "rows": rows}, windows[0].trace.name, context.input_hash()["sha256"], replayed_s
    )
    context.console.note(f"backtest: {logged or 'no version took part'}")
    context.console.note(f"backtest: {len(cells)} simulations of {sum(len(one.window) for one in windows):,} jobs")


def test_windows(context: Context) -> list[Experiment]:
    """The test window, in as many parts as the parameters say."""
    split, result = context.split()
    place = Cluster(quotas=read_pools(context.pools), at_s=split.train_until_s, origin=result["pools_origin"])
    trace = context.trace()
    return [
        Experiment(trace=trace, cluster=place, from_s=begin, until_s=end, only_pools=True)
        for begin, end in backtest.windows_of(split.train_until_s, split.test_until_s, context.params.backtest.windows)
    ]


def replayed(
    context: Context,
    windows: Sequence[Experiment],
    cells: Sequence[backtest.Cell],
    bases: Mapping[str, backtest.Cell] | None = None,
) -> list[backtest.CellResult]:
    """Results of cells on the test window, in their order."""
    params = context.params.backtest
    with context.console.progress("backtest") as step:
        return backtest.run_matrix(
            windows,
            cells,
            home=context.home,
            bases=bases,
            jobs=joblib.cpu_count(),
            warmup_days=params.warmup_days,
            progress=step,
        )


def firsts(versions: dict[str, dict[str, ModelVersion]]) -> dict[str, ModelVersion]:
    """The versions of the algorithms named first, by predictor: whichever does best here, choosing would flatter it."""
    return {name: next(iter(by_algorithm.values())) for name, by_algorithm in versions.items()}


def registered(context: Context) -> dict[str, dict[str, ModelVersion]]:
    """Versions of the trained models, by predictor and algorithm; those that were pulled are registered now."""
    return {
        name: {
            algorithm: register_files(context.root, context.home, name, algorithm)
            for algorithm in context.params.train.algorithms(name)
        }
        for name in PREDICTORS
    }


def _pairs(context: Context, versions: dict[str, dict[str, ModelVersion]]) -> list[tuple[str, ForecastSpec, str]]:
    """(policy, forecasts, label) of every cell.

    `registry` stands for the first algorithm of every predictor, and for a cell with each other one in its place.
    """
    pairs = []
    for cells in context.params.backtest.cells:
        for text in cells.forecasts:
            for spec, name in _specs(text, versions):
                pairs.append((cells.policy, spec, backtest.label_of(cells.policy, spec, name)))
    return pairs


def _with_settings(simulations: list[backtest.Cell], cells: Sequence[Cells]) -> list[backtest.Cell]:
    """The simulations, and those of policies with settings once more with these."""
    # Of several entries of a policy the last one's settings count.
    by_policy = {one.policy: one.settings for one in cells if one.settings}
    for policy, settings in by_policy.items():
        check_settings((policy,), settings)
    return [cell for plain in simulations for cell in backtest.with_settings([plain], by_policy.get(plain.policy, {}))]


def _specs(text: str, versions: dict[str, dict[str, ModelVersion]]) -> list[tuple[ForecastSpec, str | None]]:
    if text != "registry":
        return [(parse_forecasts(text), None)]
    first = {name: next(iter(by_algorithm.items())) for name, by_algorithm in versions.items()}
    lead, _ = first["will-jobs-arrive"]
    found: list[tuple[ForecastSpec, str | None]] = []
    for name, by_algorithm in versions.items():
        for algorithm, version in by_algorithm.items():
            if found and algorithm == first[name][0]:
                continue  # the cell of all firsts is there once
            # All else at its first algorithm: rows differ in one thing.
            chosen = {of: pinned for of, (_, pinned) in first.items()} | {name: version}
            pins = tuple((of, chosen[of].version) for of in PREDICTORS)
            label = f"registry ({lead})" if not found else f"registry ({_told(versions, name, algorithm)})"
            found.append((ForecastSpec("registry", versions=pins), label))
    return found


def _told(versions: dict[str, dict[str, ModelVersion]], name: str, algorithm: str) -> str:
    """An algorithm by its name, with its predictor's where two predictors know one of that name."""
    # Predictors may know algorithms of the same name, such as lightgbm.
    shared = sum(algorithm in by_algorithm for by_algorithm in versions.values()) > 1
    return f"{name} {algorithm}" if shared else algorithm


def _headlines(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """By policy, of its first configuration with registered forecasts."""
    found: dict[str, Any] = {}
    for one in summaries(rows):
        if one.source == "registry":
            # The first configuration is that of all first algorithms.
            found.setdefault(one.policy, {key: one.get(key) for key in HEADLINE if one.get(key) is not None})
    return found
