"""The gate before a trio of predictors becomes champion: what `sia` with them did to the test window's jobs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jobcast.domain.arrays import Bools
from jobcast.models.registry.cards import ModelVersion
from jobcast.pipelines.experiments.backtest import Cell, CellResult
from jobcast.pipelines.experiments.backtest_results import BOOTSTRAP_SEED
from jobcast.pipelines.experiments.forecast_specs import PREDICTORS, ForecastSpec
from jobcast.pipelines.report.formatting import between, number, percent
from jobcast.pipelines.report.gains import paired_gains
from jobcast.simulator.log import RunLog

POLICY = "sia"
TRIO, NOTHING = f"{POLICY} trio", f"{POLICY} conservative"
"""What is compared: the new trio's forecasts, and forecasts that lend nothing, under which each pool keeps its own."""
REMEDIES = (
    "train on more history: a longer --trace, or a larger prepare.train_share",
    "ask for more care (care.slowed_pct) or allow more (promote.slowed_pct, promote.speedup) in params.yaml",
)
"""What to do where a trio does not pass."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a trio, for people.

    Attributes
    ----------
    promoted : whether its versions are champions now
    lead : which versions are champions, or that there is none
    reasons, remedies, commands : why it is not, what to do, and how to decide against the gate
    """

    promoted: bool
    lead: str
    reasons: Sequence[str] = ()
    remedies: Sequence[str] = ()
    commands: Sequence[str] = ()

    @property
    def lines(self) -> list[str]:
        """For a terminal."""
        rows = [self.lead, *(f"  it {reason}" for reason in self.reasons), *(f"  {one}" for one in self.remedies)]
        by_hand = f"  or decide against the gate: {' && '.join(self.commands)}"
        return [*rows, by_hand] if self.commands else rows


def outcome(figures: Mapping[str, Any]) -> Outcome:
    """Of what stage promote keeps in its receipt."""
    trio, before = (_listed(figures[key]) for key in ("trio", "before"))
    if figures["promoted"]:
        return Outcome(True, f"champions: {trio}", _passed(figures["figures"], figures["tries"]))
    commands = [f"jobcast models promote {name}:{version} --force" for name, version in figures["trio"].items()]
    state = f"champions stay {before}" if before else "no champion"
    return Outcome(False, f"{state}: the new trio ({trio}) was not promoted", figures["reasons"], REMEDIES, commands)


def verdict(promotion: Mapping[str, Any]) -> Outcome:
    """Of what stage promote decided, whatever a registry makes of it: no versions, no champions."""
    # The stage's own file names algorithms, for versions differ from registry to registry.
    tries, trio = promotion["tries"], ", ".join(f"{name} {how}" for name, how in promotion["trio"].items())
    if promotion["passed"]:
        return Outcome(True, f"the trio passed the gate: {trio}", _passed(tries[-1], len(tries)))
    return Outcome(False, f"the trio did not pass the gate: {trio}", tries[0]["reasons"], REMEDIES)


def _passed(figures: Mapping[str, Any], tries: int) -> list[str]:
    """What a trio that passed did, and that it was chosen on the test window where it was."""
    text = f"{100 * figures['confidence']:g} % interval"
    slowed, gain = (
        (number(figures[name]), between(figures[f"{name}_low"], figures[f"{name}_high"]))
        for name in ("slowed_pct", "speedup")
    )
    found = [
        f"slows {slowed[0]} % of the test window's jobs ({text} {slowed[1]}) and is {gain[0]} times as fast as lending "
        f"nothing ({gain[1]})"
    ]
    # Each further try had another chance to pass by luck.
    if tries > 1:
        found.append(f"passed as number {tries} of the cares tried on this very window, which flatters its figures")
    return found


def _listed(versions: Mapping[str, int]) -> str:
    return ", ".join(f"{name}:{version}" for name, version in versions.items())


def trio_spec(versions: Mapping[str, ModelVersion]) -> ForecastSpec:
    """Forecasts of one version a predictor."""
    return ForecastSpec("registry", versions=tuple((name, versions[name].version) for name in PREDICTORS))


def gate_cells(versions: Mapping[str, ModelVersion], windows: int) -> list[Cell]:
    """The simulations that the gate compares."""
    specs = {TRIO: trio_spec(versions), NOTHING: ForecastSpec("conservative")}
    return [Cell(POLICY, spec, label, window) for label, spec in specs.items() for window in range(windows)]


def evidence(results: Sequence[CellResult], cells: Sequence[Cell], draws: int) -> dict[str, Any]:
    """What the trio's forecasts did to the jobs of all windows, compared with lending nothing, one by one.

    `speedup`, `slowed_pct` (the share of jobs that end later) and `mean_jct_change_s` with their intervals; see
    `gains.paired_gains`.
    """
    # A cell may have been asked for by the backtest under another label.
    found = {cell: next(one for one in results if one.cell.identity == cell.identity) for cell in cells}
    trio, nothing = ([one for cell, one in found.items() if cell.label == label] for label in (TRIO, NOTHING))
    return paired([(one.log, other.log, one.counted) for one, other in zip(trio, nothing, strict=True)], draws)


def paired(windows: Sequence[tuple[RunLog, RunLog, Bools]], draws: int) -> dict[str, Any]:
    """As `evidence`, of logs by window: under the trio, under lending nothing, and which jobs (n_jobs,) count."""
    ours = np.concatenate([log.jct_s[counted] for log, _, counted in windows])
    theirs = np.concatenate([log.jct_s[counted] for _, log, counted in windows])
    submit_s = np.concatenate([log.told_submit_s[counted] for log, _, counted in windows])
    gains = paired_gains(ours, theirs, submit_s, seed=BOOTSTRAP_SEED, draws=draws, jct_baseline=theirs)
    # Against lending nothing, the change is the share itself.
    return {key.replace("slowed_change_pct", "slowed_pct"): value for key, value in gains.items()}


def why_not(gains: Mapping[str, Any], slowed_pct: float, speedup: float) -> list[str]:
    """Each reason, with its figures, why a trio does not become champion; empty where it passes.

    It must slow few jobs and be worth it: a speedup that is large enough, and above 1 beyond doubt.

    Parameters
    ----------
    gains : what `evidence` gave
    slowed_pct : per cent of the jobs that it may slow
    speedup : that it must reach, geometric mean over jobs

    Examples
    --------
    >>> bold = {"confidence": 0.95, "slowed_pct": 6.75, "slowed_pct_low": 4.1, "slowed_pct_high": 9.0}
    >>> bold |= {"speedup": 3.97, "speedup_low": 3.1, "speedup_high": 4.9}
    >>> why_not(bold, 1.0, 1.2)
    ['slows 6.75 % of the jobs (95 % interval 4.10 to 9.00); at most 1 % may be slowed']
    >>> why_not(bold, 6.75, 1.2)
    []
    """
    found, result = [], f"{100 * gains['confidence']:g} % interval"
    low, high = gains["slowed_pct_low"], gains["slowed_pct_high"]
    if gains["slowed_pct"] > slowed_pct:
        interval = "" if low is None else f" ({result} {between(low, high)})"
        share = f"slows {percent(gains['slowed_pct'])} of the jobs{interval}"
        found.append(f"{share}; at most {slowed_pct:g} % may be slowed")
    # Without an interval nothing is beyond doubt.
    if gains["speedup_low"] is None:
        return [*found, "was tested on a single day, from which no interval follows"]
    interval = between(gains["speedup_low"], gains["speedup_high"])
    gain = f"is {number(gains['speedup'])} times as fast as lending nothing ({result} {interval})"
    # No gain at all is said before too small a one.
    if gains["speedup_low"] <= 1.0:
        found.append(f"{gain}: no gain beyond doubt")
    elif gains["speedup"] < speedup:
        found.append(f"{gain}: less than {speedup:g}, which lending must be worth")
    return found
