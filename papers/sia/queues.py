"""SIA, Figures 14, 15a and 16 (sections 6.2 to 6.4): draws of several numbers of queues."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from papers.bench import Done
from papers.measures import Measure, draws_text
from papers.page import numbers, result, write_page, write_runs
from papers.sia.bench import (
    HIVED,
    MMFS,
    SIA,
    SIA_EXACT,
    SIA_PAPER,
    SIA_RANDOM,
    SIA_RANDOM_ARRIVALS,
    SIA_VC,
    THEMIS,
    Bench,
    Row,
)
from papers.sia.measures import (
    GMEAN,
    MEAN,
    P90,
    P99,
    SLOWED,
    TOTAL,
    WORST,
    mean,
    median,
    paired_table,
    table,
    times_less,
    times_text,
)
from papers.sia.plotting import boxes
from papers.sia.workloads import PoolDraw

DRAWS = tuple(PoolDraw(queues) for queues in (2, 4, 6, 8))
LOCAL = tuple(PoolDraw(queues, locality=True) for queues in (2, 4, 8))
OTHERS = (MMFS, HIVED, THEMIS)
BY_FORECASTS = (SIA, SIA_PAPER, SIA_RANDOM_ARRIVALS, SIA_RANDOM, SIA_EXACT, SIA_VC, MMFS)
ALL = (GMEAN, MEAN, P90, P99, SLOWED, TOTAL, WORST)
SIMILAR = 3.0
"""Totals that differ by less than this factor are called similar here."""


def figure14(bench: Bench, out: Path) -> None:
    """Numbers of queues that share, and the tails of speedups: the page, table and plot, into a folder."""
    title, panels = "Figure 14: numbers of queues that share", (GMEAN, P90, TOTAL, WORST)
    done, shown = _over_queues(bench, out, title, DRAWS, (SIA, SIA_PAPER, *OTHERS), panels)
    cases = [one.name for one in DRAWS]
    ours = [median(GMEAN, done, case, SIA.title) for case in cases]
    rivals = [max(median(GMEAN, done, case, row.title) for row in OTHERS) for case in cases]
    better = [case for case, one, other in zip(cases, ours, rivals, strict=True) if one >= other]
    less = [times_less(*(mean(TOTAL, done, case, row.title) for row in (SIA, MMFS))) for case in cases]
    found = {
        "growing": _growing(done, cases),
        "above": result(f"with {', '.join(better) or 'no number of'} queues", cases[-1] in better),
        "less": result("; ".join(map(times_text, less)), min(less) >= 10.0),
    }
    _write(out, "figure14", shown | found)


def figure15a(bench: Bench, out: Path) -> None:
    """What predictors are worth, and what perfect ones would be: the page, table and plot, into a folder."""
    title = "Figure 15a: what the predictors are worth"
    done, shown = _over_queues(bench, out, title, DRAWS, BY_FORECASTS, (GMEAN, TOTAL))
    cases = [one.name for one in DRAWS]
    total = {row.title: sum(mean(TOTAL, done, case, row.title) for case in cases) / len(cases) for row in BY_FORECASTS}
    ours, arrivals, random = (total[row.title] for row in (SIA, SIA_RANDOM_ARRIVALS, SIA_RANDOM))
    totals = "; ".join(f"{name} {minutes:,.0f}" for name, minutes in total.items())
    alike = f"{random:,.0f} against {total[MMFS.title]:,.0f} min"
    slowed = max(float(SLOWED.of(done, case, row.title).max()) for case in cases for row in (SIA_EXACT, SIA_VC))
    speed = {row.title: [median(GMEAN, done, case, row.title) for case in cases] for row in (SIA, SIA_EXACT, SIA_VC)}
    more, gaps = (
        [one / other for one, other in zip(speed[better.title], speed[worse.title], strict=True)]
        for better, worse in ((SIA_EXACT, SIA), (SIA_VC, SIA_EXACT))
    )
    found = {
        "totals": result(totals, ours < arrivals < random),
        "random": result(alike, random * SIMILAR > total[MMFS.title]),
        "exact": result(f"{slowed:.2f} % slowed at most", slowed == 0.0),
        "raised": result(numbers(more), min(more) >= 1.0),
        "gaps": result(f"{numbers(gaps)} times", gaps[-1] < gaps[0]),
    }
    _write(out, "figure15a", shown | found)


def figure16(bench: Bench, out: Path) -> None:
    """Jobs that need their GPUs on one server of eight: the page, table and plot, into a folder."""
    rows, panels = (SIA, SIA_PAPER, SIA_EXACT, HIVED), (GMEAN, P90, TOTAL, WORST)
    done, shown = _over_queues(bench, out, "Figure 16: locality", LOCAL, rows, panels)
    cases = [one.name for one in LOCAL]
    less = times_less(*(sum(mean(TOTAL, done, case, row.title) for case in cases) for row in (SIA, HIVED)))
    slowed = max(float(SLOWED.of(done, case, SIA_EXACT.title).max()) for case in cases)
    found = {
        "growing": _growing(done, cases),
        "less": result(times_text(less), less > 1.0),
        "exact": result(f"{slowed:.2f} % at most", slowed == 0.0),
    }
    _write(out, "figure16", shown | found)


def _over_queues(
    bench: Bench,
    out: Path,
    title: str,
    draws: Sequence[PoolDraw],
    rows: Sequence[Row],
    panels: Sequence[Measure],
) -> tuple[list[Done], dict[str, str]]:
    """Run rows on draws of several numbers of queues; write the table of runs and the boxes of a figure into a folder.

    Parameters
    ----------
    title : of the figure, which begins with its number
    panels : measures of the plot

    Returns
    -------
    done : the runs
    shown : how many draws there are, their table, and SIA beside the others draw by draw, for the page
    """
    name = title.partition(":")[0].lower().replace(" ", "")
    done = bench.run(draws, rows, range(bench.fewer))
    write_runs(out, name, done)
    boxes(out, name, title, done, panels, "queues")
    tables = {"table": table(done, "queues", ALL), "paired": paired_table(done, "queues", SIA.title)}
    return done, {"draws": draws_text(bench.fewer), **tables}


def _growing(done: Sequence[Done], cases: Sequence[str]) -> str:
    """Whether SIA's speedup grows with the number of queues."""
    ours = [median(GMEAN, done, case, SIA.title) for case in cases]
    return result(f"{numbers(ours)} by queues", ours == sorted(ours))


def _write(out: Path, name: str, parts: Mapping[str, str]) -> None:
    write_page(str(Path(__file__).with_name(name)), out, **parts)
