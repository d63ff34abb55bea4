"""Elastic jobs in the one loop: the same as in its compiled twin, whatever shares the GPUs out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobcast.domain.compiled import njit
from jobcast.domain.elastic import ElasticPolicy, ElasticView
from jobcast.domain.elastic_kernels import RULE
from jobcast.domain.policy import ANYWHERE, Cell, Grant
from jobcast.simulator.elastic.run import ElasticReplay, replay_elastic
from jobcast.simulator.elastic.state import OVERDUE_S
from jobcast.simulator.engine import Simulation
from jobcast.simulator.laws.speedup import Speedup, elastic_workload
from tests.simulator.elastic.elastic_cases import Case, cluster_of, jobs_of, policies
from tests.simulator.pool_cases import Script

RULES = policies()


def both(case, policy, size_s=None):
    """The logs of the loop and of its twin."""
    twin = ElasticReplay(case.jobs, case.jobs.size_s if size_s is None else size_s, case.cluster, policy)
    return case.simulation(policy, size_s=size_s).run().log(), replay_elastic(twin)


@st.composite
def cases(draw):
    """Jobs of up to three stages, on one type of GPUs, and what they really are: some are wrongly declared."""
    rows, stages = [], {}
    at = 0.0
    for job in range(draw(st.integers(1, 7))):
        at += draw(st.sampled_from([0.0, 0.0, 3.0, 40.0]))
        most = draw(st.sampled_from([1, 2, 4, 8]))
        least = draw(st.sampled_from([0, 0, 1, most]))
        rows.append((at, draw(st.sampled_from([5.0, 30.0, 31.0, 200.0])), most, least, draw(st.integers(0, 3))))
        if draw(st.booleans()) and least <= 1:
            stages[job] = [(0.3, most), (0.6, max(1, most // 2)), (1.0, max(1, most // 4))]
    jobs = jobs_of(rows, stages=stages)
    factors = [draw(st.sampled_from([1.0, 1.0, 0.5, 1.7])) for _ in rows]
    return Case(jobs, cluster_of(8, preempt_s=draw(st.sampled_from([0.0, 2.0])))), jobs.size_s * np.array(factors)


@pytest.mark.parametrize("rule", RULES)
@given(case=cases())
@settings(max_examples=20)
def test_the_loop_and_its_twin_agree(rule, case):
    log, twin = both(case[0], RULES[rule], case[1])
    np.testing.assert_allclose(log.end_s, twin.end_s, rtol=0, atol=1e-6)
    np.testing.assert_allclose(log.start_s, twin.start_s, rtol=0, atol=1e-6)
    assert log.preemptions.tolist() == twin.preemptions.tolist()
    np.testing.assert_allclose(log.duration_s, twin.duration_s)
    for name in ("gpu_s", "contention_events", "work_s"):
        np.testing.assert_allclose(log.columns[name], twin.columns[name], rtol=1e-9, atol=1e-6)


@njit(RULE, cache=True)
def by_numbers(view, numbers, gpus):
    """The first job's GPUs of two types until 5 s, then after."""
    gpus[0] = numbers[:2] if view.now_s < 5.0 else numbers[2:]


@pytest.mark.parametrize(
    "before",
    [
        pytest.param((2.0 + 4e-16, 0.0), id="the most it can use, by the last bit of a sum"),
        pytest.param((2.0, 9e-10), id="the most it can use, and dust"),
        pytest.param((1.0, 1.5e-9), id="hardly more than dust"),
    ],
)
def test_both_count_what_is_taken_away_down_to_dust(before):
    policy = ElasticPolicy("", by_numbers, np.array([*before, 1.0, 9e-10]), lease_s=5.0)
    log, twin = both(Case(jobs_of([(0.0, 30.0, 2)], speed=np.ones((4, 2))), cluster_of(3, 1)), policy)
    assert log.preemptions.tolist() == twin.preemptions.tolist() == [1]


def test_who_is_done_at_the_end_of_another_ends_with_it():
    """Two jobs take both GPUs at 10 s, when the first has held 20 GPU-seconds, and are done together at 60 s.

    When one of them ends the first has held less than the other: it must not take the GPU of a job that is done.
    """
    jobs = jobs_of([(0.0, 100.0, 2), (10.0, 50.0, 1), (10.0, 50.0, 1)])
    run, log = both(Case(jobs, cluster_of(2)), RULES["elastic_las"])
    for one in (run, log):
        assert one.end_s.tolist() == [100.0, 60.0, 60.0]
        assert one.columns["contention_events"].tolist() == [10 / 6, 7 / 3, 8 / 3]


def test_two_types_by_hand():
    # fifo gives the fast type first: 2 + 2 GPUs at 1 and .5 the speed, 4 GPUs are 4 x .75 as fast as one
    jobs = jobs_of([(0.0, 30.0, 4)], speed=np.array([[1.0, 0.5]] * 4))
    log, twin = both(Case(jobs, cluster_of(2, 2)), RULES["elastic_fifo"])
    assert log.end_s.tolist() == twin.end_s.tolist() == [10.0]
    assert log.spans.gpus.tolist() == [2.0, 2.0]


def test_run_time_is_that_on_the_gpus_asked_for():
    """Three times as fast as one GPU for 5 s: 15 s of work, which four of the first type do in 15 / 4."""
    jobs = jobs_of([(0.0, 30.0, 4)], speed=np.array([[1.0, 0.5]] * 4))
    run = Case(jobs, cluster_of(2, 2)).simulation(RULES["elastic_fifo"]).wait(5.0)
    told = run.law.service(run, run.jobs[0])
    assert (told.done, told.run_s, told.held_s) == (15.0, 3.75, 5.0)


def stepwise(steps):
    """So many GPUs of the first type for the first job from an instant on."""
    return Script({at_s: {"0" * 9: Grant(gpus, (Cell(0, ANYWHERE, gpus),))} for at_s, gpus in steps.items()})


def test_on_too_few_gpus_a_job_gets_nowhere():
    """30 s of work, of which one GPU does none and two do two seconds a second."""

    jobs = jobs_of([(0.0, 30.0, 2)])
    jobs.speedup[:, :, 1] = 0.0
    assert Case(jobs, cluster_of(2)).simulation(stepwise({0.0: 1.0, 5.0: 2.0})).run().end_s(0) == 20.0


def test_a_change_by_dust_does_not_cut_a_stand_still_short():
    """20 of 30 s by 10 s; then it stands still for 10 s, whatever happens at 15 s; on one GPU, 10 s more."""

    case = Case(jobs_of([(0.0, 30.0, 2)]), cluster_of(2, preempt_s=10.0))
    shrunk = stepwise({0.0: 2.0, 10.0: 1.0, 15.0: 1.0 - 1e-11})
    assert case.simulation(shrunk).run().end_s(0) == pytest.approx(30.0)


@pytest.mark.parametrize(
    ("gpus", "told"),
    [(2.0, None), (2.1, "it can use up to 2 GPUs, it is given 2.1"), (0.0, "it can use up to 2 GPUs, it is given 0")],
)
def test_nobody_is_given_more_than_it_can_use(gpus, told):
    jobs = jobs_of([(0.0, 30.0, 2)])
    run = Case(jobs, cluster_of(4)).simulation(RULES["elastic_fifo"]).wait(1.0)
    assert run.law.why_not(run, run.jobs[0], Grant(gpus, (Cell(0, ANYWHERE, gpus),))) == told
    assert run.law.why_not(run, run.jobs[0], Grant(1.0)) == "it is given no GPUs of any type"


def test_rules_see_seconds_of_the_run_and_changes_cost_nothing_by_default():
    """The first has done 10 of 20 s when the second comes at 5 s and takes a GPU for 4 s: 4, then 6 on both."""
    jobs = jobs_of([(0.0, 20.0, 2), (5.0, 4.0, 1)])
    case = Case(jobs, cluster_of(2))
    run = case.simulation(RULES["fair whole=False"], origin_s=1000.0).wait(1007.0)
    seen = run.cluster.facts(ElasticView)
    assert (seen.now_s, seen.left_s.tolist(), seen.held_gpu_s.tolist()) == (7.0, [8.0, 2.0], [12.0, 2.0])
    assert run.run().log().end_s.tolist() == [1012.0, 1009.0]
    workload = elastic_workload(jobs, jobs.size_s, case.cluster)
    plain = Simulation(workload, RULES["fair whole=False"], law=Speedup(jobs, jobs.size_s)).wait(7.0)
    assert plain.cluster.facts(ElasticView).now_s == 7.0
    assert plain.run().log().end_s.tolist() == [12.0, 9.0]
    plain = case.simulation(RULES["elastic_fifo"], size_s=2.0 * jobs.size_s).wait(16.0)
    assert plain.cluster.facts(ElasticView).left_s.tolist() == [OVERDUE_S, 4.0]  # longer than it was declared


def test_a_cluster_of_nodes_is_the_twins_alone():
    jobs = jobs_of([(0.0, 20.0, 2)])
    with pytest.raises(ValueError, match="leave the nodes out"):
        elastic_workload(jobs, jobs.size_s, cluster_of(4, nodes=[(0, 4)]))


def test_stages_that_are_believed_end_where_they_were_declared_to():
    """Declared are 30 s, half of them on two GPUs: 7.5 s, then 15 s on one. In truth all takes twice as long."""
    jobs = jobs_of([(0.0, 30.0, 2)], stages={0: [(0.5, 2), (1.0, 1)]})
    run = Case(jobs, cluster_of(2)).simulation(RULES["elastic_fifo"], size_s=2.0 * jobs.size_s).wait(5.0)
    assert run.fork(lambda job: 0.0).run().end_s(0) == 22.5
    assert run.run().end_s(0) == 45.0
