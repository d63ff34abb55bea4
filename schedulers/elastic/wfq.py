"""PCS: weighted fair queueing over a few queues of jobs by size, FIFO and demand caps within each. PCS, section 3.1."""

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.compiled import F1, F2, I1, njit, types
from jobcast.domain.elastic import ElasticJobs, ElasticView
from jobcast.domain.elastic_kernels import JOBS, RULE, VIEW, grant
from jobcast.domain.rounding_kernels import rounded

# Numbers of a configuration before its thresholds: queues, cap, relaxation step, whole GPUs, caps as in the paper.
HEAD = 5
# Rests of shares that count as equal.
SAME_GPUS = 1e-6


@njit(types.int64(F1, types.float64), cache=True)
def queue_at(numbers: Floats, size_s: float) -> int:
    """The queue of a declared size: the first whose threshold is not below it."""
    queue = 0
    # The last one is infinite.
    while rounded(size_s) > rounded(numbers[HEAD + queue]):
        queue += 1
    return queue


@njit(types.float64(JOBS, types.int64, types.float64, types.boolean), cache=True)
def demand_cap(jobs: ElasticJobs, model: int, least_efficiency: float, monotone: bool) -> float:
    """Most GPUs at which a model is efficient: speedup(g) / g >= `least_efficiency`. PCS, section 3.3.

    One less than the first g that is not, as the published runs have it; with `monotone`, the last g that is, as the
    paper's formula has it. The two differ where efficiency rises again.
    """
    last = jobs.speedup.shape[2] - 1
    cap = 0
    for gpus in range(1, last + 1):
        if rounded(jobs.speedup[model, 0, gpus] / gpus) >= rounded(least_efficiency):
            cap = gpus
        elif not monotone:
            return float(cap)
    return float(cap)


@njit(types.void(F1, F1, types.float64, F1), cache=True)
def fill(weights: Floats, demands: Floats, gpus: float, shares: Floats) -> None:
    """Shares of queues by weight, none more than its demand; what one leaves goes to the others by weight, again."""
    shares[:] = 0.0
    wanting = demands > tolerance.GPUS
    left = gpus
    while left > tolerance.GPUS:
        total = 0.0
        for queue in range(len(weights)):
            if wanting[queue]:
                total += weights[queue]
        given, full = 0.0, False
        for queue in range(len(weights)):
            if wanting[queue]:
                part = left * weights[queue] / total
                if shares[queue] + part >= demands[queue] - tolerance.GPUS:
                    part = demands[queue] - shares[queue]
                    wanting[queue] = False
                    full = True
                shares[queue] += part
                given += part
        left -= given
        # Nobody was filled, so that all of it was given out.
        if not full:
            return


@njit(types.void(F1, F1, types.float64), cache=True)
def round_shares(shares: Floats, demands: Floats, gpus: float) -> None:
    """Whole GPUs by largest remainder, none more than its demand."""
    # In units, or the order of equal rests would turn on their last bits.
    rests = np.rint((shares - np.floor(shares + tolerance.GPUS)) / SAME_GPUS)
    for queue in range(len(shares)):
        shares[queue] = np.floor(shares[queue] + tolerance.GPUS)
    left = min(gpus, demands.sum()) - shares.sum()
    for queue in np.argsort(-rests, kind="mergesort"):
        if left < 1.0 - tolerance.GPUS:
            return
        if shares[queue] + 1.0 <= demands[queue] + tolerance.GPUS:
            shares[queue] += 1.0
            left -= 1.0


@njit(types.void(VIEW, I1, types.int64, F1, F1, F2), cache=True)
def serve_queue(view: ElasticView, queue_of: Ints, queue: int, numbers: Floats, share: Floats, gpus: Floats) -> None:
    """Give a queue's share to its jobs in order of submission, caps relaxed step by step until they can use it all."""
    efficiency, step, total = numbers[1], numbers[2], share.sum()
    caps = np.zeros(view.jobs.speedup.shape[0])
    while True:
        for model in range(len(caps)):
            caps[model] = demand_cap(view.jobs, model, efficiency, numbers[4] > 0.0)
        usable, most = 0.0, 0.0
        for i in range(view.count):
            if queue_of[i] == queue:
                job = view.active[i]
                usable += min(view.most[job], caps[view.jobs.model[job]])
                most += view.most[job]
        # Caps stay as tight as the queue can bear without idling.
        if usable >= min(total, most) - tolerance.GPUS or efficiency <= 0.0:
            break
        # Without a step the caps are dropped at once, or it would never end.
        efficiency = efficiency - step if step > 0.0 else 0.0
    for i in range(view.count):
        if queue_of[i] == queue:
            if share.sum() <= tolerance.GPUS:
                return
            job = view.active[i]
            wanted = view.most[job] if efficiency <= 0.0 else min(view.most[job], caps[view.jobs.model[job]])
            grant(view, job, share, wanted, gpus)


@njit(types.void(VIEW, F1, F2), cache=True)
def share_out(view: ElasticView, numbers: Floats, gpus: Floats) -> None:
    """Shares of the queues by weight and type of GPU, each dealt out within its queue. PCS, section 3.1."""
    queues, kinds = int(numbers[0]), len(view.capacity)
    queue_of = np.empty(view.count, dtype=np.int64)
    demands, slowness = np.zeros(queues), np.zeros(kinds)
    for i in range(view.count):
        job = view.active[i]
        queue_of[i] = queue_at(numbers, view.jobs.size_s[job])
        demands[queue_of[i]] += view.most[job]
        for kind in range(kinds):
            slowness[kind] -= view.most[job] * view.jobs.speed[view.jobs.model[job], kind]
    for kind in range(kinds):
        slowness[kind] = rounded(slowness[kind])
    shares = np.zeros((queues, kinds))
    one = np.zeros(queues)
    # The fastest first: where not all GPUs are wanted, the slow ones are to idle.
    for kind in np.argsort(slowness, kind="mergesort"):
        first = HEAD + queues * (1 + kind)
        fill(numbers[first : first + queues], demands, view.capacity[kind], one)
        if numbers[3] > 0.0:
            round_shares(one, demands, view.capacity[kind])
        shares[:, kind] = one
        # What one type gives is not asked of the next.
        demands -= one
    for queue in range(queues):
        if shares[queue].sum() > tolerance.GPUS:
            serve_queue(view, queue_of, queue, numbers, shares[queue], gpus)
    left = np.zeros(kinds)
    for kind in range(kinds):
        left[kind] = max(view.capacity[kind] - gpus[view.active[: view.count], kind].sum(), 0.0)
    if left.sum() > tolerance.QUEUE_GPUS:  # a least that did not fit, or a job that could not use its queue's last GPUs
        for i in range(view.count):
            job = view.active[i]
            grant(view, job, left, view.most[job] - gpus[job].sum(), gpus)


def joined(numbers: Floats, from_s: float, later: Floats) -> Floats:
    """Numbers of `pcs` under which jobs submitted from an instant on go by a later configuration.

    Turns, oldest first: minus their number, (first submission, how many numbers) of each, then the numbers of each.
    """
    old = numbers if numbers[0] < 0.0 else np.concatenate([[-1.0, -np.inf, float(len(numbers))], numbers])
    turns = int(-old[0])
    head = [old[:1] - 1.0, old[1 : 1 + 2 * turns], [from_s, float(len(later))]]
    return np.concatenate([*head, old[1 + 2 * turns :], later])


@njit(types.UniTuple(types.int64, 2)(F1, types.int64), cache=True)
def turn_at(numbers: Floats, turn: int) -> tuple[int, int]:
    """Where the numbers of a turn begin and end."""
    begin = 1 + 2 * int(-numbers[0])
    for earlier in range(turn):
        begin += int(numbers[2 + 2 * earlier])
    return begin, begin + int(numbers[2 + 2 * turn])


@njit(types.int64(F1, types.float64), cache=True)
def turn_of(numbers: Floats, submit_s: float) -> int:
    """The turn of a job by its submission: the last that had begun."""
    turn = int(-numbers[0]) - 1
    while submit_s < numbers[1 + 2 * turn]:
        turn -= 1
    return turn


@njit(types.Tuple((VIEW, I1))(VIEW, F1, types.int64, F1), cache=True)
def of_turn(view: ElasticView, numbers: Floats, turn: int, left: Floats) -> tuple[ElasticView, Ints]:
    """The jobs of a turn, with the GPUs that are left for them, and their positions in `view.active`."""
    positions = np.empty(view.count, dtype=np.int64)
    count = 0
    for i in range(view.count):
        if turn_of(numbers, view.jobs.submit_s[view.active[i]]) == turn:
            positions[count] = i
            count += 1
    active = view.active[positions[:count]]
    seen = ElasticView(
        view.now_s, left, active, count, view.jobs, view.left_s, view.most, view.held_gpu_s, view.contention
    )
    return seen, positions[:count]


@njit(RULE, cache=True)
def pcs(view: ElasticView, numbers: Floats, gpus: Floats) -> None:
    """PCS under a configuration, `numbers` as `WfqConfig.numbers` lays them out, or under several as `joined` does.

    A job's queue follows from its declared size for good, its configuration from its submission. Those of earlier
    configurations share all GPUs as they were promised; later ones share what these leave.
    """
    if numbers[0] > 0.0:
        share_out(view, numbers, gpus)
        return
    left = view.capacity.copy()
    for turn in range(int(-numbers[0])):
        begin, end = turn_at(numbers, turn)
        seen, _ = of_turn(view, numbers, turn, left)
        share_out(seen, numbers[begin:end], gpus)
        for kind in range(len(left)):
            left[kind] = max(left[kind] - gpus[seen.active, kind].sum(), 0.0)
        if numbers[begin + 3] > 0.0:  # whole GPUs
            left = np.floor(left + tolerance.GPUS)
