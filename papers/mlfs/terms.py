"""MLFS, equations 2 to 6, term by term: MLF-H without each and with each alone, by load."""

from papers.mlfs.bench import TESTBED, Bench, Workload
from papers.mlfs.measures import ACCURATE, DEADLINE, JCT, URGENT, apart, relative
from papers.mlfs.plotting import tables_over_x
from papers.mlfs.rows import MLF_H, SRTF, Row
from papers.results import Done, Page, draws_text, grid, means

JOBS, DRAWS = 310, 3
LOADS = (0.5, 1.0, 1.5)
FIVE_MINUTES = {"round_s": "300"}
PARTS = {
    "accuracy": {"alpha": "0"},
    "deadlines": {"gamma_d": "0"},
    "remaining time": {"gamma_r": "0"},
    "waiting": {"gamma_w": "0"},
    "urgency": {"urgency": "false"},
    "dependent tasks": {"gamma": "0"},
}
TIMES = ("deadlines", "remaining time", "waiting")
PRINTED = {"unit_s": "86400", "sums": "true"}
MEASURES = (JCT, DEADLINE, URGENT, ACCURATE)


def _rows() -> list[Row]:
    settings = {f"without {part}": given for part, given in PARTS.items()}
    settings["accuracy alone"] = {"alpha": "1"}
    for one in ("deadlines", "waiting"):
        settings[f"{one} alone"] = PARTS["accuracy"] | {k: "0" for t in TIMES if t != one for k in PARTS[t]}
    settings |= {"as printed, in days": PRINTED, "as printed, in hours": PRINTED | {"unit_s": "3600"}}
    rows = [Row(title, "mlf_h", given | FIVE_MINUTES) for title, given in settings.items()]
    return [Row(MLF_H, "mlf_h", FIVE_MINUTES), Row(SRTF, "srtf", FIVE_MINUTES), *rows]


def terms(bench: Bench, page: Page) -> None:
    """Write the page and its table of runs into a folder."""
    loads = [Workload(f"load {load:g}", JOBS, TESTBED, (("load", load),)) for load in LOADS]
    rows, seeds = _rows(), bench.seeds[:DRAWS]
    done = page.runs(bench.run(loads, rows, seeds))
    apart_by = [
        part for load in loads for part in (f"## {load.name}: beyond MLF-H", _beyond(done, load.name, rows[1:]))
    ]
    tables = tables_over_x(means(done), MEASURES)
    page.write(draws=draws_text(len(seeds)), jobs=JOBS, tables=tables, apart=apart_by)


def _beyond(done: list[Done], case: str, rows: list[Row]) -> str:
    """By how much each row is better than MLF-H, with intervals of paired differences."""
    compared = [(JCT, relative), *((one, apart) for one in MEASURES[1:])]
    cells = [(row.title, *(by(one, done, case, row.title, MLF_H).text() for one, by in compared)) for row in rows]
    return grid(("policy", "JCT, % less", *(f"{one.word}, points" for one in MEASURES[1:])), cells)
