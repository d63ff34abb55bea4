"""Pools whose arrivals run like clockwork: they are forecast too well to say anything of the others."""

import numpy as np
from numpy.typing import NDArray

from jobcast.features.corpus import STEP_S, Corpus, Mask

BAND = 1.02
"""Gaps between g and this much g count as the same."""
LEAST_SHARE = 0.25
"""Share of a pool's gaps that one band holds in a clockwork; people's gaps spread over orders of magnitude."""
LEAST_GAPS = 50
"""Gaps without which nothing is said of a pool."""
SHORTEST_GAP_S = 60.0
"""Shorter gaps are those of a script that submits a batch at once."""
SINCE, GAP = "log_since_arrival_s", "log_last_gap_s"
"""Columns that tell when the last job arrived, and how long after the one before."""


def bot_pools(corpus: Corpus, seen: Mask) -> tuple[str, ...]:
    """Pools of which one narrow band holds a large share of the gaps between arrivals, by name.

    The gaps are those before each instant that follows an arrival within a step of the grid, so nothing is read but
    features known at the instants.

    Parameters
    ----------
    corpus : rows of all pools
    seen : (N,) rows that may be looked at
    """
    if not {SINCE, GAP} <= set(corpus.feature_names):
        return ()
    since, gap = (corpus.feature_names.index(name) for name in (SINCE, GAP))
    fresh = seen & (corpus.X[:, 0, since] <= np.log1p(STEP_S))
    gaps_s = np.expm1(corpus.X[:, 0, gap].astype(np.float64))
    return tuple(
        pool for i, pool in enumerate(corpus.pools) if like_clockwork(gaps_s[fresh & (corpus.pool_index == i)])
    )


def like_clockwork(gaps_s: NDArray[np.float64]) -> bool:
    """Whether one narrow band holds a large share of the gaps.

    >>> like_clockwork(np.array([600.0] * 40 + [5.0, 90.0, 4000.0, 70.0] * 10))
    True
    >>> like_clockwork(np.geomspace(60.0, 6000.0, 100))
    False
    """
    if len(gaps_s) < LEAST_GAPS:
        return False
    return densest_share(gaps_s) >= LEAST_SHARE


def densest_share(gaps_s: NDArray[np.float64]) -> float:
    """Largest share of the gaps in a band [g, BAND g], g no shorter than `SHORTEST_GAP_S`."""
    ascending = np.sort(gaps_s)
    first = ascending[ascending >= SHORTEST_GAP_S]
    if not len(first):
        return 0.0
    held = np.searchsorted(ascending, BAND * first, side="right") - np.searchsorted(ascending, first, side="left")
    return float(held.max() / len(ascending))
