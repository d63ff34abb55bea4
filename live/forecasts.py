"""Forecasts beside a running cluster: what the champions say about now, guarded as in a replay.

Futures ask the same of one instant again and again: that is asked once and remembered.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from jobcast.domain.bad_answers import BadAnswerError, BadAnswers, Reason
from jobcast.domain.errors import JobcastError
from jobcast.domain.forecasts import ForecastSource
from jobcast.domain.history import History
from jobcast.domain.horizons import DEFAULT_HORIZONS_MIN
from jobcast.domain.jobs import Job, Pool
from jobcast.features.finished import DurationTracker
from jobcast.live.champions import ARRIVALS, DURATIONS, LOADS, Champions, ChampionWatch
from jobcast.live.growing_history import GrowingHistory
from jobcast.live.job_record import by_submission
from jobcast.live.state import State
from jobcast.models.forecasts import RegistryForecasts
from jobcast.simulator.guard import GuardedForecasts, Nobody
from jobcast.simulator.workload import Workload


class BinsByName:
    """Answers of a source, but that a job's bin is that which was told when it was first asked about.

    Parameters
    ----------
    source : answers
    held : bins by job id, which outlive the source
    """

    def __init__(self, source: RegistryForecasts, held: dict[str, int]) -> None:
        self._source, self.held = source, held

    def foresee(self, jobs: Sequence[Job]) -> None:
        """Hold bins of those that were not asked about before, all asked in one go; one that fails is asked again."""
        new = [job for job in jobs if job.job_id not in self.held]
        found = zip(new, self._source.duration_bins(new), strict=True)
        self.held |= {job.job_id: one for job, one in found if one is not None}

    def duration_bin(self, job: Job) -> int:
        """The bin of its run time."""
        if job.job_id not in self.held:
            # Not by number, as sources hold them: runs that stand at different instants count jobs differently.
            (found,) = self._source.duration_bins([job])
            if found is None:
                raise BadAnswerError(Reason.RAISED, "no bin could be told")
            self.held[job.job_id] = found
        return self.held[job.job_id]

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
        self._past = GrowingHistory()
        self._source: BinsByName | None = None
        self._made_of: tuple[Any, ...] = ()

    def __call__(self, state: State, pools: Sequence[Pool], now_s: float) -> Asked:
        """As of an instant, seconds from the epoch."""
        champions, told = self._watch.current, (self._watch.trouble,) if self._watch.trouble else ()
        if told or not champions.predictors:
            # Nothing new is lent by versions that a registry may have taken back meanwhile.
            return Asked(None, champions.versions, told or ("no champion has been looked up yet",))
        try:
            source = self._moved(state, pools, champions, now_s)
            source.foresee([one.job() for one in by_submission(state.active.values())])
        except Exception as error:  # predictors may be wrong in any way; it is told, and nothing is lent
            self._source = None
            return Asked(None, champions.versions, (f"forecasts: {why_not(error)}",))
        return Asked(source, champions.versions)

    def _moved(self, state: State, pools: Sequence[Pool], champions: Champions, now_s: float) -> BinsByName:
        """The source, made anew where the past, the versions or the quotas are others."""
        history = self._past.at(state.past, pools, now_s)
        made_of = (history, tuple(champions.versions.items()), tuple(pools))
        if self._source is None or made_of != self._made_of:
            # Bins belong to the versions that told them.
            same = self._source is not None and made_of[1] == self._made_of[1]
            held = self._source.held if same and self._source is not None else {}
            self._source = BinsByName(source_of(history, champions.predictors, pools), held)
            self._made_of = made_of
        self._source.advance(now_s)
        return self._source


def source_of(
    history: History,
    predictors: Mapping[str, Any],
    pools: Sequence[Pool],
    tracker: DurationTracker | None = None,
) -> RegistryForecasts:
    """What predictors, by name, say from a history; those that are not there are not asked."""
    arrivals, loads, durations = (predictors.get(name) for name in (ARRIVALS, LOADS, DURATIONS))
    return RegistryForecasts(history, arrivals, loads, durations, pools, tracker=tracker)


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


QUESTIONS = frozenset(
    (
        "will_jobs_arrive", "arrival_probability", "new_load", "load_quantile", "load_quantiles",
        "duration_bin", "duration_probabilities", "duration_s",
    )
)  # fmt: skip
"""Of `domain.forecasts.ForecastSource` and `UncertainForecasts`."""

Answers = Mapping[tuple[Any, ...], Any]
"""By question, what it is about, and more of it."""
ALONE, NOTHING = nullcontext(), dict[tuple[Any, ...], Any]()


class Remembered:
    """Implements `domain.forecasts.ForecastSource`: answers stand still at the instant that the source has come to.

    Jobs are known by what they say of themselves, not by their numbers: runs that stand at several instants count the
    same jobs differently.

    Parameters
    ----------
    source : asked once each question
    asking : held while it is asked: others may ask what it rests on, which may have moved on since
    told : answers of before; see `of_jobs`
    """

    def __init__(
        self, source: ForecastSource, asking: AbstractContextManager[Any] = ALONE, told: Answers = NOTHING
    ) -> None:
        self.horizons_min = source.horizons_min
        self._source, self._asking, self._answers, self._numbers = source, asking, dict(told), count()

    def of_jobs(self, names: Container[str]) -> Answers:
        """What was told of some jobs, by id: that holds at later instants, for it is as of when they came."""
        told = list(self._answers.items())
        return {key: one for key, one in told if key[0].startswith("duration") and key[1][0] in names}

    def advance(self, now_s: float) -> None:
        """They stand still."""

    def __getattr__(self, question: str) -> Callable[..., Any]:
        if question not in QUESTIONS:
            raise AttributeError(question)

        def answer(about: Any, *more: Any) -> Any:
            key = (question, _named(about), *more)
            if key not in self._answers:
                # A number of its own: sources keep answers by it.
                about = replace(about, seq=next(self._numbers)) if isinstance(about, Job) else about
                with self._asking:
                    self._answers[key] = getattr(self._source, question)(about, *more)
            return self._answers[key]

        # Found at once from now on.
        setattr(self, question, answer)
        return answer


def _named(about: Any) -> Any:
    return (about.job_id, about.pool, about.gpus, about.user, about.tag) if isinstance(about, Job) else about
