"""Policies on workloads of elastic jobs, and the figures of each run."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from jobcast.domain.elastic import ElasticJobs, Floats
from jobcast.pipelines.experiments.clusters import preempting
from jobcast.pipelines.experiments.elastic.jobs import ElasticScene
from jobcast.pipelines.experiments.elastic.simulation import prepare
from jobcast.schedulers.elastic.config import WfqConfig
from jobcast.simulator.elastic.run import ElasticReplay, replay_elastic
from jobcast.simulator.log import RunLog
from jobcast.simulator.metrics import errors_pct, held_gpu_s, unfairness_pct
from papers.runs import in_parallel

TITLES = {
    "elastic_fifo": "FIFO", "srsf": "Tiresias (SRSF)", "elastic_las": "LAS", "afs": "AFS", "elastic_themis": "Themis",
    "elastic_fair": "max-min fair",
}  # fmt: skip
"""Policies besides PCS, and what the paper calls them."""
PAPERS = ("elastic_fifo", "srsf", "afs", "elastic_themis")
"""PCS, section 5.1."""
PERCENTILES = (50, 90, 95, 99)


@dataclass(frozen=True, slots=True)
class Task:
    """A policy on a workload.

    Attributes
    ----------
    case, label : what the run is called in tables: its workload and its policy; runs of one name are averaged
    scenario : the workload
    policy : name, without a configuration
    config : of PCS; then `policy` does not count
    settings : of the policy
    whole : whether PCS deals out whole GPUs
    preempt_s : seconds without progress after a change of a started job's GPUs
    """

    case: str
    label: str
    scenario: ElasticScene
    policy: str = ""
    config: WfqConfig | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    whole: bool = False
    preempt_s: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Done:
    """A finished run: its names, its figures, and what happened."""

    case: str
    name: str
    figures: Mapping[str, float]
    log: RunLog


def policies(case: str, scenario: ElasticScene, names: Iterable[str] = PAPERS, preempt_s: float = 0.0) -> list[Task]:
    """A task for each policy besides PCS."""
    return [Task(case, TITLES[name], scenario, name, preempt_s=preempt_s) for name in names]


def replay(task: Task) -> ElasticReplay:
    """A task's run at its beginning."""
    scenario = task.scenario
    if task.config is None:
        return prepare(scenario, task.policy, {**task.settings, "preempt_s": task.preempt_s})
    workload, policy = scenario.workload, task.config.policy(scenario.place.gpu_types, whole=task.whole)
    cluster = preempting(workload.cluster, task.preempt_s, placed=policy.integral)
    return ElasticReplay(workload.jobs, workload.size_s, cluster, policy, origin_s=workload.origin_s)


def run(task: Task) -> Done:
    """Simulate one task, with a forecast of each job's completion at its submission."""
    log = replay_elastic(replay(task), predict=True)
    return Done(task.case, task.label, figures_of(log), log)


def run_all(tasks: Sequence[Task]) -> list[Done]:
    """Simulate tasks, two at a time, telling each that is done."""
    return list(in_parallel(run, tasks, lambda done: f"{done.case} {done.name}"))


def figures_of(log: RunLog) -> dict[str, float]:
    """Means, percentiles and maxima of JCT (s), prediction error (%) and unfairness (%), by both means of contention.

    Then utilisation and preemptions a job.
    """
    by_job = {
        "jct_s": log.jct_s,
        "error_pct": errors_pct(log),
        "unfairness_pct": unfairness_pct(log),
        "unfairness_over_time_pct": unfairness_pct(log, over_time=True),
    }
    figures = {f"{measure}_{name}": value for name, of in by_job.items() for measure, value in _measures(of).items()}
    begin_s, end_s = float(log.submit_s.min()), float(log.end_s.max())
    used = held_gpu_s(log, begin_s, end_s) / (log.total_gpus * (end_s - begin_s))
    return {**figures, "utilization": used, "preemptions_a_job": float(log.preemptions.mean())}


def _measures(values: Floats) -> dict[str, float]:
    found = {f"p{level}": float(np.percentile(values, level)) for level in PERCENTILES}
    return {"mean": float(values.mean()), **found, "max": float(values.max())}


def pooled(done: Sequence[Done], by_job: Callable[[RunLog], Floats]) -> dict[str, list[float]]:
    """Values by job of all runs of a name put together, by name in the order of their first run."""
    names = list(dict.fromkeys(one.name for one in done))
    return {name: np.concatenate([by_job(one.log) for one in done if one.name == name]).tolist() for name in names}


def cut(jobs: ElasticJobs, count: int) -> ElasticJobs:
    """The first jobs alone.

    >>> one = np.zeros(2)
    >>> few = cut(ElasticJobs(one, one, one, one, np.zeros(2, int), np.arange(3), one, one, one, one), 1)
    >>> len(few.submit_s), len(few.stage_of)
    (1, 2)
    """
    by_job = {name: getattr(jobs, name)[:count] for name in ("submit_s", "size_s", "least", "most", "model")}
    return jobs._replace(**by_job, stage_of=jobs.stage_of[: count + 1])
