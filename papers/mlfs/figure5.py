"""MLFS, Figure 5 (section 4.2.1): one week of Philly on 550 servers with 2,474 GPUs."""

from papers.mlfs import measures as m
from papers.mlfs.bench import A_WEEK, Bench, philly_week
from papers.mlfs.plotting import jct_cdfs, over_x, tables_over_x
from papers.mlfs.rows import HYPERSCHED, MLF_H, MLF_RL, MLFS, SLAQ, SRTF, TENSORFLOW, TIRESIAS
from papers.results import Page, claims, means

SHARES = {"1/2": 0.5, "1": 1.0}
SEEDS = (0,)
NAMES = (MLFS, MLF_RL, MLF_H, TIRESIAS, HYPERSCHED, TENSORFLOW, SLAQ, SRTF)
LEAST, MOST = (f"x = {x}" for x in SHARES)


def figure5(bench: Bench, page: Page) -> None:
    """Write the figure's page, table and plots into a folder."""
    rows = [row for row in bench.rows if row.title in NAMES]
    done = page.runs(bench.run([philly_week(x, share) for x, share in SHARES.items()], rows, SEEDS))
    found = means(done)
    over_x(page, "550 servers, 2,474 GPUs, by x", found, m.SHOWN)
    jct_cdfs(page.named("figure5-jct"), "Completion times on 550 servers", done, (MOST,))
    drawn = ", ".join(f"{round(share * A_WEEK):,} (x = {x})" for x, share in SHARES.items())
    tables, said = tables_over_x(found, m.SHOWN), m.load_claims(LEAST, MOST, found, real=False)
    page.write(week=A_WEEK, drawn=drawn, notes=bench.facts["notes"], tables=tables, claims=claims(said))
