"""How careful forecasts must be: twins that have not seen the end of the training time schedule it, care by care."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from jobcast.domain.hardware import pools_cluster
from jobcast.domain.jobs import Pool
from jobcast.models.care import Care
from jobcast.models.forecasts import RegistryForecasts
from jobcast.models.job_duration import JobDuration
from jobcast.models.new_load import NewLoad
from jobcast.models.will_jobs_arrive import WillJobsArrive
from jobcast.pipelines.experiments.rigid_jobs import RigidScenario, rigid_jobs
from jobcast.pipelines.experiments.scenarios import cut_scenario
from jobcast.pipelines.experiments.sources import earlier_jobs
from jobcast.pipelines.report.console import Step
from jobcast.schedulers.registry import make_policy
from jobcast.simulator.engine import replay
from jobcast.simulator.history import RunHistory
from jobcast.simulator.log import RunLog
from jobcast.simulator.metrics import against
from jobcast.traces.table import Trace

POLICY, BASELINE = "sia", "fcfs"
Trio = tuple[WillJobsArrive, NewLoad, JobDuration]


def replay_trio(trio: Trio, scenario: RigidScenario) -> RunLog:
    """A scenario under `sia`, which asks predictors that may be registered nowhere."""
    pools = [pool.name for pool in scenario.workload.pools]
    # Twins answer from the same past that a registered trio would see.
    history = RunHistory(pools, earlier_jobs(scenario), scenario.earlier.known_after_s)
    source = RegistryForecasts(history, *trio, pools=scenario.workload.pools)
    return replay(scenario.workload, make_policy(POLICY, source), source, history, None)


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """Twins, just fitted, the scenario after what they have seen, and what the baseline makes of it."""

    twins: Trio
    scenario: RigidScenario
    base: RunLog

    @classmethod
    def of(cls, twins: Trio, trace: Trace, pools: Sequence[Pool], from_s: float, until_s: float) -> "Rehearsal":
        """On the jobs of [from, until); those wider than their pool are left out, its quota may be of a later time."""
        # Later jobs are cut away first: twins must not meet what came after the rehearsal.
        known, place = trace.between(None, until_s), pools_cluster(pools)
        scenario = rigid_jobs(
            cut_scenario(known, place, from_s=from_s, until_s=until_s), drop_wide=True, only_pools=True
        )
        return cls(twins, scenario, replay(scenario.workload, make_policy(BASELINE), None, None, None))

    def run(self, care: Care) -> RunLog:
        """What twins of some care make of it."""
        # Care is set, not trained: the same twins serve every care in turn.
        for twin in self.twins:
            twin.take(care)
        return replay_trio(self.twins, self.scenario)


def rehearsed(
    rehearsals: Sequence[Rehearsal], cares: Sequence[Care], slowed_pct: float, progress: Step | None = None
) -> list[dict[str, Any]]:
    """What `sia` does with each care, all rehearsals' jobs together: `care`, `jobs`, `slowed_pct`, `speedup_gmean`.

    If the first, the boldest, holds already, the others are not tried: where history is long replays are too.

    Parameters
    ----------
    slowed_pct : per cent of the jobs that a care may slow against the baseline to hold
    """
    found: list[dict[str, Any]] = []
    for number, care in enumerate(cares if rehearsals else (), 1):
        figures = _figures([(one.run(care), one.base) for one in rehearsals])
        found.append({"care": asdict(care), **figures, "holds": figures["slowed_pct"] <= slowed_pct})
        if progress is not None:
            progress(number, len(cares))
        # The first is the boldest, and whoever is careful beyond need only loses speed.
        if found[0]["holds"]:
            break
    return found


def in_order(cares: Sequence[Care], found: Sequence[Mapping[str, Any]], speedup: float) -> list[Care]:
    """Cares in the order in which to trust them, of what `rehearsed` gave.

    The fastest that held leads; others that held and were fast enough follow, then those that slowed too many, the
    least first, then those that gained too little, then what was not tried. Without rehearsals the most careful leads.

    >>> bold, mild, shy = Care(under_cost=100.0), Care(under_cost=200.0), Care(under_cost=400.0)
    >>> figures = [(bold, 3.0, 9.0, False), (mild, 0.1, 1.4, True), (shy, 0.0, 1.1, True)]
    >>> found = [
    ...     {"care": asdict(care), "slowed_pct": slowed, "speedup_gmean": speedup, "holds": holds}
    ...     for care, slowed, speedup, holds in figures
    ... ]
    >>> [care.under_cost for care in in_order([bold, mild, shy], found, 1.2)]
    [200.0, 100.0, 400.0]
    >>> [care.under_cost for care in in_order([bold, mild, shy], [], 1.2)]
    [400.0, 200.0, 100.0]
    """
    if not found:
        # Nothing was rehearsed, so nothing says that boldness is safe.
        return list(reversed(cares))
    held = sorted((row for row in found if row["holds"]), key=lambda row: -row["speedup_gmean"])
    slow = sorted(
        (row for row in found if not row["holds"]), key=lambda row: (row["slowed_pct"], -row["speedup_gmean"])
    )
    # The fastest that held is kept whatever it gains: something must lead.
    enough = [row for row in held if row is held[0] or row["speedup_gmean"] >= speedup]
    known = [Care(**row["care"]) for row in [*enough, *slow, *(row for row in held if row not in enough)]]
    return [*known, *(care for care in cares if care not in known)]


def _figures(logs: Sequence[tuple[RunLog, RunLog]]) -> dict[str, Any]:
    """Of all jobs together."""
    parts = [(len(log), against(log, base)) for log, base in logs]
    jobs = sum(count for count, _ in parts)
    # Geometric means weighted by jobs: the same as that of all jobs together.
    log_speedup = sum(count * np.log(figures["speedup_gmean"]) for count, figures in parts) / jobs
    return {
        "jobs": jobs,
        "slowed_pct": sum(count * figures["slowed_pct"] for count, figures in parts) / jobs,
        "speedup_gmean": float(np.exp(log_speedup)),
    }
