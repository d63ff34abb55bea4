"""MLFS's priorities: equations 2 to 6 term by term, and what it costs to know run times less well (section 3.1)."""

from papers.mlfs.bench import TESTBED, Bench, Workload
from papers.mlfs.measures import ACCURATE, DEADLINE, JCT, URGENT, apart, relative
from papers.mlfs.plotting import over_x, tables_over_x
from papers.mlfs.rows import MLF_H, SRTF, Row
from papers.results import Done, Page, draws_text, grid, means

JOBS, DRAWS = 310, 3
LOADS = (0.5, 1.0, 1.5)
FIVE_MINUTES = {"round_s": "300"}
WHOLE = (Row(MLF_H, "mlf_h", FIVE_MINUTES), Row(SRTF, "srtf", FIVE_MINUTES))
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
RATIOS = (DEADLINE, URGENT, ACCURATE)
LOAD, SAMPLE_MIN = ("load", 1.0), 10.0
KNOWN = {
    "all ran before": (),
    "half never ran": (("unseen", 0.5),),
    "half, sample runs": (("unseen", 0.5), ("sample_min", SAMPLE_MIN)),
    "none ran before": (("unseen", 1.0),),
    "none, sample runs": (("unseen", 1.0), ("sample_min", SAMPLE_MIN)),
}
"""How well run times are known."""


def _parts() -> list[Row]:
    settings = {f"without {part}": given for part, given in PARTS.items()}
    settings["accuracy alone"] = {"alpha": "1"}
    for one in ("deadlines", "waiting"):
        settings[f"{one} alone"] = PARTS["accuracy"] | {k: "0" for t in TIMES if t != one for k in PARTS[t]}
    settings |= {"as printed, in days": PRINTED, "as printed, in hours": PRINTED | {"unit_s": "3600"}}
    return [Row(title, "mlf_h", given | FIVE_MINUTES) for title, given in settings.items()]


def terms(bench: Bench, page: Page) -> None:
    """MLF-H without each term of its priorities and with each alone, by load: the page and its table of runs."""
    loads = [Workload(f"load {load:g}", JOBS, TESTBED, (("load", load),)) for load in LOADS]
    rows, seeds = [*WHOLE, *_parts()], bench.seeds[:DRAWS]
    done = page.runs(bench.run(loads, rows, seeds))
    beyond = [part for one in loads for part in (f"## {one.name}: beyond MLF-H", _beyond(done, one.name, rows[1:]))]
    tables = tables_over_x(means(done), (JCT, *RATIOS))
    page.write(draws=draws_text(len(seeds)), jobs=JOBS, tables=tables, apart=beyond)


def _beyond(done: list[Done], case: str, rows: list[Row]) -> str:
    """By how much each row is better than MLF-H, with intervals of paired differences."""
    compared = [(JCT, relative), *((one, apart) for one in RATIOS)]
    cells = [(row.title, *(by(one, done, case, row.title, MLF_H).text() for one, by in compared)) for row in rows]
    return grid(("policy", "JCT, % less", *(f"{one.word}, points" for one in RATIOS)), cells)


def estimates(bench: Bench, page: Page) -> None:
    """What it costs that run times of jobs that never ran are known less well, and sample runs: page, table, plot."""
    cases = [Workload(name, JOBS, TESTBED, (LOAD, *settings)) for name, settings in KNOWN.items()]
    seeds, measures = bench.seeds[:DRAWS], (JCT, DEADLINE, ACCURATE)
    found = means(page.runs(bench.run(cases, WHOLE, seeds)))
    over_x(page, "How well run times are known", found, measures)
    tables = tables_over_x(found, measures)
    page.write(draws=draws_text(len(seeds)), jobs=JOBS, minutes=f"{SAMPLE_MIN:g}", tables=tables)
