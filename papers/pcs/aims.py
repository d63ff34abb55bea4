"""How near configurations of our own come to what we want of them: a quarter of Tiresias's error at nearly its JCT."""

from collections.abc import Mapping, Sequence

from papers.page import grid
from papers.pcs.fronts import CLUSTERS, NAMES, Sources
from papers.pcs.runs import TITLES, Task
from papers.pcs.workloads import MEASURED_JOBS, published
from papers.runs import Means

QUARTER, NEAR = 0.25, 1.3
"""So much of Tiresias's mean error, within so much of its mean JCT."""


def window(cluster: str, first: int = 0) -> str:
    """What a window of a trace is called.

    >>> window("ee9e8c", 301)
    'ee9e8c, jobs 302 to 602'
    """
    return f"{cluster}, jobs {first + 1} to {first + MEASURED_JOBS}"


def row_tasks(sources: Sources, cluster: str) -> list[Task]:
    """All rows of a front on both windows of its trace, apart from the tables of policies."""
    rows = [row for row in sources.front(CLUSTERS[cluster]).rows if len(row.config.rates) > 1]
    tasks = []
    for first in (0, MEASURED_JOBS):
        case, scenario = _case(window(cluster, first)), published(sources.data, cluster, first)
        tasks += [Task(case, f"row {row.pick}", scenario, config=row.config) for row in rows]
    return tasks


def _case(window: str) -> str:
    return f"front, {window}"


def aims_table(found: Means, clusters: Sequence[str]) -> str:
    """The three configurations and, by hindsight, the best row, on each window."""
    rows = []
    for cluster in clusters:
        windows = [window(cluster, first) for first in (0, MEASURED_JOBS)]
        of_rows = [_relative(found, _case(one), one) for one in windows]
        # Chosen on the first jobs alone; the second window shows what the choice is worth.
        reached = [name for name, pair in of_rows[0].items() if reaches(pair)]
        best = min(reached, key=lambda name: of_rows[0][name][0], default=None)
        for one, of_row in zip(windows, of_rows, strict=True):
            of_three = _relative(found, one, one)
            count = f"{sum(reaches(pair) for pair in of_row.values())} of {len(of_row)}"
            result = f"{best}: {_told(of_row[best])}" if best else "none"
            rows.append((one, *(_told(of_three[name]) for name in NAMES), count, result))
    return grid(("window", *NAMES, "rows that reach it", "best row by hindsight"), rows)


def reaches(pair: tuple[float, float]) -> bool:
    """Whether relative error and JCT are what we want."""
    return pair[0] <= QUARTER and pair[1] <= NEAR


def _relative(found: Means, case: str, of: str) -> Mapping[str, tuple[float, float]]:
    """Mean error and mean JCT of all runs of a case over Tiresias's in a window."""
    base = found[of, TITLES["srsf"]]
    return {
        name: (figures["mean_error_pct"] / base["mean_error_pct"], figures["mean_jct_s"] / base["mean_jct_s"])
        for (one, name), figures in found.items()
        if one == case
    }


def _told(pair: tuple[float, float]) -> str:
    return f"{pair[0]:.2f} at {pair[1]:.2f}"
