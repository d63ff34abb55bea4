"""The compiled sweep of `durations.duration_history`: completions before arrivals, in order of time."""

from typing import Any

import numba
import numpy as np
from numba import types
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
njit: Any = numba.njit

_INTS = types.Array(types.int64, 1, "C", readonly=True)
_INTS_2D = types.Array(types.int64, 2, "C", readonly=True)
_FLOATS = types.Array(types.float64, 1, "C", readonly=True)
_COUNTS = types.Array(types.int64, 3, "C")
_MEANS = types.Array(types.float64, 2, "C")
_pair: Any = types.Tuple
_SWEEP = _pair((_COUNTS, _MEANS))(
    _FLOATS, _FLOATS, _INTS, _INTS, _INTS_2D, _INTS, _INTS, _FLOATS, types.int64, types.int64
)


@njit([_SWEEP], cache=True)
def sweep(
    submit_s: Floats,
    end_s: Floats,
    arrivals: Ints,
    finishes: Ints,
    keys: Ints,
    offsets: Ints,
    bins: Ints,
    log_s: Floats,
    n_bins: int,
    last_n: int,
) -> tuple[Ints, Floats]:
    """Class counts, (N, G, B), and mean log run times, (N, G), of the last finished jobs of each job's groups.

    Parameters
    ----------
    submit_s, end_s : (N,) seconds
    arrivals, finishes : (N,) jobs in order of submission and of end
    keys : (G, N) group of each job, -1 for none
    offsets : (K,) where each group's finished jobs begin in one list of them all
    bins, log_s : (N,) duration bin and log run time
    """
    n_jobs, n_groups = submit_s.size, keys.shape[0]
    counts = np.zeros((n_jobs, n_groups, n_bins), np.int64)
    means = np.full((n_jobs, n_groups), np.nan)
    listed = np.empty(n_jobs * n_groups, np.int64)
    done = np.zeros(offsets.size, np.int64)
    finished = 0
    for job in arrivals:
        while finished < n_jobs and end_s[finishes[finished]] <= submit_s[job]:
            for g in range(n_groups):
                key = keys[g, finishes[finished]]
                if key >= 0:
                    listed[offsets[key] + done[key]] = finishes[finished]
                    done[key] += 1
            finished += 1
        for g in range(n_groups):
            key = keys[g, job]
            if key < 0 or done[key] == 0:
                continue
            first, last = max(0, done[key] - last_n), done[key]
            logs = 0.0
            for i in range(offsets[key] + first, offsets[key] + last):
                counts[job, g, bins[listed[i]]] += 1
                logs += log_s[listed[i]]
            means[job, g] = logs / (last - first)
    return counts, means
