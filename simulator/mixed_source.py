"""A source of parts: which predictor's errors cost what is found by replacing one at a time. SIA, section 6.3."""

from collections.abc import Sequence
from typing import cast

from jobcast.domain.forecasts import ForecastSource, UncertainForecasts
from jobcast.domain.jobs import Job


class Mixed:
    """Asks one source about arrivals, one about loads, one about durations; they may be the same.

    Tells the uncertainty of an answer too where the source that gives the answer does.

    Parameters
    ----------
    arrivals, loads, durations : the parts; a source that is several of them is moved once an instant

    Raises
    ------
    ValueError
        The parts answer about different horizons.
    """

    def __init__(self, arrivals: ForecastSource, loads: ForecastSource, durations: ForecastSource) -> None:
        self._arrivals, self._loads, self._durations = arrivals, loads, durations
        # By identity: moving a source twice an instant would draw or learn twice.
        self._parts = list({id(part): part for part in (arrivals, loads, durations)}.values())
        horizons = {tuple(part.horizons_min) for part in self._parts}
        if len(horizons) > 1:
            raise ValueError(f"sources to mix answer about different horizons: {sorted(horizons)}")

    @property
    def horizons_min(self) -> Sequence[float]:
        """Horizons of the parts, minutes."""
        return self._arrivals.horizons_min

    def advance(self, now_s: float) -> None:
        """Move to an instant."""
        for part in self._parts:
            part.advance(now_s)

    def will_jobs_arrive(self, pool: str, horizon_s: float) -> bool:
        """As the source of arrivals says."""
        return self._arrivals.will_jobs_arrive(pool, horizon_s)

    def new_load(self, pool: str, horizon_s: float) -> float:
        """As the source of loads says, GPUs."""
        return self._loads.new_load(pool, horizon_s)

    def duration_bin(self, job: Job) -> int:
        """As the source of durations says."""
        return self._durations.duration_bin(job)

    def duration_s(self, job: Job) -> float:
        """As the source of durations says, seconds."""
        return self._durations.duration_s(job)

    def duration_probabilities(self, job: Job) -> Sequence[float]:
        """As the source of durations says."""
        return cast(UncertainForecasts, self._durations).duration_probabilities(job)

    def arrival_probability(self, pool: str, horizon_s: float) -> float:
        """As the source of arrivals says."""
        return cast(UncertainForecasts, self._arrivals).arrival_probability(pool, horizon_s)

    def load_quantile(self, pool: str, horizon_s: float, level: float) -> float:
        """As the source of loads says, GPUs."""
        return cast(UncertainForecasts, self._loads).load_quantile(pool, horizon_s, level)

    def load_quantiles(self, pool: str, horizon_s: float, levels: tuple[float, ...]) -> tuple[float, ...]:
        """As the source of loads says, GPUs."""
        return cast(UncertainForecasts, self._loads).load_quantiles(pool, horizon_s, levels)
