"""ANDREAS on a real cluster: the 1,213 nodes of openb with GPUs of seven types (Weng et al., USENIX ATC 2023)."""

from collections.abc import Sequence
from pathlib import Path

from papers.andreas.bench import Bench
from papers.andreas.campaign import MS, SAVED, holds
from papers.andreas.measures import TOTAL, draws_text, over, savings_tables, table, write_runs
from papers.andreas.units import ANDREAS, OTHERS, OURS, Done, Row
from papers.andreas.workloads import Workload
from papers.runs import means
from papers.sheets import Claim, claims, write_page

JOBS, LOAD, MOST_DRAWS, ITERATIONS = 2_000, 0.9, 3, 100
COMMON = 100
ROWS = (
    Row(OURS, ANDREAS, settings=(("max_iterations", str(ITERATIONS)),)),
    Row("FIFO", "energy_fifo"),
    Row("EDF", "edf"),
    Row("PS", "ps"),
)
DRAWN = (("jobs", JOBS), ("load", LOAD))
WHOLE = Workload("all nodes", DRAWN, openb=True)
LARGEST = Workload("large groups", DRAWN, openb=True, least=COMMON)
ABOUT = (
    "openb's 1,213 nodes with 6,212 GPUs: 549 of eight G2, 387 of two T4, 131 of two P100, 60 of eight V100, 39 of "
    "eight G3, and smaller groups, among them 17 of four T4 and two of one A10. {jobs:,} jobs of the campaign at an "
    "offered load of {load:g}, {draws}; ANDREAS tries {iterations} schedules at a call in place of 1,000. So few jobs "
    "never fill 6,212 GPUs: they come within half an hour and there is room for all at once, so that what matters is "
    "which type of GPU each takes. Speeds and watts of the types are jobcast's assumptions."
)
RARE = (
    "The baselines give each job one configuration for good, the cheapest that meets its due date, however few nodes "
    "have it. On all nodes that is one A10, or several T4, for many jobs, which then queue for a handful of nodes "
    "while thousands of GPUs stand idle: a weakness of that rule rather than of their order, which swells what "
    f"ANDREAS saves beyond meaning. The second case has the nodes alone of which at least {COMMON} are alike."
)


def openb(bench: Bench, out: Path) -> None:
    """Write the page and the table of all runs into a folder."""
    draws = bench.draws(MOST_DRAWS)
    done = bench.run([WHOLE, LARGEST], ROWS, draws)
    write_runs(out, "openb", done)
    about = ABOUT.format(jobs=JOBS, load=LOAD, draws=draws_text(len(draws)), iterations=ITERATIONS)
    savings = [
        part
        for case in (WHOLE.name, LARGEST.name)
        for part in (f"## What ANDREAS saves, {case}", *savings_tables(done, [case], OTHERS, "nodes"))
    ]
    parts = [
        "# openb: 1,213 nodes of a real cluster",
        about,
        RARE,
        f"Means over draws. {MS}",
        table(means(done), "nodes"),
        SAVED,
        *savings,
        "## Against the paper",
        claims(_claim(done, case) for case in (WHOLE.name, LARGEST.name)),
    ]
    write_page(out, "openb", parts)


def _claim(done: Sequence[Done], case: str) -> Claim:
    total = over(TOTAL, done, [case], OTHERS)
    return Claim(f"{case}: total cost reduced on average by", "30 to 62 %", f"{total.text()} %", holds(total))
