"""A guard around forecasts that were learnt or plugged in: what cannot be trusted lends nothing, and is told.

Every answer is looked at before a policy sees it. In place of one that is bad (see `domain.answer_checks`), or of an
exception, stands what `forecasts.Conservative` would have said: jobs arrive, as many as the quota holds, and each runs
for ever. It is counted by reason, and where bad answers follow each other nobody is asked for a while.

A breaker belongs to arrivals or loads of a pool and horizon, or to durations of a pool. `STRIKES` bad answers in a row
open it: of arrivals and loads one counts a step of `STEP_S`, of durations one a job. For `REST_STEPS` steps of
simulated time the conservative answer is given without asking; then one question is let through. A good answer closes
it, a bad one opens it for as long again.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import inf
from typing import Any, TypeVar

from jobcast.domain.answer_checks import (
    bin_index,
    bin_probabilities,
    flag,
    load_gpus,
    number,
    probability,
    rising_loads,
    run_time_s,
    shown,
)
from jobcast.domain.bad_answers import ARRIVALS, DURATIONS, LOADS, BadAnswerError, BadAnswers, Reason
from jobcast.domain.errors import ConfigError, UserError
from jobcast.domain.forecasts import ForecastSource
from jobcast.domain.jobs import Job
from jobcast.simulator.forecast_sources import Conservative
from jobcast.simulator.workload import Workload

STRIKES = 3
"""Bad answers in a row after which nobody is asked for a while."""
STEP_S = 300.0
"""Registered predictors hold an answer about a pool for so long, so that within it a bad one counts once."""
REST_STEPS = 12
"""Steps for which nobody is asked: an hour."""
ENDING = (UserError, MemoryError)
"""Ends a run as it always did: a question that the user should not have asked (a horizon that nobody knows), and a
machine that cannot go on. Ctrl-C is none of the exceptions that are caught."""
NOT_ASKED = (Reason.BREAKER, Reason.DEGRADED)

Key = tuple[str, str, float]
"""(kind, pool, horizon in seconds; 0 of durations)."""
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Replaced:
    """From an instant on answers about something are replaced, or good again; seconds from the epoch.

    Attributes
    ----------
    kind, pool, horizon_s : what it is about; 0 of durations
    job_id : of durations
    reason : None where answers are good again
    what : the bad answer in a few words
    """

    at_s: float
    kind: str
    pool: str
    horizon_s: float
    job_id: str | None
    reason: str | None
    what: str


@dataclass(slots=True)
class _Breaker:
    """Bad answers in a row, where the last one stood, until when nobody is asked, and why."""

    strikes: int = 0
    last: object = None
    until_s: float = -inf
    reason: Reason = Reason.BREAKER


class GuardedForecasts:
    """Implements `domain.forecasts.ForecastSource` and `UncertainForecasts` with trustworthy answers alone.

    A replaced run time is that of `Conservative` with its own horizons, whatever the source's are, so that where all
    answers are bad a run is the one with `--forecasts conservative`.

    Parameters
    ----------
    source : answers; it need not have what it is not asked for
    workload : what is replayed; its quotas are all that is read
    tally : of bad answers
    unseen : kind -> pools that the source has not seen in training and is not asked about

    Attributes
    ----------
    replaced : since when answers were replaced or good again, in order

    Raises
    ------
    ConfigError
        The source does not tell its horizons.
    """

    def __init__(
        self,
        source: ForecastSource,
        workload: Workload,
        tally: BadAnswers,
        unseen: Mapping[str, Iterable[str]] | None = None,
    ) -> None:
        self._source, self._tally = source, tally
        self.horizons_min = _horizons(source)
        # Run times are judged by the policies' own horizons, whatever the source's are.
        self._safe, self._longest = Conservative(workload, self.horizons_min), Conservative(workload)
        bins = len(self.horizons_min) + 1
        self._bin, self._chances = partial(bin_index, bins=bins), partial(bin_probabilities, bins=bins)
        self._quantiles: dict[tuple[str, float], tuple[tuple[float, ...], object]] = {}  # answers seen, levels
        self._now_s = 0.0
        self._lost: str | None = None  # why the source could not be moved here
        # Open for ever: of these pools the source has learnt nothing.
        self._breakers = {
            (kind, pool, 60.0 * horizon): _Breaker(until_s=inf, reason=Reason.DEGRADED)
            for kind, pools in (unseen or {}).items()
            for pool in pools
            for horizon in self.horizons_min
        }
        self._marks: dict[Key, Reason] = {}  # what is being replaced
        self.replaced: list[Replaced] = []

    def advance(self, now_s: float) -> None:
        """Move to an instant; where the source cannot, none of its answers are good there."""
        self._now_s, self._lost = now_s, None
        try:
            self._source.advance(now_s)
        # First: these are exceptions, too, and would be swallowed below.
        except ENDING:
            raise
        except Exception as error:  # whatever a predictor does wrong is counted, at each question that it leaves open
            self._lost = shown(error)

    def will_jobs_arrive(self, pool: str, horizon_s: float) -> bool:
        """The source's answer, or yes."""
        return self._ask("will_jobs_arrive", ARRIVALS, (pool, horizon_s), flag)

    def arrival_probability(self, pool: str, horizon_s: float) -> float:
        """The source's answer, or 1."""
        return self._ask("arrival_probability", ARRIVALS, (pool, horizon_s), probability)

    def new_load(self, pool: str, horizon_s: float) -> float:
        """The source's answer, or the pool's quota; GPUs."""
        return self._ask("new_load", LOADS, (pool, horizon_s), load_gpus)

    def load_quantile(self, pool: str, horizon_s: float, level: float) -> float:
        """The source's answer, or the pool's quota; GPUs."""
        return self._ask("load_quantile", LOADS, (pool, horizon_s, level), load_gpus)

    def load_quantiles(self, pool: str, horizon_s: float, levels: tuple[float, ...]) -> tuple[float, ...]:
        """The source's answer, or the pool's quota at each level; GPUs."""

        def check(answer: object) -> tuple[float, ...]:
            seen, of_levels = self._quantiles.get((pool, horizon_s), ((), ()))
            # Sources that hold an answer give the same object: it was looked at before.
            if answer is seen and of_levels == levels:
                return seen
            saved = rising_loads(answer, levels)
            if type(answer) is tuple and answer == saved:  # cannot change any more: not looked at while it comes back
                saved = answer
                self._quantiles[pool, horizon_s] = (saved, levels)
            return saved

        return self._ask("load_quantiles", LOADS, (pool, horizon_s, levels), check)

    def duration_bin(self, job: Job) -> int:
        """The source's answer, or the last bin."""
        return self._ask("duration_bin", DURATIONS, (job,), self._bin)

    def duration_probabilities(self, job: Job) -> Sequence[float]:
        """The source's answer, or 1 for the last bin."""
        return self._ask("duration_probabilities", DURATIONS, (job,), self._chances)

    def duration_s(self, job: Job) -> float:
        """The source's answer, or a run time in the last bin, the same for all jobs; seconds."""
        return self._ask("duration_s", DURATIONS, (job,), run_time_s)

    def _ask(self, question: str, kind: str, given: tuple[Any, ...], check: Callable[[Any], Answer]) -> Answer:
        """What the source answers, or `Conservative` in its place; `given`: a job, or a pool, a horizon and more."""
        self._tally.checked(kind)
        try:
            # Most runs have no breaker: they pay for two tests.
            if self._breakers or self._lost is not None:
                self._let_through(_key(kind, given))
            answer = check(getattr(self._source, question)(*given))
        except ENDING:
            raise
        except Exception as error:  # whatever a predictor does wrong is counted and told, and lends nothing
            self._replace(_key(kind, given), given[0], error)
            safe = self._safe if question != "duration_s" else self._longest
            instead: Answer = getattr(safe, question)(*given)
            return instead
        if self._breakers or self._marks:
            self._close(_key(kind, given))
        return answer

    def _let_through(self, key: Key) -> None:
        """Raise BadAnswerError where nobody is to be asked."""
        if self._lost is not None:
            raise BadAnswerError(Reason.RAISED, self._lost)
        breaker = self._breakers.get(key)
        if breaker is not None and breaker.until_s > self._now_s:
            unseen = breaker.reason is Reason.DEGRADED
            raise BadAnswerError(breaker.reason, "never seen in training" if unseen else "bad answers before")

    def _replace(self, key: Key, about: Any, error: Exception) -> None:
        bad = error if isinstance(error, BadAnswerError) else BadAnswerError(Reason.RAISED, shown(error))
        kind, pool, horizon_s = key
        job = about if isinstance(about, Job) else None
        where = f"pool {pool}, {f'{horizon_s / 60:g} min' if job is None else f'job {job.job_id}'}"
        self._tally.bad(kind, bad.reason, f"{where}: {bad.what}")
        # Of arrivals and loads only a change is kept, of durations every job.
        if job is not None or self._marks.get(key) is not bad.reason:
            self._keep(key, job, bad.reason, bad.what)
        if job is None:
            self._marks[key] = bad.reason
        # Who was not asked cannot have failed again.
        if bad.reason not in NOT_ASKED:
            self._strike(key, job)

    def _strike(self, key: Key, job: Job | None) -> None:
        breaker = self._breakers.setdefault(key, _Breaker())
        step = self._now_s // STEP_S
        last = (step, None if job is None else job.seq)
        # A predictor that holds its answer repeats it within a step: one slip, not many.
        if breaker.last == last:
            return
        breaker.last = last
        breaker.strikes += 1
        if breaker.strikes >= STRIKES:
            # On the grid of steps, so that it does not depend on when in a step it was asked.
            breaker.until_s = (step + REST_STEPS) * STEP_S
            kind, pool, horizon_s = key
            self._tally.opened(kind, f"pool {pool}" if kind == DURATIONS else f"pool {pool}, {horizon_s / 60:g} min")

    def _close(self, key: Key) -> None:
        """A good answer: what was before it counts no more."""
        # Strikes must follow one another.
        self._breakers.pop(key, None)
        if self._marks.pop(key, None) is not None:
            self._keep(key, None, None, "")

    def _keep(self, key: Key, job: Job | None, reason: Reason | None, what: str) -> None:
        result = None if reason is None else str(reason)
        self.replaced.append(Replaced(self._now_s, *key, None if job is None else job.job_id, result, what))


class Nobody:
    """A source where there is nobody to ask: a registry that is not there, a plug-in that does not load.

    Parameters
    ----------
    why : what is missing, in a few words
    horizons_min : those that its answers would have
    """

    def __init__(self, why: str, horizons_min: Sequence[float]) -> None:
        self.horizons_min = tuple(horizons_min)
        self._why = why

    def advance(self, now_s: float) -> None:
        """Nothing depends on the instant."""

    def __getattr__(self, question: str) -> Any:
        """Every question is answered by a `BadAnswerError`."""
        # Copy and pickle ask for such names before there is anything to answer with.
        if question.startswith("_"):
            raise AttributeError(question)

        def missing(*_: Any) -> Any:
            raise BadAnswerError(Reason.DEGRADED, self._why)

        return missing


def _key(kind: str, given: tuple[Any, ...]) -> Key:
    """What a question is about, by which answers to it are replaced."""
    return (kind, given[0].pool, 0.0) if kind == DURATIONS else (kind, given[0], given[1])


def _horizons(source: ForecastSource) -> tuple[float, ...]:
    try:
        horizons = tuple(number(horizon) for horizon in source.horizons_min)
    except ENDING:
        raise
    except Exception as error:  # another package's code may fail in any way
        raise ConfigError(f"forecasts: {type(source).__name__} does not tell its horizons ({shown(error)})") from error
    if not horizons or horizons[0] <= 0 or any(later <= sooner for sooner, later in pairwise(horizons)):
        raise ConfigError(f"forecasts: horizons of {type(source).__name__} must ascend from above 0, got {horizons}")
    return horizons
