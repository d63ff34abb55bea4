"""Forecasts beside a running cluster: what the champions say about now, guarded as in a replay."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jobcast.domain.bad_answers import BadAnswers
from jobcast.domain.errors import JobcastError
from jobcast.domain.horizons import DEFAULT_HORIZONS_MIN
from jobcast.domain.jobs import Job, Pool
from jobcast.live.champions import ARRIVALS, DURATIONS, LOADS, ChampionWatch
from jobcast.live.recorded_jobs import ClusterRecord
from jobcast.models.forecasts import RegistryForecasts
from jobcast.simulator.guard import GuardedForecasts, Nobody
from jobcast.simulator.history import RunHistory
from jobcast.simulator.workload import Workload


class BinsByName:
    """Answers of a source, but that a job's bin is that which was told when it was first asked about.

    Parameters
    ----------
    source : answers
    held : bins by job id, which outlive the source
    """

    def __init__(self, source: RegistryForecasts, held: dict[str, int]) -> None:
        self._source, self._held = source, held

    def foresee(self, jobs: Sequence[Job]) -> None:
        """Hold bins of those that were not asked about before, all asked in one go; one that fails is asked again."""
        new = [job for job in jobs if job.job_id not in self._held]
        found = zip(new, self._source.duration_bins(new), strict=True)
        self._held |= {job.job_id: one for job, one in found if one is not None}

    def duration_bin(self, job: Job) -> int:
        """The bin of its run time."""
        if job.job_id not in self._held:
            self._held[job.job_id] = self._source.duration_bin(job)
        return self._held[job.job_id]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


@dataclass(frozen=True, slots=True)
class Asked:
    """Who may be asked at an instant.

    Attributes
    ----------
    source : None where nobody can be
    versions : of the predictors behind it
    trouble : why nobody can be, or others than the registry's champions
    """

    source: Any
    versions: Mapping[str, int]
    trouble: tuple[str, ...] = ()


class ChampionForecasts:
    """Forecasts of the champions that a watch holds, from all that is known of a cluster at an instant."""

    def __init__(self, watch: ChampionWatch) -> None:
        self._watch = watch
        self._bins: dict[str, int] = {}
        self._versions: Mapping[str, int] = {}

    def __call__(self, record: ClusterRecord, pools: Sequence[Pool], now_s: float) -> Asked:
        """As of an instant, seconds from the epoch."""
        champions, told = self._watch.current, (self._watch.trouble,) if self._watch.trouble else ()
        if not champions.predictors:
            return Asked(None, {}, told or ("no champion has been looked up yet",))
        # Bins belong to the versions that told them.
        if self._versions != champions.versions:
            self._bins, self._versions = {}, dict(champions.versions)
        try:
            source = champions_source(record, pools, champions.predictors, now_s, self._bins)
            source.foresee([job for job in record.recorded().jobs if not record.jobs[job.job_id].over])
        except Exception as error:  # predictors may be wrong in any way; it is told, and nothing is lent
            return Asked(None, champions.versions, (*told, f"forecasts: {why_not(error)}"))
        return Asked(source, champions.versions, told)


def champions_source(
    record: ClusterRecord, pools: Sequence[Pool], predictors: Mapping[str, Any], now_s: float, held: dict[str, int]
) -> BinsByName:
    """What predictors say at an instant; `held`: see `BinsByName`. Raises RegistryError for horizons that differ."""
    history = RunHistory(sorted(pool.name for pool in pools), record.recorded())
    history.advance(now_s)
    arrivals, loads, durations = (predictors.get(name) for name in (ARRIVALS, LOADS, DURATIONS))
    source = BinsByName(RegistryForecasts(history, arrivals, loads, durations, pools), held)
    source.advance(now_s)
    return source


def guarded(asked: Asked, pools: Sequence[Pool], now_s: float, tally: BadAnswers) -> GuardedForecasts:
    """A source behind the guard; where nobody can be asked, conservative answers."""
    nobody = Nobody("; ".join(asked.trouble), DEFAULT_HORIZONS_MIN)
    result = GuardedForecasts(nobody if asked.source is None else asked.source, Workload((), (), pools), tally)
    result.advance(now_s)
    return result


def reasons(tally: BadAnswers) -> list[str]:
    """What was bad of a source's answers, a line for each kind of question."""
    return [f"{kind}: {one['first']}" for kind, one in tally.figures().items() if one["reasons"]]


def why_not(error: Exception) -> str:
    """An error in one line: as it tells itself where it is ours, else by its type."""
    return str(error) if isinstance(error, JobcastError) else type(error).__name__
