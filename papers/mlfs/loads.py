"""MLFS, Figures 4 and 5 (section 4.2.1): policies by number of jobs, on 20 servers and on 550 of Philly."""

from papers.mlfs import measures as m
from papers.mlfs.bench import A_WEEK, SCALES, Bench, philly_week, scaled
from papers.mlfs.plotting import jct_cdfs, over_x, tables_over_x
from papers.mlfs.rows import HYPERSCHED, MLF_H, MLF_RL, MLFS, SLAQ, SRTF, TENSORFLOW, TIRESIAS
from papers.results import Done, Page, claims, means, of_case

LEAST, ONE, MOST = "x = 1/4", "x = 1", "x = 3"
SHARES = {"1/2": 0.5, "1": 1.0, "2": 2.0}
SEEDS = (0, 1, 2)
NAMES = (MLFS, MLF_RL, MLF_H, TIRESIAS, HYPERSCHED, TENSORFLOW, SLAQ, SRTF)
"""Shares of a week of Philly, draws of it, and those who are compared on it."""


def figure4(bench: Bench, page: Page) -> None:
    """All policies on 20 servers: the page, table and plots, into a folder."""
    done = page.runs(bench.run([scaled(x) for x in SCALES], bench.rows, bench.seeds))
    found = means(done)
    said = [*m.load_claims(LEAST, MOST, found, real=True), *m.overhead_claims(MOST, m.PRINTED_MS, of_case(found, MOST))]
    _plot(page, "20 servers of 4 GPUs", done, (ONE, MOST))
    page.write(**bench.facts, tables=tables_over_x(found, m.SHOWN), claims=claims(said))


def figure5(bench: Bench, page: Page) -> None:
    """One week of Philly on 550 servers with 2,474 GPUs: the page, table and plots, into a folder."""
    rows = [row for row in bench.rows if row.title in NAMES]
    done = page.runs(bench.run([philly_week(x, share) for x, share in SHARES.items()], rows, SEEDS))
    found, (least, *_, most) = means(done), (f"x = {x}" for x in SHARES)
    _plot(page, "550 servers", done, (most,), ", 2,474 GPUs")
    drawn = ", ".join(f"{round(share * A_WEEK):,} (x = {x})" for x, share in SHARES.items())
    tables, said = tables_over_x(found, m.SHOWN), m.load_claims(least, most, found, real=False)
    page.write(week=A_WEEK, drawn=drawn, notes=bench.facts["notes"], tables=tables, claims=claims(said))


def _plot(page: Page, servers: str, done: list[Done], cases: tuple[str, ...], more: str = "") -> None:
    over_x(page, f"{servers}{more}, by x", means(done), m.SHOWN)
    jct_cdfs(page.named(f"{page.name}-jct"), f"Completion times on {servers}", done, cases)
