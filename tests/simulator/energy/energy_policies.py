"""Policies for tests of the engine: one that follows a script, one that does anything legal."""

import numpy as np

from jobcast.domain.energy import POSTPONED, Deployment

COPIED = ("active", "node_of", "gpus_of", "left", "left_saved", "started")


def copy_of(view):
    """A view that the engine's later doings do not change."""
    return view._replace(**{name: getattr(view, name).copy() for name in COPIED})


class Script:
    """Puts jobs where a script says from an instant on: {instant: {job: (node, gpus) or None}}; others go on."""

    name = "script"

    def __init__(self, steps):
        self.steps, self.views = dict(steps), []

    def schedule(self, view):
        self.views.append(copy_of(view))
        node, gpus = view.node_of[view.active].copy(), view.gpus_of[view.active].copy()
        for job, put in self.steps.get(view.now_s, {}).items():
            row = list(view.active).index(job)
            node[row], gpus[row] = put or (POSTPONED, 0)
        return Deployment(node, gpus)

    @property
    def calls(self):
        return [view.now_s for view in self.views]


class Greedy:
    """Every job that waits goes on one GPU of the first node that has one and can run it; nothing is ever stopped."""

    name = "greedy"

    def __init__(self):
        self.calls = []

    def schedule(self, view):
        self.calls.append(view.now_s)
        node, gpus = view.node_of[view.active].copy(), view.gpus_of[view.active].copy()
        free = free_gpus(view, node, gpus)
        for row in np.flatnonzero(node == POSTPONED):
            runs = np.isfinite(view.jobs.epoch_s[view.active[row], view.cluster.kind_of, 0])
            if (fits := np.flatnonzero((free > 0) & runs)).size:
                node[row], gpus[row] = fits[0], 1
                free[fits[0]] -= 1
        return Deployment(node, gpus)


class OneByOne:
    """The first active job has a GPU of the first node, all others wait."""

    name = "one by one"

    def schedule(self, view):
        node, gpus = np.full(len(view.active), POSTPONED), np.zeros(len(view.active), dtype=np.int64)
        node[0], gpus[0] = 0, 1
        return Deployment(node, gpus)


class Chaos:
    """Anything legal, at random: jobs go on with a probability, others are put anywhere, or nowhere."""

    name = "chaos"

    def __init__(self, seed, stay=0.8, place=0.8):
        self.rng, self.stay, self.place, self.views = np.random.default_rng(seed), stay, place, []

    def schedule(self, view):
        self.views.append(copy_of(view))
        node, gpus = view.node_of[view.active].copy(), view.gpus_of[view.active].copy()
        moves = (node == POSTPONED) | (self.rng.random(len(node)) > self.stay)
        node[moves], gpus[moves] = POSTPONED, 0
        free = free_gpus(view, node, gpus)
        for row in self.rng.permutation(np.flatnonzero(moves)):
            fits = [
                (n, g + 1)
                for n, kind in enumerate(view.cluster.kind_of)
                for g in range(free[n])
                if np.isfinite(view.jobs.epoch_s[view.active[row], kind, g])
            ]
            if fits and self.rng.random() < self.place:
                node[row], gpus[row] = fits[self.rng.integers(len(fits))]
                free[node[row]] -= gpus[row]
        return Deployment(node, gpus)


def free_gpus(view, node, gpus):
    """(n_nodes,) GPUs that nobody holds."""
    free = view.cluster.kind_gpus[view.cluster.kind_of].copy()
    placed = node != POSTPONED
    np.subtract.at(free, node[placed], gpus[placed])
    return free
