"""What do twins give away, over many halvings of a log, and what would a release of five distributions alone?

    JOBCAST_DATA=traces python benchmarks/bench_membership.py [nasa campus ...] [--by users] [--halvings 100:132]

Areas under the ROC curve as `jobcast trace twin` tells them of one halving: mean, standard deviation over halvings and
the share above 0.55. "five figures" is a release of nothing but how the hour of the week, the width, the run time and
the gaps before and after are distributed in a half, each by itself: the half's records with these mixed apart.
"""

import argparse
from collections.abc import Callable

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.pipelines.cli.sharing_requests import GUESS
from jobcast.pipelines.stages.prepared_traces import data_file
from jobcast.traces.generators import generate
from jobcast.traces.likeness import Shown, attack, records
from jobcast.traces.readers import read_trace
from jobcast.traces.table import Trace
from jobcast.traces.twin import twin_of

FIGURES = ([0, 1], [2], [3], [4], [5])
"""Columns of `records`; the first two are the hour of the week."""


def campus(seed: int, **settings: str) -> Trace:
    return generate("campus", seed, {"weeks": "4", **settings})[0]


CASES: dict[str, Callable[[], Trace]] = {
    "nasa": lambda: read_trace(data_file("swf/nasa-ipsc-1993.swf")),
    "campus": lambda: campus(0, jobs="6000"),
    "new-campus": lambda: campus(4242, jobs="6000"),
    # more pools of the same kinds
    "campus-24": lambda: campus(4242, jobs="12000", pools="24", pool_ratio="0.9"),
    "campus-48": lambda: campus(4242, jobs="24000", pools="48", pool_ratio="0.9"),
}


def five_figures(half: Trace, seed: int) -> Floats:
    """Records of a half, each figure of another job."""
    rng, own = np.random.default_rng(seed), records(half)
    return np.column_stack([own[rng.permutation(len(own))][:, columns] for columns in FIGURES])


SHOWN: dict[str, Shown] = {"twin": lambda half, seed: records(twin_of(half, seed=seed)), "five figures": five_figures}


def main() -> None:
    """Print a line a trace and kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="*", default=list(CASES), metavar="TRACE")
    parser.add_argument("--by", choices=("users", "weeks"), default="users")
    parser.add_argument("--halvings", default="100:132", help="seeds, FROM:UNTIL")
    args = parser.parse_args()
    seeds = range(*map(int, args.halvings.split(":")))
    for name in args.traces:
        log = CASES[name]()
        for kind, shown in SHOWN.items():
            found = [attack(log, shown, args.by, seed) for seed in seeds]
            areas = np.array([one.auc for one in found if one])
            units = found[0].units if found[0] else 0
            told = f"{areas.mean():.3f}, sd {areas.std():.3f}, {(areas > GUESS).mean():.0%} above {GUESS}"
            print(f"{name:<12}{len(log):>7,} jobs {units:>4} {args.by}  {kind:<14}{told}", flush=True)


if __name__ == "__main__":
    main()
