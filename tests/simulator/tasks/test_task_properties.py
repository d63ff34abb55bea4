"""What holds of every run of jobs of tasks, whatever a policy does."""

from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobcast.domain.tasks import BANDWIDTH, CPU, GPU, MEMORY, QUEUED
from jobcast.simulator.metrics import queued_s
from tests.contract.random_jobs import check_held, check_lives
from tests.simulator.tasks.task_cases import loads_of, replay_tasks, simulation_of, workload_of, workloads
from tests.simulator.tasks.task_policies import COPIED, Chaos, Fifo

ROUND_S = 600.0
FEW = settings(max_examples=25)


def seconds_of(view, gpu_of, job):
    """An iteration's seconds, recursively from what the domain says, loads at rest."""
    jobs, capacity, hosts = view.jobs, view.cluster.capacity, view.cluster.server_of
    load, gpu_load = loads_of(view.cluster, jobs.demand, gpu_of)
    edges = range(jobs.edge_of[job], jobs.edge_of[job + 1])

    def own(task):
        host = hosts[gpu_of[task]]
        shares = [1.0, capacity[host, CPU] / load[host, CPU]]
        if jobs.demand[task, GPU] > 0:
            shares.append(1.0 / gpu_load[gpu_of[task]])
        return jobs.compute_s[task] / min(shares)

    def sent(edge):
        ends = [hosts[gpu_of[task]] for task in (jobs.edge_from[edge], jobs.edge_to[edge])]
        if ends[0] == ends[1]:
            return 0.0
        shares = [1.0, *(capacity[host, BANDWIDTH] / load[host, BANDWIDTH] for host in ends)]
        return jobs.volume_mb[edge] / (jobs.demand[jobs.edge_from[edge], BANDWIDTH] * min(shares))

    def finish(task):
        into = [e for e in edges if jobs.edge_to[e] == task and not jobs.is_server[jobs.edge_from[e]]]
        return own(task) + max([0.0, *(finish(jobs.edge_from[e]) + sent(e) for e in into)])

    broadcast = [sent(e) for e in edges if jobs.is_server[jobs.edge_from[e]]]
    return max(finish(task) for task in range(jobs.task_of[job], jobs.task_of[job + 1])) + max([0.0, *broadcast])


def after(view, decided):
    """(n_tasks,) where tasks are after a decision."""
    gpu_of = np.where(np.isin(view.jobs.job_of, decided.stop), QUEUED, view.gpu_of)
    gpu_of[decided.tasks] = decided.gpus
    return gpu_of


@FEW
@given(workloads(most_jobs=4, roomy=True), st.integers(0, 99))
def test_iterations_done_are_the_rate_over_time(case, seed):
    """Of jobs that a decision leaves alone and that do not end: nothing stands still for as long as a round."""
    policy = Chaos(seed)
    log = replay_tasks(workload_of(*case), policy, round_s=ROUND_S, fluctuation=0.0, seed=seed)
    jobs, ends = case[0], [*policy.views[1:], None]
    for view, decided, later in zip(policy.views, policy.decided, ends, strict=True):
        gpu_of = after(view, decided)
        for job in view.active:
            here = slice(jobs.task_of[job], jobs.task_of[job + 1])
            gained = (log.columns["done"] if later is None else later.done)[job] - view.done[job]
            runs = (gpu_of[here] != QUEUED).all()
            if not runs:
                assert gained == 0.0 or log.end_s[job] == view.now_s
                continue
            most = ROUND_S / seconds_of(view, gpu_of, job)
            ended = later is None or job not in later.active
            touched = job in decided.stop or (gpu_of[here] != view.gpu_of[here]).any()
            assert gained <= most * (1 + 1e-9) + 1e-9
            if not ended and not touched:
                assert gained == pytest.approx(most)
    assert (log.columns["done"] <= jobs.iterations).all()


def check_run(log, views, jobs, cluster):
    """What a run and its views keep to, with copies of tasks or without."""
    for view in views:
        assert (view.load[:, MEMORY] <= cluster.capacity[:, MEMORY] * (1 + 1e-9)).all()
        load, gpu_load = loads_of(cluster, view.task_load, view.gpu_of)
        more, gpu_more = loads_of(cluster, view.task_load, view.copy_of)
        assert np.allclose(view.load, load + more)
        assert np.allclose(view.gpu_load, gpu_load + gpu_more)
        queued = view.gpu_of == QUEUED
        assert np.array_equal(view.task_load[queued], jobs.demand[queued])
        assert (np.diff(view.active) > 0).all()
    held = np.maximum.reduceat(jobs.compute_s, jobs.task_of[:-1])
    assert (log.end_s >= jobs.submit_s + log.columns["done"] * held - 1e-6).all()
    assert log.columns["used_gpu_s"].sum() <= log.total_gpus * (log.end_s.max() - jobs.submit_s.min()) * (1 + 1e-9)
    check_held(log, nodes=np.bincount(cluster.server_of, minlength=len(cluster.capacity)))
    check_lives(log)
    spans = log.spans
    rows = list(zip(spans.job.tolist(), spans.node.tolist(), spans.gpus.tolist(), strict=True))
    ends = {(*row, until_s) for row, until_s in zip(rows, spans.until_s.tolist(), strict=True)}
    begins = {(*row, from_s) for row, from_s in zip(rows, spans.from_s.tolist(), strict=True)}
    assert not ends & begins, "spans are not as long as they can be"
    assert np.array_equal(np.lexsort((spans.node, spans.job, spans.until_s)), np.arange(len(spans)))
    assert (spans.until_s > spans.from_s).all()
    assert (spans.node > QUEUED).all()


@given(workloads(roomy=True), st.integers(0, 99), st.sampled_from([0.0, 0.2]))
def test_what_every_run_keeps_to(case, seed, fluctuation):
    policy, (jobs, cluster) = Chaos(seed), case
    log = replay_tasks(workload_of(*case), policy, round_s=ROUND_S, fluctuation=fluctuation, seed=seed)
    check_run(log, policy.views, jobs, cluster)
    assert (queued_s(log) + log.columns["ran_s"] <= log.jct_s + 1e-6).all()
    assert np.array_equal(log.columns["done"], policy_limits(policy, jobs))
    most_gpus = np.add.reduceat(jobs.demand[:, GPU], jobs.task_of[:-1]) * 1.4
    assert (log.columns["used_gpu_s"] <= log.columns["ran_s"] * most_gpus + 1e-6).all()
    assert (log.columns["deadline_accuracy"] <= log.columns["accuracy"] + 1e-12).all()  # these curves rise
    assert (log.columns["accuracy"] == log.columns["deadline_accuracy"])[log.end_s <= jobs.deadline_s].all()
    assert np.isfinite(log.end_s).all()


def policy_limits(policy, jobs):
    """(n_jobs,) the latest limits given."""
    limits = jobs.iterations.copy()
    for decided in policy.decided:
        limits[decided.limited] = decided.limits
    return limits


def last_seen(jobs, shown, seen, epochs):
    """A forecast: the metric shown last, and how many are shown."""
    return shown[np.arange(len(jobs)), seen - 1], seen / epochs


@FEW
@given(workloads(most_jobs=5, roomy=True), st.integers(0, 99), st.floats(0.0, 1.0))
def test_a_policy_cannot_see_what_is_to_come(case, seed, share):
    """Other metrics beyond the epochs reached by an instant change nothing of what is seen up to it."""
    workload = workload_of(*case)
    first = Chaos(seed)
    replay_tasks(workload, first, last_seen, round_s=ROUND_S, seed=seed)
    until = int(share * (len(first.views) - 1))
    reached = np.floor(first.views[until].done / case[0].epoch_iterations + 1e-9)
    ended = ~np.isin(np.arange(len(workload)), first.views[until].active) & (first.views[until].done > 0)
    later = np.arange(workload.truth.metric.shape[1]) > np.where(ended, inf, reached)[:, None]
    other = workload_of(*case, metric=np.where(later, 0.123, workload.truth.metric))
    again = Chaos(seed)
    replay_tasks(other, again, last_seen, round_s=ROUND_S, seed=seed)
    for one, two in zip(first.views[: until + 1], again.views, strict=False):
        for name in COPIED:
            assert np.array_equal(getattr(one, name), getattr(two, name), equal_nan=name.startswith(FLOATS)), name


FLOATS = ("accuracy", "last_gain", "all_gain", "earlier", "final", "step_s")


@FEW
@given(workloads(roomy=True))
def test_looking_and_going_on_is_a_replay(case):
    """A run driven from outside, decision by decision, is the run that the policy's own decisions give."""
    workload = workload_of(*case)
    run, _ = simulation_of(workload, Fifo(), round_s=ROUND_S, seed=3)
    while (view := run.look()) is not None:
        run.carry_out(Fifo().decide(view))
    assert np.array_equal(run.log().end_s, replay_tasks(workload, Fifo(), round_s=ROUND_S, seed=3).end_s)


def held_by_hand(view, decided):
    """(job, server) -> GPUs after a decision, GPU by GPU."""
    gpu_of, found = after(view, decided), {}
    for gpu, server in enumerate(view.cluster.server_of.tolist()):
        sharing = set(view.jobs.job_of[gpu_of == gpu].tolist())
        for job in sharing:
            found[job, server] = found.get((job, server), 0.0) + 1.0 / len(sharing)
    return found


@given(workloads(roomy=True), st.integers(0, 99))
def test_spans_are_what_decisions_leave_on_gpus(case, seed):
    """Right after each decision, jobs that a limit ended at it left out; and all of a job's time elsewhere it waits."""
    policy = Chaos(seed)
    run, law = simulation_of(workload_of(*case), policy, round_s=ROUND_S, seed=seed)
    run.run()
    log, dust = run.log(), 1e-6
    spans = log.spans
    for view, decided in zip(policy.views, policy.decided, strict=True):
        soon_s = np.append(log.end_s[log.end_s > view.now_s + dust], view.now_s + ROUND_S).min()
        at_s = 0.5 * (view.now_s + soon_s)
        there = (spans.from_s <= at_s) & (at_s < spans.until_s)
        found = {
            (job, node): gpus
            for job, node, gpus in zip(
                spans.job[there].tolist(), spans.node[there].tolist(), spans.gpus[there].tolist(), strict=True
            )
        }
        assert len(found) == there.sum()
        wanted = held_by_hand(view, decided)
        over = {job for job in view.active.tolist() if log.end_s[job] <= at_s}
        if not over:
            assert found == pytest.approx(wanted)
        else:  # whom they shared with held less until that very instant
            assert found.keys() == {key for key in wanted if key[0] not in over}
    assert queued_s(log) == pytest.approx(law.state.waited_s, abs=1e-6)
