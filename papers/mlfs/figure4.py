"""MLFS, Figure 4 (section 4.2.1): all policies on 20 servers of 4 GPUs, by number of jobs."""

from pathlib import Path

from papers.mlfs.bench import Bench
from papers.mlfs.measures import (
    LEAST_LOADED,
    ORDERS,
    PRINTED,
    PRINTED_LEAST,
    PRINTED_MS,
    SHOWN,
    By,
    Groups,
    Measure,
)
from papers.mlfs.plotting import jct_cdfs, over_x
from papers.mlfs.tables import (
    by_policy,
    gain_claims,
    noted,
    of_case,
    order_claim,
    overhead_claims,
    write_runs,
)
from papers.mlfs.workloads import SCALES, scaled
from papers.runs import Means, means
from papers.sheets import Claim, claims, picture, write_page

LEAST, ONE, MOST = "x = 1/4", "x = 1", "x = 3"
AT_LEAST: dict[Measure, Groups] = {
    one: LEAST_LOADED if one.key.startswith("accuracy") else groups for one, groups in ORDERS.items()
}
ABOUT = (
    "620x jobs of one week of Philly on 20 servers of 4 GPUs; {draws}, figures are means over draws. MLFS and MLF-RL "
    "go by a model of training curves that was fitted to those of 120 jobs of another draw, as an operator would have "
    "it; forecasts from other applications are of a model fitted to measured curves of four; with exact forecasts MLFS "
    "knows the accuracy that a job would end at. The paper ran this on a testbed and does not print its load: what "
    "compares are orders and relative changes."
)


def figure4(bench: Bench, out: Path) -> None:
    """Write the figure's page, table and plots into a folder."""
    done = bench.run([scaled(x) for x in SCALES], bench.rows)
    found = means(done)
    write_runs(out, "figure4", done)
    over_x(out, "figure4", "20 servers of 4 GPUs, by x", found, SHOWN)
    jct_cdfs(out, "figure4-jct", "Completion times on 20 servers of 4 GPUs", done, (ONE, MOST))
    write_page(out, "figure4", _parts(bench, found))


def _parts(bench: Bench, found: Means) -> list[str]:
    draws = f"{len(bench.seeds)} draws" if len(bench.seeds) > 1 else "one draw"
    tables = [part for x in SCALES for part in (f"## x = {x}", by_policy(of_case(found, f"x = {x}")))]
    return [
        "# Figure 4: 20 servers",
        ABOUT.format(draws=draws),
        *noted(bench.notes),
        picture("figure4", "Figures by x"),
        picture("figure4-jct", "Distributions of completion times"),
        *tables,
        "## Against the paper",
        claims(_claims(found)),
    ]


def _claims(found: Means) -> list[Claim]:
    least, most = of_case(found, LEAST), of_case(found, MOST)
    orders = [*order_claims(MOST, ORDERS, most), *order_claims(LEAST, AT_LEAST, least)]
    gains = [*gain_claims(MOST, PRINTED, most, real=True), *gain_claims(LEAST, PRINTED_LEAST, least, real=True)]
    return [*orders, *gains, *overhead_claims(MOST, PRINTED_MS, most)]


def order_claims(case: str, orders: dict[Measure, Groups], found: By) -> list[Claim]:
    """Orders of the paper by measure, of the policies that were run."""
    made = (order_claim(case, measure, groups, found) for measure, groups in orders.items())
    return [one for one in made if one is not None]
