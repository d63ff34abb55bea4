"""Shockwave, Figure 11 (section 8.7): Pollux, which changes jobs' GPUs, against Shockwave, which does not."""

from dataclasses import replace
from pathlib import Path

from jobcast.domain.hardware import FLAT_POOL
from jobcast.domain.jobs import Pool
from jobcast.pipelines.experiments.forecast_specs import ORACLE
from jobcast.schedulers.pollux import Pollux
from jobcast.simulator.laws.goodput import replay_goodput
from jobcast.simulator.log import RunLog
from jobcast.simulator.metrics import figures
from papers.results import Claim, Means, Page, Replayed, claims, in_parallel, number, numbers
from papers.shockwave.pollux_jobs import applications, draw_jobs, scenario_of
from papers.shockwave.runs import GREEDY, SHOCKWAVE, Task, fairness_cdfs, run, write_cases
from papers.shockwave.workloads import CONTENTION

POLLUX = "pollux"
JOBS, GPUS = 120, 32
CASES = {"contention 3": CONTENTION, "contention 1": 1.0}
"""GPUs that jobs would hold at the widths that they ask for, if nobody waited, over the GPUs that there are."""
SEEDS = range(2)


def both(data: Path, case: str, seed: int) -> tuple[Replayed, ...]:
    """Both schedulers on one draw."""
    known = applications(data, GPUS)
    names, works = draw_jobs(known, JOBS, GPUS, CASES[case], seed)
    log, ran = replay_goodput(works, Pollux(), Pool(FLAT_POOL, GPUS))
    # Shockwave cannot scale jobs: it gets the batch sizes that Pollux chose, on the widths that were asked for.
    scenario = scenario_of(names, works, ran, known, GPUS)
    labels = {ORACLE: SHOCKWAVE, GREEDY: f"{SHOCKWAVE}, {GREEDY.label}"}
    runs = [run(Task(case, scenario, SHOCKWAVE, spec, label=label)) for spec, label in labels.items()]
    return (runs[0], _done(case, log, runs[0].log), *runs[1:])


def _done(case: str, log: RunLog, like: RunLog) -> Replayed:
    """Pollux's replay with the run times alone of Shockwave's jobs."""
    made = replace(log, policy=POLLUX, duration_s=like.duration_s)
    return Replayed(case, POLLUX, figures(made), log=made)


def figure11(data: Path, page: Page) -> None:
    """Write the figure's page, table and plots into a folder."""
    draws = [(case, seed) for case in CASES for seed in SEEDS]
    pairs = list(in_parallel(lambda draw: both(data, *draw), draws, lambda pair: pair[0].case))
    done = [one for pair in pairs for one in pair]
    fairness_cdfs(page.named("figure11-ftf"), "Finish-time fairness of one draw, contention 3", pairs[0])
    found, tables = write_cases(page, "Shockwave and Pollux", done)
    said = claims(claim for case in CASES for claim in _claims(found, done, case))
    page.write(jobs=JOBS, gpus=GPUS, seeds=len(SEEDS), tables=tables, claims=said)


def _claims(found: Means, done: list[Replayed], case: str) -> list[Claim]:
    mine, theirs = found[case, SHOCKWAVE], found[case, POLLUX]
    jct, makespan = mine["mean_jct_s"] / theirs["mean_jct_s"], theirs["makespan_s"] / mine["makespan_s"]
    pollux = [one for one in done if (one.case, one.name) == (case, POLLUX)]
    asked = sum(float(one.log.gpus @ one.log.duration_s) for one in pollux)
    held = sum(one.figures["utilization"] * one.figures["makespan_s"] * one.log.total_gpus for one in pollux)
    worst = [one["worst_ftf"] for one in (mine, theirs)]
    said = f"{case}: worst FTF of Shockwave and Pollux"
    return [
        Claim(f"{case}: mean JCT of Shockwave / Pollux's", "3", number(jct), jct > 1),
        Claim(f"{case}: GPU time at the GPUs asked for / what Pollux held", "2.4", number(asked / held), asked > held),
        Claim(f"{case}: makespan of Pollux / Shockwave's", "about 1", number(makespan), None),
        Claim(said, "Shockwave's far better", numbers(worst), worst[0] < worst[1]),
    ]
