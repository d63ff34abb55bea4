"""What is measured of runs against FCFS, how spreads over draws are told and drawn, and runs compared draw by draw."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import wilcoxon

from jobcast.pipelines.report.charts import thin_cdf
from jobcast.pipelines.report.look import PALETTE, plain_ticks
from papers.plotting import panels, save
from papers.results import Done, Floats, Measure, Page, grid, names_of, number
from papers.sia.bench import SIA_EXACT, SIA_PAPER, SIA_RANDOM, SIA_RANDOM_ARRIVALS, Row

BOOTSTRAPS = 2000
INTERVAL = (2.5, 97.5)

GMEAN = Measure("speedup_gmean", "speedup, geometric mean")
MEAN = Measure("speedup_mean", "speedup, mean", 1)
RATIO = Measure("jct_ratio", "mean JCT of fcfs / mean JCT")
P5 = Measure("speedup_p5", "speedup, p5")
P90, P95, P99 = (Measure(f"speedup_p{at}", f"speedup, p{at}", 1) for at in (90, 95, 99))
SLOWED = Measure("slowed_pct", "slowed, %", log=False)
TOTAL = Measure("slowdown_total_min", "slowdown, min in all", 0)
WORST = Measure("slowdown_max_min", "worst slowdown, min", 1)
WAIT = Measure("mean_wait_s", "mean wait, s", 0)
CPU = Measure("cpu_s", "s of CPU")
STOPS = Measure("preemptions", "times stopped", 0)
GAP = Measure("milp_gap", "gap of the MILP")
SOLVE = Measure("milp_solve_s", "s to solve")


def spread(values: Floats, digits: int) -> str:
    """Median and range over draws.

    >>> spread(np.array([1.0, 4.0, 2.0]), 1)
    '2.0 (1.0 to 4.0)'
    """
    if len(values) == 1 or values.min() == values.max():
        return number(float(values[0]), digits)
    return f"{number(float(np.median(values)), digits)} ({values.min():.{digits}f} to {values.max():.{digits}f})"


def table(done: Sequence[Done], head: str, measures: Sequence[Measure]) -> str:
    """Medians and ranges over draws: a row a case and policy."""
    keys = list(dict.fromkeys((one.case, one.name) for one in done))
    rows = ((case, name, *(spread(one.of(done, case, name), one.digits) for one in measures)) for case, name in keys)
    return grid((head, "policy", *(one.title for one in measures)), rows)


def median(measure: Measure, done: Sequence[Done], case: str, name: str) -> float:
    """Median over draws."""
    return float(np.median(measure.of(done, case, name)))


def mean(measure: Measure, done: Sequence[Done], case: str, name: str) -> float:
    """Mean over draws."""
    return float(measure.of(done, case, name).mean())


def most_slowed(done: Sequence[Done], cases: Sequence[str], rows: Sequence[Row]) -> float:
    """The largest share of the jobs of any draw that any of some policies slow, %."""
    return max(float(SLOWED.of(done, case, row.title).max()) for case in cases for row in rows)


def times_less(ours: float, theirs: float) -> float:
    """How many times less ours is than theirs: infinite where there is nothing of ours, 1 where of neither.

    >>> times_less(2.0, 8.0), times_less(0.0, 8.0), times_less(0.0, 0.0)
    (4.0, inf, 1.0)
    """
    if ours > 0:
        return theirs / ours
    return float("inf") if theirs > 0 else 1.0


def times_text(times: float) -> str:
    """In words.

    >>> times_text(1234.5), times_text(float("inf"))
    ('1,234', 'all of it')
    """
    return f"{times:,.0f}" if np.isfinite(times) else "all of it"


def paired_text(ours: Floats, theirs: Floats) -> str:
    """Geometric mean over draws of ours / theirs, and its 95 % interval by drawing draws with replacement.

    >>> paired_text(np.array([2.0, 8.0]), np.array([1.0, 4.0]))
    '2.00 (2.00 to 2.00)'
    """
    log = np.log(ours / theirs)
    drawn = np.random.default_rng(0).integers(0, len(log), (BOOTSTRAPS, len(log)))
    low, high = np.exp(np.percentile(log[drawn].mean(axis=1), INTERVAL))
    return f"{np.exp(log.mean()):.2f} ({low:.2f} to {high:.2f})"


def paired_table(done: Sequence[Done], head: str, ours: str) -> str:
    """One policy beside the others draw by draw: a row a case and other.

    Of speedups the ratio, see `paired_text`; of minutes lost the share of draws in which it costs less, and p of
    Wilcoxon's signed ranks that neither costs more.
    """
    keys = dict.fromkeys((one.case, one.name) for one in done if one.name != ours)
    rows = []
    for case, other in keys:
        pairs = {one: (one.of(done, case, ours), one.of(done, case, other)) for one in (GMEAN, MEAN, TOTAL)}
        less = pairs[TOTAL][0] - pairs[TOTAL][1]
        p = wilcoxon(less).pvalue if less.any() else 1.0
        ratios = (paired_text(*pairs[one]) for one in (GMEAN, MEAN))
        rows.append((case, other, *ratios, f"{100 * np.mean(less < 0):.0f}", f"{p:.2g}"))
    return grid(
        (head, f"{ours} against", "x its speedup, geometric", "arithmetic", "loses less, % of draws", "p"), rows
    )


TALL_PANEL = 2.7
FLOORS = {"slowdown_total_min": 1.0, "slowdown_max_min": 1.0}
"""Below this a logarithmic axis goes linearly to 0: a minute."""
NESTED = ((12.5, 87.5, 0.5), (25.0, 75.0, 0.9))
"""Boxes of Figure 14: percentiles, and width as a share of a group's."""
NEARLY = 1e-9
MARKS = ("o", "s")
MOST_TICKS = 5
"""On an axis that begins at 0."""
MOST_LABELS = 5
"""Of places on a narrow axis; with more of them every second one is labelled."""
COLORS = (*PALETTE, "#999999")
"""The palette, and a grey for an eighth policy."""
HOME = {
    "sia": 0, SIA_EXACT.title: 0, "mmfs": 1, "fcfs": 2, "hived": 2, "gssf": 3, SIA_RANDOM.title: 3,
    "ssf": 4, SIA_RANDOM_ARRIVALS.title: 4, "sia_vc": 5, "themis_np": 5, "milp": 6, "sjf": 6,
    SIA_PAPER.title: 7,
}  # fmt: skip
"""Colours in the palette by which a policy looks alike in all figures; those that share one rarely meet."""


def _colors(names: Sequence[str]) -> dict[str, str]:
    """A colour each: a policy's own, else the last one that is free. At most as many names as colours."""
    taken: dict[int, str] = {}
    for name in names:
        if name in HOME:
            taken.setdefault(HOME[name], name)
    # Grey first: it stays free in most figures, and belongs to nobody there.
    free = [place for place in (len(PALETTE), *range(len(PALETTE))) if place not in taken]
    for name in names:
        if name not in taken.values():
            taken[free.pop()] = name
    return {name: COLORS[place] for place, name in taken.items()}


def _scale(axes: Axes, measure: Measure, which: str = "y") -> None:
    """Make an axis of a plot logarithmic where the measure's is, with plain numbers; call it when all is drawn."""
    axis, scale = getattr(axes, f"{which}axis"), getattr(axes, f"set_{which}scale")
    if measure.key in FLOORS:
        # Nobody slowed is 0, which a plain logarithmic axis cannot show.
        floor = FLOORS[measure.key]
        scale("symlog", linthresh=floor)
        top = max(axis.get_view_interval()[1], floor)
        getattr(axes, f"set_{which}lim")(0.0, top)
        _decades(axis, floor, top)
    elif measure.log:
        scale("log")
        plain_ticks(axis)


def _decades(axis: Any, floor: float, top: float) -> None:
    """Ticks at 0 and at powers of ten from `floor` on, the same number of decades apart."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    decades = int(np.log10(top / floor) + NEARLY)
    step = max(1, -(-(decades + 1) // (MOST_TICKS - 1)))
    axis.set_major_locator(FixedLocator([0.0, *(floor * 10.0 ** np.arange(0, decades + 1, step))]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.4g}" if x < 1000 else f"{x:,.0f}"))


def ranges(page: Page, title: str, done: Sequence[Done], measures: Sequence[Measure]) -> None:
    """Draw `NAME.svg`: a panel a measure; by case a bar a policy from least to most over draws, a dot at the median."""

    def bar(axes: Axes, at: Floats, values: Sequence[Floats], wide: float, color: str) -> None:
        axes.vlines(at, [min(each) for each in values], [max(each) for each in values], color, linewidth=5, alpha=0.45)

    _spreads(page, title, done, measures, bar, "", marker="o", ms=4)


def boxes(page: Page, title: str, done: Sequence[Done], measures: Sequence[Measure]) -> None:
    """Draw `NAME.svg`: nested boxes of percentiles over draws, by number of queues and policy, a panel a measure."""

    def box(axes: Axes, at: Floats, values: Sequence[Floats], wide: float, color: str) -> None:
        for low, high, share in NESTED:
            ends = np.array([np.percentile(each, (low, high)) for each in values])
            axes.bar(at, ends[:, 1] - ends[:, 0], wide * share, ends[:, 0], color=color, alpha=0.5)
        axes.grid(axis="x", visible=False)

    _spreads(page, title, done, measures, box, "queues", marker="_", ms=7, mew=2)


def _spreads(
    page: Page, title: str, done: Sequence[Done], measures: Sequence[Measure], spread: Any, x: str, **mark: Any
) -> None:
    """A panel a measure: by case and policy what `spread` paints of the values over draws, a mark at the median."""
    cases, names = names_of(done)
    color, wide = _colors(names), 0.8 / len(names)

    def panel(axes: Axes, measure: Measure) -> None:
        for place, label in enumerate(names):
            at = np.arange(len(cases)) + wide * (place + 0.5) - 0.4
            values = [measure.of(done, case, label) for case in cases]
            spread(axes, at, values, wide, color[label])
            medians = [float(np.median(each)) for each in values]
            axes.plot(at, medians, linestyle="", color=color[label], label=label, clip_on=False, **mark)
        _scale(axes, measure)

    def last(axes: Axes) -> None:
        # Names of synthetic workloads are long.
        labels = [case.replace(" ", "\n") for case in cases]
        axes.set_xticks(range(len(cases)), labels, fontsize=None if x else 8)
        axes.set_xlabel(x)

    panels(page, title, measures, panel, height=TALL_PANEL * len(measures), last=last, sharex=True)


def over_draws(page: Page, title: str, done: Sequence[Done], measures: Sequence[Measure]) -> None:
    """Draw `NAME.svg`: distributions over draws, a panel a measure, a line a policy."""
    cases, names = names_of(done)
    color = _colors(names)

    def panel(axes: Axes, measure: Measure) -> None:
        for label in names:
            x, share = thin_cdf(np.concatenate([measure.of(done, case, label) for case in cases]))
            # The first step rises from 0 at the least value.
            axes.step(np.append(x[:1], x), np.append(0.0, share), where="post", label=label, color=color[label])
        axes.set(xlabel=measure.title, ylabel="share of draws", ylim=(0, 1.02))
        _scale(axes, measure, "x")

    panels(page, title, measures, panel, height=2 * TALL_PANEL, columns=-(-len(measures) // 2), titled=False)


def frontier(page: Page, title: str, done: Sequence[Done], harm: Measure, gain: Measure) -> None:
    """Draw `NAME.svg`: gain over harm, a policy's median over draws of one case, bars over the middle half of them."""
    case, names = done[0].case, names_of(done)[1]

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        for at, label in enumerate(names):
            (x_low, x, x_high), (y_low, y, y_high) = (
                np.percentile(one.of(done, case, label), (25, 50, 75)) for one in (harm, gain)
            )
            look: dict[str, Any] = {"color": PALETTE[at % len(PALETTE)], "label": label}
            look["marker"] = MARKS[at // len(PALETTE)]
            axes.errorbar([x], [y], [[y - y_low], [y_high - y]], [[x - x_low], [x_high - x]], elinewidth=0.8, **look)
            axes.annotate(label, (x, y), xytext=(5, 4), textcoords="offset points", fontsize=8)
        axes.set(xlabel=harm.title, ylabel=gain.title)
        _scale(axes, harm, "x")
        _scale(axes, gain)

    save(page, title, paint)


def lines(
    page: Page,
    title: str,
    measures: Sequence[Measure],
    x: str,
    at: Sequence[float],
    curves: Mapping[str, Callable[[Measure], Sequence[float]]],
) -> None:
    """Draw `NAME.svg`: a panel a measure, a line a curve over places.

    Parameters
    ----------
    x, at : what the axis is of, and (n,) places on it
    curves : label of a line -> (n,) values of a measure
    """
    color = _colors(list(curves))

    def panel(axes: Axes, measure: Measure) -> None:
        for label, values in curves.items():
            axes.plot(at, values(measure), marker="o", ms=3, label=label, color=color[label], clip_on=False)
        axes.set_xlabel(x)
        every = 1 if len(at) <= MOST_LABELS else 2
        axes.set_xticks(at, [f"{place:g}" if not i % every else "" for i, place in enumerate(at)])
        _scale(axes, measure)

    panels(page, title, measures, panel, height=1.2 * TALL_PANEL, columns=len(measures))
