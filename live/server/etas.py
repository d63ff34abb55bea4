"""When jobs of a running cluster will start and end: futures of its queue, played now and then, and what they say."""

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf, isnan, nan
from time import thread_time
from typing import Any, NamedTuple

import numpy as np

from jobcast import __version__
from jobcast.domain.bad_answers import BadAnswers
from jobcast.domain.errors import ConfigError, JobcastError, TraceError
from jobcast.domain.forecasts import ForecastSource
from jobcast.domain.horizons import DEFAULT_HORIZONS_MIN
from jobcast.domain.jobs import Job, Pool, Requirements
from jobcast.live.champions import ARRIVALS, COMPLETIONS, DURATIONS, LOADS, Champions
from jobcast.live.completion_forecasts import KEPT, RunTimeDraws, completions
from jobcast.live.forecasts import Asked, Remembered, guarded, source_of
from jobcast.live.futures import FutureAnswer, Futures
from jobcast.live.growing_history import GrowingHistory
from jobcast.live.job_record import JobRecord
from jobcast.live.later_jobs import turns_of
from jobcast.live.standing import standing, too_wide
from jobcast.live.state import Known, State
from jobcast.models.completion.job_completions import SizeForecaster
from jobcast.schedulers import policies
from jobcast.schedulers.registry import find_of_kind, make_policy
from jobcast.simulator.engine import Simulation
from jobcast.simulator.forecast_sources import Conservative
from jobcast.simulator.workload import Workload

FUTURES, IMAGINED = 40, 20
"""Played of a queue, and for a job that there is not: whoever submits it waits for them."""
PATIENCE_S, MOST_WAITING = 10.0, 8
"""For which who asks for futures waits for those who did before, and how many may wait: others are answered at once."""
BELIEVED_S = 86_400.0
"""Stands for run times where nobody reads them: every future draws its own."""
ASKED = "?" * 201
"""Id of a job that there is not: longer than any that a cluster can have."""
NEEDS = {policies.ARRIVALS: ARRIVALS, policies.LOADS: LOADS, policies.DURATIONS: DURATIONS}
"""What policies ask -> the predictor that answers it."""
NONE_ENDED = "no job has ended yet, and no version of completion-time is registered: nothing is known of run times"
SUSPENDED = "it is suspended, and ends some time after it is resumed"
LOG = logging.getLogger(__name__)


class NoneEndedError(TraceError):
    """Nothing tells how long jobs run."""


class Question(NamedTuple):
    """A job that is not submitted yet."""

    pool: str
    gpus: int
    time_limit_s: float = inf
    user: str = ""
    tag: str = ""


@dataclass(frozen=True, slots=True)
class Basis:
    """What futures are played with.

    Attributes
    ----------
    policy : by name
    predictors, versions : that are asked, by name
    unanswered : what the policy asks of predictors and nobody answers: it is answered conservatively
    """

    policy: str
    predictors: Mapping[str, Any]
    versions: Mapping[str, int]
    unanswered: frozenset[str] = frozenset()

    @classmethod
    def of(cls, policy: str, champions: Champions, lends: bool = False) -> "Basis":
        """Of a policy, and who answers now; an empty name: sia where it lends, and all it asks is answered, else fcfs.

        `lends`: whether any job has held GPUs beyond its pool's quota.
        """
        known = set(champions.predictors)
        policy = policy or ("sia" if lends and set(NEEDS.values()) <= known else "fcfs")
        asks = {NEEDS[one] for one in find_of_kind(policy, policies.POOLS).asks}
        names = sorted((asks | {DURATIONS, COMPLETIONS}) & known)
        predictors = {name: champions.predictors[name] for name in names}
        versions = {name: champions.versions[name] for name in names}
        return cls(policy, predictors, versions, frozenset(asks - known))

    @property
    def version(self) -> str:
        """In one line; what is learnt on the spot hangs on jobcast's own version."""
        return " ".join(f"{name}:{one}" for name, one in self.versions.items()) or f"jobcast {__version__}"

    @property
    def sizes(self) -> str:
        """Where run times come from."""
        name = next((one for one in (DURATIONS, COMPLETIONS) if one in self.versions), None)
        return f"{name}:{self.versions[name]}" if name else "jobs that ended"


@dataclass(frozen=True, slots=True)
class Eta:
    """What is told of a job.

    Attributes
    ----------
    known : the job, as its events tell it
    answer : None where nothing can be said; it counts from `now_s` on
    basis : of the answer
    why : it waits, or nothing can be said; empty where neither is so
    now_s : seconds from the epoch
    """

    known: Known
    answer: FutureAnswer | None
    basis: Basis
    why: str
    now_s: float


class Queue(NamedTuple):
    """A run that stands where the cluster stands, what its futures are drawn from, by job why it is not in it, and for
    what others wait beside GPUs.
    """

    run: Simulation
    draws: RunTimeDraws
    left_out: Mapping[str, str]
    why: Mapping[str, str]


class _Asked(NamedTuple):
    """What the last round asked, and how it counted jobs that had ended: what it was told stands until the next."""

    basis: Basis
    source: Remembered | None
    fitted: SizeForecaster | None = None


class Etas:
    """Answers when jobs start and end, from several threads.

    Parameters
    ----------
    pools : of the cluster, with their quotas
    state : what is known now
    champions : who answers now
    clock : the instant now, seconds from the epoch
    policy : that futures are played under; see `Basis.of`
    backfill : whether jobs start that fit their pool's quota behind one that does not

    Attributes
    ----------
    pools : as given; others may take their place, which the next round goes by
    trouble : why the last refresh failed; empty where it did not
    doubt : why what is known of the cluster cannot be; empty where it can
    rounds : how often futures were played

    Raises
    ------
    ConfigError
        No policy of that name schedules pools by what is known.
    """

    def __init__(
        self,
        pools: Sequence[Pool],
        state: Callable[[], State],
        champions: Callable[[], Champions],
        clock: Callable[[], float],
        policy: str,
        backfill: bool,
    ) -> None:
        if policy and not set(find_of_kind(policy, policies.POOLS).asks) <= set(NEEDS):
            raise ConfigError(f"--policy {policy}: asks what nobody knows beside a running cluster; take fcfs or sia")
        self.pools, self._state, self._champions, self._clock, self._policy = pools, state, champions, clock, policy
        self._backfill = backfill
        self._playing, self._asking, self._telling = threading.Lock(), threading.Lock(), threading.Lock()
        self._past, self._told_from = GrowingHistory(), tuple[Any, ...]()
        self._turns = threading.BoundedSemaphore(MOST_WAITING)
        self.futures = Futures(lambda run, seq: ())
        self.basis, self.trouble, self.doubt, self.rounds = Basis.of(policy, champions()), "", "", 0
        self._number, self._why = -1, dict[str, str]()
        self._asked: _Asked | None = None
        self._imagined: dict[tuple[int, Question], tuple[FutureAnswer | None, str]] = {}

    def refresh(self) -> float:
        """Play the futures of all jobs; the CPU seconds that it took. What fails is told and logged."""
        begun_s = thread_time()
        with self._playing:
            self._round()
        return thread_time() - begun_s

    def _round(self) -> None:
        state = self._state()
        try:
            self._play(state, self._clock())
            self.trouble = ""
        except Exception as error:  # events may contradict each other, and policies and predictors fail in any way
            self.trouble = self._failed(error)
        # One that failed would fail again until something else is known.
        self._number = state.number

    @contextmanager
    def _turn(self, lock: threading.Lock) -> Iterator[bool]:
        """Whether the lock is held now; no where too many wait already, or those before take too long."""
        held = False
        if not self._turns.acquire(blocking=False):
            yield held
            return
        try:
            held = lock.acquire(timeout=PATIENCE_S)
            yield held
        finally:
            if held:
                lock.release()
            self._turns.release()

    def _catch_up(self, number: int) -> None:
        """Play futures unless that was done since an event, or others are at it for too long."""
        if self._number < number:
            with self._turn(self._playing) as held:
                # Whoever was first may have done so.
                if held and self._number < number:
                    self._round()

    def _play(self, state: State, now_s: float) -> None:
        basis = self._basis(state)
        source = self._source(basis, state, now_s)
        queue = self._queue(state, now_s, basis, source)
        self.futures.draws = queue.draws
        # Of a job that was cancelled while it waited nothing is learnt.
        awaited = filter(None, map(state.job, self.futures.awaited))
        came = {job.job_id: (s, nan if isnan(s) else end_s) for job, s, end_s in awaited}
        suspended = {name for name, one in state.active.items() if one.suspended}
        self.futures.refresh(queue.run, came, [one.job for one in queue.draws.later], suspended)
        self._asked = _Asked(basis, source, queue.draws.fitted)
        self.basis, self._why, self._imagined = basis, {**queue.left_out, **_waits(queue, suspended)}, {}
        self.rounds += 1
        self.doubt = self._doubt(queue.run, state)

    def _doubt(self, run: Simulation, state: State) -> str:
        held = sum(one.grant.gpus for one in run.cluster.running.values())
        quota = sum(pool.quota for pool in self.pools)
        # Where GPUs are told, nodes that go down with their jobs explain it.
        if state.gpus is not None or held <= quota:
            return ""
        return f"jobs hold {held:g} GPUs of {quota}: an end was not heard, or a quota is too small"

    def _basis(self, state: State) -> Basis:
        return Basis.of(self._policy, self._champions(), state.lends)

    def of(self, job_id: str) -> Eta | None:
        """When a job will start and end; None for one that nobody has heard of."""
        state = self._state()
        known = state.job(job_id)
        if known is None:
            return None
        ended, waits = not isnan(known.end_s), isnan(known.start_s)
        if state.active.get(job_id, JobRecord()).suspended:
            return Eta(known, None, self.basis, SUSPENDED, self._clock())
        # One that has come since, or waits again, is not among them; one that was left out is not looked for again.
        if not ended and not self.futures.knows(job_id, waits):
            self._catch_up(state.number)
        now_s = self._clock()
        answer = None if ended else self._answer(known, now_s)
        why = "" if ended or not waits else self._why.get(job_id, "")
        return Eta(known, answer, self.basis, why or ("" if answer or ended else self.trouble), now_s)

    def _answer(self, known: Known, now_s: float) -> FutureAnswer | None:
        try:
            answer = self.futures.answer(known.job.job_id, now_s, known.start_s)
        except TraceError:  # not among the futures, or not any more: another thread may just have played new ones
            return None
        # Of one that ran in them, and waits again, they tell nothing.
        return None if isnan(known.start_s) and answer.start is None else answer

    def asked(self, question: Question) -> Eta | None:
        """When a job would start and end that were submitted now; None where those who ask before it take too long."""
        state, now_s = self._state(), self._clock()
        limits = Requirements(time_limit_s=question.time_limit_s)
        job = Job(0, "", question.pool, now_s, question.gpus, question.user, question.tag, requirements=limits)
        why = self._why_not(job)
        told = (None, why) if why else self._imagined.get((self.rounds, question))
        if told is None:
            with self._turn(self._asking) as held:
                if not held:
                    return None
                try:
                    told = self._imagined[self.rounds, question] = self._imagine(state, question, now_s)
                except Exception as error:  # as in a round
                    told = None, self._failed(error)
        answer, why = told
        return Eta(Known(job, nan, nan), answer, self.basis, why, now_s)

    def _imagine(self, state: State, question: Question, now_s: float) -> tuple[FutureAnswer | None, str]:
        """What futures say, or why they cannot."""
        facts = {name: one for name, one in question._asdict().items() if one != inf}
        basis, source, fitted = self._asked or self._not_asked(state, now_s)
        run, draws, left_out, _ = self._queue(state, now_s, basis, source, JobRecord(ASKED, now_s, facts))
        if ASKED in left_out:
            return None, left_out[ASKED]
        draws.futures, draws.fitted = IMAGINED, fitted
        seq = next(job.seq for job in run.jobs if job.job_id == ASKED)
        played = [completions(run, [seq], future)[seq] for future in draws(run, seq)]
        start_s, end_s = (np.array([getattr(one, name) for one in played]) for name in ("start_s", "end_s"))
        return self.futures.about(start_s, end_s, now_s), ""

    def _failed(self, error: Exception) -> str:
        """What is told of an error to anybody; the log has its own words, which may name files and others' jobs."""
        told = f"no futures could be played ({type(error).__name__}); the server's log tells more"
        told = str(error) if isinstance(error, NoneEndedError) else told
        # Once: it may stay so for hours.
        if told != self.trouble:
            LOG.warning("no futures were played: %s", error if isinstance(error, JobcastError) else repr(error))
        return told

    def _not_asked(self, state: State, now_s: float) -> "_Asked":
        basis = self._basis(state)
        return _Asked(basis, self._source(basis, state, now_s))

    def _source(self, basis: Basis, state: State, now_s: float) -> Remembered | None:
        """Forecasts from what was known at an instant; None where nobody asks any."""
        if not basis.unanswered and not basis.predictors.keys() & set(NEEDS.values()):
            return None
        if basis.unanswered:
            return Remembered(Conservative(Workload((), (), self.pools), DEFAULT_HORIZONS_MIN))
        last = None if self._asked is None else self._asked.source
        with self._telling:
            history, before = self._past.at(state.past, self.pools, now_s), self._told_from
            tracker = self._past.tracker(basis.predictors.get(DURATIONS))
            source = source_of(history, basis.predictors, self.pools, tracker)
            self._told_from = (history, tuple(basis.versions.items()), tuple(self.pools))
            told = last.of_jobs(state.active) if last is not None and before == self._told_from else {}
        asked = guarded(Asked(source, basis.versions), self.pools, now_s, BadAnswers())
        return Remembered(asked, self._telling, told)

    def _queue(
        self, state: State, now_s: float, basis: Basis, source: ForecastSource | None, *more: JobRecord
    ) -> Queue:
        """The queue at an instant, beside it `more` jobs."""
        came = (one for one in state.active.values() if one.came)
        left_out = {one.name: why for one in came if (why := self._why_not(one.job()))}
        turns = turns_of({name: one for name, one in state.active.items() if name not in left_out}, now_s)
        active = turns.ready | {one.name: one for one in more}
        sizes = basis.predictors.get(COMPLETIONS)
        spec = find_of_kind(basis.policy, policies.POOLS)
        policy = make_policy(basis.policy, source, spec.overtaking if self._backfill else {})
        run = standing(active, state.gpus, now_s, self.pools, policy, source, lambda job: BELIEVED_S)
        # Who waits for nodes that are down would wait for ever in a run, which would fail.
        short = too_wide(run, active | {name: state.active[name] for name in turns.later})
        if short:
            left_out |= short
            run = standing(active, state.gpus, now_s, self.pools, policy, source, lambda job: BELIEVED_S, short)
        ran = state.ended(KEPT, now_s)
        if not len(ran.jobs) and sizes is None:
            raise NoneEndedError(NONE_ENDED)
        draws = RunTimeDraws(ran, FUTURES, 0, sizes, DURATIONS in basis.predictors)
        # One that all jobs have is a default, and says nothing of how long any of them runs.
        draws.limits = state.limited
        there = {job.job_id for job in run.cluster.active.values()}
        draws.later = turns.among(there, left_out.keys(), run.stream.arrived)
        return Queue(run, draws, left_out | turns.never, turns.why)

    def _why_not(self, job: Job) -> str:
        """Why a job can never run within the quotas; empty where it can."""
        quota = {pool.name: pool.quota for pool in self.pools}.get(job.pool, 0)
        if 0 < job.gpus <= quota:
            return ""
        return f"it asks for {job.gpus} GPUs, and pool {job.pool} has {quota}" if job.gpus else "it asks for no GPUs"


def _waits(queue: Queue, suspended: Set[str]) -> dict[str, str]:
    """By job that waits, what for."""
    run, ahead, result = queue.run, Counter[str](), {}
    holds = [one.job for one in run.cluster.running.values() if one.job.job_id in suspended]
    paused = {job.pool: f"; job {job.job_id} is suspended, and taken to go on now" for job in holds}
    for job in run.cluster.active.values():
        if job.seq in run.cluster.running:
            continue
        pool = run.cluster.pools[job.pool]
        held = f"{pool.dedicated:g} of {pool.quota} GPUs of pool {job.pool} are held"
        before = f"jobs that wait before it: {ahead[job.pool]}{paused.get(job.pool, '')}"
        result[job.job_id] = "; ".join(filter(None, (queue.why.get(job.job_id), held, before)))
        ahead[job.pool] += 1
    return {**queue.why, **result}
