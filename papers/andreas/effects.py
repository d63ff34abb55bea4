"""What parts of ANDREAS are worth: its iterations, period, snapshots, restarts, and how well it knows times."""

from collections.abc import Sequence
from pathlib import Path

from jobcast.schedulers.energy.settings import AndreasSettings
from papers.andreas.bench import Bench
from papers.andreas.measures import (
    SHOWN,
    TOTAL,
    Measure,
    draws_text,
    over,
    values_of,
    write_runs,
)
from papers.andreas.units import ROWS, Done, Row
from papers.andreas.workloads import scenario
from papers.confidence import interval_of
from papers.runs import Means, means
from papers.sheets import grid, write_page

NODES, MOST_DRAWS = 20, 5
WHOLE = Row("as it is")
GROUPS: dict[str, tuple[Row, ...]] = {
    "Schedules tried at a call (MaxIt; 1,000)": (
        Row("MaxIt 1", settings=(("max_iterations", "1"),)),
        Row("MaxIt 2, the plain greedy", settings=(("max_iterations", "2"),)),
        Row("MaxIt 100", settings=(("max_iterations", "100"),)),
    ),
    "How they are made": (
        Row("nothing drawn but swaps", settings=(("draw", "0"),)),
        Row("running jobs never kept", settings=(("keep", "false"),)),
        Row("thorough: the proxy is pushed down", settings=(("thorough", "true"),)),
        Row("GPUs capped at random", settings=(("caps", "true"),)),
        Row("4n forced", settings=(("force_nodes", "true"),)),
    ),
    "Period H (300 s)": (
        Row("H 60 s", settings=(("period_s", "60"),)),
        Row("H 1,800 s", settings=(("period_s", "1800"),)),
        Row("H 300 s, no calls at events", settings=(("on_events", "false"),)),
    ),
    "Epochs between snapshots (1), restarts (0 s)": (
        Row("snapshots every 5 epochs", settings=(("snapshot_epochs", "5"),)),
        Row("restart 60 s", settings=(("restart_s", "60"),)),
        Row("restart 300 s", settings=(("restart_s", "300"),)),
        Row(
            "restart 300 s, snapshots every 5 epochs",
            settings=(("restart_s", "300"), ("snapshot_epochs", "5")),
        ),
    ),
    f"The share of the objective that a change must gain (hold; {AndreasSettings().held:g})": (
        Row("hold 0", settings=(("hold", "0"),)),
        Row("hold .3", settings=(("hold", "0.3"),)),
        Row("restart 300 s, hold 0", settings=(("restart_s", "300"), ("hold", "0"))),
        Row("restart 300 s, hold .3", settings=(("restart_s", "300"), ("hold", "0.3"))),
    ),
    "Believed times of epochs (the true ones)": (
        Row("off by 10 %", noise=0.1),
        Row("off by 30 %", noise=0.3),
    ),
    "The others, which stop and move nothing": ROWS[1:],
}
ABOUT = (
    f"The first scenario at {NODES} nodes, {{draws}}; one thing changed at a time, its default in brackets. Means over "
    "draws; the last columns: how much more it costs in all than ANDREAS as it is on the same draws, with 95 % "
    "intervals by Student's t. Believed times are off by exp(N(0, s)), s of .1 or .3, drawn by job, type and number of "
    "GPUs: what a forecast of epoch times is worth."
)


def effects(bench: Bench, out: Path) -> None:
    """Write the page and the table of all runs into a folder."""
    draws = bench.draws(MOST_DRAWS)
    rows = (WHOLE, *(row for group in GROUPS.values() for row in group))
    done = bench.run([scenario(1, NODES)], rows, draws)
    found = means(done)
    write_runs(out, "effects", done)
    tables = [part for title, group in GROUPS.items() for part in (f"## {title}", _table(done, found, group))]
    about = ABOUT.format(draws=draws_text(len(draws)))
    write_page(out, "effects", ["# What parts of ANDREAS are worth", about, *tables])


def _table(done: Sequence[Done], found: Means, group: Sequence[Row]) -> str:
    head = ("", *(one.title for one in SHOWN), "more in all, EUR", "more in all, %")
    return grid(head, (_line(done, found, row.title) for row in (WHOLE, *group)))


def _line(done: Sequence[Done], found: Means, name: str) -> tuple[str, ...]:
    case = str(NODES)
    cells = (name, *(one.text(found[case, name]) for one in SHOWN))
    if name == WHOLE.title:
        return (*cells, "", "")
    more = more_eur(TOTAL, done, case, name)
    return (*cells, more, over(TOTAL, done, [case], [WHOLE.title], ours=name).negative.text())


def more_eur(measure: Measure, done: Sequence[Done], case: str, name: str) -> str:
    """Mean difference to ANDREAS as it is, draw by draw."""
    return interval_of(values_of(measure, done, case, name) - values_of(measure, done, case, WHOLE.title)).text(2)
