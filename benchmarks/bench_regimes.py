"""How long an update of each rule takes: what is left of a running job, one call, one thread.

    python benchmarks/bench_regimes.py

The prior is learnt from generated jobs of the rules of adaptation; `remaining_time` gives an interval too.
"""

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from jobcast.domain.jobs import Job
from jobcast.domain.training import Progress, Regime, Training
from jobcast.models.regimes import REGIME_RULES, RegimePrior
from jobcast.models.regimes.trajectories import progress_at

BAR_US = 50.0
LEARN_BAR_S = 120.0
JOBS = 2000
CALLS = 4000
SIZES = (8, 16, 32, 64, 128)


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table."""

    name: str
    took: float
    unit: str
    bar: float = math.inf

    def __str__(self) -> str:
        bar = f"  bar {self.bar:g}" if math.isfinite(self.bar) else ""
        return f"{self.name:<36}{self.took:>10.1f} {self.unit}{bar}"


def finished_jobs(jobs: int, seed: int) -> list[tuple[Training, tuple[Regime, ...]]]:
    """Jobs of five models, with accordion and gns, whose regimes vary around rules."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(jobs):
        first, epochs = int(rng.choice(SIZES[:-1])), int(rng.integers(20, 400))
        mode = ("accordion", "gns")[int(rng.integers(2))]
        epoch_s = {size: 60.0 * (8 / size) ** 0.5 for size in SIZES}
        training = Training(f"model-{rng.integers(5)}", first, epochs, mode, epoch_s)
        sizes = [first, SIZES[-1]] if mode == "accordion" else [size for size in SIZES if size >= first]
        lengths = [0.3 * epochs] if mode == "accordion" else [15.0] * (len(sizes) - 1)
        lengths = [length * float(np.exp(0.3 * rng.standard_normal())) for length in lengths]
        found.append((training, tuple(_cut(sizes, lengths, float(epochs)))))
    return found


def _cut(sizes: list[int], lengths: list[float], epochs: float) -> list[Regime]:
    regimes, left = [], epochs
    for size, length in zip(sizes, [*lengths, math.inf], strict=True):
        regimes.append(Regime(size, min(length, left)))
        left -= regimes[-1].epochs
        if left <= 0:
            break
    return regimes


def median_us(ask: Callable[[Job, Progress], object], asked: list[tuple[Job, Progress]]) -> float:
    """Median microseconds of a call."""
    took = []
    for call in range(CALLS):
        job, progress = asked[call % len(asked)]
        begin = time.perf_counter()
        ask(job, progress)
        took.append(time.perf_counter() - begin)
    return 1e6 * float(np.median(took))


def main() -> int:
    """Print the table; 1 where a bar is missed."""
    jobs = finished_jobs(JOBS, 0)
    begin = time.process_time()
    prior = RegimePrior().fit(jobs)
    figures = [Figure(f"learning from {JOBS} jobs, CPU", time.process_time() - begin, "s", LEARN_BAR_S)]
    asked = [
        (Job(seq, str(seq), "pool", 0.0, 1, training=training), progress_at(regimes, training.epochs * point / 100))
        for seq, (training, regimes) in enumerate(finished_jobs(100, 1))
        for point in (0, 20, 60)
    ]
    figures += [Figure(name, median_us(rule().regimes, asked), "us", BAR_US) for name, rule in REGIME_RULES.items()]
    figures.append(Figure("prior, mean", median_us(prior.regimes, asked), "us", BAR_US))
    figures.append(Figure("prior, mean and interval", median_us(prior.remaining_time, asked), "us"))
    print(*figures, sep="\n")
    return int(any(figure.took > figure.bar for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
