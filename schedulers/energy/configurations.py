"""Configurations of jobs in the order in which the greedy tries them. ANDREAS, section IV.B and Algorithm 1, line 8."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.energy import HOUR_S, POSTPONED, EnergyView, Floats, Ints, cost_eur_h, stay_s
from jobcast.domain.rounding import rounded_all
from jobcast.schedulers.energy.objective import postponed_eur, startable_s, tardiness_eur

if TYPE_CHECKING:
    from jobcast.schedulers.energy.greedy_state import Queue

LEAST_COST = 1e-12
"""What a configuration that costs nothing is taken to cost where its inverse is needed."""
SAME_S = 1e-3
"""Pressures that count as equal."""


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
    run_eur = rounded_all(time_s / HOUR_S * cost_eur_h(view.cluster, view.now_s)[kind, wide])
    run_eur[~np.isfinite(time_s)] = np.inf
    good = np.isfinite(time_s) & (time_s < rounded_all(view.jobs.due_s[here] - view.now_s)[:, None])
    return Choices(time_s, run_eur, good, kind, wide)


def pressure_order(view: EnergyView, choices: Choices) -> Ints:
    """(n_active,) rows of active jobs by pressure, the highest first. Equation 2.

    Those alike are in order of submission; jobs that run nowhere are last.
    """
    least_s = choices.time_s.min(axis=1)
    pressure = np.full(len(least_s), -np.inf)
    runs = np.isfinite(least_s)
    late_s = view.now_s + least_s[runs] - view.jobs.due_s[view.active[runs]]
    pressure[runs] = np.rint(late_s / SAME_S)
    order: Ints = np.argsort(-pressure, kind="stable")
    return order


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
    ranks = _ranks(choices)
    held, gpus = view.node_of[here].astype(np.int64), view.gpus_of[here].astype(np.int64)
    runs = held != POSTPONED
    kind_nodes = np.bincount(cluster.kind_of, minlength=len(cluster.kind_gpus))
    row, column = ranks.row, ranks.column
    waiting_eur = rounded_all(postponed_eur(view, rho))
    return Queue(
        order=np.stack([pressure_order(view, choices), np.argsort(-waiting_eur, kind="stable")]),
        back=back_of(view.jobs.weight[here]),
        waiting_eur=waiting_eur,
        held_node=held,
        held_gpus=gpus,
        first=ranks.first,
        chosen=ranks.chosen,
        last=ranks.last,
        stay=ranks.stay,
        kind=choices.kind[row, column],
        gpus=choices.gpus[row, column],
        time_s=choices.time_s[row, column],
        late_eur=rounded_all(tardiness_eur(view, here[row], choices.time_s[row, column])),
        run_eur=choices.run_eur[row, column],
        below=ranks.below,
        kind_of=cluster.kind_of.astype(np.int64),
        by_kind=np.argsort(cluster.kind_of, kind="stable"),
        kind_first=np.cumsum(kind_nodes) - kind_nodes,
        kind_nodes=kind_nodes,
        kind_gpus=cluster.kind_gpus.astype(np.int64),
        claims=np.bincount(held[runs], gpus[runs], minlength=len(cluster.kind_of)).astype(np.int64),
        least_nodes=min(len(cluster.kind_of), len(here)) if force_nodes else 0,
    )


class _Ranks(NamedTuple):
    """Choices that are finite, job by job, in the order in which they are tried; rows and columns are of `Choices`."""

    row: Ints
    column: Ints
    first: Ints
    chosen: Ints
    last: Ints
    stay: Ints
    below: Floats


def _ranks(choices: Choices) -> _Ranks:
    """D* by cost, then late ones by time."""
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
    return _Ranks(
        row=row,
        column=order[row, place],
        first=last - counts,
        chosen=last - counts + drawn,
        last=last,
        stay=np.where(finite[:, 0], last - counts + (order == 0).argmax(axis=1), -1),
        below=below[row, place],
    )


def _chances(choices: Choices, drawn: NDArray[np.bool_], by: Floats) -> Floats:
    """(n_active, n_choices) probabilities of those that are drawn, as the inverse of their cost, or what stands for it.

    To start again with the kind and GPUs that a job holds is never drawn, since to stay is better.
    """
    inverse: Floats = np.where(drawn, 1.0 / np.maximum(by, LEAST_COST), 0.0)
    again = (choices.kind[:, 1:] == choices.kind[:, :1]) & (choices.gpus[:, 1:] == choices.gpus[:, :1])
    inverse[:, 1:][again & np.isfinite(choices.time_s[:, :1])] = 0.0
    total = inverse.sum(axis=1, keepdims=True)
    chances: Floats = np.divide(inverse, total, out=np.zeros_like(inverse), where=total > 0.0)
    return chances
