"""Random samples of a workload: jobs drawn whole from those seen, arrivals at their mean rate. PCS, section 3.3."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from jobcast.domain.elastic import ElasticJobs, Floats
from jobcast.domain.errors import ConfigError, TraceError
from jobcast.pipelines.elastic.scene import ElasticScene

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
        return float(self.size_s.mean()) / (float(self.gaps_s.mean()) * self.gpus)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all that a sample is drawn from."""
        digest = hashlib.sha256()
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


def workload_of(scene: ElasticScene) -> Workload:
    """What a scene tells about its workload. Raises TraceError when all of its jobs arrive at once."""
    found = Workload(scene.workload.jobs, scene.workload.size_s, scene.workload.cluster.gpus)
    if len(scene) < 2 or not found.gaps_s.sum() > 0.0:
        raise TraceError(f"{scene.trace.source.path}: tells no gaps between arrivals; give a longer trace")
    return found


def _exponential(known_s: Floats, count: int, rng: np.random.Generator) -> Floats:
    return rng.exponential(float(known_s.mean()), count)


def _resampled(known_s: Floats, count: int, rng: np.random.Generator) -> Floats:
    return known_s[rng.integers(0, len(known_s), count)]


GAPS: Mapping[str, Gaps] = MappingProxyType({EXPONENTIAL: _exponential, RESAMPLED: _resampled})
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
        gaps_s = gaps_s * (workload.load / sampling.load)
    submit_s = np.concatenate([[0.0], np.cumsum(gaps_s)])
    return Sample(_jobs(workload.jobs, rows, submit_s), size_s)


def _jobs(seen: ElasticJobs, rows: np.ndarray, submit_s: Floats) -> ElasticJobs:
    begin, counts = seen.stage_of[rows], np.diff(seen.stage_of)[rows]
    stage_of = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
    stages = np.repeat(begin - stage_of[:-1], counts) + np.arange(stage_of[-1])
    return ElasticJobs(
        submit_s=submit_s,
        size_s=seen.size_s[rows],
        least=seen.least[rows],
        most=seen.most[rows],
        model=seen.model[rows],
        stage_of=stage_of,
        stage_end=seen.stage_end[stages],
        stage_most=seen.stage_most[stages],
        speedup=seen.speedup,
        speed=seen.speed,
    )
