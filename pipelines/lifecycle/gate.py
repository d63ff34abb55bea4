"""The gate before a trio of predictors becomes champion: what `sia` with them did to the test window's jobs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jobcast.models.registry.cards import ModelVersion
from jobcast.pipelines.backtest import Cell, CellResult
from jobcast.pipelines.backtest_results import BOOTSTRAP_SEED
from jobcast.pipelines.forecast_specs import PREDICTORS, ForecastSpec
from jobcast.pipelines.gains import paired_gains
from jobcast.pipelines.wording import between, number, percent

POLICY = "sia"
TRIO, NOTHING = f"{POLICY} trio", f"{POLICY} conservative"
"""What is compared: the new trio's forecasts, and forecasts that lend nothing, under which each pool keeps its own."""
REMEDY = (
    "train on more history (a longer --trace, a larger prepare.train_share), allow more (promote.slowed_pct) or ask "
    "for more care (care.slowed_pct) in params.yaml, or decide against the gate with"
)


def trio_spec(versions: Mapping[str, ModelVersion]) -> ForecastSpec:
    """Forecasts of one version a predictor."""
    return ForecastSpec("registry", versions=tuple((name, versions[name].version) for name in PREDICTORS))


def gate_cells(versions: Mapping[str, ModelVersion], windows: int) -> list[Cell]:
    """The simulations that the gate compares."""
    specs = {TRIO: trio_spec(versions), NOTHING: ForecastSpec("conservative")}
    return [Cell(POLICY, spec, label, window) for label, spec in specs.items() for window in range(windows)]


def same_run(a: Cell, b: Cell) -> bool:
    """Whether two cells are one simulation, whatever they are called."""
    return replace(a, label="") == replace(b, label="")


def evidence(results: Sequence[CellResult], cells: Sequence[Cell], draws: int) -> dict[str, Any]:
    """What the trio's forecasts did to the jobs of all windows, compared with lending nothing, one by one.

    `speedup`, `slowed_pct` (the share of jobs that end later) and `mean_jct_change_s` with their intervals; see
    `gains.Gains`.
    """
    found = {cell: next(one for one in results if same_run(one.cell, cell)) for cell in cells}
    trio, nothing = ([one for cell, one in found.items() if cell.label == label] for label in (TRIO, NOTHING))
    ours, theirs = (np.concatenate([one.log.jct_s[one.counted] for one in group]) for group in (trio, nothing))
    submit_s = np.concatenate([one.log.told_submit_s[one.counted] for one in trio])
    gains = paired_gains(ours, theirs, submit_s, seed=BOOTSTRAP_SEED, draws=draws, jct_baseline=theirs)
    return {key.replace("slowed_change_pct", "slowed_pct"): value for key, value in gains.to_dict().items()}


def why_not(gains: Mapping[str, Any], slowed_pct: float) -> list[str]:
    """Each reason, with its figures, why a trio does not become champion; empty where it passes.

    Parameters
    ----------
    gains : what `evidence` gave
    slowed_pct : per cent of the jobs that it may slow

    Examples
    --------
    >>> slow = {"confidence": 0.95, "slowed_pct": 6.75, "slowed_pct_low": 4.1}
    >>> slow |= {"slowed_pct_high": 9.0, "speedup": 3.97, "speedup_low": 3.1, "speedup_high": 4.9}
    >>> why_not(slow, 1.0)
    ['slows 6.75 % of the jobs (95 % interval 4.10 to 9.00), at most 1 % may be']
    >>> why_not(slow, 6.75)
    []
    """
    found, told = [], f"{100 * gains['confidence']:g} % interval"
    slowed, low, high = (gains[f"slowed_pct{suffix}"] for suffix in ("", "_low", "_high"))
    if slowed > slowed_pct:
        interval = "" if low is None else f" ({told} {between(low, high)})"
        found.append(f"slows {percent(slowed)} of the jobs{interval}, at most {percent(slowed_pct)} may be")
    if gains["speedup_low"] is None:
        found.append("was tested on a single day, from which no interval follows")
    elif gains["speedup_low"] <= 1.0:
        interval = between(gains["speedup_low"], gains["speedup_high"])
        found.append(f"is {number(gains['speedup'])} times as fast as lending nothing ({told} {interval}): no clear gain")
    return found
