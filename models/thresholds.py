"""Thresholds on probabilities of arrivals: one for reporting, one that guards the scheduler."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

UNINFORMED_F1 = 0.5
"""Where no threshold can be chosen on data: the likelier class."""
UNINFORMED_GATE = 0.0
"""Where no arrival was seen to be missed: never declare a window idle."""


def best_f1_threshold(arrives: NDArray[np.bool_], probability: NDArray[Any]) -> float:
    """Probability from which on "jobs arrive" has the best F1; the largest of equally good ones.

    Parameters
    ----------
    arrives : shape (n_rows,)
    probability : shape (n_rows,)

    Notes
    -----
    Candidates are the probabilities themselves, so all rows at or above the threshold count as arrivals.

    Examples
    --------
    >>> best_f1_threshold(np.array([False, False, True, True]), np.array([0.1, 0.6, 0.5, 0.9]))
    0.5
    """
    hits = int(arrives.sum())
    if not hits:
        return UNINFORMED_F1
    order = np.argsort(-probability, kind="stable")
    ranked = probability[order]
    last_of_tie = np.append(ranked[1:] != ranked[:-1], True)
    found = np.cumsum(arrives[order])[last_of_tie]
    declared = np.flatnonzero(last_of_tie) + 1
    f1 = 2.0 * found / (declared + hits)
    return float(ranked[last_of_tie][f1.argmax()])


def gate_threshold(arrives: NDArray[np.bool_], probability: NDArray[Any], miss_share: float) -> float:
    """Largest threshold that misses at most `miss_share` of the windows with arrivals.

    A window is missed when jobs arrive and its probability is below the threshold: the scheduler then gives
    GPUs away that their owners come for.

    Examples
    --------
    >>> gate_threshold(np.ones(4, bool), np.array([0.3, 0.1, 0.2, 0.4]), miss_share=0.25)
    0.2
    """
    of_arrivals = np.sort(probability[arrives])
    if not len(of_arrivals):
        return UNINFORMED_GATE
    may_miss = min(int(np.floor(miss_share * len(of_arrivals) + 1e-9)), len(of_arrivals) - 1)
    return float(of_arrivals[may_miss])
