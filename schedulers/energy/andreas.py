"""ANDREAS' randomised greedy. Filippini et al.: ANDREAS, FiCloud 2021, section IV.B and Algorithm 1.

The paper leaves open, and here it is so: candidates are drawn from D*, "one of the (n, g) with lower cost"; where that
is empty, from all, with a probability inversely proportional to the time. Closed nodes may be opened for suboptimal
configurations as well, once no open node has room; and a job for which nothing of D* has room gets, after all other
jobs, what is left, late or not: otherwise GPUs would idle while jobs wait, against constraint 4n and its reason. The
first two constructions draw nothing: in one all running jobs go on and the greedy places the others, one is the plain
greedy. Of schedules that cost the same the earlier is taken, so that nothing is moved for nothing.

What is made small is the cost-to-go of a schedule (`greedy_to_go`), by a local search from a few of these schedules, or
with `objective=equation_1` the paper's equation 1, by the best of 1,000. With `thorough` equation 1 comes close to its
optimum: half of the random constructions order jobs by what postponing costs; in two of three jobs get at most a drawn
number of GPUs while there is another way, late or not (`caps`); from constructions near the best, one job at a time is
moved or postponed while the objective falls, even where there is room for it; and running jobs are not held (`hold` 0).

Equation 1 is about one call, and a lower equation 1 at each call is not a lower cost in the end, which is why it is not
the default: docs/andreas.md has the figures.

Configurations of jobs in the order in which the greedy tries them. ANDREAS, section IV.B and Algorithm 1, line 8.
"""

from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.clock import HOUR_S
from jobcast.domain.energy import POSTPONED, Deployment, EnergyView, cost_eur_h, stay_s
from jobcast.domain.rounding import rounded_all
from jobcast.schedulers.energy.objective import postponed_eur, startable_s, tardiness_eur
from jobcast.schedulers.energy.settings import AndreasSettings

if TYPE_CHECKING:
    from jobcast.schedulers.energy.greedy_state import Queue
    from jobcast.schedulers.energy.greedy_to_go import Outlook

# What a configuration that costs nothing is taken to cost where its inverse is needed.
LEAST_COST = 1e-12
# Pressures that count as equal.
SAME_S = 1e-3


class Choices(NamedTuple):
    """(n_active, n_choices) ways to run each active job: to stay where it runs, then each kind and number of GPUs.

    Attributes
    ----------
    time_s : t, infinite where it cannot
    run_eur : pi = t c
    good : whether it is in D*: it ends before the due date
    kind, gpus : also (n_active, n_choices)
    """

    time_s: Floats
    run_eur: Floats
    good: NDArray[np.bool_]
    kind: Ints
    gpus: Ints


def choices_of(view: EnergyView) -> Choices:
    """All that jobs may be given."""
    here, moved_s = view.active, startable_s(view)
    n_active, n_kinds, most = moved_s.shape
    held, gpus = view.node_of[here], view.gpus_of[here]
    own = np.where(held == POSTPONED, 0, view.cluster.kind_of[held])
    time_s = rounded_all(np.column_stack([stay_s(view), moved_s.reshape(n_active, -1)]))
    kind = np.column_stack([own, np.tile(np.repeat(np.arange(n_kinds), most), (n_active, 1))])
    wide = np.column_stack([np.maximum(gpus, 1), np.tile(np.arange(1, most + 1), (n_active, n_kinds))])
    finite, rate = np.isfinite(time_s), cost_eur_h(view.cluster, view.now_s)[kind, wide]
    # Where energy costs nothing, infinite times would cost no number.
    run_eur = rounded_all(np.multiply(time_s / HOUR_S, rate, out=np.full_like(time_s, np.inf), where=finite))
    good = finite & (time_s < rounded_all(view.jobs.due_s[here] - view.now_s)[:, None])
    return Choices(time_s, run_eur, good, kind, wide)


def pressure_order(view: EnergyView, choices: Choices) -> Ints:
    """(n_active,) rows of active jobs by pressure, the highest first. Equation 2.

    Those alike are in order of submission; jobs that run nowhere are last.
    """
    least_s = choices.time_s.min(axis=1)
    pressure = np.full(len(least_s), -np.inf)
    runs = np.isfinite(least_s)
    late_s = view.now_s + least_s[runs] - view.jobs.due_s[view.active[runs]]
    # In thousandths of a second, so that rounding does not swap equal pressures.
    pressure[runs] = np.rint(late_s / SAME_S)
    return np.argsort(-pressure, kind="stable")


def back_of(weight: Floats) -> Floats:
    """(n,) how likely jobs are to go back a place, of the likeliest: inversely proportional to their weight.

    >>> back_of(np.array([1.0, 4.0, 0.0, 2.0])).tolist()
    [1.0, 0.25, 1.0, 0.5]
    """
    positive = weight > 0.0
    least = weight[positive].min(initial=np.inf)
    chances: Floats = np.divide(least, weight, out=np.ones_like(weight), where=positive)
    return chances


def queue_of(view: EnergyView, rho: float, *, force_nodes: bool = False) -> "Queue":
    """What the constructions of a call read.

    Parameters
    ----------
    view : the cluster at the call, with active jobs
    rho : penalty of postponing a job
    force_nodes : whether min(N, J) nodes must be used, constraint 4n
    """
    from jobcast.schedulers.energy.greedy_state import Queue

    here, cluster = view.active, view.cluster
    choices = choices_of(view)
    row, column, ranks = _ranks(choices)
    held, gpus = view.node_of[here].astype(np.int64), view.gpus_of[here].astype(np.int64)
    runs = held != POSTPONED
    kind_nodes = np.bincount(cluster.kind_of, minlength=len(cluster.kind_gpus))
    waiting_eur = rounded_all(postponed_eur(view, rho))
    return Queue(
        order=np.stack([pressure_order(view, choices), np.argsort(-waiting_eur, kind="stable")]),
        back=back_of(view.jobs.weight[here]),
        waiting_eur=waiting_eur,
        held_node=held,
        held_gpus=gpus,
        kind=choices.kind[row, column],
        gpus=choices.gpus[row, column],
        time_s=choices.time_s[row, column],
        late_eur=rounded_all(tardiness_eur(view, here[row], choices.time_s[row, column])),
        run_eur=choices.run_eur[row, column],
        kind_of=cluster.kind_of.astype(np.int64),
        by_kind=np.argsort(cluster.kind_of, kind="stable"),
        kind_first=np.cumsum(kind_nodes) - kind_nodes,
        kind_nodes=kind_nodes,
        kind_gpus=cluster.kind_gpus.astype(np.int64),
        claims=np.bincount(held[runs], gpus[runs], minlength=len(cluster.kind_of)).astype(np.int64),
        least_nodes=min(len(cluster.kind_of), len(here)) if force_nodes else 0,
        **ranks,
    )


def _ranks(choices: Choices) -> tuple[Ints, Ints, dict[str, Any]]:
    """Choices that are finite, job by job, in the order in which they are tried, D* by cost, then late ones by time.

    Rows and columns of `Choices`, and what a `Queue` holds of their order.
    """
    # D* first and by cost, then the late ones by time, then what cannot run.
    finite, good = np.isfinite(choices.time_s), choices.good
    by = np.where(good, choices.run_eur, choices.time_s)
    order = np.lexsort((by, ~finite, ~good), axis=1)
    row, place = np.nonzero(np.take_along_axis(finite, order, axis=1))
    counts = finite.sum(axis=1)
    last = np.cumsum(counts)
    drawn = np.where(good.any(axis=1), good.sum(axis=1), counts)
    by = np.where(good.any(axis=1, keepdims=True), choices.run_eur, choices.time_s)
    chances = _chances(choices, np.where(good.any(axis=1, keepdims=True), good, finite), by)
    below = np.cumsum(np.take_along_axis(chances, order, axis=1), axis=1)
    ranks = {
        "first": last - counts,
        "chosen": last - counts + drawn,
        "last": last,
        "stay": np.where(finite[:, 0], last - counts + (order == 0).argmax(axis=1), -1),
        "below": below[row, place],
    }
    return row, order[row, place], ranks


def _chances(choices: Choices, drawn: NDArray[np.bool_], by: Floats) -> Floats:
    """(n_active, n_choices) probabilities of those that are drawn, as the inverse of their cost, or what stands for it.

    To start again with the kind and GPUs that a job holds is never drawn, since to stay is better.
    """
    inverse: Floats = np.where(drawn, 1.0 / np.maximum(by, LEAST_COST), 0.0)
    again = (choices.kind[:, 1:] == choices.kind[:, :1]) & (choices.gpus[:, 1:] == choices.gpus[:, :1])
    # A job that stays where it is keeps what it did since its snapshot, so that is always cheaper.
    inverse[:, 1:][again & np.isfinite(choices.time_s[:, :1])] = 0.0
    total = inverse.sum(axis=1, keepdims=True)
    chances: Floats = np.divide(inverse, total, out=np.zeros_like(inverse), where=total > 0.0)
    return chances


# Probability that a job of the least weight goes back a place, and again from there; others go back with less,
# inversely proportional to their weight. Ours; the paper has no number.
SWAP = 0.5
# Bold constructions take turns in swapping so many times as often, up to `greedy.MOST_SWAP`. Ours: on
# small instances the best order may be far from that of pressures.
STRENGTHS = (1.0, 2.0, 4.0, 8.0)
# The other random constructions swap so many times as often, and draw with this share of the probability. Ours: with
# many jobs, schedules in which each one draws are seldom better than the greedy's.
CALM = ((2.0, 0.5), (1.0, 0.125))
# Of `greedy`: no cap, one for each job, one for all.
CAPS = (0, 2, 1)
# Nodes that descents of a call may look at, one for each configuration of a job. Ours: some tens of milliseconds.
PLACES = 2_000_000
# Queues that searches of the least cost-to-go may look at in a call, see `greedy_to_go.STEP`. Ours: as long.
LOOKS = 1e6
MASK = (1 << 64) - 1
# Odd numbers that spread seeds and calls over 64 bits, from SplitMix64; not its step, by which a stream goes on.
PRIMES = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def ways(settings: AndreasSettings) -> Floats:
    """(n, 5) how constructions are made, for `greedy.construct`: running jobs go on; plain; random ones."""
    strengths = [(strength, 1.0) for strength in STRENGTHS] + list(CALM)
    keeps, caps = (0, 1) if settings.keep else (0,), CAPS if settings.caps or settings.thorough else CAPS[:1]
    orders = (0, 1) if settings.thorough else (0,)
    random = [
        (keep, swap * SWAP, draw * settings.draw, order, cap)
        for order, cap, (swap, draw), keep in product(orders, caps, strengths, keeps)
    ]
    return np.array([(1, 0, 0, 0, 0), (0, 0, 0, 0, 0), *random], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Andreas:
    """The best of many random greedy schedules, by the proxy objective."""

    name: ClassVar[str] = "andreas"
    settings: AndreasSettings = field(default_factory=AndreasSettings)

    def schedule(self, view: EnergyView) -> Deployment:
        """The schedule from now on."""
        return self.best(view)[0]

    def best(self, view: EnergyView) -> tuple[Deployment, float]:
        """The schedule and its proxy objective, EUR."""
        from jobcast.schedulers.energy.greedy import construct
        from jobcast.schedulers.energy.greedy_state import new_draft
        from jobcast.schedulers.energy.greedy_to_go import new_plan, search

        node_of, gpus_of = np.zeros((2, len(view.active)), dtype=np.int64)
        if not len(view.active):
            return Deployment(node_of, gpus_of), 0.0
        chosen = self.settings
        queue = queue_of(view, chosen.rho, force_nodes=chosen.force_nodes)
        # Nothing runs: there is nothing to be held on to.
        hold = chosen.held if (queue.stay >= 0).any() else 0.0
        draft, made = new_draft(queue, stream(chosen.seed, view.call)), (ways(chosen), chosen.made, hold)
        if chosen.to_go:
            look = outlook_of(view, queue, chosen)
            plan = new_plan(queue, int(look.ends[-1]))
            return Deployment(node_of, gpus_of), search(queue, draft, look, plan, *made, LOOKS, node_of, gpus_of)
        # Descents only where asked for: they lower equation 1 of one call, not the cost in the end.
        most = PLACES if chosen.thorough else 0
        return Deployment(node_of, gpus_of), construct(queue, draft, *made, most, node_of, gpus_of)


def outlook_of(view: EnergyView, queue: "Queue", chosen: AndreasSettings) -> "Outlook":
    """What the cost-to-go reads beside the queue."""
    from jobcast.schedulers.energy.greedy_to_go import Outlook

    here, cluster = view.active, view.cluster
    weight, rate = view.jobs.weight[here], cost_eur_h(cluster, view.now_s)
    # Where no tardiness costs anything, energy alone says what an hour is worth.
    hour_eur = float(rounded_all(np.array([max(weight.mean(), rate.max())]))[0])
    price = chosen.occupancy * hour_eur * relative_speed(view.jobs.epoch_s[here])
    keep_eur_h = price[queue.kind] * queue.gpus + chosen.impatience * hour_eur
    return Outlook(
        due_s=rounded_all(view.jobs.due_s[here] - view.now_s),
        late_eur_s=rounded_all(weight / HOUR_S),
        keep_eur=rounded_all(keep_eur_h * queue.time_s / HOUR_S),
        rate_eur_s=rounded_all(rate / HOUR_S),
        ends=np.append(0, np.cumsum(queue.kind_nodes * queue.kind_gpus)),
        idle_s=view.period_s,
        wait_eur_s=chosen.impatience * hour_eur / HOUR_S,
    )


def relative_speed(epoch_s: Floats) -> Floats:
    """(n_kinds,) how fast one GPU of each kind is, or the fewest that can be, of the fastest for a job; mean over jobs.

    >>> relative_speed(np.array([[[10.0, 6.0], [20.0, np.inf]], [[10.0, 6.0], [40.0, np.inf]]])).tolist()
    [1.0, 0.375]
    >>> relative_speed(np.array([[[10.0], [20.0]]])).tolist()
    [1.0, 0.5]
    """
    # GPU-seconds an epoch, least over numbers of GPUs.
    work = (epoch_s * np.arange(1, epoch_s.shape[2] + 1)).min(axis=2)
    least = work.min(axis=1, keepdims=True)
    known = np.isfinite(least)
    speed: Floats = np.divide(least, work, out=np.zeros_like(work), where=known & np.isfinite(work)).sum(axis=0)
    return rounded_all(speed / max(1, int(known.sum())))


def warm() -> None:
    """Load or compile the greedy, which takes a second or, once, half a minute, so that no decision waits for it."""
    import jobcast.schedulers.energy.greedy_to_go  # noqa: F401  compiled as it is imported, for the types that it names


def stream(seed: int, call: int) -> int:
    """Where the random numbers of a call begin: told by the seed and by how many calls came before, not by the clock.

    >>> stream(1, 0), stream(0, 1), stream(1, 2)
    (13787848793156543929, 10723151780598845931, 16787408280644684175)
    """
    return (seed * PRIMES[0] + call * PRIMES[1]) & MASK
