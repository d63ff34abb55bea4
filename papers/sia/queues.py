"""What Figures 14 to 16 share: draws of several numbers of queues, a table and boxes of them."""

from collections.abc import Sequence
from pathlib import Path

from papers.bench import Done
from papers.measures import Measure, draws_text
from papers.page import numbers, result, write_runs
from papers.sia.bench import SIA, Bench, Row
from papers.sia.measures import GMEAN, median, table
from papers.sia.plotting import boxes
from papers.sia.workloads import PoolDraw, Workload


def over_queues(
    bench: Bench,
    out: Path,
    title: str,
    draws: Sequence[PoolDraw],
    rows: Sequence[Row],
    panels: Sequence[Measure],
    columns: Sequence[Measure],
) -> tuple[list[Done], dict[str, str]]:
    """Run rows on draws of several numbers of queues; write the table of runs and the boxes of a figure into a folder.

    Parameters
    ----------
    title : of the figure, which begins with its number
    panels, columns : measures of the plot and of the table

    Returns
    -------
    done : the runs
    shown : how many draws there are, and their table, for the page
    """
    name = title.partition(":")[0].lower().replace(" ", "")
    done = bench.run(draws, rows, range(bench.fewer))
    write_runs(out, name, done)
    boxes(out, name, title, done, panels, "queues")
    return done, {"draws": draws_text(bench.fewer), "table": table(done, "queues", columns)}


def growing(done: Sequence[Done], draws: Sequence[Workload]) -> str:
    """Whether SIA's speedup grows with the number of queues."""
    ours = [median(GMEAN, done, one.name, SIA.title) for one in draws]
    return result(f"{numbers(ours)} by queues", ours == sorted(ours))
