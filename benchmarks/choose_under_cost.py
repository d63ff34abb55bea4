"""How the default cost of a duration bin too short was chosen: SIA on October 2017 of the Philly trace.

Predictors are trained on what comes before each window; quotas are derived at load 0.8 on it. `likeliest` tells SIA
the likeliest bin, `rule` what the rule of SIA, section 5.4.2, says.

    JOBCAST_DATA=traces python benchmarks/choose_under_cost.py
"""

import sys
import time

from jobcast.domain.errors import UserError
from jobcast.domain.jobs import Pool
from jobcast.models.forecasts import RegistryForecasts
from jobcast.models.job_duration import JobDuration
from jobcast.pipelines.catalog import data_file
from jobcast.pipelines.recipes import TrainingData, TrainSettings, recipe_of
from jobcast.pipelines.scenes import Scene, build_scene
from jobcast.pipelines.sources import earlier_jobs
from jobcast.pipelines.times import iso, parse_time
from jobcast.schedulers.policies import make_policy
from jobcast.simulator.engine import replay
from jobcast.simulator.history import RunHistory
from jobcast.simulator.metrics import against_baseline, summary
from jobcast.traces.pools import derive_pools
from jobcast.traces.readers import read_trace
from jobcast.traces.splits import MIN_TRAIN_JOBS, pools_to_learn_from
from jobcast.traces.table import Trace

TRAIN_FROM = parse_time("2017-10-02")
WINDOWS = (("2017-10-16", "2017-10-30"), ("2017-10-23", "2017-11-06"))
UNDER_COSTS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
LOAD = 0.8


def quotas(trace: Trace, begin: float, end: float) -> list[Pool]:
    """Quotas at a load of 0.8 on the window, of pools with enough jobs before it."""
    busy = pools_to_learn_from(trace.between(TRAIN_FROM, begin), MIN_TRAIN_JOBS)
    return [pool for pool in derive_pools(trace.between(begin, end), LOAD, end - begin) if pool.name in busy]


class Likeliest(JobDuration):
    """Tells schedulers the likeliest bin."""

    choose = JobDuration.predict


def compare(scene: Scene, data: TrainingData) -> None:
    base = replay(scene.workload, make_policy("fcfs", None, {}))
    arrivals, loads = (trained(name, None, data) for name in ("will-jobs-arrive", "new-load"))
    durations = trained("job-duration", None, data)
    told = {f"under_cost {cost:g}": changed(durations, JobDuration, cost) for cost in UNDER_COSTS}
    told |= {"likeliest": changed(durations, Likeliest, 1.0)}
    told |= {"rule": changed(trained("job-duration", "tag-pool-width", data), Likeliest, 1.0)}
    for name, model in told.items():
        history = RunHistory([pool.name for pool in scene.workload.pools], earlier_jobs(scene))
        source = RegistryForecasts(history, arrivals, loads, model)
        began = time.perf_counter()
        log = replay(scene.workload, make_policy("sia", source, {}), source, history)
        figures = summary(log) | against_baseline(log, base)
        print(
            f"{iso(scene.from_s)} to {iso(scene.until_s)}  {name:<16} speedup {figures['speedup_gmean']:.3f}"
            f"  slowed {figures['slowed_pct']:.3f} %, {figures['slowdown_total_min']:,.0f} min"
            f"  mean JCT {figures['mean_jct_s']:,.0f} s  ({time.perf_counter() - began:.0f} s)",
            flush=True,
        )


def trained(name: str, algorithm: str | None, data: TrainingData):
    chosen, recipe = recipe_of(name, algorithm)
    return recipe(data, chosen, TrainSettings(), None).predictor


def changed(model: JobDuration, kind: type[JobDuration], under_cost: float) -> JobDuration:
    """The same fitted model with another cost or way to choose."""
    other = kind.__new__(kind)
    vars(other).update(vars(model), under_cost=under_cost)
    return other


def main() -> int:
    try:
        trace = read_trace(data_file("philly/philly_jobs.csv"), format="philly")
    except UserError as error:
        print(error)
        return 1
    for begin, end in ((parse_time(begin), parse_time(end)) for begin, end in WINDOWS):
        scene = build_scene(trace, quotas(trace, begin, end), from_s=begin, until_s=end, only_pools=True)
        compare(scene, TrainingData.of(trace, TRAIN_FROM, begin, MIN_TRAIN_JOBS))
    return 0


if __name__ == "__main__":
    sys.exit(main())
