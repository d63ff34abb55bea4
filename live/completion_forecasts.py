"""When jobs will be done: a copy of the run is played forward with what is believed in the place of the truth.

Run times are as the run's source of forecasts has them; epochs, iterations, sizes and samples are as jobs declare them.
Of points nobody else arrives; in futures who does is drawn, where such jobs can delay others. The compiled twin does
the same for elastic jobs (`simulator.elastic`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isnan, log2, nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.errors import ConfigError, TraceError
from jobcast.domain.jobs import Job
from jobcast.domain.law import RUNTIME
from jobcast.domain.rounds import ActiveJob
from jobcast.domain.times import iso
from jobcast.models.completion.completion_time import CompletionTime
from jobcast.models.completion.intervals import LEAST_S
from jobcast.models.completion.job_completions import (
    SPREAD,
    ArrivalDraws,
    SizeDraws,
    SizeForecaster,
    SizeSample,
)
from jobcast.schedulers.registry import POLICIES
from jobcast.schedulers.run_times import RunTimes
from jobcast.simulator.arrival_streams import Later
from jobcast.simulator.engine import Simulation, Standing
from jobcast.simulator.history import EarlierJobs

Believed = Callable[[Job], float]
"""Run time alone of an active job, seconds."""
Coming = Iterator[tuple[Job, float]]
"""Who arrives, by submission, and how long each runs alone, seconds."""


def declared(job: Job) -> float:
    """What is believed of run times where jobs declare their work: nothing, since the law goes by that."""
    return nan


def believed_now(run: Simulation) -> Believed:
    """Run times as the run's source of forecasts has them at its instant: what was done, and what is said to be left.

    Raises ConfigError for a source that tells none.
    """
    # Other laws count in epochs or samples that jobs declare: there is no run time to believe.
    if run.law.name != RUNTIME:
        return declared
    source = None if run.source is None else Standing(run.source)
    if not hasattr(source, "duration_s"):
        raise ConfigError("the source of forecasts tells no run times of jobs; name another one by --forecasts")
    times = RunTimes(source)  # type: ignore[arg-type]

    def seconds(job: Job) -> float:
        if job.training is None:
            # A job that reports no epochs is told as a whole.
            return float(source.duration_s(job))  # type: ignore[union-attr]
        # What was done counts as it was; only what is left is believed.
        result = run.law.service(run, job)
        return times.total_s(
            ActiveJob(job, result.held_s, result.run_s, job.seq in run.cluster.running, result.progress)
        )

    return seconds


@dataclass(frozen=True, slots=True)
class Completion:
    """When a job is forecast to be given GPUs first, and to end; seconds from the epoch, NaN where nothing tells."""

    start_s: float = nan
    end_s: float = nan


@dataclass(frozen=True, slots=True)
class Future:
    """What may be. Called with an active job it tells its run time alone, as `Believed`.

    Attributes
    ----------
    seconds : that run time by seq
    coming : who arrives, by submission, and how long each runs; None for nobody. It can be read once
    later : who may start later, numbered behind the run's jobs, and how long each runs
    """

    seconds: Mapping[int, float]
    coming: Coming | None = None
    later: Sequence[tuple[Later, float]] = ()

    def __call__(self, job: Job) -> float:
        """Its run time, seconds."""
        return self.seconds[job.seq]


def completions(run: Simulation, seqs: Sequence[int], believed_s: Believed) -> dict[int, Completion]:
    """Play a copy of a run forward until some of its active jobs have ended; raises as `Simulation.step`."""
    # Points have nobody come: only futures say who may.
    coming, later = (believed_s.coming, believed_s.later) if isinstance(believed_s, Future) else (None, ())
    if _runs_on(run) and getattr(run.policy, "apart", False) and not later:
        believed_s, coming = _within({run.jobs[seq].pool for seq in seqs}, believed_s, coming)
    fork = run.fork(believed_s, coming, later)
    # No further than needed, a copy is as dear as the run itself: who runs and is never stopped ends as it expects to.
    settled = fork.cluster.running if _runs_on(run) else ()
    left = list(seqs)
    while left and not fork.over:
        # One that is open is enough to go on; who has ended or settled stays so.
        if isnan(fork.end_s(left[-1])) and left[-1] not in settled:
            fork.step()
        else:
            left.pop()
    expected_s: Sequence[float] = fork.law.at_s if settled else ()  # type: ignore[attr-defined]
    ends_s = {seq: expected_s[seq] if seq in settled else fork.end_s(seq) for seq in seqs}
    return {seq: Completion(fork.start_s(seq), ends_s[seq]) for seq in seqs}


def _within(pools: set[str], believed_s: Believed, coming: Coming | None) -> tuple[Believed, Coming | None]:
    """What is believed of some pools; in the others, which do not touch them, nobody comes and nothing ends."""
    arrivals = None if coming is None else (one for one in coming if one[0].pool in pools)
    return lambda job: believed_s(job) if job.pool in pools else inf, arrivals


def _runs_on(run: Simulation) -> bool:
    """Whether a job that has started runs on until its end, which nothing moves any more."""
    spec = POLICIES.get(getattr(run.policy, "name", ""))
    return run.law.name == RUNTIME and spec is not None and not spec.preempts


Draws = Callable[[Simulation, int], Iterable[Future]]
"""Of a run, and a number that seeds the draws (the job that is asked about): what may be, once a future."""


@dataclass(eq=False)
class RunTimeDraws:
    """Draws run times of active jobs, and who arrives, from the jobs that came before.

    Run times are drawn as those of jobs that ended, of about the same time limit first, without one of the same pool
    and width; where a version of job-duration forecasts how likely each bin is, from each bin as often as that says. In
    either case a job runs longer than it has, and ends by its limit; one that has outlived that as others which did.

    Attributes
    ----------
    earlier : jobs before the run, as the trace ran them
    futures, seed : how many draws of each job that is asked about; draws depend on (seed, job, number) alone
    learned : how jobs of the past count, and those where none has ended yet; None: as did best when first asked
    probable : whether the run's source of forecasts says how likely bins of run times are
    fitted : how jobs that came before count, where that was chosen already
    limits : whether jobs of about the same time limit are alike; else those of a pool and width
    later : jobs that are known, and may start later
    """

    earlier: EarlierJobs
    futures: int
    seed: int
    learned: CompletionTime | None = None
    probable: bool = False
    fitted: SizeForecaster | None = None
    limits: bool = True
    later: Sequence[Later] = ()
    _kinds: dict[tuple[str, int], int] = field(default_factory=dict, init=False)
    _before: "Known | None" = field(default=None, init=False)

    def __call__(self, run: Simulation, seq: int) -> Iterator[Future]:
        """Raises TraceError where no job has ended."""
        active = list(run.cluster.active.values())
        done_s = np.array([run.law.service(run, job).run_s for job in active])
        known = self._known(run, active, done_s)
        active += [one.job for one in self.later]
        done_s, kind = np.append(done_s, np.zeros(len(self.later))), self._kinds_of(active)
        limit_s = np.array([limit_of(job) for job in active])
        overdue = np.flatnonzero(done_s > limit_s + LEAST_S)
        overtime_s = known.overtime_s() if len(overdue) else np.zeros(0)
        sample = self._sample(run, known)
        odds = self._odds(run, active) if self.probable else None
        gap_s = self._gaps(run, known)
        for number in range(self.futures):
            # A generator of its own for each future: asking for more of them changes none.
            rng = np.random.default_rng((self.seed, seq, number))
            draws = SizeDraws(sample, rng)
            drawn_s = draws.draw(kind, done_s) if odds is None else draws.draw_in_bins(kind, done_s, *odds)
            drawn_s = _unlike(drawn_s, done_s, sample, rng)
            # Limits end whoever has not ended by then, but for those whom they have not ended.
            drawn_s = np.minimum(drawn_s, np.maximum(limit_s, done_s + LEAST_S))
            drawn_s[overdue] = _past_limits(done_s[overdue], limit_s[overdue], overtime_s, rng)
            seconds = dict(zip((job.seq for job in active), drawn_s.tolist(), strict=True))
            coming = None if gap_s is None else self._coming(run, known, draws, ArrivalDraws(gap_s, rng), rng)
            yield Future(seconds, coming, [(one, seconds[one.job.seq]) for one in self.later])

    def _sample(self, run: Simulation, known: "Known") -> SizeSample:
        run_s, ended, kind = known.run_s, known.ended, known.kind
        if self.learned is not None:
            self.fitted = self.learned.settings_
            if not ended.any():
                past, mine = self.learned.past_, self.learned.past_.ended
                run_s, kind = np.append(past.run_s[mine], run_s), np.append(past.most[mine], kind)
                # The version's jobs lie in front, and they all ended.
                ended = np.arange(len(run_s)) < mine.sum()
        if self.fitted is None:
            if not ended.any():
                raise TraceError(f"--sizes forecast at {iso(run.now_s)}: no job has ended; ask later")
            self.fitted = SizeForecaster().fit(run_s[ended], kind[ended])
        return self.fitted.sample(run_s, ended, kind)

    def _known(self, run: Simulation, active: Sequence[Job], done_s: Floats) -> "Known":
        """The last jobs that were submitted by now, run times of those that have not ended as far as they ran."""
        if self._before is None:
            jobs = self.earlier.jobs
            self._before = Known(jobs, self.earlier.duration_s, np.zeros(len(jobs), np.bool_), self._kinds_of(jobs))
        before, mine = self._before, run.jobs[: run.stream.arrived]
        over = np.array([not isnan(run.end_s(job.seq)) for job in mine], dtype=np.bool_)
        ran_s = np.array([one.duration_s for one in run.stream.outcomes[: len(mine)]])
        # What has not ended must not be read.
        ran_s[[job.seq for job in active]] = done_s
        # Only what has ended by now may be learnt from; others of before the run are no part of it.
        gone = np.flatnonzero(self.earlier.known_s <= run.now_s)[-KEPT:]
        jobs = [*(before.jobs[place] for place in gone.tolist()), *mine]
        run_s = np.concatenate([before.run_s[gone], ran_s])
        kind = np.concatenate([before.kind[gone], self._kinds_of(mine)])
        ended = np.concatenate([np.ones(len(gone), np.bool_), over])
        # All that have not ended, and the last ones of those that have.
        kept = np.sort(np.concatenate([np.flatnonzero(~ended), np.flatnonzero(ended)[-KEPT:]]))
        return Known([jobs[place] for place in kept.tolist()], run_s[kept], ended[kept], kind[kept])

    def _kinds_of(self, jobs: Sequence[Job]) -> Ints:
        """Of one kind are jobs of a time limit, or of a pool and width; where a version is asked, of a width."""
        if self.learned is not None:
            return np.array([job.gpus for job in jobs], dtype=np.int64)
        return np.array(
            [self._kinds.setdefault(_kind(job, self.limits), len(self._kinds)) for job in jobs], dtype=np.int64
        )

    def _odds(self, run: Simulation, active: Sequence[Job]) -> tuple[Floats, Floats]:
        """Upper edges of the bins of run times, seconds, and how likely each is for each job."""
        source: Any = Standing(run.source)  # type: ignore[arg-type]
        edges_s = 60.0 * np.array(source.horizons_min, dtype=np.float64)
        return edges_s, np.array([source.duration_probabilities(job) for job in active])

    def _gaps(self, run: Simulation, known: "Known") -> Floats | None:
        """Seconds between the submissions before.

        None where nobody can be delayed by who comes later, or too few came, or jobs report regimes.
        """
        overtaken = getattr(run.policy, "overtakes", True)
        if not overtaken or len(known.jobs) < 2 or any(job.training is not None for job in run.cluster.active.values()):
            return None
        return np.diff([job.submit_s for job in known.jobs])

    def _coming(
        self, run: Simulation, known: "Known", draws: SizeDraws, arrivals: ArrivalDraws, rng: np.random.Generator
    ) -> Coming:
        """Jobs like those of the past, and their run times, one after the other."""
        at_s, quotas = run.now_s, {name: pool.quota for name, pool in run.cluster.pools.items()}
        while True:
            lot = arrivals.draw(LOT)
            run_s = known.run_s[lot.row] * np.exp(SPREAD * rng.standard_normal(LOT))
            # Drawn from jobs that have not ended: how long they run is not known either.
            unknown = np.flatnonzero(~known.ended[lot.row])
            run_s[unknown] = draws.draw(known.kind[lot.row[unknown]], known.run_s[lot.row[unknown]])
            for gap_s, row, seconds in zip(lot.gap_s.tolist(), lot.row.tolist(), run_s.tolist(), strict=True):
                at_s += gap_s
                job = known.jobs[row]
                if job.gpus <= quotas.get(job.pool, 0):
                    yield replace(job, submit_s=at_s), max(seconds, LEAST_S)


def _unlike(drawn_s: Floats, done_s: Floats, sample: SizeSample, rng: np.random.Generator) -> Floats:
    """Run times, (n_jobs,) seconds, some of them shorter or longer than those of the few jobs that have ended.

    Of jobs that come in any order alike, the next is the shortest of all once in one more than have ended, and so is it
    the longest. It is uniform below the shortest, and Pareto's of index 1 above the longest.
    """
    seen_s = sample.size_s[sample.ended]
    if not 0 < len(seen_s) < FEW:
        return drawn_s
    rank, share = rng.uniform(0.0, len(seen_s) + 1.0, len(drawn_s)), rng.uniform(size=len(drawn_s))
    short_s, long_s = seen_s[0] * share, np.maximum(seen_s[-1], done_s) / np.maximum(share, 1.0 / FEW)
    result = np.where((rank < 1.0) & (short_s > done_s), short_s, drawn_s)
    return np.where(rank > len(seen_s), long_s, result)


def _past_limits(done_s: Floats, limit_s: Floats, overtime_s: Floats, rng: np.random.Generator) -> Floats:
    """Run times, (n_jobs,) seconds, of jobs that have outlived their time limits, like those of others that did longer.

    The next is the longest of all once in one more than there were; then, and where there were none, it is Pareto's of
    index 1 beyond the time over the limit, which ends within as much again as likely as not.

    Parameters
    ----------
    done_s, limit_s : (n_jobs,) seconds
    overtime_s : (n_ended,) see `Known.overtime_s`
    """
    result = np.empty(len(done_s))
    for place, over_s in enumerate((done_s - limit_s).tolist()):
        longer_s = overtime_s[overtime_s > over_s + LEAST_S]
        rank, share = int(rng.uniform(0.0, len(longer_s) + 1.0)), max(rng.uniform(), 1.0 / FEW)
        result[place] = longer_s[rank] if rank < len(longer_s) else over_s / share
    return limit_s + result


def limit_of(job: Job) -> float:
    """A job's time limit, seconds; infinite without one."""
    return inf if job.requirements is None else job.requirements.time_limit_s


def _kind(job: Job, limits: bool) -> tuple[str, int]:
    """Whom a job's run time is like: those allowed about as long; without a time limit its pool's of its width."""
    limit_s = limit_of(job) if limits else inf
    return (job.pool, job.gpus) if limit_s == inf else ("", round(STEPS * log2(max(limit_s, LEAST_S))))


class Known(NamedTuple):
    """Jobs in order of submission, columns (n_jobs,): run times (of those not ended as far as they ran), kinds."""

    jobs: Sequence[Job]
    run_s: Floats
    ended: NDArray[np.bool_]
    kind: Ints

    def overtime_s(self) -> Floats:
        """By how much those that ended outlived their time limits, (n_ended,), less than 0 where they did not."""
        overtime_s: Floats = self.run_s - np.array([limit_of(job) for job in self.jobs])
        return overtime_s[self.ended]


KEPT = 4_000
"""Jobs that have ended and are drawn from, at most: the last ones."""
STEPS = 2.0
"""Time limits are alike that are the same to so many steps, in which they double."""
FEW = 20
"""Jobs that have ended, from which on a run time beyond all of them is rarer than the tail of a 90 % interval."""
LOT = 64
"""Arrivals that are drawn at a time."""
