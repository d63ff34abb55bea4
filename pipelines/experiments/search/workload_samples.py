"""Random samples of a workload: jobs drawn whole from those seen, arrivals at their mean rate. PCS, section 3.3.

Whether a workload is still the one that a front was searched on: sizes, rate and load of arrivals. Figure 10c.
"""

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.elastic import ElasticJobs
from jobcast.domain.errors import ConfigError, TraceError
from jobcast.pipelines.experiments.elastic.jobs import ElasticScene, taken

EXPONENTIAL, RESAMPLED = "exponential", "resampled"
Gaps = Callable[[Floats, int, np.random.Generator], Floats]


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """What was collected of a workload, of which the order of jobs is not used.

    Attributes
    ----------
    jobs : those seen; of the times of submission only the gaps count
    size_s : (n_jobs,) the work that they really were, seconds on one GPU
    gpus : of the cluster
    """

    jobs: ElasticJobs
    size_s: Floats
    gpus: float

    @property
    def gaps_s(self) -> Floats:
        """(n_jobs - 1,) seconds between arrivals."""
        return np.diff(self.jobs.submit_s)

    @property
    def rate_per_h(self) -> float:
        """Mean arrivals an hour."""
        return 3600.0 / float(self.gaps_s.mean())

    @property
    def load(self) -> float:
        """Work that arrives over what all GPUs could do, at the speed of single GPUs."""
        # Size over gap is the number of GPUs that would always be at work.
        return float(self.size_s.mean()) / (float(self.gaps_s.mean()) * self.gpus)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all that a sample is drawn from."""
        digest = hashlib.sha256()
        # Order and bytes: any change of the workload is another run.
        for array in (*self.jobs, self.size_s, np.array([self.gpus])):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Sampling:
    """How samples are drawn.

    Attributes
    ----------
    jobs : of a sample
    load : that arrivals are rescaled to, None keeps the workload's mean rate
    gaps : key of `GAPS`
    """

    jobs: int = 1000
    load: float | None = None
    gaps: str = EXPONENTIAL


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Jobs to be simulated, and the work that they really are."""

    jobs: ElasticJobs
    size_s: Floats


def workload_of(scenario: ElasticScene) -> Workload:
    """What a scenario tells about its workload. Raises TraceError when all of its jobs arrive at once."""
    found = Workload(scenario.workload.jobs, scenario.workload.size_s, scenario.workload.cluster.gpus)
    if len(scenario) < 2 or not found.gaps_s.sum() > 0.0:
        raise TraceError(f"{scenario.trace.source.path}: tells no gaps between arrivals; give a longer trace")
    return found


GAPS: Mapping[str, Gaps] = MappingProxyType(
    {
        EXPONENTIAL: lambda known_s, count, rng: rng.exponential(float(known_s.mean()), count),
        RESAMPLED: lambda known_s, count, rng: known_s[rng.integers(0, len(known_s), count)],
    }
)
"""Gaps between arrivals: of a Poisson process at the mean rate, as PCS has them; or drawn from those seen, which keeps
how bursty they are."""


def draw(workload: Workload, sampling: Sampling, seed: tuple[int, ...]) -> Sample:
    """A random sample; jobs are drawn with replacement, each with its size, width, model and stages.

    Raises ConfigError for unknown gaps.
    """
    if sampling.gaps not in GAPS:
        raise ConfigError(f"--gaps {sampling.gaps}: is unknown; choose from {', '.join(GAPS)}")
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, len(workload.size_s), sampling.jobs)
    gaps_s = GAPS[sampling.gaps](workload.gaps_s, sampling.jobs - 1, rng)
    size_s = workload.size_s[rows]
    if sampling.load is not None:
        # Load is inverse to gaps: twice the load comes in half the time.
        gaps_s = gaps_s * (workload.load / sampling.load)
    submit_s = np.concatenate([[0.0], np.cumsum(gaps_s)])
    return Sample(taken(workload.jobs, rows)._replace(submit_s=submit_s), size_s)


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
    # Both: with many jobs the smallest difference is no chance, with few a large one may be.
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
    # The effective number of two samples.
    count = searched["jobs"] * len(now) / (searched["jobs"] + len(now))
    return distance, float(kolmogorov(math.sqrt(count) * distance))


def _cdf(values: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points of a distribution function; of equal values the highest share."""
    # Reversed, so that of equal values the last is found.
    unique, last = np.unique(values[::-1], return_index=True)
    return unique, shares[::-1][last]


def _ratio(searched: Mapping[str, Any], now: Mapping[str, Any], name: str, varying: tuple[str, ...]) -> dict[str, Any]:
    ratio = now[name] / searched[name]
    # Both sides were counted from samples: their errors add up.
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
