"""What parts of ANDREAS are worth: its iterations, period, snapshots, restarts, and how well it knows times."""

from collections.abc import Sequence
from pathlib import Path

from papers.andreas.bench import BASELINES, Bench, Row, scenario
from papers.andreas.measures import SHOWN, SINGLE, TOTAL, over
from papers.bench import read_settings
from papers.results import Done, Means, Page, draws_text, grid, interval_of, means, read_rows

NODES, MOST_DRAWS = 20, 5
WHOLE = Row("as it is")


def _groups() -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in read_rows(Path(__file__).with_suffix(".csv")):
        one = Row(row["title"], row["policy"], read_settings(row["settings"]), float(row["noise"]))
        groups.setdefault(row["about"], []).append(one)
    return {**groups, "The others, which stop and move nothing": list(BASELINES)}


GROUPS = _groups()
"""Rows by what they differ in from `WHOLE`, whose own value stands in brackets."""


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
