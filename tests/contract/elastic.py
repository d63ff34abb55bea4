"""Random elastic jobs through the compiled engine: stages, GPU types, nodes, leases, sizes other than declared.

The log has no spans, so that a second run is looked at whenever anything may happen: what jobs hold by type and node is
held against the cluster, and what they get done against the speedup tables. Taken from the engine and not recomputed:
until when a job stands still after a change, and of two types of GPUs whether its nodes count as spread.
"""

from dataclasses import replace

import numpy as np
import pytest

from jobcast.domain import tolerance
from jobcast.schedulers.registry import make_policy
from jobcast.simulator.elastic.run import ElasticReplay, replay_elastic
from jobcast.simulator.elastic.state import CLOCK, COUNT
from tests.contract.random_jobs import check_held, check_lives, check_same, dust_s, rng_of, rows_of
from tests.simulator.elastic.elastic_cases import QUEUES, TABLES, WIDTH, Case, cluster_of, jobs_of

SPEED = np.array([[1.0, 0.5], [0.5, 1.0], [1.0, 1.0], [1.0, 0.9]])
MOST_LOOKS = 400


def case_of(name, seed, draw=rows_of):
    """Jobs on a cluster, their true sizes, and a policy."""
    rng = rng_of(name, seed)
    types = rng.choice((1, 1, 2))
    capacity = [rng.choice((1, 2, 7, 8, 12, 64)) for _ in range(types)]
    placed = rng.random() < 0.4
    each = rng.choice((1, 2, 4))
    capacity = [each * max(1, gpus // each) for gpus in capacity] if placed else capacity
    nodes = [(kind, each) for kind, gpus in enumerate(capacity) for _ in range(gpus // each)] if placed else ()
    found = draw(rng, 64, epochs_s=(0.0, 0.1, 1e6))
    rows, stages = [], {}
    for job, row in enumerate(found):
        least = rng.choice((0, 0, 1, min(row.gpus, sum(capacity), WIDTH)))
        rows.append((row.submit_s, row.work_s, row.gpus, least, rng.randrange(len(TABLES))))
        if rng.random() < 0.4:
            shares = sorted(rng.uniform(0.01, 0.99) for _ in range(rng.randint(1, 3)))
            stages[job] = [(share, rng.randint(max(1, least), max(1, row.gpus))) for share in (*shares, 1.0)]
    jobs = jobs_of(rows, speed=SPEED[:, :types], stages=stages)
    most = np.maximum.reduceat(jobs.stage_most, jobs.stage_of[:-1])
    jobs = jobs._replace(most=most)
    noise = np.array([rng.choice((1.0, 0.5, 3.0)) for _ in rows]) if rng.random() < 0.4 else 1.0
    case = Case(jobs, cluster_of(*capacity, nodes=nodes, preempt_s=rng.choice((0.0, 2.0, 62.0))))
    return case, jobs.size_s * noise, policy_of(rng, name, types, placed)


def policy_of(rng, name, types, placed):
    """A policy with drawn settings; whole GPUs where they lie on nodes."""
    whole = placed or rng.random() < 0.5
    if name == "pcs":
        config = replace(QUEUES, clip_demand_factor=rng.choice((0.0, 0.5, 0.99)), delta=rng.choice((0.05, 0.3)))
        return config.policy(("a", "b")[:types], whole=whole, monotone=rng.random() < 0.5)
    settings = {"elastic_fair": {"whole_gpus": whole}, "elastic_themis": {"lease_s": rng.choice((600.0, 3600.0))}}.get(
        name, {}
    )
    return make_policy(name, None, settings)


def start(made):
    case, size_s, policy = made
    return ElasticReplay(case.jobs, size_s, case.cluster, policy)


def check_elastic(name, seed):
    made = case_of(name, seed)
    _case, size_s, _ = made
    log, again, foreseen = (replay_elastic(start(made), predict=predict) for predict in (False, False, True))
    check_same(log, again)
    check_same(log, foreseen, but=("predicted_end_s", "worst_case_end_s"))
    assert np.isfinite(foreseen.columns["predicted_end_s"]).all()
    assert (foreseen.columns["predicted_end_s"] >= log.submit_s).all()
    assert np.isfinite(log.end_s).all(), "a job never ended"
    assert (log.start_s >= log.submit_s).all()
    assert (log.end_s >= log.start_s).all()
    span_s = log.end_s.max() - log.submit_s.min()
    assert log.columns["gpu_s"].sum() <= log.total_gpus * (span_s + dust_s(log.end_s)) * (1 + 1e-9)
    check_held(log)
    check_lives(log)
    assert (log.spans.until_s > log.spans.from_s).all()
    assert (log.spans.from_s >= log.start_s[log.spans.job] - dust_s(log.end_s)).all()
    if log.events <= MOST_LOOKS:
        Walk(start(made), size_s).go()


class Walk:
    """A run gone through from one instant at which anything may happen to the next, held against its tables."""

    def __init__(self, run, size_s):
        self.run, self.state, self.jobs, self.size_s = run, run.state, run.jobs, size_s

    def go(self):
        vain = 0
        while True:
            now_s, active = float(self.state.clock[CLOCK.now]), self._active()
            rates, done = self._look(active), self.state.done_s.copy()
            stalled_s = self.state.stalled_until_s.copy()
            before = self.state.count.copy()
            at_s, submits = self._next(active, rates)
            if at_s == np.inf:
                break
            if submits:
                self.run.submit(int(before[COUNT.arrived]) + 1)
            else:
                self.run.advance(
                    at_s if at_s > now_s else now_s + tolerance.EVENT_S
                )  # who is late comes with another's event
            passed_s = float(self.state.clock[CLOCK.now]) - now_s
            moved = passed_s > 0.0 or (self.state.count != before).any()
            vain = 0 if moved else vain + 1
            assert vain < 9, "the run stands still"
            self._worked(active, rates, done, stalled_s, now_s, passed_s)
        assert self.state.count[COUNT.arrived] == len(self.size_s)
        assert np.isfinite(self.state.end_s).all()
        assert np.array_equal(self.state.done_s, self.size_s)

    def _active(self):
        return self.state.active[: self.state.count[COUNT.active]].copy()

    def _next(self, active, rates):
        """The next instant at which anything may happen, and whether it is a submission."""
        state, jobs, arrived = self.state, self.jobs, int(self.state.count[COUNT.arrived])
        submit_s = jobs.submit_s[arrived] if arrived < len(self.size_s) else np.inf
        lease_s = state.clock[CLOCK.lease_at] if len(active) else np.inf
        left = jobs.stage_end[state.stage[active]] * self.size_s[active] - state.done_s[active]
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = np.where(rates > 0.0, left / rates, np.inf)
        ends = ends + np.maximum(state.clock[CLOCK.now], state.stalled_until_s[active])
        at_s = min(ends.min(initial=np.inf), lease_s)
        return (submit_s, True) if submit_s <= at_s else (at_s, False)

    def _look(self, active):
        """(n_active,) speeds by the tables, once what is held has been found to be there."""
        state, cluster, jobs = self.state, self.run.cluster, self.jobs
        gpus = state.gpus[active]
        assert (gpus >= 0.0).all()
        assert (gpus.sum(axis=0) <= cluster.capacity * (1 + 1e-9)).all(), "more GPUs of a type than there are"
        most = jobs.stage_most[state.stage[active]]
        assert (gpus.sum(axis=1) <= most * (1 + 1e-9)).all(), "more GPUs than a job can use"
        held = state.gpus.sum(axis=1)
        held[active] = 0.0
        assert not held.any(), "a job holds GPUs that is not there"
        if len(cluster.node_type):
            assert (state.on_node.sum(axis=0) <= cluster.node_gpus + 1e-6).all(), "more GPUs of a node than it has"
            by_type = np.stack(
                [state.on_node[:, cluster.node_type == kind].sum(axis=1) for kind in range(gpus.shape[1])]
            )
            assert by_type.T[active] == pytest.approx(gpus, abs=1e-6)
            if gpus.shape[1] == 1:
                needed = np.ceil(gpus[:, 0] / cluster.node_gpus.max() - 1e-9)
                assert (state.locality[active] == ((state.on_node[active] > 0).sum(axis=1) > needed)).all()
        total = gpus.sum(axis=1)
        speeds = np.array([
            np.interp(total[i], np.arange(jobs.speedup.shape[2]), jobs.speedup[jobs.model[j], state.locality[j]])
            for i, j in enumerate(active)
        ])  # fmt: skip
        mean = (gpus * jobs.speed[jobs.model[active]]).sum(axis=1) / np.maximum(total, 1e-300)
        return np.where(total > 0.0, speeds * mean, 0.0)

    def _worked(self, active, rates, done, stalled_s, now_s, passed_s):
        """What active jobs got done while nothing happened is their speed over the time."""
        gets_on_s = np.maximum(0.0, passed_s - np.maximum(0.0, stalled_s[active] - now_s))
        gained = self.state.done_s[active] - done[active]
        top = np.maximum(rates, self.jobs.speedup.max())  # what a job may get done within the dust of the clock
        dust = top * dust_s(np.array([now_s + passed_s])) + 1e-9 * self.size_s[active]
        assert (np.abs(gained - rates * gets_on_s) <= dust).all(), "work done is not speed over time"
