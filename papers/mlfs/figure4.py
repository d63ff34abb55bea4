"""MLFS, Figure 4 (section 4.2.1): all policies on 20 servers of 4 GPUs, by number of jobs."""

from papers.mlfs import measures as m
from papers.mlfs.bench import SCALES, Bench, scaled
from papers.mlfs.plotting import jct_cdfs, over_x, tables_over_x
from papers.results import Page, claims, means, of_case

LEAST, ONE, MOST = "x = 1/4", "x = 1", "x = 3"


def figure4(bench: Bench, page: Page) -> None:
    """Write the figure's page, table and plots into a folder."""
    done = page.runs(bench.run([scaled(x) for x in SCALES], bench.rows, bench.seeds))
    found = means(done)
    over_x(page, "20 servers of 4 GPUs, by x", found, m.SHOWN)
    jct_cdfs(page.named("figure4-jct"), "Completion times on 20 servers of 4 GPUs", done, (ONE, MOST))
    said = [*m.load_claims(LEAST, MOST, found, real=True), *m.overhead_claims(MOST, m.PRINTED_MS, of_case(found, MOST))]
    page.write(**bench.facts, tables=tables_over_x(found, m.SHOWN), claims=claims(said))
