"""Jobs for Shockwave against Pollux (section 8.7): measured trainings that scale, and what Pollux made of them."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import numpy as np

from jobcast.domain.hardware import FLAT_POOL, flat_cluster
from jobcast.domain.jobs import Job, Outcome
from jobcast.domain.training import Regime, Training
from jobcast.pipelines.experiments.rigid_jobs import RigidScenario, WholeFacts
from jobcast.pipelines.experiments.scaling_jobs import Application, ScalingTables, application
from jobcast.pipelines.experiments.scenarios import Scenario
from jobcast.pipelines.report.job_table import listed
from jobcast.simulator.laws.goodput import ScalableWork, Stretch
from jobcast.simulator.workload import Workload
from jobcast.traces.goodput_tables import read_noise_curves, read_step_times
from jobcast.traces.table import Trace

SHARES: dict[str, float] = {"cifar10": 0.7, "deepspeech2": 0.2, "bert": 0.1}
"""Of small, medium and larger jobs, near section 8.1. Trainings of ncf last about a minute and are left out."""
WIDTHS = (1, 2, 4, 8)
WIDTH_SHARES = (0.6, 0.3, 0.09, 0.01)
"""As the generator's."""
EPOCHS = 200
"""Into which the samples of every job are divided, for Shockwave."""
MODE = "pollux"


def tables_of(data: Path) -> ScalingTables:
    """What Pollux's authors measured."""
    steps, curves = data / "curves" / "step_times.csv", data / "curves" / "training_curves.csv"
    return ScalingTables(read_step_times(steps), read_noise_curves(curves), str(steps), str(curves))


def applications(data: Path, most_gpus: int) -> dict[str, Application]:
    """Applications of `SHARES` from their measurements."""
    tables = tables_of(data)
    return {name: application(name, tables, most_gpus) for name in SHARES}


def draw_jobs(
    known: dict[str, Application], jobs: int, gpus: int, contention: float, seed: int
) -> tuple[list[str], list[ScalableWork]]:
    """Applications and work of jobs that arrive as a Poisson process; together they would hold contention x GPUs."""
    rng = np.random.default_rng(seed)
    names = rng.choice(list(SHARES), jobs, p=list(SHARES.values())).tolist()
    widths = rng.choice(WIDTHS, jobs, p=WIDTH_SHARES).tolist()
    alone = [ScalableWork(0.0, width, known[name].work.phases) for name, width in zip(names, widths, strict=True)]
    gpu_s = sum(work.gpus * work.exclusive_s() for work in alone)
    gaps = rng.exponential(gpu_s / jobs / (contention * gpus), jobs)
    # The first job begins the trace.
    gaps[0] = 0.0
    return names, [
        ScalableWork(at, work.gpus, work.phases) for at, work in zip(np.cumsum(gaps).tolist(), alone, strict=True)
    ]


def scenario_of(
    names: Sequence[str],
    works: Sequence[ScalableWork],
    stretches: Sequence[Sequence[Stretch]],
    known: dict[str, Application],
    gpus: int,
) -> RigidScenario:
    """The jobs for Shockwave: on the GPUs that they ask for, with the samples and batch sizes that Pollux's run had."""
    jobs, outcomes = [], []
    for seq, (name, work, ran) in enumerate(zip(names, works, stretches, strict=True)):
        training, regimes = training_of(known[name], work.gpus, ran)
        job_id = f"{seq:0{len(str(len(works)))}d}"
        jobs.append(Job(seq, job_id, FLAT_POOL, work.submit_s, work.gpus, training=training, preemptible=True))
        outcomes.append(Outcome(training.run_time_s(regimes), regimes))
    place, nothing = flat_cluster(gpus), _nothing()
    workload = Workload(jobs, outcomes, place.pools)
    window = works[0].submit_s, works[-1].submit_s + 1.0
    return Scenario(workload, WholeFacts(), nothing, nothing, place, *window, listed(workload))


def training_of(app: Application, gpus: int, ran: Sequence[Stretch]) -> tuple[Training, tuple[Regime, ...]]:
    """A training of `EPOCHS` epochs, and its regimes in whole epochs, from stretches of a replay."""
    samples = [(stretch.end_s - stretch.begin_s) * app.samples_s(stretch.gpus, stretch.batch_size) for stretch in ran]
    sizes = [app.rounded(stretch.batch_size) for stretch in ran]
    ends = np.round(np.cumsum(samples) / sum(samples) * EPOCHS).astype(int).tolist()
    by_epoch = np.empty(EPOCHS, dtype=int)
    for begin, end, size in zip([0, *ends[:-1]], ends, sizes, strict=True):
        by_epoch[begin:end] = size
    regimes = tuple(Regime(int(size), float(len(list(group)))) for size, group in groupby(by_epoch.tolist()))
    epoch_s = {size: sum(samples) / EPOCHS / app.samples_s(gpus, size) for size in sorted(set(by_epoch.tolist()))}
    return Training(app.name, regimes[0].batch_size, EPOCHS, MODE, epoch_s), regimes


def _nothing() -> Trace:
    """No trace before the jobs: no forecast here looks back."""
    import polars as pl

    columns = {"job_id": ["0"], "pool": [FLAT_POOL], "submit_time": [0.0], "duration": [1.0], "gpus": [1]}
    return Trace.from_frame(pl.DataFrame(columns), name="none").between(None, 0.0)
