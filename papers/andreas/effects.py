"""What parts of ANDREAS are worth: its iterations, period, snapshots, restarts, and how well it knows times."""

from collections.abc import Sequence

from papers.andreas.bench import BASELINES, EQUATION_1, Bench, Row, scenario
from papers.andreas.measures import SHOWN, SINGLE, TOTAL, over
from papers.results import Done, Means, Page, draws_text, grid, interval_of, means

NODES, MOST_DRAWS = 20, 5
WHOLE, BY_1 = Row("as it is"), EQUATION_1.settings
GROUPS: dict[str, tuple[Row, ...]] = {
    "The objective (the cost-to-go)": (
        Row("equation 1", settings=BY_1),
        Row("equation 1, MaxIt 100", settings={**BY_1, "max_iterations": "100"}),
        Row("equation 1, GPUs capped at random", settings={**BY_1, "caps": "true"}),
        Row("equation 1, thorough", settings={"thorough": "true"}),
    ),
    "Prices of time (occupancy .3, impatience .1), schedules a call (30), hold (0)": (
        Row("occupancy 0", settings={"occupancy": "0"}),
        Row("occupancy .1", settings={"occupancy": "0.1"}),
        Row("occupancy 1", settings={"occupancy": "1"}),
        Row("impatience 0", settings={"impatience": "0"}),
        Row("MaxIt 2", settings={"max_iterations": "2"}),
        Row("hold .1", settings={"hold": "0.1"}),
    ),
    "Period H (300 s)": (
        Row("H 60 s", settings={"period_s": "60"}),
        Row("H 1,800 s", settings={"period_s": "1800"}),
        Row("H 300 s, no calls at events", settings={"on_events": "false"}),
    ),
    "Epochs between snapshots (1), restarts (0 s)": (
        Row("snapshots every 5 epochs", settings={"snapshot_epochs": "5"}),
        Row("restart 60 s", settings={"restart_s": "60"}),
        Row("restart 300 s", settings={"restart_s": "300"}),
        Row("restart 300 s, equation 1", settings={**BY_1, "restart_s": "300"}),
        Row("restart 300 s, snapshots every 5 epochs", settings={"restart_s": "300", "snapshot_epochs": "5"}),
    ),
    "Seconds that a new application is measured on each number of GPUs (0: all are known)": (
        Row("profile 60 s", settings={"profile_s": "60"}),
        Row("profile 300 s", settings={"profile_s": "300"}),
        Row("EDF, profile 300 s", "edf", settings={"profile_s": "300"}),
    ),
    "Believed times of epochs (the true ones)": (
        Row("off by 10 %", noise=0.1),
        Row("off by 30 %", noise=0.3),
    ),
    "The others, which stop and move nothing": BASELINES,
}


def effects(bench: Bench, page: Page) -> None:
    """Write the page and the table of all runs into a folder."""
    draws = bench.draws(MOST_DRAWS)
    rows = (WHOLE, *(row for group in GROUPS.values() for row in group))
    done = page.runs(bench.run([scenario(1, NODES)], rows, draws))
    found = means(done)
    tables = [part for title, group in GROUPS.items() for part in (f"## {title}", _table(done, found, group))]
    page.write(nodes=NODES, draws=draws_text(len(draws), SINGLE), tables=tables)


def _table(done: Sequence[Done], found: Means, group: Sequence[Row]) -> str:
    head = ("", *(one.title for one in SHOWN), "more in all, EUR", "more in all, %")
    return grid(head, (_line(done, found, row.title) for row in (WHOLE, *group)))


def _line(done: Sequence[Done], found: Means, name: str) -> tuple[str, ...]:
    case = str(NODES)
    cells = (name, *(one.text(found[case, name]) for one in SHOWN))
    if name == WHOLE.title:
        return (*cells, "", "")
    more = interval_of(TOTAL.of(done, case, name) - TOTAL.of(done, case, WHOLE.title))
    return (*cells, more.text(2), over(TOTAL, done, [case], [WHOLE.title], ours=name).negative.text())
