"""Do eight schedulers rank alike on a trace and on its twin, or its shareable export? Kendall's tau, by seed.

    JOBCAST_DATA=traces python benchmarks/bench_twin.py [campus philly surf nasa] [--seeds 3] [--json FILE]

Quotas are the trace's own, under the twin's words. `easy` takes time limits drawn by `trace enrich --facts limits`, of
the same rule and seed for all. Ranks are by mean completion time and by mean speedup over fcfs, as `jobcast backtest`
tells them; tau-b takes figures less than 1 % apart for ties, the raw tau takes none.
"""

import argparse
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import kendalltau

from jobcast.domain.hardware import Cluster, PoolsTable
from jobcast.pipelines.experiments.backtest import matrix, run_matrix
from jobcast.pipelines.experiments.experiment import Experiment
from jobcast.pipelines.experiments.forecast_specs import parse_forecasts
from jobcast.pipelines.report.console import Console
from jobcast.pipelines.report.files import write_json
from jobcast.pipelines.report.formatting import parse_time
from jobcast.pipelines.stages.prepared_traces import data_file
from jobcast.traces.anonymise import anonymised
from jobcast.traces.enrich.columns import parse_enrich
from jobcast.traces.enrich.enrichment import enrich
from jobcast.traces.generators import generate
from jobcast.traces.pools import derive_pools, read_pools
from jobcast.traces.readers import read_trace
from jobcast.traces.table import Trace
from jobcast.traces.twin import twin_of
from jobcast.traces.words import renamed

POLICIES = ("fcfs", "mmfs", "ssf", "gssf", "sia", "easy", "srpt", "las")
MEASURES = {"mean_jct_s": 1.0, "speedup_mean": -1.0}
"""Figures to rank by; the sign puts the best first."""
TIE = 0.01
Case = tuple[Trace, PoolsTable]
Row = dict[str, dict[str, float]]


def between(trace: Trace, begin: str, until: str) -> Trace:
    return trace.between(parse_time(begin), parse_time(until))


def derived(trace: Trace) -> Case:
    return trace, PoolsTable.of(derive_pools(trace))


def campus(seed: int, **settings: str) -> Case:
    trace, pools = generate("campus", seed, settings)
    return trace, PoolsTable.of(pools)


def philly(begin: str, until: str, pools: str) -> Case:
    table = read_pools(data_file(f"philly/{pools}"))
    names = {quota.pool for quota in table.quotas}
    return between(read_trace(data_file("philly/philly_jobs.csv")), begin, until).of_pools(names), table


def nasa(begin: str, until: str) -> Case:
    return derived(between(read_trace(data_file("swf/nasa-ipsc-1993.swf")), begin, until))


def surf(begin: str, until: str) -> Case:
    return derived(between(read_trace(data_file("surf/jobs.parquet")), begin, until))


CASES: dict[str, Callable[[], Case]] = {
    # those that figures are reported on
    "campus": lambda: campus(0, weeks="1", jobs="1500"),
    "philly": lambda: philly("2017-11-06", "2017-11-13", "pools_nov06_nov26.csv"),
    "surf": lambda: surf("2022-09-05", "2022-09-12"),
    "nasa": lambda: nasa("1993-11-15", "1993-11-29"),
    # those that nobody had looked at when it was made
    "new-campus": lambda: campus(4242, weeks="1", jobs="1500"),
    "new-philly": lambda: philly("2017-11-20", "2017-11-27", "pools_nov06_nov26.csv"),
    "new-surf": lambda: surf("2022-10-10", "2022-10-17"),
    "new-nasa": lambda: nasa("1993-12-06", "1993-12-20"),
    # those that the model was made on
    "made-campus": lambda: campus(7, weeks="2", pools="6", jobs="3000"),
    "made-philly": lambda: philly("2017-10-23", "2017-10-30", "pools_oct02_nov12.csv"),
    "made-nasa": lambda: nasa("1993-10-04", "1993-10-18"),
}


def world(case: Case) -> Experiment:
    """A trace with time limits, on its quotas."""
    trace, pools = case
    limited = enrich(trace, ["limits"], parse_enrich({}), 0).trace
    return Experiment(trace=limited, cluster=Cluster(quotas=pools), only_pools=True, drop_wide=True)


def replayed(cases: Sequence[Case], policies: Sequence[str], jobs: int, console: Console) -> list[Row]:
    """What is ranked by, by policy, of each case."""
    pairs = [(name, parse_forecasts("oracle"), name) for name in policies]
    with console.progress("replay") as step:
        cells = matrix(pairs, len(cases), 1)
        results = run_matrix(list(map(world, cases)), cells, home=Path.cwd(), jobs=jobs, progress=step)
    rows: list[Row] = [{} for _ in cases]
    for one in results:
        rows[one.cell.window][one.cell.policy] = {name: float(one.figures[name]) for name in MEASURES}
    return rows


def with_ties(values: Sequence[float]) -> list[int]:
    """Ranks in which a value less than `TIE` above the one before it shares its rank."""
    order = np.argsort(values, kind="stable")
    ranks, rank = [0] * len(values), 0
    for before, at in pairwise(order):
        rank += values[at] - values[before] >= TIE * abs(values[before])
        ranks[at] = int(rank)
    return ranks


def taus(ours: Row, theirs: Row) -> dict[str, float]:
    """Tau-b with ties and raw tau, by measure."""
    result = {}
    for measure, sign in MEASURES.items():
        a, b = ([sign * told[name][measure] for name in ours] for told in (ours, theirs))
        result[measure] = float(kendalltau(with_ties(a), with_ties(b)).statistic)
        result[f"{measure} (raw)"] = float(kendalltau(a, b).statistic)
    return result


def shared(kind: str, case: Case, seed: int) -> Case:
    """A twin or an export, with its quotas."""
    trace, pools = case
    if kind == "twin":
        made, table, _ = renamed(twin_of(trace, seed=seed), pools, np.random.default_rng(seed))
    else:
        export = anonymised(trace, pools, seed=seed)
        made, table = export.trace, export.pools
    assert table is not None
    return made, table


def told(label: str, row: Row) -> str:
    cells = (
        f"{name} {values['mean_jct_s'] / 3600:.2f} h {values['speedup_mean']:.2f}x" for name, values in row.items()
    )
    return f"{label:<12}" + ", ".join(cells)


def main() -> None:
    """Print the figures by policy, and taus with their ranges."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="*", default=["campus", "philly", "surf", "nasa"], metavar="TRACE")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--export-seeds", type=int, default=1)
    parser.add_argument("--kinds", default="twin,export")
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--jobs", type=int, default=2, help="replays at a time")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    console, result = Console(), dict[str, Any]()
    for name in args.traces:
        case = CASES[name]()
        console.result(f"{name}: {len(case[0]):,} jobs of {len(case[0].pools)} pools")
        kinds = args.kinds.split(",")
        made = [(kind, seed) for kind in kinds for seed in range(args.seeds if kind == "twin" else args.export_seeds)]
        cases = [case, *(shared(kind, case, seed) for kind, seed in made)]
        own, *rows = replayed(cases, args.policies.split(","), args.jobs, console)
        console.result(told("trace", own))
        result[name] = {"trace": own, "shared": []}
        for (kind, seed), row in zip(made, rows, strict=True):
            console.result(told(f"{kind} {seed}", row))
            result[name]["shared"].append({"kind": kind, "seed": seed, "figures": row, "taus": taus(own, row)})
        for kind in kinds:
            found = [one["taus"] for one in result[name]["shared"] if one["kind"] == kind]
            for measure in found[0]:
                values = [one[measure] for one in found]
                spread = f"{np.mean(values):.2f} ({min(values):.2f} to {max(values):.2f})"
                console.result(f"  {kind} tau by {measure}: {spread}")
        if args.json:
            write_json(args.json, result)


if __name__ == "__main__":
    main()
