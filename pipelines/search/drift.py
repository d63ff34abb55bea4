"""Whether a workload is still the one that a front was searched on: sizes, rate and load of arrivals. Figure 10c."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from jobcast.pipelines.search.workload import Workload

QUANTILES = 501
"""Of the sizes that a front keeps: distances of distributions err by at most half a step, 0.1 %."""
SIZE_DISTANCE = 0.1
"""Kolmogorov-Smirnov distance of log sizes from which on they are others, if the difference is no chance ..."""
CHANCE = 0.01
LOAD_RATIO = 1.25
"""Load or rate of arrivals up or down by such a factor, beyond chance, is another workload. In Figure 10c of PCS, 80 %
in place of 60 % leave a quarter of the configurations more than 10 % off the front."""
STANDARD_ERRORS = 3.0


def described(workload: Workload) -> dict[str, Any]:
    """What a later check compares with, JSON-ready."""
    size_s, gaps_s = workload.size_s, workload.gaps_s
    return {
        "jobs": len(size_s),
        "gpus": workload.gpus,
        "rate_per_h": workload.rate_per_h,
        "load": workload.load,
        "size_variation": _variation(size_s),
        "gap_variation": _variation(gaps_s),
        "size_quantiles_s": np.quantile(size_s, np.linspace(0.0, 1.0, QUANTILES)).tolist(),
    }


def compare(searched: Mapping[str, Any], workload: Workload) -> dict[str, Any]:
    """How a workload differs from the one that a front was searched on, and whether a new search is due.

    Sizes: Kolmogorov-Smirnov on their logarithms. Rate and load: ratios, each with the standard error that chance
    gives it (sums of n independent values of squared variation C^2 vary by C^2 / n).

    Parameters
    ----------
    searched : as `described` told it
    workload : the one of now, on the same GPUs or others
    """
    now = described(workload)
    distance, chance = _distance(searched, workload)
    rate = _ratio(searched, now, "rate_per_h", ("gap_variation",))
    load = _ratio(searched, now, "load", ("gap_variation", "size_variation"))
    reasons = []
    if distance > SIZE_DISTANCE and chance < CHANCE:
        reasons.append(f"sizes of jobs differ (Kolmogorov-Smirnov {distance:.2f}, by chance {chance:.1g})")
    for name, one in (("rate of arrivals", rate), ("load", load)):
        if one["changed"]:
            reasons.append(f"{name} is {one['ratio']:.2f} times that of the search")
    return {
        "search_due": bool(reasons),
        "reasons": reasons,
        "sizes": {"distance": distance, "p_value": chance},
        "rate": rate,
        "load": load,
        "jobs": {"searched": searched["jobs"], "now": now["jobs"]},
        "gpus": {"searched": searched["gpus"], "now": now["gpus"]},
    }


def _distance(searched: Mapping[str, Any], workload: Workload) -> tuple[float, float]:
    """Largest distance of the two distributions of sizes, and how likely one so large is by chance."""
    from scipy.special import kolmogorov

    known, now = np.array(searched["size_quantiles_s"]), np.sort(workload.size_s)
    shares = np.linspace(0.0, 1.0, len(known))
    at = np.log(np.concatenate([known, now]))
    theirs = np.interp(at, *_cdf(np.log(known), shares))
    ours = np.interp(at, *_cdf(np.log(now), np.linspace(0.0, 1.0, len(now))))
    distance = float(np.abs(theirs - ours).max())
    count = searched["jobs"] * len(now) / (searched["jobs"] + len(now))
    return distance, float(kolmogorov(math.sqrt(count) * distance))


def _cdf(values: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points of a distribution function; of equal values the highest share."""
    unique, last = np.unique(values[::-1], return_index=True)
    return unique, shares[::-1][last]


def _ratio(searched: Mapping[str, Any], now: Mapping[str, Any], name: str, varying: tuple[str, ...]) -> dict[str, Any]:
    ratio = now[name] / searched[name]
    error = math.sqrt(sum(one[key] / one["jobs"] for one in (searched, now) for key in varying))
    off = abs(math.log(ratio))
    return {
        "searched": searched[name],
        "now": now[name],
        "ratio": ratio,
        "standard_error": error,
        "changed": off > math.log(LOAD_RATIO) and off > STANDARD_ERRORS * error,
    }


def _variation(values: np.ndarray) -> float:
    mean = float(values.mean())
    return float(values.var()) / mean**2
