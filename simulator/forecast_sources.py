"""Forecast sources that need no model: the oracle, the pessimist, and two that err on purpose; arrivals by pool.

Forecast sources of closed-loop replays, where nobody knows the arrivals to come: they depend on the scheduler.

A source of parts: which predictor's errors cost what is found by replacing one at a time. SIA, section 6.3.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from math import inf, sqrt
from typing import Any, NoReturn

import numpy as np

from jobcast.domain.errors import ConfigError
from jobcast.domain.forecasts import ForecastSource
from jobcast.domain.history import History
from jobcast.domain.horizons import DEFAULT_HORIZONS_MIN, duration_bin
from jobcast.domain.jobs import Job
from jobcast.domain.training import Progress, Regime
from jobcast.simulator.draws import draw_key, uniform
from jobcast.simulator.workload import Workload

SLIDING_WINDOWS = 12
"""Past windows whose largest load stands for the next one's: an hour of 5-minute windows. SIA, section 5.4.1."""
FAIR_COIN = 0.5
"""SIA, section 6.3, footnote 6."""
EDGE_RATIO = 12.0
"""From one horizon to the next where there is only one to tell by: SIA's 5 to 60 minutes."""


class Arrivals:
    """Arrivals of all pools; a question is a binary search a window. A pool without jobs counts nothing."""

    __slots__ = ("_gpus_until", "_times")

    def __init__(self, jobs: Sequence[Job]) -> None:
        widths: dict[str, list[int]] = {}
        self._times: dict[str, list[float]] = {}
        for job in sorted(jobs, key=lambda job: job.submit_s):
            self._times.setdefault(job.pool, []).append(job.submit_s)
            widths.setdefault(job.pool, []).append(job.gpus)
        self._gpus_until = {pool: list(accumulate(gpus, initial=0)) for pool, gpus in widths.items()}

    def largest_past_load(self, pool: str, now_s: float, window_s: float, windows: int) -> int:
        """Largest load of the last windows (now - (i+1) k, now - i k]: SIA's NewLoadEstimate, section 5.4.1.

        >>> Arrivals([Job(0, "a", "p", 10.0, 2), Job(1, "b", "p", 21.0, 3)]).largest_past_load("p", 20.0, 5.0, 3)
        2
        """
        times = self._times.get(pool)
        if times is None:
            return 0
        # Windows share edges: the begin of one is the end of the next.
        gpus_until, end, largest = self._gpus_until[pool], bisect_right(times, now_s), 0
        for window in range(1, windows + 1):
            begin = bisect_right(times, now_s - window * window_s, 0, end)
            largest = max(largest, gpus_until[end] - gpus_until[begin])
            end = begin
        return largest


class UpcomingLoads:
    """Loads of all pools in (now, now + window], for instants that mostly ascend: amortised O(1) an arrival.

    Going back in time counts from the beginning again.

    Parameters
    ----------
    jobs : by submission, ascending
    window_s : length of the window, seconds

    >>> loads = UpcomingLoads([Job(0, "a", "p", 10.0, 2), Job(1, "b", "q", 20.0, 3)], 10.0)
    >>> loads.at(10.0), loads.at(0.0)
    ({'q': 3}, {'p': 2})
    """

    __slots__ = ("_first", "_jobs", "_loads", "_next", "_now_s", "_window_s")

    def __init__(self, jobs: Sequence[Job], window_s: float) -> None:
        self._jobs = jobs
        self._window_s = window_s
        self._restart(-inf)

    def at(self, now_s: float) -> Mapping[str, int]:
        """GPUs (sum of widths) of the jobs that arrive in (now, now + window] by pool; without those of no arrival."""
        if now_s != self._now_s:
            self._move(now_s)
        return self._loads

    def _restart(self, now_s: float) -> None:
        self._now_s = now_s
        self._first = self._next = 0  # the window holds the jobs between the two
        self._loads: dict[str, int] = {}

    def _move(self, now_s: float) -> None:
        if now_s < self._now_s:
            # Pools come and go in a window; it is simplest to count anew, and rare.
            self._restart(now_s)
        self._now_s, until_s = now_s, now_s + self._window_s
        jobs, loads, count, following, first = self._jobs, self._loads, len(self._jobs), self._next, self._first
        while following < count and (job := jobs[following]).submit_s <= until_s:
            loads[job.pool] = loads.get(job.pool, 0) + job.gpus
            following += 1
        while first < following and (job := jobs[first]).submit_s <= now_s:
            left = loads[job.pool] - job.gpus
            # A pool of no arrivals must be no key: `will_jobs_arrive` asks for that.
            if left:
                loads[job.pool] = left
            else:
                del loads[job.pool]
            first += 1
        self._next, self._first = following, first


def bin_durations_s(horizons_min: Sequence[float] = DEFAULT_HORIZONS_MIN) -> list[float]:
    """A run time that stands for each duration bin: the geometric middle of its edges, in seconds, (n_bins,).

    The open first and last bins take the ratio of the horizons next to them for their missing edge.

    >>> [round(s / 60, 1) for s in bin_durations_s((5, 60, 720))]
    [1.4, 17.3, 207.8, 2494.2]
    """
    # With one horizon there is no ratio to go by.
    first, last = EDGE_RATIO, EDGE_RATIO
    if len(horizons_min) > 1:
        first, last = horizons_min[1] / horizons_min[0], horizons_min[-1] / horizons_min[-2]
    edges = [horizons_min[0] / first, *horizons_min, horizons_min[-1] * last]
    return [60.0 * sqrt(low * high) for low, high in pairwise(edges)]


class Certain:
    """What sources share that do not doubt what they say: of every answer they are sure.

    Implements `domain.forecasts.JobForecasts` and `UncertainForecasts` by three answers alone: whether jobs arrive, how
    many GPUs they ask for, and how long a job runs.
    """

    horizons_min: Sequence[float]
    """Edges of the duration bins, minutes."""

    def advance(self, now_s: float) -> None:
        """Nothing depends on the instant."""

    def will_jobs_arrive(self, pool: str, horizon_s: float) -> bool:
        """Whether any job will arrive in (now, now + horizon_s]."""
        raise NotImplementedError

    def new_load(self, pool: str, horizon_s: float) -> float:
        """GPUs of the jobs that will arrive in (now, now + horizon_s]."""
        raise NotImplementedError

    def duration_s(self, job: Job) -> float:
        """Its run time, seconds."""
        raise NotImplementedError

    def duration_bin(self, job: Job) -> int:
        """The bin of its run time."""
        return duration_bin(self.duration_s(job), self.horizons_min)

    def duration_probabilities(self, job: Job) -> tuple[float, ...]:
        """1 for the bin of its run time."""
        result = self.duration_bin(job)
        return tuple(float(number == result) for number in range(len(self.horizons_min) + 1))

    def arrival_probability(self, pool: str, horizon_s: float) -> float:
        """1 or 0."""
        return float(self.will_jobs_arrive(pool, horizon_s))

    def load_quantile(self, pool: str, horizon_s: float, level: float) -> float:
        """The load, GPUs."""
        return self.new_load(pool, horizon_s)

    def load_quantiles(self, pool: str, horizon_s: float, levels: tuple[float, ...]) -> tuple[float, ...]:
        """The load at each level, GPUs."""
        return (self.new_load(pool, horizon_s),) * len(levels)


class Oracle(Certain):
    """Exact answers, read from the workload: perfect coarse forecasts of SIA, section 6.3.

    Parameters
    ----------
    workload : what is replayed
    horizons_min : edges of the duration bins, minutes

    Attributes
    ----------
    jobs : all of them, in order of `seq`
    """

    def __init__(self, workload: Workload, horizons_min: Sequence[float] = DEFAULT_HORIZONS_MIN) -> None:
        self.horizons_min = tuple(horizons_min)
        self.jobs: Sequence[Job] = workload.jobs
        self._loads: dict[float, UpcomingLoads] = {}
        self._outcomes = workload.outcomes
        self._now_s = -inf

    def advance(self, now_s: float) -> None:
        """Move to an instant."""
        self._now_s = now_s

    def will_jobs_arrive(self, pool: str, horizon_s: float) -> bool:
        """Whether any job will arrive in (now, now + horizon_s]."""
        return pool in self._upcoming(horizon_s)

    def new_load(self, pool: str, horizon_s: float) -> float:
        """GPUs of the jobs that will arrive in (now, now + horizon_s]."""
        return self._upcoming(horizon_s).get(pool, 0)

    def _upcoming(self, horizon_s: float) -> Mapping[str, int]:
        """Loads of the pools that any job will arrive in, in (now, now + horizon_s]."""
        loads = self._loads.get(horizon_s)
        if loads is None:
            loads = self._loads[horizon_s] = UpcomingLoads(self.jobs, horizon_s)
        return loads.at(self._now_s)

    def duration_s(self, job: Job) -> float:
        """Its run time, seconds."""
        return self._outcomes[job.seq].duration_s

    def recorded_start_s(self, job: Job) -> float:
        """When the trace says that it started."""
        return self._outcomes[job.seq].start_s

    def regimes(self, job: Job, progress: Progress) -> tuple[Regime, ...]:
        """What is left of its regimes, the rest of the running one first. Shockwave, section 5."""
        left, done = [], progress.epochs
        for regime in self._outcomes[job.seq].regimes:
            # Takes from each regime what has been done of it, the first ones whole.
            rest, done = max(0.0, regime.epochs - done), max(0.0, done - regime.epochs)
            if rest > 0:
                left.append(Regime(regime.batch_size, rest))
        # At the edge of two regimes the job still reports the old size: it has 0 epochs left.
        if not left or left[0].batch_size != progress.batch_size:
            left.insert(0, Regime(progress.batch_size, 0.0))
        return tuple(left)

    def left_quantile_s(self, job: Job, progress: Progress, level: float) -> float:
        """What is left of a training job's run time, at any level."""
        assert job.training is not None
        return job.training.run_time_s(self.regimes(job, progress))


class Conservative(Certain):
    """Always expects the worst: jobs arrive, as many as the quota holds, and each runs for ever. SIA equals FCFS then.

    Parameters
    ----------
    workload : what is replayed; its quotas are all that is read
    horizons_min : edges of the duration bins, minutes
    """

    def __init__(self, workload: Workload, horizons_min: Sequence[float] = DEFAULT_HORIZONS_MIN) -> None:
        self.horizons_min = tuple(horizons_min)
        self._quotas = workload.quotas()
        self._longest_s = bin_durations_s(horizons_min)[-1]

    def will_jobs_arrive(self, pool: str, horizon_s: float) -> bool:
        """Yes."""
        return True

    def new_load(self, pool: str, horizon_s: float) -> float:
        """The pool's quota."""
        return self._quotas.get(pool, 0)

    def duration_s(self, job: Job) -> float:
        """A run time in the last bin, the same for all jobs; seconds."""
        return self._longest_s


class _Drawing(Certain):
    """What sources that draw share: keys, the load that stands in where arrivals are made up, and their uncertainty.

    Of what `Certain` is sure they are not: they know how often they err, and tell it. A source that is wrong with
    probability p gives its own answers a probability of 1 - p, and to the rest what a draw would say.
    """

    _wrong: float
    """Probability that an arrival answer is not the truth."""
    _drawn: float
    """Probability that a duration bin is a draw."""

    def __init__(
        self,
        workload: Workload,
        seed: int = 0,
        earlier: Sequence[Job] = (),
        horizons_min: Sequence[float] = DEFAULT_HORIZONS_MIN,
    ) -> None:
        self.horizons_min = tuple(horizons_min)
        self._seed = seed
        self._past = Arrivals([*earlier, *workload.jobs])
        self._durations_s = bin_durations_s(horizons_min)
        self._keys: dict[tuple[str, float], bytes] = {}
        self._now_s = -inf

    def advance(self, now_s: float) -> None:
        """Move to an instant."""
        self._now_s = now_s

    def duration_probabilities(self, job: Job) -> tuple[float, ...]:
        """What the told bin is worth: 1 for it, less the share of draws, which is spread over all bins."""
        bins = len(self.horizons_min) + 1
        # A draw may hit the told bin as well.
        spread = self._drawn / bins
        result = self.duration_bin(job)
        return tuple(1.0 - self._drawn + spread if number == result else spread for number in range(bins))

    def arrival_probability(self, pool: str, horizon_s: float) -> float:
        """What the told answer is worth: the share of answers that are right, or wrong where it is no.

        Arrivals and their absence are taken as equally likely before.
        """
        return 1.0 - self._wrong if self.will_jobs_arrive(pool, horizon_s) else self._wrong

    def load_quantile(self, pool: str, horizon_s: float, level: float) -> float:
        """The load where jobs are said to arrive, the sliding maximum where not; 0 up to the probability of none."""
        return self.load_quantiles(pool, horizon_s, (level,))[0]

    def load_quantiles(self, pool: str, horizon_s: float, levels: tuple[float, ...]) -> tuple[float, ...]:
        """As `load_quantile`, at each level."""
        arrives = self.will_jobs_arrive(pool, horizon_s)
        # Probability that no job arrives, given what was said.
        none = self._wrong if arrives else 1.0 - self._wrong
        load = self.new_load(pool, horizon_s) if arrives else self._sliding_max(pool, horizon_s)
        return tuple(load if level > none else 0.0 for level in levels)

    def _draw_arrival(self, pool: str, horizon_s: float) -> float:
        # Building a key costs more than a draw, and few pairs are asked about.
        key = self._keys.get((pool, horizon_s))
        if key is None:
            key = self._keys[pool, horizon_s] = draw_key(self._seed, "arrival", pool, float(horizon_s))
        return uniform(key, self._now_s)

    def _draw_bin(self, job: Job) -> int:
        return int(uniform(draw_key(self._seed, "bin", job.job_id)) * len(self._durations_s))

    def _sliding_max(self, pool: str, horizon_s: float) -> float:
        """Largest load of the last windows, from arrivals up to now alone."""
        return self._past.largest_past_load(pool, self._now_s, horizon_s, SLIDING_WINDOWS)


class Random(_Drawing):
    """A fair coin for arrivals, a uniform duration bin, sliding-max load. SIA, section 6.3.

    A coin is a pure function of (seed, pool, horizon, instant), a bin of (seed, job id). Asked for its uncertainty, it
    admits that it knows nothing: all bins are equally likely, and so are arrivals and their absence.

    Parameters
    ----------
    workload : what is replayed; of its arrivals only those up to now are read
    seed : of the draws
    earlier : jobs submitted before the run, for the sliding maximum
    horizons_min : edges of the duration bins, minutes
    """

    _wrong, _drawn = FAIR_COIN, 1.0

    def will_jobs_arrive(self, pool: str, horizon_s: float) -> bool:
        """Heads or tails."""
        return self._draw_arrival(pool, horizon_s) < FAIR_COIN

    def new_load(self, pool: str, horizon_s: float) -> float:
        """Largest load of the last windows of this length, GPUs."""
        return self._sliding_max(pool, horizon_s)

    def duration_bin(self, job: Job) -> int:
        """A uniform bin."""
        return self._draw_bin(job)

    def duration_s(self, job: Job) -> float:
        """The middle of the drawn bin, seconds."""
        return self._durations_s[self._draw_bin(job)]


class Noisy(_Drawing):
    """The oracle, wrong with probability p: an arrival answer is flipped, a duration bin drawn uniformly.

    Where an arrival is made up, the load is the sliding maximum; else it is exact.

    Parameters
    ----------
    workload : what is replayed
    probability : of each answer to be noise, in [0, 1]
    seed : of the draws
    earlier : jobs submitted before the run, for the sliding maximum
    horizons_min : edges of the duration bins, minutes
    """

    def __init__(
        self,
        workload: Workload,
        probability: float,
        seed: int = 0,
        earlier: Sequence[Job] = (),
        horizons_min: Sequence[float] = DEFAULT_HORIZONS_MIN,
    ) -> None:
        if not 0.0 <= probability <= 1.0:
            raise ValueError(f"probability must lie in [0, 1], got {probability}")
        super().__init__(workload, seed, earlier, horizons_min)
        self._truth = Oracle(workload, horizons_min)
        self._wrong = self._drawn = probability

    def advance(self, now_s: float) -> None:
        """Move to an instant."""
        super().advance(now_s)
        self._truth.advance(now_s)

    def will_jobs_arrive(self, pool: str, horizon_s: float) -> bool:
        """The truth, or its opposite."""
        return self._truth.will_jobs_arrive(pool, horizon_s) != self._flipped(pool, horizon_s)

    def new_load(self, pool: str, horizon_s: float) -> float:
        """The exact load, or the sliding maximum where arrivals are made up; GPUs."""
        # A false alarm has no load of its own: then the sliding maximum stands in.
        exact = self._truth.new_load(pool, horizon_s)
        return self._sliding_max(pool, horizon_s) if exact == 0 and self._flipped(pool, horizon_s) else exact

    def duration_bin(self, job: Job) -> int:
        """The true bin, or a uniform one."""
        return self._draw_bin(job) if self._replaced(job) else self._truth.duration_bin(job)

    def duration_s(self, job: Job) -> float:
        """The true run time, or the middle of the drawn bin; seconds."""
        return self._durations_s[self._draw_bin(job)] if self._replaced(job) else self._truth.duration_s(job)

    def _flipped(self, pool: str, horizon_s: float) -> bool:
        return self._draw_arrival(pool, horizon_s) < self._wrong

    def _replaced(self, job: Job) -> bool:
        return uniform(draw_key(self._seed, "replaced", job.job_id)) < self._drawn


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
        edges_s = self._now_s - horizon_s * np.arange(SLIDING_WINDOWS + 1)[::-1]
        rows = np.searchsorted(past.arrival_s, edges_s, side="right")
        # Only what lies within the windows is added up.
        gpus_until = np.concatenate([[0.0], np.cumsum(past.arrival_gpus[rows[0] : rows[-1]])])
        return float(np.diff(gpus_until[rows - rows[0]]).max())


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
        # By identity: moving a source twice an instant would draw or learn twice.
        self._parts = list({id(part): part for part in (arrivals, loads, durations)}.values())
        horizons = {tuple(part.horizons_min) for part in self._parts}
        if len(horizons) > 1:
            raise ValueError(f"sources to mix answer about different horizons: {sorted(horizons)}")
        self.horizons_min = arrivals.horizons_min
        self.will_jobs_arrive, self.new_load = arrivals.will_jobs_arrive, loads.new_load
        self.duration_bin, self.duration_s = durations.duration_bin, durations.duration_s
        self._unsure = {
            "arrival_probability": arrivals,
            **dict.fromkeys(("load_quantile", "load_quantiles"), loads),
            "duration_probabilities": durations,
        }

    def advance(self, now_s: float) -> None:
        """Move to an instant."""
        for part in self._parts:
            part.advance(now_s)

    def __getattr__(self, question: str) -> Any:
        """How sure an answer is says the part that gives it."""
        # Copies are asked for such names before there are any parts.
        if question.startswith("_") or question not in self._unsure:
            raise AttributeError(question)
        return getattr(self._unsure[question], question)
