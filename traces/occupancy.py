"""GPUs at work and GPUs arriving over time, from columns of job times."""

import numpy as np

from jobcast.traces.table import Floats


def busy_gpus(start_s: Floats, end_s: Floats, gpus: Floats, edges_s: Floats) -> Floats:
    """Mean number of GPUs at work between consecutive edges, shape (n_edges - 1,).

    Parameters
    ----------
    start_s, end_s, gpus : (n_jobs,) when jobs ran, in seconds, and their widths, in any order; infinite: not yet
    edges_s : (n_edges,) ascending instants

    >>> start_s, end_s, gpus = np.array([0.0, 50.0]), np.array([100.0, 150.0]), np.array([2.0, 4.0])
    >>> busy_gpus(start_s, end_s, gpus, np.array([0.0, 100.0, 200.0]))
    array([4., 2.])
    """
    done = _work_since(start_s, gpus, edges_s) - _work_since(end_s, gpus, edges_s)
    return np.diff(done) / np.diff(edges_s)


def largest_burst(arrival_s: Floats, gpus: Floats, window_s: float) -> float:
    """Most GPUs that arrive within any `window_s` seconds, both ends included.

    >>> largest_burst(np.array([0.0, 200.0, 400.0]), np.array([1.0, 2.0, 4.0]), 300.0)
    6.0
    """
    total = np.concatenate(([0.0], np.cumsum(gpus)))
    after = np.searchsorted(arrival_s, arrival_s + window_s, side="right")
    return float(np.max(total[after] - total[:-1], initial=0.0))


def share_followed(instant_s: Floats, arrival_s: Floats, window_s: float) -> float:
    """Share of instants t with an arrival in (t, t + window_s]; NaN without instants.

    >>> share_followed(np.array([0.0, 100.0]), np.array([50.0]), 60.0)
    0.5
    """
    if not len(instant_s):
        return float("nan")
    after = np.searchsorted(arrival_s, instant_s + window_s, side="right")
    return float(np.mean(after > np.searchsorted(arrival_s, instant_s, side="right")))


def share_followed_at_random(arrival_s: Floats, window_s: float) -> float:
    """Probability of an arrival in (t, t + window_s] for t uniform between the first and the last arrival.

    Exact: of each gap between arrivals, the last `window_s` seconds are followed by one. NaN without a gap.

    >>> share_followed_at_random(np.array([0.0, 100.0, 110.0]), 45.0)
    0.5
    """
    gaps_s = np.diff(arrival_s)
    span_s = float(gaps_s.sum())
    return float(np.minimum(gaps_s, window_s).sum()) / span_s if span_s else float("nan")


def _work_since(since_s: Floats, gpus: Floats, edges_s: Floats) -> Floats:
    """GPU-seconds done up to each edge by jobs that began at `since_s` and never ended."""
    order = np.argsort(since_s, kind="stable")[: np.isfinite(since_s).sum()]
    ahead_s = since_s[order] - edges_s[0]
    count = np.searchsorted(ahead_s, edges_s - edges_s[0], side="right")
    width = np.concatenate(([0.0], np.cumsum(gpus[order])))[count]
    begun = np.concatenate(([0.0], np.cumsum(gpus[order] * ahead_s)))[count]
    done: Floats = width * (edges_s - edges_s[0]) - begun
    return done
