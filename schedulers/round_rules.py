"""Rules that choose each round's jobs from the state of the round.

Shortest remaining time first and least attained service first: jobs ranked by one number each. Gandiva-Fair: shares by
tickets, handed out by stride or lottery. Themis: of the jobs that are treated worst, those that gain the most. The
longest jobs first while they bind the makespan. AlloX: jobs matched to places in the queues of GPUs, for the least
average completion time. The greatest sum of throughputs that GPUs can hold.
"""

from collections.abc import Mapping, Sequence
from math import ceil, log

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats
from jobcast.domain.jobs import Job
from jobcast.domain.rounding import rounded, rounded_all
from jobcast.domain.rounds import ActiveJob, RoundState
from jobcast.schedulers.ossp import makespan_bound_s
from jobcast.schedulers.packing import first_fit, most_valuable
from jobcast.schedulers.run_times import RunTimes


class ShortestRemaining:
    """Run the jobs that have the least left, and behind them whatever fits.

    Schrage, "A proof of the optimality of the shortest remaining processing time discipline", 1968.

    Parameters
    ----------
    estimates : tells remaining run times
    gpu_time : rank by remaining time x width, the GPU time that a job still takes, instead of the time alone
    """

    name = "srpt"
    memoryless = True  # its choice depends on the state alone: it may be asked about free GPUs in between

    def __init__(self, estimates: RunTimes, gpu_time: bool = False) -> None:
        self._estimates = estimates
        self._gpu_time = gpu_time

    def choose(self, state: RoundState) -> Sequence[Job]:
        """Least left first; ties go to running jobs, then by submission."""
        # Rounded keys: sums of epochs differ in their last bits from machine to machine.
        ordered = sorted(state.active, key=self._rank)
        return first_fit((active.job for active in ordered), state.total_gpus)

    def _rank(self, active: ActiveJob) -> tuple[float, bool, int]:
        left_s = self._estimates.remaining_s(active)
        if self._gpu_time:
            left_s *= active.job.gpus
        return rounded(left_s), not active.running, active.job.seq


class LeastAttained:
    """Run the jobs that have had the least GPU time for their weight, and behind them whatever fits.

    Service counts in two dimensions, time x GPUs, as in Tiresias (NSDI 2019), without its queues: each
    round ranks anew. Nothing is known of the future.
    """

    name = "las"
    memoryless = True  # its choice depends on the state alone: it may be asked about free GPUs in between

    def choose(self, state: RoundState) -> Sequence[Job]:
        """Least service first; ties go to running jobs, then by submission."""
        # Ties go to who runs, so that nobody is stopped for an equal.
        ordered = sorted(state.active, key=_rank)
        return first_fit((active.job for active in ordered), state.total_gpus)


def _rank(active: ActiveJob) -> tuple[float, bool, int]:
    attained = active.held_s * active.job.gpus / active.weight
    return rounded(attained), not active.running, active.job.seq


WIDTH = "width"


class GandivaFair:
    """Give each job GPU time in proportion to its tickets. Gandiva-Fair (EuroSys 2020); Waldspurger, 1995.

    A stride scheduler runs the jobs of the smallest pass; a job's pass grows with its GPU time / its tickets. A job
    that arrives begins at the smallest pass of those present, so that it neither catches up nor waits. A lottery draws
    the order of each round with chances in proportion to the tickets. Both fill up with whatever fits.

    Parameters
    ----------
    tickets : `width`, a ticket a GPU (Shockwave, section 8.5: the default of Gandiva-Fair), or `equal`, one a job;
        either times the job's weight
    lottery : draw the order instead of keeping passes
    seed : of draws, and of ties between passes

    Notes
    -----
    As a share policy (`shares`) every job may run min(1, GPUs / jobs) of the time, whatever its width, as the
    published simulator of Shockwave has it. With jobs wider than one GPU these shares claim more than the cluster;
    the mechanism that follows them normalises. They are a pure function of the state.
    """

    name = "gandiva_fair"

    def __init__(self, tickets: str = WIDTH, lottery: bool = False, seed: int = 0) -> None:
        self._by_width = tickets == WIDTH
        self._lottery = lottery
        self._seed = seed
        self._began: Mapping[int, float] = {}

    def shares(self, state: RoundState) -> Sequence[float]:
        """min(1, GPUs / jobs) for each active job, (n_active,)."""
        count = len(state.active)
        return [min(1.0, state.total_gpus / count)] * count if count else []

    def choose(self, state: RoundState) -> Sequence[Job]:
        """Jobs of the smallest pass, or in drawn order."""
        if not state.active:
            return []
        ranks = self._drawn(state) if self._lottery else self._passes(state)
        ties = [self._tie(active) for active in state.active]
        order = sorted(range(len(ranks)), key=lambda index: (ranks[index], ties[index]))
        return first_fit((state.active[index].job for index in order), state.total_gpus)

    def _tickets(self, active: ActiveJob) -> float:
        return active.weight * active.job.gpus if self._by_width else active.weight

    def _passes(self, state: RoundState) -> list[float]:
        """(n_active,) passes; remembers at which pass each active job began."""
        grown = [active.held_s * active.job.gpus / self._tickets(active) for active in state.active]
        seqs = [active.job.seq for active in state.active]
        present = [self._began[seq] + more for seq, more in zip(seqs, grown, strict=True) if seq in self._began]
        # Who comes begins where the furthest behind stands: time before its arrival is not made up for.
        entry = min(present, default=0.0)
        self._began = {seq: self._began.get(seq, entry) for seq in seqs}
        return [rounded(self._began[seq] + more) for seq, more in zip(seqs, grown, strict=True)]

    def _drawn(self, state: RoundState) -> list[float]:
        """Exponential draws at the rates of the tickets, (n_active,): their order is a lottery without replacement."""
        # The round is part of the seed: draws do not depend on how often somebody asked before.
        rng = np.random.default_rng([self._seed, state.index])
        draws = rng.exponential(size=len(state.active))
        tickets = np.array([self._tickets(active) for active in state.active])
        drawn: list[float] = (draws / tickets).tolist()
        return drawn

    def _tie(self, active: ActiveJob) -> tuple[bool, float, int]:
        """Running jobs first, then a number drawn for the job, then submission."""
        # Drawn by job and not by position, so that a tie falls the same way in every round.
        return not active.running, float(np.random.default_rng([self._seed, active.job.seq]).random()), active.job.seq


# Share of the jobs that a round is offered to: 1 - f with the fairness knob f = 0.8 of Themis (NSDI 2020).
FILTER = 0.2


class ThemisFilter:
    """Offer each round to the share of jobs of the worst finish-time fairness. Themis (NSDI 2020); Shockwave, 2.1.

    A job's fairness is (age + remaining time x contention) / (total time x contention), with the contention of the
    moment, jobs / GPUs, at least 1 (Shockwave, equation 9). Among the filtered jobs the winners maximise the product of
    valuations, 1 / fairness, over the sets that fit: the proportional fairness of Themis's partial allocation. Not to
    run delays the estimated completion by a round, so that a job's gain is log((completion + round) / completion); the
    best set is a knapsack, solved exactly. What they leave goes to the others, worst treated first, where Themis draws.

    Parameters
    ----------
    estimates : tells run times as they are forecast at the moment
    filter : share of jobs that are offered the round, Shockwave's f (Table 1 tries 1/3, 2/3 and 1)
    """

    name = "themis_filter"
    memoryless = True  # its choice depends on the state alone: it may be asked about free GPUs in between

    def __init__(self, estimates: RunTimes, filter: float = FILTER) -> None:
        self._estimates = estimates
        self._filter = filter

    def choose(self, state: RoundState) -> Sequence[Job]:
        """Winners among the filtered, then whoever fits, worst treated first."""
        if not state.active:
            return []
        # Below one job a GPU nobody waits, so that sharing slows nobody.
        contention = max(1.0, len(state.active) / state.total_gpus)
        ordered = sorted(state.active, key=lambda active: self._rank(active, state.now_s, contention))
        offered = ordered[: ceil(self._filter * len(ordered))]
        gains = [self._gain(active, state, contention) for active in offered]
        won = most_valuable(gains, [active.job.gpus for active in offered], state.total_gpus)
        winners = [offered[index].job for index in won]
        taken = {job.seq for job in winners}
        others = (active.job for active in ordered if active.job.seq not in taken)
        return first_fit([*winners, *others], state.total_gpus)

    def _completion_s(self, active: ActiveJob, now_s: float, contention: float) -> float:
        return now_s - active.job.submit_s + self._estimates.remaining_s(active) * contention

    def _rank(self, active: ActiveJob, now_s: float, contention: float) -> tuple[float, bool, int]:
        fair_s = self._estimates.total_s(active) * contention
        unfairness = active.job.weight * self._completion_s(active, now_s, contention) / fair_s
        return -rounded(unfairness), not active.running, active.job.seq

    def _gain(self, active: ActiveJob, state: RoundState, contention: float) -> float:
        # At least a round, so that a job which is about to end has no infinite gain.
        completion_s = max(self._completion_s(active, state.now_s, contention), state.round_s)
        return rounded(active.job.weight * log((completion_s + state.round_s) / completion_s))


# Of the makespan's bound: jobs that have as much left cannot wait.
SHARE = 0.8


class LongestThenSrpt:
    """A rule of two lines that keeps the makespan near its bound and the mean completion time near its least.

    Jobs that have at least `share` of max(mean load, longest remaining time) left, Shockwave's equation 10, come first,
    the longest before the others; then who has the least left. Behind them goes whatever fits.

    Parameters
    ----------
    estimates : tells remaining run times
    share : in (0, 1]; at 1 jobs are begun when nothing else would do, the smaller the earlier
    """

    name = "longest_then_srpt"
    memoryless = True  # its choice depends on the state alone: it may be asked about free GPUs in between

    def __init__(self, estimates: RunTimes, share: float = SHARE) -> None:
        self._estimates, self._share = estimates, share

    def choose(self, state: RoundState) -> Sequence[Job]:
        """Jobs that bind the makespan, then the shortest; ties go to running jobs, then by submission."""
        if not state.active or state.total_gpus <= 0:
            return []
        left_s = rounded_all(np.array([self._estimates.remaining_s(one) for one in state.active]))
        widths = np.array([one.job.gpus for one in state.active])
        binding = left_s >= self._share * makespan_bound_s(left_s, widths, state.total_gpus)
        rows = zip(np.where(binding, -left_s, left_s), ~binding, state.active, strict=True)
        ranked = sorted(rows, key=lambda row: (row[1], row[0], not row[2].running, row[2].job.seq))
        return first_fit((one.job for _, _, one in ranked), state.total_gpus)


class AlloX:
    """Match jobs to (GPU, place counted from the end of its queue) and run the heads of the queues.

    AlloX (EuroSys 2020). A job in the k-th place from the end delays itself and the k - 1 behind it, so
    that it costs k x its time; the cheapest matching has the least sum of completion times.

    Reduced to gangs and rounds as in Gavel's AlloX: a gang of g GPUs that has 1 / g of the time stands for one GPU, on
    which it takes g x its remaining time. Every round matches anew, running jobs too, with the restart added to the
    time of those that do not run; heads run first, shortest first, then the rest by place.

    Parameters
    ----------
    estimates : tells remaining run times
    filter : share of the active jobs that are matched, those that had the least of what they might have had; at least
        as many as GPUs are. 1 matches all, the default of Gavel's AlloX; the others fill up what stays free
    """

    name = "allox"
    memoryless = True  # its choice depends on the state alone: it may be asked about free GPUs in between

    def __init__(self, estimates: RunTimes, filter: float = 1.0) -> None:
        self._estimates = estimates
        self._filter = filter

    def choose(self, state: RoundState) -> Sequence[Job]:
        """Heads of the queues, then later places, then jobs that the filter left out."""
        if not state.active:
            return []
        # Fairness is filtered by first: who had least of its time is matched, whatever its length.
        poorest = sorted(
            state.active, key=lambda active: (rounded(attained_share(active, state.now_s)), active.job.seq)
        )
        # Fewer matched jobs than GPUs would leave the choice of the rest to the filter order alone.
        count = max(int(self._filter * len(poorest)), min(state.total_gpus, len(poorest)))
        times = np.array([self._gpu_s(active, state) for active in poorest[:count]])
        places = queue_places(times, state.total_gpus)
        # The highest place of a queue is its head, since places count from the end.
        order = sorted(range(count), key=lambda index: (-places[index], times[index], poorest[index].job.seq))
        matched = [poorest[index].job for index in order]
        return first_fit([*matched, *(active.job for active in poorest[count:])], state.total_gpus)

    def _gpu_s(self, active: ActiveJob, state: RoundState) -> float:
        # A waiting job would pay its restart, so that a running one of like length goes first.
        restart_s = 0.0 if active.running else state.restart_s
        return rounded(active.job.gpus * (self._estimates.remaining_s(active) + restart_s))


def attained_share(active: ActiveJob, now_s: float) -> float:
    """Share of its time since submission in which a job held its GPUs, for its weight; 0 on arrival."""
    entitled_s = (now_s - active.job.submit_s) * active.weight
    return active.held_s / entitled_s if entitled_s > 0 else 0.0


def queue_places(times: NDArray[np.float64], gpus: int) -> NDArray[np.int64]:
    """Place from the end of its GPU's queue for each job, (n,), from 1; the highest place of a queue runs first.

    GPUs are alike, so that no queue need be longer than the jobs spread evenly: each GPU offers that many places.

    Parameters
    ----------
    times : (n,) GPU time that each job takes
    gpus : of the cluster

    >>> queue_places(np.array([30.0, 10.0, 20.0]), 1).tolist()
    [1, 3, 2]
    """
    from scipy.optimize import linear_sum_assignment

    longest = -(-len(times) // gpus)
    place = 1 + np.repeat(np.arange(longest), gpus)
    order = np.argsort(-times, kind="stable")  # longest first, the matching is found a hundred times faster
    _, columns = linear_sum_assignment(np.outer(times[order], place))
    places = np.empty(len(times), dtype=np.int64)
    places[order] = place[columns]
    return places


EPOCHS, STEPS = "epochs", "steps"
ALIKE = 1e-9  # relative difference below which two rates a GPU are taken to be equal


class MaxSumThroughput:
    """Shares of time that maximise the sum of throughputs. Gavel (OSDI 2020); Shockwave, section 8.2.

    The linear programme "maximise rates x shares subject to widths x shares <= GPUs, 0 <= shares <= 1" is a fractional
    knapsack: the highest rates a GPU get all of their time, those at the margin share what is left alike, as an
    interior-point solver leaves them.

    Parameters
    ----------
    unit : of rates. `EPOCHS`: epochs / s, the progress that Shockwave's utility counts (equation 7). `STEPS`: steps / s
        at the running batch size, Gavel's unit, which adds up steps of unlike size and needs the sizes of data sets.

    Notes
    -----
    Reactive: a rate is that of the batch size at the moment. A job without training, or whose data set's size is
    wanted and not known, reports no rate and runs on what the others leave.
    """

    name = "mst"

    def __init__(self, unit: str = EPOCHS) -> None:
        self._unit = unit

    def shares(self, state: RoundState) -> Sequence[float]:
        """Share of the time for each active job, (n_active,)."""
        widths = np.array([active.job.gpus for active in state.active], dtype=np.float64)
        rates = np.array([self.rate(active) for active in state.active], dtype=np.float64)
        shares: list[float] = fractional_knapsack(rates, widths, float(state.total_gpus)).tolist()
        return shares

    def rate(self, active: ActiveJob) -> float:
        """Epochs, or steps, a second at the batch size of the moment; 0 where nothing is known."""
        training = active.job.training
        if training is None:
            return 0.0
        batch_size = training.batch_size if active.progress is None else active.progress.batch_size
        work = 1.0 if self._unit == EPOCHS else (training.samples or 0) / batch_size
        return work / training.epoch_s[batch_size]


def fractional_knapsack(values: Floats, widths: Floats, gpus: float) -> Floats:
    """Shares that maximise values x shares on so many GPUs, (n,); items of equal value a GPU get equal shares.

    >>> fractional_knapsack(np.array([3.0, 2.0, 2.0]), np.array([1.0, 1.0, 1.0]), 2.0).tolist()
    [1.0, 0.5, 0.5]
    """
    shares = np.zeros(len(values))
    density = values / widths
    order = np.argsort(-density, kind="stable")
    # Where the rate falls by more than rounding a new group of equals begins.
    falls = np.flatnonzero(np.diff(density[order]) < -ALIKE * np.abs(density[order][:-1])) + 1
    left = gpus
    for alike in np.split(order, falls):
        if not len(alike) or left <= 0:
            break
        shares[alike] = min(1.0, left / float(widths[alike].sum()))
        left -= float(widths[alike] @ shares[alike])
    return shares
