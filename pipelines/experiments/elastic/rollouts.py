"""Futures of a run: sizes and arrivals drawn from what is forecast, played forward by the engine itself."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.elastic import ElasticJobs, ElasticView
from jobcast.domain.errors import DecisionError
from jobcast.models.completion.job_completions import (
    SPREAD,
    ArrivalDraws,
    SizeDraws,
    SizeForecaster,
    SizeSample,
)
from jobcast.models.completion.job_size import DeclaredSizes
from jobcast.pipelines.experiments.elastic.jobs import taken, with_more
from jobcast.simulator.elastic.run import ElasticReplay
from jobcast.simulator.elastic.state import CLOCK, COUNT, OVERDUE_S, State, empty_state

SWEEPS = 60
"""Times that the rule is asked at most; the sizes that it contradicts least are kept."""
Redraw = Callable[[Ints], Floats]


def agreeing_sizes(run: ElasticReplay, jobs: ElasticJobs, active: Ints, sizes: Floats, redraw: Redraw) -> Floats:
    """Sizes under which the rule serves those jobs that hold GPUs, and no others, as far as `SWEEPS` allow.

    Under a rule that does not look at sizes, such as FIFO, they stay as they are.

    Parameters
    ----------
    run : stopped at an instant; left as it is
    jobs : the active jobs alone, numbered from 0
    active : (n_active,) their ids in the run
    sizes : (n_active,) a first draw, seconds on one GPU
    redraw : draws sizes for some of them, given as positions in `active`
    """
    held = run.state.gpus[active].sum(axis=1) > tolerance.GPUS
    best, fewest = sizes, len(sizes) + 1
    # Whoever contradicts what is seen is drawn anew, until nobody does.
    for _ in range(SWEEPS):
        wrong = np.flatnonzero(_served(run, jobs, active, sizes) != held)
        # The best so far is kept: sweeps need not come to an end.
        if len(wrong) < fewest:
            best, fewest = sizes, len(wrong)
        if not len(wrong):
            break
        # The best ones must not change with the next draw.
        sizes = sizes.copy()
        sizes[wrong] = redraw(wrong)
    return best


def _served(
    run: ElasticReplay, jobs: ElasticJobs, active: Ints, sizes: Floats
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whom the rule would serve now if these were the sizes, (n_active,)."""
    state, count = run.state, len(active)
    gpus = np.zeros((count, len(run.cluster.capacity)))
    view = ElasticView(
        now_s=float(state.clock[CLOCK.now]),
        capacity=run.cluster.capacity,
        active=np.arange(count),
        count=count,
        jobs=jobs._replace(size_s=sizes),
        # A job that has outlived its size is taken to be all but done.
        left_s=np.maximum(sizes - state.done_s[active], OVERDUE_S),
        most=state.most[active],
        held_gpu_s=state.gpu_s[active],
        contention=state.contention[active],
    )
    run.policy.rule(view, run.policy.numbers, gpus)
    return np.asarray(gpus.sum(axis=1) > tolerance.GPUS)


ARRIVALS_AT_FIRST = 200
"""Arrivals drawn for a future at first; four times as many when they run out before the job ends."""
MOST_ARRIVALS = 3_200
"""Arrivals after which a future is cut short: the job is taken to end when the last of them is done."""
ARRIVAL_BLOCKS = 200
"""Arrivals are drawn so many at a time, so that more of them go on where fewer end."""
AGREEING = 2
"""Every so manieth future has sizes that agree with whom the rule serves now; others do without that evidence, which
says too much where sizes of a burst are alike: their order tells nothing of how large they all are."""


@dataclass(frozen=True, slots=True, eq=False)
class Past:
    """Jobs submitted before an instant, in order; arrays (n_jobs,), times from the run's beginning.

    Attributes
    ----------
    submit_s : may be less than 0, before the run began
    size_s : work in seconds on one GPU, NaN where the job has not finished
    least, most, model : as in `ElasticJobs`
    declared_s : work as declared, known from the submission on; None: as it turned out
    """

    submit_s: Floats
    size_s: Floats
    least: Floats
    most: Floats
    model: Ints
    declared_s: Floats | None = None


NO_PAST = Past(np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class Forecasters:
    """What futures are drawn from at an instant.

    Attributes
    ----------
    sizes : of jobs that finished before; None where sizes are declared
    gap_s : seconds between the submissions before; None where nothing more is to arrive
    past : the jobs that arrivals are drawn from
    learned : what made `sizes`; with it a future that agrees with the rule learns from what it drew of running jobs
    declared : how declared sizes err, in the order of `past`; None where they are not declared
    """

    sizes: SizeSample | None
    gap_s: Floats | None
    past: Past
    learned: SizeForecaster | None = None
    declared: DeclaredSizes | None = None


def play_futures(run: ElasticReplay, job: int, forecasters: Forecasters, **how: Any) -> Floats:
    """Instants at which an active job ends in each of some futures, (futures,); see `play_starts_and_ends`."""
    return play_starts_and_ends(run, job, forecasters, **how)[:, 1]


def play_starts_and_ends(
    run: ElasticReplay,
    job: int,
    forecasters: Forecasters,
    *,
    futures: int,
    seed: int,
    declared: int | None = None,
    agreeing: bool = True,
) -> Floats:
    """When an active job is first given GPUs and ends, (futures, 2) seconds from the run's beginning.

    In each, the sizes of all active jobs and those to come are drawn (or as declared), as are arrivals, and the state
    of the run is played forward under its policy until the job ends. The run is left as it is.

    Parameters
    ----------
    run : stopped right after a submission
    job : id of an active job
    forecasters : what draws come from
    futures : how many
    declared : id of a job whose size is as declared even where others' are drawn
    agreeing : whether sizes of every other future agree with whom the rule serves now; not where it was asked about a
        size that nobody knows
    seed : of the draws; a future's draws depend on (seed, job, number of the future) alone

    Raises DecisionError when the policy's rule fails.
    """
    count = int(run.state.count[COUNT.active])
    active = run.state.active[:count].copy()
    awaited = int(np.flatnonzero(active == job)[0])
    if not run.policy.preemptive:
        # Without preemption later arrivals delay nobody who is here.
        forecasters = replace(forecasters, gap_s=None)
    known = forecasters.declared is None or forecasters.declared.exact
    certain = forecasters.sizes is None and forecasters.gap_s is None and known
    found = [
        _play_one(run, active, awaited, forecasters, (seed, job, number), declared, agreeing and number % AGREEING == 0)
        for number in range(1 if certain else futures)
    ]
    return np.array(found * futures if certain else found)


class _Sizes(NamedTuple):
    """Sizes of jobs, (n_jobs,) seconds on one GPU: what the scheduler is told, and what they are."""

    declared: Floats
    true: Floats


def _play_one(
    run: ElasticReplay,
    active: Ints,
    awaited: int,
    forecasters: Forecasters,
    key: tuple[int, int, int],
    declared: int | None,
    agrees: bool,
) -> tuple[float, float]:
    # A generator a future: more of them change none that were drawn.
    rng = np.random.default_rng(key)
    if forecasters.sizes is None:
        result, done_s = run.jobs.size_s[active], run.state.done_s[active]
        draws, sizes = None, _Sizes(result, np.where(done_s >= result, done_s + OVERDUE_S, result))
        if forecasters.declared is not None:
            row = len(forecasters.past.size_s) - int(run.state.count[COUNT.arrived]) + active
            sizes = _Sizes(result, forecasters.declared.draw(row, done_s, rng))
    else:
        draws = SizeDraws(forecasters.sizes, rng)
        drawn, corrected = _drawn(run, active, draws, declared, agrees)
        # What agreed says who is short: others are then drawn as if those had ended so.
        if corrected and forecasters.learned is not None:
            known = _with_active(forecasters.past, run, active, drawn)
            draws = SizeDraws(_sample(forecasters.learned, known), rng)
            drawn, _ = _drawn(run, active, draws, declared, agrees)
        sizes = _Sizes(drawn, drawn)
    forecasters = replace(forecasters, past=_with_active(forecasters.past, run, active, sizes.true))
    wanted = 0 if forecasters.gap_s is None else ARRIVALS_AT_FIRST
    to_come = _Arriving(forecasters, float(run.state.clock[CLOCK.now]), draws, rng)
    # Four times as many arrivals each time: few futures need more than the first lot.
    while True:
        come = to_come.first(wanted)
        jobs = _world(run.jobs, active, sizes.declared, come, forecasters.past)
        true_s = np.concatenate([sizes.true, come.sizes.true])
        start_s, end_s, arrived = _played(run, jobs, true_s, active, awaited)
        if arrived < len(jobs.size_s) or wanted == 0 or wanted >= MOST_ARRIVALS:
            return start_s, end_s
        wanted *= 4


def _drawn(
    run: ElasticReplay, active: Ints, draws: SizeDraws, declared: int | None, agrees: bool
) -> tuple[Floats, bool]:
    """Sizes of the active jobs, one of which may have declared its own, and whether the rule contradicted the draw."""
    width, done_s = run.jobs.most[active].astype(np.int64), run.state.done_s[active]
    result = np.maximum(run.jobs.size_s[active], done_s + OVERDUE_S)

    def draw(which: Ints) -> Floats:
        drawn: Floats = np.where(active[which] == declared, result[which], draws.draw(width[which], done_s[which]))
        return drawn

    sizes = draw(np.arange(len(active)))
    if not agrees:
        return sizes, False
    alone = _world(run.jobs, active, sizes, NOBODY_ELSE, NO_PAST)
    agreed = agreeing_sizes(run, alone, active, sizes, draw)
    return agreed, agreed is not sizes


def _sample(learned: SizeForecaster, past: Past) -> SizeSample:
    """Jobs that wait or run count as large as a future drew them: those that end first are the small ones."""
    known = ~np.isnan(past.size_s)
    return learned.sample(np.where(known, past.size_s, 0.0), known, past.most.astype(np.int64))


def _with_active(past: Past, run: ElasticReplay, active: Ints, sizes: Floats) -> Past:
    """The past as a future has it: jobs that still run are as large there as they were drawn."""
    size_s = past.size_s.copy()
    if len(size_s):
        size_s[len(size_s) - int(run.state.count[COUNT.arrived]) + active] = sizes
    return replace(past, size_s=size_s)


class _Come(NamedTuple):
    """Who arrives in a future, arrays (n,): when, the rows of the past jobs that they are drawn from, their sizes."""

    submit_s: Floats
    row: Ints
    sizes: _Sizes


NOBODY_ELSE = _Come(np.zeros(0), np.zeros(0, dtype=np.int64), _Sizes(np.zeros(0), np.zeros(0)))


class _Arriving:
    """Arrivals of one future, drawn as far as they are needed."""

    def __init__(
        self, forecasters: Forecasters, now_s: float, draws: SizeDraws | None, rng: np.random.Generator
    ) -> None:
        self._forecasters, self._draws, self._rng = forecasters, draws, rng
        self._arrivals = None if forecasters.gap_s is None else ArrivalDraws(forecasters.gap_s, rng)
        self._at_s, self._come = now_s, NOBODY_ELSE

    def first(self, count: int) -> _Come:
        """At least `count` of them, none where none are forecast."""
        # Whole lots in one order: a longer future begins like the shorter one.
        while self._arrivals is not None and len(self._come.row) < count:
            drawn, before = self._arrivals.draw(ARRIVAL_BLOCKS), self._come
            submit_s = self._at_s + np.cumsum(drawn.gap_s)
            self._at_s = float(submit_s[-1])
            sizes = _Sizes(*(np.concatenate(both) for both in zip(before.sizes, self._sizes(drawn.row), strict=True)))
            self._come = _Come(
                np.concatenate([before.submit_s, submit_s]), np.concatenate([before.row, drawn.row]), sizes
            )
        return self._come

    def _sizes(self, row: Ints) -> _Sizes:
        """Around those of the past jobs that they are drawn from: no two jobs are quite the same."""
        past, forecasters = self._forecasters.past, self._forecasters
        noise = np.exp(SPREAD * self._rng.standard_normal(len(row)))
        if forecasters.declared is not None:
            true = forecasters.declared.draw(row, np.zeros(len(row)), self._rng)
            return _Sizes(forecasters.declared.told_s[row] * noise, true * noise)
        size_s = past.size_s[row] * noise
        # Drawn from jobs that have not ended: their sizes are not known either.
        unknown = np.isnan(size_s)
        if unknown.any() and self._draws is not None:
            size_s[unknown] = self._draws.draw(past.most[row][unknown].astype(np.int64), np.zeros(int(unknown.sum())))
        elif unknown.any():
            size_s[unknown] = self._rng.choice(past.size_s[~np.isnan(past.size_s)], int(unknown.sum()))
        return _Sizes(size_s, size_s)


def _world(jobs: ElasticJobs, active: Ints, told_s: Floats, to_come: _Come, past: Past) -> ElasticJobs:
    """Active jobs first, with their sizes as told, then those to come, which have one stage."""
    row, known = to_come.row, taken(jobs, active)._replace(size_s=told_s)
    drawn = past.least[row], past.most[row], past.model[row]
    return with_more(known, to_come.submit_s, to_come.sizes.declared, *drawn)


def _played(
    run: ElasticReplay, jobs: ElasticJobs, size_s: Floats, active: Ints, awaited: int
) -> tuple[float, float, int]:
    """Play a world until the awaited job ends: its start and end, and how many jobs had come by then."""
    # Here, since it compiles when it is first imported.
    from jobcast.simulator.elastic.kernel import play

    state, policy = _state(run, jobs, active), run.policy
    status = play(policy.rule, run.world(jobs, size_s), state, len(size_s), awaited, np.inf)
    if status:
        raise DecisionError(f"policy {policy.name}: cannot be played forward (status {status})")
    return float(state.start_s[awaited]), float(state.end_s[awaited]), int(state.count[COUNT.arrived])


def _state(run: ElasticReplay, jobs: ElasticJobs, active: Ints) -> State:
    """The run's state with its active jobs numbered from 0."""
    source, count = run.state, len(active)
    state = empty_state(jobs, len(run.cluster.capacity), len(run.cluster.node_type))
    state.clock[:] = source.clock
    state.count[:] = source.count
    # Only the active jobs have arrived in this world; all others are still to come.
    state.count[COUNT.arrived] = count
    state.active[:count] = np.arange(count)
    offset = np.concatenate([[0], np.cumsum(run.jobs.stage_of[active + 1] - run.jobs.stage_of[active])])[:-1]
    state.stage[:count] = offset + source.stage[active] - run.jobs.stage_of[active]
    for name in COPIED:
        getattr(state, name)[:count] = getattr(source, name)[active]
    return state


COPIED = (
    *("done_s", "most", "gpus", "rate", "stalled_until_s", "start_s", "gpu_s", "seen_first"),
    *("seen_before", "events_before", "on_node", "locality"),
)
"""Rows of a state that a job takes along."""
