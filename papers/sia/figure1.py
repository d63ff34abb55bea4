"""SIA, Figure 1 (section 1) and Table 4: whom anticipation helps and max-min fairness hurts; what schedulers know.

The paper draws its eight jobs and prints neither GPUs nor run times. These are made after what it says of them: two run
already; of green's first the run time is long, of two others short; orange's come later and need its pool.
"""

import numpy as np
import polars as pl

from jobcast.domain.hardware import pools_cluster
from jobcast.domain.jobs import Pool
from jobcast.domain.tolerance import EVENT_S
from jobcast.pipelines.experiments.forecast_specs import ORACLE
from jobcast.pipelines.experiments.rigid_jobs import RigidScenario, rigid_jobs
from jobcast.pipelines.experiments.scenarios import cut_scenario
from jobcast.pipelines.experiments.simulation import simulate
from jobcast.pipelines.experiments.sources import Ask
from jobcast.schedulers.policies import ARRIVALS, DURATIONS, ELASTIC, SIZES
from jobcast.schedulers.registry import find_policy
from jobcast.simulator.log import RunLog
from jobcast.traces.table import Trace
from papers.plotting import gantt
from papers.results import HOUR_S, Page, grid, result
from papers.sia.bench import NO_HOME

GREEN, ORANGE = "green", "orange"
POOLS = [Pool(GREEN, 3), Pool(ORANGE, 3)]
JOBS = (
    ("J0", GREEN, 0.0, 4.0, 3), ("J1", ORANGE, 0.0, 2.0, 1), ("J2", GREEN, 1.0, 10.0, 2), ("J3", GREEN, 1.0, 1.0, 1),
    ("J4", GREEN, 1.0, 1.0, 1), ("J5", GREEN, 1.0, 3.0, 2), ("J6", ORANGE, 3.0, 2.0, 3), ("J7", ORANGE, 3.0, 1.0, 2),
)  # fmt: skip
"""Name, user, hours of submission and of run time, GPUs."""
DRAWN = ("fcfs", "mmfs", "sia_vc")
"""The paper's three."""
POLICIES = (*DRAWN, "karma", "sia", "sia_plan", "themis_np", "hived", "gssf")
KNOWN = ("sia", "mmfs", "themis_np", "hived", "tiresias", "elastic_las", "karma")
"""Of Table 4, in its order; two forms of Tiresias."""


def example() -> RigidScenario:
    """The eight jobs on two pools."""
    names, pools, submit_h, run_h, gpus = zip(*JOBS, strict=True)
    columns = {"job_id": names, "pool": pools, "gpus": gpus}
    times = {"submit_time": np.array(submit_h) * HOUR_S, "duration": np.array(run_h) * HOUR_S}
    trace = Trace.from_frame(pl.DataFrame({**columns, **times}), name="figure 1")
    return rigid_jobs(cut_scenario(trace, pools_cluster(POOLS)))


def figure1(source: object, page: Page) -> None:
    """Write the page, tables and plots into a folder; nothing of `source` is read."""
    logs = {name: simulate(example(), Ask(policy=name, spec=ORACLE, home=NO_HOME)).log for name in POLICIES}
    jobs, gpus = [job for job, *_ in JOBS], {"cluster": sum(pool.quota for pool in POOLS)}
    for name in DRAWN:
        gantt(page.named(f"figure1-{name}"), f"Figure 1 under {name}", logs[name].spans, jobs, gpus)
    ends = [(name, *(f"{end_s / HOUR_S:g}" for end_s in log.end_s)) for name, log in logs.items()]
    page.csv(("policy", *jobs), ends)
    hurt, mine = (_apart_h(logs[name], logs["fcfs"]) for name in ("mmfs", "sia_vc"))
    late, early = ([job for job, apart in zip(jobs, mine, strict=True) if of(apart)] for of in (_late, _early))
    slowed = [job for job, apart in zip(jobs, hurt, strict=True) if _late(apart)]
    page.write(
        jobs=grid(("job", "user", "submitted, h", "runs, h", "GPUs"), [tuple(map(str, job)) for job in JOBS]),
        table=grid(("", *jobs), [_line(name, log, logs["fcfs"]) for name, log in logs.items()]),
        table4=grid(("", *KNOWN), _knows()),
        slowed=result(f"{', '.join(slowed)} slowed", {"J6", "J7"} <= set(slowed)),
        early=result(f"{', '.join(early)} earlier, {', '.join(late) or 'nobody'} later", {"J3", "J4"} <= set(early)),
        nobody=result(", ".join(late) or "nobody", not late),
    )


def _apart_h(log: RunLog, base: RunLog) -> list[float]:
    apart_h: list[float] = ((log.end_s - base.end_s) / HOUR_S).tolist()
    return apart_h


def _late(apart_h: float) -> bool:
    return apart_h * HOUR_S > EVENT_S


def _early(apart_h: float) -> bool:
    return _late(-apart_h)


def _line(name: str, log: RunLog, base: RunLog) -> tuple[str, ...]:
    """Completions, h, marked as in the paper: better than the baseline, worse, no change."""
    marks = ["✗" if _late(apart) else "✓" if _early(apart) else "-" for apart in _apart_h(log, base)]
    return (name, *(f"{end_s / HOUR_S:g} {mark}" for end_s, mark in zip(log.end_s, marks, strict=True)))


def _knows() -> list[tuple[str, ...]]:
    """Table 4 as the registry tells it of our policies, what the paper prints of its columns in brackets."""
    specs = [find_policy(name) for name in KNOWN]
    rows = {
        "gangs of GPUs": ("✓✓✓✓✓✓✗", [spec.kind != ELASTIC for spec in specs]),
        "keeps to what running jobs hold": ("~✓✗✗✗✗✗", [not spec.preempts for spec in specs]),
        "uses run times": ("✓✗✓✗✓✓✗", [bool({DURATIONS, SIZES} & set(spec.asks)) for spec in specs]),
        "uses forecasts of what will come": ("✓✗✗✗✗✗✗", [ARRIVALS in spec.asks for spec in specs]),
    }
    return [
        (row, *(f"{'✓' if has else '✗'} ({mark})" for has, mark in zip(cells, printed, strict=True)))
        for row, (printed, cells) in rows.items()
    ]
