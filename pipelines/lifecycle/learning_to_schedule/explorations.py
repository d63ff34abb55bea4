"""Whole runs of small workloads, from which corrections of MLF-H are learned, and a learned policy against MLF-H.

Compared pair by pair on workloads that it has not seen: when to switch. MLFS, section 3.4.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from jobcast.domain.arrays import Bools, Floats
from jobcast.domain.tasks import AccuracyForecast, TaskRule, TaskView
from jobcast.models.scheduling.policy import Measured
from jobcast.pipelines.lifecycle.learning_to_schedule.task_courses import EpisodeSettings, draw_episode
from jobcast.schedulers.tasks.learned_priorities import RANK_FEATURES, SHAPES, rank_rows
from jobcast.schedulers.tasks.mlf_h import MlfH
from jobcast.schedulers.tasks.mlfs_settings import HeuristicSettings
from jobcast.simulator import metrics
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


ROUND_S = 600.0
"""Seconds between two decisions of a run: what is learned of orders, servers and limits holds by the minute, too."""
MOST_JOBS = 40
"""Of a run: half a second for the eight runs of an iteration."""
SPREAD = {"ranks": 0.1, "hosts": 0.5, "limits": 0.05}
"""Standard deviations of changes: of powers of e by which a priority, a term, a share is multiplied."""
OBJECTIVES = (
    ("mean_jct_s", -1.0), ("deadline_ratio", 1.0), ("bandwidth_tb", -1.0), ("accuracy_ratio", 1.0),
    ("accuracy_mean", 1.0),
)  # fmt: skip
"""Equation 1 in its order, and which way is better; in one unit as in `rewards`."""


class Episodes:
    """Small workloads by seeds, and what policies reach on them.

    Parameters
    ----------
    workload, drawn : what they are drawn from, and how
    settings : of MLF-H, against which others are measured
    forecast : of final accuracies
    """

    def __init__(
        self,
        workload: TaskWorkload,
        drawn: EpisodeSettings,
        settings: HeuristicSettings,
        forecast: AccuracyForecast | None,
    ) -> None:
        self._drawn = replace(drawn, jobs=min(drawn.jobs, MOST_JOBS))
        self._workload, self.settings, self._forecast = workload, settings, forecast
        self._heuristic: dict[int, Mapping[str, float]] = {}

    def figures(self, policy: TaskRule, seed: int) -> Mapping[str, float]:
        """What a policy reaches, deciding every ten minutes."""
        rng = np.random.default_rng(seed)
        part = draw_episode(self._workload, self._drawn, rng)
        policy.trigger = replace(policy.trigger, period_s=ROUND_S)
        law = Tasks(part, self._forecast, seed=int(rng.integers(2**31)))
        return metrics.figures(replay(part.whole(), policy, law=law))

    def beyond(self, policy: TaskRule, seeds: Sequence[int]) -> tuple[float, ...]:
        """Objectives beyond those of MLF-H, (5,), means over workloads."""
        found = []
        for seed in seeds:
            if seed not in self._heuristic:
                self._heuristic[seed] = self.figures(MlfH(self.settings), seed)
            found.append(objectives_of(change(self.figures(policy, seed), self._heuristic[seed])))
        return tuple(np.mean(found, axis=0).tolist())


def objectives_of(changes: Floats) -> Floats:
    """(5,) what changes of `comparison.FIGURES` are worth to each objective of equation 1."""
    return np.array([sign * changes[FIGURES.index(name)] for name, sign in OBJECTIVES])


def objectives_beyond(mine: Mapping[str, float], theirs: Mapping[str, float]) -> Floats:
    """(5,) by how much one run is better than another by objective; the negative where they are swapped."""
    gained: Floats = (objectives_of(change(mine, theirs)) - objectives_of(change(theirs, mine))) / 2.0
    return gained


class _Watched(MlfH):
    """MLF-H, and which columns of jobs' rows were ever anything but 0."""

    def __init__(self, settings: HeuristicSettings) -> None:
        super().__init__(settings)
        self.used: Bools = np.zeros(len(RANK_FEATURES), dtype=np.bool_)

    def ranks(self, view: TaskView) -> Floats:
        """See `MlfH`."""
        self.used |= (rank_rows(view) != 0.0).any(axis=0)
        return super().ranks(view)


def spreads(episodes: Episodes, seeds: Sequence[int]) -> dict[str, Floats]:
    """Of changes, by name; 0 for columns that were always 0 on some runs of MLF-H, which would speak up later."""
    watched = _Watched(episodes.settings)
    for seed in seeds:
        episodes.figures(watched, seed)
    found = {name: np.full(shape, SPREAD[name]) for name, shape in SHAPES.items()}
    found["ranks"][:, ~watched.used] = 0.0
    return found
