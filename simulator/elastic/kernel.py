"""The engine of elastic jobs: work done at the rate that the held GPUs allow, shared afresh at every event.

At one instant: completions and stages reached, then arrivals one by one, then the lease. After all of the first, and
after each of the others, the rule shares all GPUs anew. The same code plays a copy of the state forward, without
further arrivals, to forecast when a job will finish. PCS, section 4. Of nodes, what stays, stays; what grows is packed.
"""

from typing import Any

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.compiled import F1, F2, I1, njit, types
from jobcast.domain.elastic import ElasticJobs, ElasticView
from jobcast.domain.elastic_kernels import JOBS, RULE_TYPE, speedup_at
from jobcast.simulator.elastic.state import CLOCK, COUNT, OVERDUE_S, SQUARES, STATE_INTS, State, World

NOW, LEASE_AT, SEEN = CLOCK
ARRIVED, ACTIVE, EVENTS, CULPRIT, CHANGES = COUNT
DONE, OVER_CAPACITY, OVER_MOST, NEGATIVE, STARVED, FULL = range(6)
"""How a run may end: well, by what the rule did wrong, or, to be gone on with, for lack of room for changes."""
NOBODY = -1
_KINDS = dict.fromkeys(STATE_INTS, I1) | dict.fromkeys(SQUARES, F2)
STATE = types.NamedTuple([_KINDS.get(name, F1) for name in State._fields], State)
WORLD = types.NamedTuple([F1, types.float64, JOBS, F1, F1, types.float64, I1, F1, F1], World)


@njit(types.void(types.int64, F2, I1, F2), cache=True)
def _shrink(job: int, gpus: Floats, node_type: Ints, on_node: Floats) -> None:
    for kind in range(gpus.shape[1]):
        # What it holds on nodes of the type, less what it is to hold.
        excess = -gpus[job, kind]
        for node in range(len(node_type)):
            if node_type[node] == kind:
                excess += on_node[job, node]
        while excess > tolerance.GPUS:
            least = NOBODY
            for node in range(len(node_type)):
                held = on_node[job, node]
                if node_type[node] == kind and held > 0.0 and (least == NOBODY or held < on_node[job, least]):
                    least = node
            # Rounding may leave a little that no node has.
            if least == NOBODY:
                break
            part = min(excess, on_node[job, least])
            on_node[job, least] -= part
            excess -= part


@njit(types.void(types.int64, F2, I1, F1, F2), cache=True)
def _grow(job: int, gpus: Floats, node_type: Ints, free: Floats, on_node: Floats) -> None:
    for kind in range(gpus.shape[1]):
        wanted = gpus[job, kind]
        for node in range(len(node_type)):
            if node_type[node] == kind:
                wanted -= on_node[job, node]
        while wanted > tolerance.GPUS:
            best, order = NOBODY, (True, True, np.inf)
            for node in range(len(node_type)):
                if node_type[node] != kind or free[node] <= tolerance.GPUS:
                    continue
                # A node that it is on, one that takes all the rest, any other. Of nodes that take it all the fullest;
                # else the emptiest, for the fewest pieces.
                new = on_node[job, node] <= 0.0
                tight = new and free[node] >= wanted - tolerance.GPUS
                place_of = (new, not tight, free[node] if tight else -free[node])
                if place_of < order:
                    best, order = node, place_of
            if best == NOBODY:
                break
            part = min(wanted, free[best])
            on_node[job, best] += part
            free[best] -= part
            wanted -= part


@njit(types.int64(types.int64, F2, I1, F1, F2), cache=True)
def _spread(job: int, gpus: Floats, node_type: Ints, node_gpus: Floats, on_node: Floats) -> int:
    used, needed = 0, 0.0
    for kind in range(gpus.shape[1]):
        widest = 0.0
        for node in range(len(node_type)):
            if node_type[node] == kind:
                widest = max(widest, node_gpus[node])
                if on_node[job, node] > tolerance.GPUS:
                    used += 1
        if gpus[job, kind] > tolerance.GPUS:
            # As many nodes as it needs were they all as wide as the widest.
            needed += np.ceil((gpus[job, kind] - tolerance.GPUS) / widest)
    return int(used > needed)


@njit(types.void(I1, types.int64, F2, I1, F1, F2, I1), cache=True)
def place(
    active: Ints, count: int, gpus: Floats, node_type: Ints, node_gpus: Floats, on_node: Floats, locality: Ints
) -> None:
    """Bring `on_node` and `locality` in line with what active jobs hold by type.

    A job that shrinks leaves the nodes first on which it holds least. One that grows takes free GPUs of nodes that it
    is on, then of the fullest node that can take all the rest, else of the emptiest. PCS, section 4 (locality).

    Parameters
    ----------
    active, count : ids of active jobs, of which the first `count` hold
    gpus : (n_jobs, n_types) what each holds from now on
    node_type, node_gpus : (n_nodes,)
    on_node : (n_jobs, n_nodes), changed
    locality : (n_jobs,), changed: 1 where a job lies on more nodes than it needs
    """
    free = node_gpus.copy()
    for i in range(count):
        _shrink(active[i], gpus, node_type, on_node)
        # All shrink before any grows: what is given back is free for others.
        free -= on_node[active[i]]
    grown = np.zeros(count)
    for i in range(count):
        grown[i] = gpus[active[i]].sum() - on_node[active[i]].sum()
    # The widest first, while there are whole nodes; ties by submission.
    for i in np.argsort(-grown, kind="mergesort"):
        if grown[i] <= tolerance.GPUS:
            break
        _grow(active[i], gpus, node_type, free, on_node)
    for i in range(count):
        locality[active[i]] = _spread(active[i], gpus, node_type, node_gpus, on_node)


@njit(types.float64(STATE, types.int64), cache=True)
def _mean_seen(state: State, job: int) -> float:
    """Mean number of active jobs over events: those at a job's submission, and before each event since."""
    since, events = state.clock[SEEN] - state.seen_before[job], state.count[EVENTS] - state.events_before[job]
    return float((state.seen_first[job] + since) / (1.0 + events))


@njit(types.int64(F1, types.float64, STATE, F2), cache=True)
def _carry_out(capacity: Floats, preempt_s: float, state: State, held: Floats) -> int:
    """Check what the rule gave to whom, count what it took away, and let changes cost what they cost; a status.

    `held` : (n_active, n_types) GPUs before.
    """
    kinds, now_s = len(capacity), state.clock[NOW]
    used = np.zeros(kinds)
    for i in range(state.count[ACTIVE]):
        job = state.active[i]
        total, less, more = 0.0, False, False
        for kind in range(kinds):
            part = state.gpus[job, kind]
            if not part >= -tolerance.GPUS:  # NaN neither
                state.count[CULPRIT] = job
                return NEGATIVE
            # Dust that solvers of shares leave would start a job.
            if part < tolerance.GPUS:
                state.gpus[job, kind] = part = 0.0
            total += part
            used[kind] += part
            # It may hold less of one type and more of another.
            less |= part < held[i, kind] - tolerance.GPUS
            more |= part > held[i, kind] + tolerance.GPUS
        most = state.most[job] * (1.0 + tolerance.GPUS)
        if total > most:
            state.count[CULPRIT] = job
            return OVER_MOST
        less &= held[i].sum() <= most  # else a stage ended, in which it could use more
        if less:
            state.preemptions[job] += 1
        if total > 0.0:
            if np.isnan(state.start_s[job]):
                state.start_s[job] = now_s
            elif less or more:
                state.stalled_until_s[job] = now_s + preempt_s
    for kind in range(kinds):
        if used[kind] > capacity[kind] * (1.0 + tolerance.GPUS):
            state.count[CULPRIT] = kind
            return OVER_CAPACITY
    return DONE


@njit(types.void(STATE, types.int64, types.float64), cache=True)
def _record(state: State, job: int, total: float) -> None:
    """Note what a job, which holds `total` GPUs, holds from now on wherever it is another number than before."""
    for place_of in range(state.recorded.shape[1]):
        holds = state.on_node[job, place_of] if state.on_node.size else total
        if abs(holds - state.recorded[job, place_of]) > tolerance.GPUS:
            row = state.changes[state.count[CHANGES]]
            row[0], row[1], row[2], row[3] = state.clock[NOW], job, place_of, holds
            state.recorded[job, place_of] = holds
            state.count[CHANGES] += 1


@njit(types.int64(RULE_TYPE, WORLD, STATE), cache=True)
def _share(rule: Any, world: World, state: State) -> int:
    """Ask the rule and carry out what it says; a status."""
    jobs, capacity, left_s = world.jobs, world.capacity, world.left_s
    count, now_s = state.count[ACTIVE], state.clock[NOW]
    held = np.zeros((count, len(capacity)))
    for i in range(count):
        job = state.active[i]
        # By what is declared: the rule must not see true sizes.
        # It may run on beyond its declared size; rules divide by what is left.
        left_s[job] = max(jobs.size_s[job] - state.done_s[job], OVERDUE_S)
        state.contention[job] = _mean_seen(state, job)
        for kind in range(len(capacity)):
            held[i, kind] = state.gpus[job, kind]
            # Rules add to what is there, so all begins at nothing.
            state.gpus[job, kind] = 0.0
    rule(
        ElasticView(now_s, capacity, state.active, count, jobs, left_s, state.most, state.gpu_s, state.contention),
        world.numbers,
        state.gpus,
    )
    status = _carry_out(capacity, world.preempt_s, state, held)
    if status != DONE:
        return int(status)
    if len(world.node_type):
        place(state.active, count, state.gpus, world.node_type, world.node_gpus, state.on_node, state.locality)
    for i in range(count):
        job = state.active[i]
        total, fast = 0.0, 0.0
        for kind in range(len(capacity)):
            total += state.gpus[job, kind]
            fast += state.gpus[job, kind] * jobs.speed[jobs.model[job], kind]
        # A job whose least is not granted holds nothing and rests.
        state.rate[job] = 0.0
        if total > 0.0:  # work a second: speedup of all its GPUs, times their mean speed
            up = speedup_at(jobs.speedup, jobs.model[job], state.locality[job], total)
            state.rate[job] = up * (fast / total)
        _record(state, job, total)
    return DONE


@njit(types.float64(JOBS, F1, STATE, types.int64), cache=True)
def _milestone_s(jobs: ElasticJobs, size_s: Floats, state: State, job: int) -> float:
    """Instant at which a job that holds GPUs reaches the end of its stage as it runs now."""
    left = jobs.stage_end[state.stage[job]] * size_s[job] - state.done_s[job]
    return float(max(state.clock[NOW], state.stalled_until_s[job]) + left / state.rate[job])


@njit(types.boolean(JOBS, F1, STATE, types.float64), cache=True)
def _another_reached(jobs: ElasticJobs, size_s: Floats, state: State, stop_s: float) -> bool:
    """Whether another job is at its milestone: asked before, the rule might take its GPUs away."""
    limit_s = min(state.clock[NOW] + tolerance.EVENT_S, stop_s)
    for i in range(state.count[ACTIVE]):
        job = state.active[i]
        if state.rate[job] > 0.0 and _milestone_s(jobs, size_s, state, job) <= limit_s:
            return True
    return False


@njit(types.void(STATE, types.float64), cache=True)
def _progress(state: State, until_s: float) -> None:
    """Let all active jobs run to an instant."""
    now_s = state.clock[NOW]
    passed_s = until_s - now_s
    state.clock[NOW] = until_s
    for i in range(state.count[ACTIVE]):
        job = state.active[i]
        # A stand-still may outlast this stretch: the rest is lost in the next.
        lost_s = min(max(state.stalled_until_s[job] - now_s, 0.0), passed_s)
        state.done_s[job] += state.rate[job] * (passed_s - lost_s)
        for kind in range(state.gpus.shape[1]):
            state.gpu_s[job] += state.gpus[job, kind] * passed_s


@njit(types.void(STATE, types.float64), cache=True)
def _count_event(state: State, lease_s: float) -> None:
    """Every event adds the jobs that were active before it, and winds the lease up again."""
    state.clock[SEEN] += state.count[ACTIVE]
    state.count[EVENTS] += 1
    state.clock[LEASE_AT] = state.clock[NOW] + lease_s if lease_s > 0.0 else np.inf


@njit(types.void(JOBS, STATE), cache=True)
def _submit(jobs: ElasticJobs, state: State) -> None:
    job = state.count[ARRIVED]
    state.active[state.count[ACTIVE]] = job
    state.count[ARRIVED] += 1
    state.count[ACTIVE] += 1
    state.stage[job] = jobs.stage_of[job]
    state.most[job] = jobs.stage_most[jobs.stage_of[job]]
    state.seen_first[job] = state.count[ACTIVE]
    state.seen_before[job] = state.clock[SEEN]
    state.events_before[job] = state.count[EVENTS]


@njit(types.void(JOBS, F1, STATE, types.int64), cache=True)
def _reach(jobs: ElasticJobs, size_s: Floats, state: State, job: int) -> None:
    """A job reached the end of its stage: it goes on to the next, or finishes and gives back what it holds."""
    # Set, not added up: a milestone is reached exactly, whatever rounding did on the way.
    state.done_s[job] = jobs.stage_end[state.stage[job]] * size_s[job]
    if state.stage[job] + 1 < jobs.stage_of[job + 1]:
        state.stage[job] += 1
        state.most[job] = jobs.stage_most[state.stage[job]]
        return
    state.contention[job] = _mean_seen(state, job)
    state.end_s[job] = state.clock[NOW]
    state.gpus[job, :] = 0.0
    state.on_node[job, :] = 0.0
    _record(state, job, 0.0)
    count = state.count[ACTIVE]
    # Closes the gap in place: active jobs stay in order of submission.
    gap = False
    for i in range(count):
        if state.active[i] == job:
            gap = True
        elif gap:
            state.active[i - 1] = state.active[i]
    state.count[ACTIVE] = count - 1


@njit(types.int64(RULE_TYPE, WORLD, STATE, types.int64, types.int64, types.float64), cache=True)
def play(rule: Any, world: World, state: State, arrivals: int, awaited: int, stop_s: float) -> int:
    """Play a state forward until `arrivals` jobs were submitted, or `awaited` has finished; a status.

    FULL leaves it between two events: with more room it goes on where it was. With `awaited` = NOBODY it returns right
    after the arrival that completes `arrivals`, or, when that many were submitted before the call, once no job is
    active any more.

    Parameters
    ----------
    rule : see `ElasticPolicy`
    world : what it plays out in
    state : changed
    arrivals : jobs that may be submitted
    awaited : id of a job, or NOBODY
    stop_s : instant at which it returns at the latest, after what happens at it
    """
    jobs, size_s = world.jobs, world.size_s
    # No arrival will stop the loop then: it ends when all is over.
    through = state.count[ARRIVED] >= arrivals
    while True:
        # Before anything changes, so that the run can go on from here with more room: an event may change all.
        if state.recorded.size and state.count[CHANGES] + state.recorded.size > len(state.changes):
            return FULL
        milestone_s, first = np.inf, NOBODY
        for i in range(state.count[ACTIVE]):
            job = state.active[i]
            if state.rate[job] > 0.0:
                at_s = _milestone_s(jobs, size_s, state, job)
                if at_s < milestone_s - tolerance.EVENT_S:  # those that coincide go by submission
                    milestone_s, first = at_s, job
        submit_s = jobs.submit_s[state.count[ARRIVED]] if state.count[ARRIVED] < arrivals else np.inf
        next_s = min(milestone_s, submit_s, state.clock[LEASE_AT] if state.count[ACTIVE] else np.inf)
        if next_s > stop_s:
            _progress(state, max(stop_s, state.clock[NOW]))
            return DONE
        if next_s == np.inf:
            if state.count[ACTIVE]:
                state.count[CULPRIT] = state.active[0]
                return STARVED
            return DONE
        # A milestone within dust of an arrival or a lease goes first, at its own instant.
        if milestone_s <= next_s + tolerance.EVENT_S:
            next_s = milestone_s
        _progress(state, max(next_s, state.clock[NOW]))
        if milestone_s <= next_s + tolerance.EVENT_S:
            _count_event(state, world.lease_s)
            _reach(jobs, size_s, state, first)
            if first == awaited and not np.isnan(state.end_s[first]):
                return DONE
            if _another_reached(jobs, size_s, state, stop_s):
                continue
        # One arrival at a time: the rule is asked after each.
        elif submit_s <= next_s:
            _count_event(state, world.lease_s)
            _submit(jobs, state)
        else:
            # A lease alone would wind itself up for ever.
            if milestone_s == np.inf and submit_s == np.inf:
                state.count[CULPRIT] = state.active[0]
                return STARVED
            _count_event(state, world.lease_s)
        status = _share(rule, world, state)
        if status != DONE:
            return int(status)
        if state.count[ARRIVED] >= arrivals and awaited == NOBODY and not through:
            return DONE


@njit(types.void(STATE, STATE), cache=True)
def copy_active(state: State, into: State) -> None:
    """Copy what playing forward needs: clocks, counts, and the rows of active jobs."""
    into.clock[:] = state.clock
    into.count[:] = state.count
    for i in range(state.count[ACTIVE]):
        job = state.active[i]
        into.active[i] = job
        into.done_s[job] = state.done_s[job]
        into.stage[job] = state.stage[job]
        into.most[job] = state.most[job]
        into.gpus[job] = state.gpus[job]
        into.rate[job] = state.rate[job]
        into.stalled_until_s[job] = state.stalled_until_s[job]
        into.start_s[job] = state.start_s[job]
        into.end_s[job] = np.nan
        into.gpu_s[job] = state.gpu_s[job]
        into.seen_first[job] = state.seen_first[job]
        into.seen_before[job] = state.seen_before[job]
        into.events_before[job] = state.events_before[job]
        into.on_node[job] = state.on_node[job]
        into.locality[job] = state.locality[job]


@njit(types.int64(RULE_TYPE, WORLD, STATE, STATE, types.boolean, types.int64, F1), cache=True)
def forecast_arrivals(
    rule: Any, world: World, state: State, virtual: State, pending_lease: bool, until: int, predicted_end_s: Floats
) -> int:
    """Run on until `until` jobs were submitted, forecasting at each submission when that job will finish; a status.

    The forecast plays a copy forward under the same rule, without further arrivals and with sizes as declared; a lease
    that is running when the job comes goes on in the copy where `pending_lease`. PCS, section 4.
    """
    jobs = world.jobs
    believed_s = jobs.size_s.copy()
    believed = World(
        world.numbers,
        world.lease_s,
        jobs,
        believed_s,
        world.capacity,
        world.preempt_s,
        world.node_type,
        world.node_gpus,
        world.left_s,
    )
    while state.count[ARRIVED] < until:
        job = state.count[ARRIVED]
        status = play(rule, world, state, job + 1, NOBODY, np.inf)
        if status != DONE:
            return int(status)
        copy_active(state, virtual)
        for i in range(virtual.count[ACTIVE]):
            other = virtual.active[i]
            believed_s[other] = jobs.size_s[other]
            # It has outlived what it declared: believed to end any time.
            if virtual.done_s[other] >= jobs.size_s[other]:
                believed_s[other] = virtual.done_s[other] + OVERDUE_S
        if not pending_lease:
            virtual.clock[LEASE_AT] = np.inf
        status = play(rule, believed, virtual, job + 1, job, np.inf)
        if status != DONE:
            # The caller looks for the culprit in the run's own state.
            state.count[CULPRIT] = virtual.count[CULPRIT]
            return int(status)
        predicted_end_s[job] = virtual.end_s[job]
    return DONE
