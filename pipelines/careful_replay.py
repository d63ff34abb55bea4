"""How careful forecasts must be: twins that have not seen the end of the training time schedule it, care by care."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from jobcast.domain.jobs import Pool
from jobcast.models.care import Care
from jobcast.models.forecasts import RegistryForecasts
from jobcast.models.job_duration import JobDuration
from jobcast.models.new_load import NewLoad
from jobcast.models.will_jobs_arrive import WillJobsArrive
from jobcast.pipelines.console import Step
from jobcast.pipelines.scenes import Scene, build_scene
from jobcast.pipelines.sources import earlier_jobs
from jobcast.schedulers.policies import find_factory
from jobcast.simulator.engine import replay
from jobcast.simulator.history import RunHistory
from jobcast.simulator.log import RunLog
from jobcast.simulator.metrics import against_baseline
from jobcast.traces.table import Trace

POLICY, BASELINE = "sia", "fcfs"
Twins = tuple[WillJobsArrive, NewLoad, JobDuration]


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """Twins, the scene after what they have seen, and what the baseline makes of it."""

    twins: Twins
    scene: Scene
    base: RunLog

    @classmethod
    def of(cls, twins: Twins, trace: Trace, pools: Sequence[Pool], from_s: float, until_s: float) -> "Rehearsal":
        """On the jobs of [from, until); those wider than their pool are left out, its quota may be of a later time."""
        known = trace.between(None, until_s)
        scene = build_scene(known, pools, from_s=from_s, until_s=until_s, drop_wide=True, only_pools=True)
        return cls(twins, scene, replay(scene.workload, find_factory(BASELINE)(None, {}), None, None, None))

    def run(self, care: Care) -> RunLog:
        """The scene under `sia`, which asks twins of some care."""
        care.teach(*self.twins)
        history = RunHistory([pool.name for pool in self.scene.workload.pools], earlier_jobs(self.scene))
        source = RegistryForecasts(history, *self.twins)
        return replay(self.scene.workload, find_factory(POLICY)(source, {}), source, history, None)


def choose(
    rehearsals: Sequence[Rehearsal], ladder: Sequence[Care], slowed_pct: float, progress: Step | None = None
) -> tuple[Care, list[dict[str, Any]]]:
    """The first care that slows at most a share of all jobs, the last where none does; and what each one tried did.

    Parameters
    ----------
    rehearsals : each with its own twins; none: the last care is taken, for nothing speaks for another
    ladder : from the boldest to the most careful
    slowed_pct : per cent of the jobs, against the baseline
    """
    tried: list[dict[str, Any]] = []
    for number, care in enumerate(ladder if rehearsals else (), 1):
        figures = _figures([(rehearsal.run(care), rehearsal.base) for rehearsal in rehearsals])
        tried.append({**asdict(care), **figures, "holds": figures["slowed_pct"] <= slowed_pct})
        if progress is not None:
            progress(number, len(ladder))
        if tried[-1]["holds"]:
            return care, tried
    return ladder[-1], tried


def _figures(logs: Sequence[tuple[RunLog, RunLog]]) -> dict[str, Any]:
    """Of all jobs together."""
    parts = [(len(log), against_baseline(log, base)) for log, base in logs]
    jobs = sum(count for count, _ in parts)
    log_speedup = sum(count * np.log(figures["speedup_gmean"]) for count, figures in parts) / jobs
    return {
        "jobs": jobs,
        "slowed_pct": sum(count * figures["slowed_pct"] for count, figures in parts) / jobs,
        "speedup_gmean": float(np.exp(log_speedup)),
    }
