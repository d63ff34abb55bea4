"""Workloads of PCS's evaluation (Table 1), policies on them, the figures of each run, and tables of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.hardware import flat_cluster
from jobcast.pipelines.experiments.clusters import preempting
from jobcast.pipelines.experiments.elastic.jobs import ElasticScene, elastic_jobs, in_submission_order
from jobcast.pipelines.experiments.elastic.simulation import prepare
from jobcast.pipelines.experiments.scenarios import cut_scenario
from jobcast.schedulers.elastic.config import WfqConfig
from jobcast.simulator.elastic.run import ElasticReplay, replay_elastic
from jobcast.simulator.log import RunLog
from jobcast.simulator.metrics import errors_pct, held_gpu_s, unfairness_pct
from jobcast.traces.generators import generate
from jobcast.traces.readers import read_trace
from papers.results import HOUR_S, Means, Replayed, grid, number, of_case

FOLDER = "pcs"
SPEEDUPS = "speedups.csv"
CLUSTERS = ("0e4a51", "ee9e8c")
"""The two of the paper's six virtual clusters that are published as elastic jobs."""
MEASURED_JOBS = 301
"""Jobs of a trace that the published results are of."""
GPUS = 64
TESTBED_GPUS = 16
"""PCS, Table 1."""
APPS = 300
JOBS = 1000
"""Jobs of a sample; PCS, section 3.3."""
LOAD = 0.8  # PCS, section 5.4


def published(data: Path, cluster: str, first: int = 0, jobs: int | None = MEASURED_JOBS) -> ElasticScene:
    """Jobs of a published trace in a row on 64 GPUs, all of them for `jobs` None.

    Raises TraceError where a file of `data` cannot be read.
    """
    trace = in_submission_order(read_trace(data / FOLDER / f"trace_{cluster}.csv", format="pcs"))
    chosen = replace(trace, jobs=trace.jobs.slice(first, jobs))
    return elastic_jobs(cut_scenario(chosen, flat_cluster(GPUS)), speedups=data / FOLDER / SPEEDUPS)


def automl(
    seed: int, apps: int = APPS, load: float = LOAD, *, halving: bool = False, noise: float = 0.0
) -> ElasticScene:
    """Workload 1: AutoML apps on 16 GPUs.

    Parameters
    ----------
    seed : of the draw, and of noise
    apps, load, halving : see the generator `automl`
    noise : by what share declared sizes are wrong at most
    """
    trace, _ = generate("automl", seed, {"apps": apps, "load": load, "gpus": TESTBED_GPUS, "halving": halving})
    return elastic_jobs(cut_scenario(trace, flat_cluster(TESTBED_GPUS)), noise=noise, noise_seed=seed)


def themis(data: Path, seed: int, apps: int) -> ElasticScene:
    """Workload 1 before it is scaled down for the testbed: 64 GPUs, by the published distributions."""
    files = {"services": "service-times", "trial_counts": "num-jobs-per-app", "trial_gpus": "max-gpus-per-job"}
    chosen = {name: str(data / FOLDER / "workloads" / f"{file}-themis1.csv") for name, file in files.items()}
    trace, _ = generate("automl", seed, {"apps": apps, "load": LOAD, "gpus": GPUS, **chosen})
    return elastic_jobs(cut_scenario(trace, flat_cluster(GPUS)))


def gavel(seed: int, jobs: int = JOBS, *, at_width: bool = True) -> ElasticScene:
    """Workload 3: four jobs an hour of Gavel's continuous-multiple on 64 GPUs.

    Parameters
    ----------
    seed, jobs : of the draw
    at_width : whether run times are those at a job's width, as in Gavel, or work on one GPU
    """
    trace, _ = generate("gavel-elastic", seed, {"jobs": jobs, "gpus": GPUS, "at_width": at_width})
    return elastic_jobs(cut_scenario(trace, flat_cluster(GPUS)))


TITLES = {
    "elastic_fifo": "FIFO", "srsf": "Tiresias (SRSF)", "elastic_las": "LAS", "afs": "AFS", "elastic_themis": "Themis",
    "elastic_fair": "max-min fair",
}  # fmt: skip
"""Policies besides PCS, and what the paper calls them."""
PAPERS = ("elastic_fifo", "srsf", "afs", "elastic_themis")
"""PCS, section 5.1."""
SHOWN = ("elastic_fifo", "srsf", "elastic_las", "afs", "elastic_themis", "elastic_fair")
"""In the order of Figures 7 and 8."""
PERCENTILES = (50, 90, 95, 99)
HEAD = (
    "policy", "mean JCT h", "x", "p90 JCT h", "p99 JCT h", "mean error %", "p90", "p99", "worst", "mean unfairness %",
    "p99", "worst", "mean, over time",
)  # fmt: skip
"""x: mean JCT relative to the lowest of the table."""


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


def run(task: Task) -> Replayed:
    """Simulate one task, with a forecast of each job's completion at its submission."""
    log = replay_elastic(replay(task), predict=True)
    return Replayed(task.case, task.label, figures_of(log), log=log)


def figures_of(log: RunLog) -> dict[str, float]:
    """Means, percentiles and maxima of JCT (s), prediction error (%) and unfairness (%), by both means of contention.

    Then utilisation and preemptions a job.
    """
    by_job = {"jct_s": log.jct_s, "error_pct": errors_pct(log), "unfairness_pct": unfairness_pct(log)}
    by_job["unfairness_over_time_pct"] = unfairness_pct(log, over_time=True)
    figures = {f"{measure}_{name}": value for name, of in by_job.items() for measure, value in _measures(of).items()}
    begin_s, end_s = float(log.submit_s.min()), float(log.end_s.max())
    used = held_gpu_s(log, begin_s, end_s) / (log.total_gpus * (end_s - begin_s))
    return {**figures, "utilization": used, "preemptions_a_job": float(log.preemptions.mean())}


def _measures(values: Floats) -> dict[str, float]:
    found = {f"p{level}": float(np.percentile(values, level)) for level in PERCENTILES}
    return {"mean": float(values.mean()), **found, "max": float(values.max())}


def by_policy(found: Means, case: str) -> str:
    """The policies of one case."""
    rows = of_case(found, case)
    lowest = min(figures["mean_jct_s"] for figures in rows.values())
    return grid(HEAD, (_line(name, figures, lowest) for name, figures in rows.items()))


def _line(name: str, figures: Mapping[str, float], lowest: float) -> tuple[str, ...]:
    jct = [number(figures[f"{measure}_jct_s"] / HOUR_S) for measure in ("mean", "p90", "p99")]
    error = [percent(figures[f"{measure}_error_pct"]) for measure in ("mean", "p90", "p99", "max")]
    unfair = [percent(figures[f"{measure}_unfairness_pct"]) for measure in ("mean", "p99", "max")]
    over_time = percent(figures["mean_unfairness_over_time_pct"])
    return (name, jct[0], number(figures["mean_jct_s"] / lowest), *jct[1:], *error, *unfair, over_time)


def percent(value: float) -> str:
    """Three digits, or a whole number where it has more.

    >>> percent(0.1234), percent(12.34), percent(12345.6)
    ('0.12', '12.3', '12,346')
    """
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}" if abs(value) < 1000 else f"{value:,.0f}"


def percents(values: Iterable[float]) -> str:
    """Percentages between commas."""
    return ", ".join(map(percent, values))


def share(value: float, digits: int = 0) -> str:
    """A share in percent.

    >>> share(0.25), share(-0.0004, 1)
    ('25 %', '0.0 %')
    """
    return f"{round(100 * value, digits) + 0.0:.{digits}f} %"
