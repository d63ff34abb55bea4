"""Forecast sources of closed-loop replays, where nobody knows the arrivals to come: they depend on the scheduler."""

from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from jobcast.domain.errors import ConfigError
from jobcast.domain.history import History
from jobcast.domain.horizons import DEFAULT_HORIZONS_MIN
from jobcast.domain.jobs import Job
from jobcast.simulator.forecast_sources import SLIDING_WINDOWS, Certain, Random
from jobcast.simulator.workload import Workload

NO_ARRIVALS = (
    "in a closed loop arrivals follow from what the scheduler does, so that no {kind} knows them; "
    "take --forecasts registry, random or conservative, or leave --closed-loop out"
)
"""Why a source that reads arrivals off the trace cannot answer."""


class KnownDurations(Certain):
    """The oracle of a closed loop: exact about jobs that are there, for policies that rank by duration.

    Parameters
    ----------
    workload : what is replayed
    horizons_min : edges of the duration bins, minutes

    Raises
    ------
    ConfigError
        From every question about arrivals to come.
    """

    def __init__(self, workload: Workload, horizons_min: Sequence[float] = DEFAULT_HORIZONS_MIN) -> None:
        self.horizons_min = tuple(horizons_min)
        # By id: jobs are numbered anew as they arrive.
        rows = zip(workload.jobs, workload.outcomes, strict=True)
        self._durations_s = {job.job_id: outcome.duration_s for job, outcome in rows}

    @property
    def jobs(self) -> Sequence[Job]:
        """Nobody knows them."""
        self._refuse()

    def will_jobs_arrive(self, pool: str, horizon_s: float) -> bool:
        """Nobody knows."""
        self._refuse()

    def new_load(self, pool: str, horizon_s: float) -> float:
        """Nobody knows."""
        self._refuse()

    def duration_s(self, job: Job) -> float:
        """Its run time, seconds."""
        return self._durations_s[job.job_id]

    def _refuse(self) -> NoReturn:
        raise ConfigError(f"--forecasts oracle: {NO_ARRIVALS.format(kind='oracle')}")


class RunRandom(Random):
    """`Random` whose sliding maximum reads the run's own past: in a closed loop the trace's arrivals are not the run's.

    Parameters
    ----------
    history : the run's past; reaches to the instant of `advance`
    seed : of the draws
    horizons_min : edges of the duration bins, minutes
    """

    def __init__(self, history: History, seed: int = 0, horizons_min: Sequence[float] = DEFAULT_HORIZONS_MIN) -> None:
        # An empty workload: no arrival of the trace can be read by mistake.
        super().__init__(Workload((), (), ()), seed, (), horizons_min)
        self._history = history

    def _sliding_max(self, pool: str, horizon_s: float) -> float:
        """Largest load of the last windows (now - (i+1) k, now - i k]. SIA, section 5.4.1."""
        past = self._history.pool(pool)
        edges_s = self._now_s - horizon_s * np.arange(SLIDING_WINDOWS, -1, -1, dtype=np.float64)
        rows = np.searchsorted(past.arrival_s, edges_s, side="right")
        # Only what lies within the windows is added up.
        gpus_until = np.concatenate([[0.0], np.cumsum(past.arrival_gpus[rows[0] : rows[-1]])])
        return float(np.diff(gpus_until[rows - rows[0]]).max())
