"""A learned policy against MLF-H on workloads that it has not seen, pair by pair. MLFS, section 3.4: when to switch."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from jobcast.domain.tasks import AccuracyForecast, Floats, TaskRule
from jobcast.models.scheduling.policy import Measured
from jobcast.simulator.engine import replay
from jobcast.simulator.laws.tasks import Tasks
from jobcast.simulator.metrics import figures
from jobcast.simulator.task_workload import TaskWorkload

CONFIDENCE = 0.95
SHARES = ("mean_jct_s", "bandwidth_tb")
"""Figures whose change is told as a share of MLF-H's."""
DIFFERENCES = ("deadline_ratio", "accuracy_ratio", "accuracy_mean")
"""Those whose change is told as a difference."""
FIGURES = (*SHARES, *DIFFERENCES)


def compare(
    learned: TaskRule,
    heuristic: TaskRule,
    workloads: Sequence[TaskWorkload],
    seeds: Sequence[int],
    *,
    forecast: AccuracyForecast | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Measured:
    """Replay each workload, decision by decision a minute, under both; mean changes and their intervals of 95 %.

    Parameters
    ----------
    workloads, seeds : of replays, as many of both; two at least
    """
    changes = []
    for number, (workload, seed) in enumerate(zip(workloads, seeds, strict=True)):
        rows = [
            figures(replay(workload.whole(), policy, law=Tasks(workload, forecast, seed=seed)))
            for policy in (learned, heuristic)
        ]
        changes.append(change(rows[0], rows[1]))
        if progress is not None:
            progress(number + 1, len(workloads))
    return measured(np.array(changes))


def change(mine: Mapping[str, float], theirs: Mapping[str, float]) -> Floats:
    """Change of each of `FIGURES`."""
    # Where MLF-H sends nothing there is no share to tell.
    shares = [mine[name] / theirs[name] - 1.0 if theirs[name] else 0.0 for name in SHARES]
    return np.array([*shares, *(mine[name] - theirs[name] for name in DIFFERENCES)])


def measured(changes: Floats) -> Measured:
    """Means and Student's intervals of changes (n, figures)."""
    from scipy.stats import t

    count = len(changes)
    mean = changes.mean(axis=0)
    half = t.ppf(0.5 + CONFIDENCE / 2.0, count - 1) * changes.std(axis=0, ddof=1) / np.sqrt(count)

    def named(values: Floats) -> dict[str, float]:
        return dict(zip(FIGURES, values.tolist(), strict=True))

    return Measured(count, named(mean), named(mean - half), named(mean + half))


def is_better(found: Measured) -> bool:
    """Mean completion times measurably shorter, and neither deadlines nor accuracies kept measurably less often."""
    worse = any(found.highs[name] < 0.0 for name in ("deadline_ratio", "accuracy_ratio"))
    # Measurably: the whole interval lies on one side.
    return found.highs["mean_jct_s"] < 0.0 and not worse
