"""ANDREAS on a real cluster: the 1,213 nodes of openb with GPUs of seven types (Weng et al., USENIX ATC 2023)."""

from papers.andreas.bench import BASELINES, OTHERS, OURS, Bench, Row, Workload
from papers.andreas.measures import SHOWN, SINGLE, TOTAL, holds, over, savings_tables
from papers.results import Claim, Page, claims, draws_text, means, table

JOBS, LOAD, MOST_DRAWS, ITERATIONS = 2_000, 0.9, 3, 100
COMMON = 100
# By the cost-to-go a call takes too long here.
ROWS = (Row(OURS, settings={"objective": "equation_1", "max_iterations": str(ITERATIONS)}), *BASELINES)
DRAWN = (("jobs", JOBS), ("load", LOAD))
WHOLE = Workload("all nodes", DRAWN, openb=True)
LARGEST = Workload("large groups", DRAWN, openb=True, least=COMMON)


def openb(bench: Bench, page: Page) -> None:
    """Write the page and the table of all runs into a folder."""
    draws, cases = bench.draws(MOST_DRAWS), (WHOLE.name, LARGEST.name)
    done = page.runs(bench.run([WHOLE, LARGEST], ROWS, draws))
    savings, said = [], []
    for case in cases:
        saved = over(TOTAL, done, [case], OTHERS)
        savings += [f"## What ANDREAS saves, {case}", *savings_tables(done, [case], OTHERS, "nodes")]
        text = f"{case}: total cost reduced on average by"
        said.append(Claim(text, "30 to 62 %", f"{saved.text()} %", holds(saved)))
    page.write(
        jobs=JOBS,
        load=LOAD,
        draws=draws_text(len(draws), SINGLE),
        iterations=ITERATIONS,
        common=COMMON,
        table=table(means(done), "nodes", SHOWN),
        savings=savings,
        claims=claims(said),
    )
