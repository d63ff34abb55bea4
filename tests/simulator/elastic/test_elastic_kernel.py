"""The engine of elastic jobs by hand: stages, types of GPUs, costs of changes, leases, and rules that do wrong."""

from math import nan

import numpy as np
import pytest

from jobcast.domain.elastic import ElasticPolicy
from jobcast.domain.elastic_kernels import RULE, njit
from jobcast.domain.errors import DecisionError
from jobcast.schedulers.registry import make_policy
from jobcast.simulator.elastic.run import ElasticReplay, replay_elastic
from tests.simulator.elastic.elastic_cases import Case, cluster_of, jobs_of

FIFO, SRSF, FAIR = (make_policy(name) for name in ("elastic_fifo", "srsf", "elastic_fair"))


def test_work_goes_on_at_the_rate_of_the_gpus_held():
    """16 GPU-seconds on 4 GPUs that are 4 ** 0.8 times as fast as one."""
    case = Case(jobs_of([(5.0, 16.0, 4, 0, 1)]), cluster_of(8))
    log = case.log(FIFO)
    assert log.start_s.tolist() == [5.0]
    assert log.end_s == pytest.approx([5.0 + 16.0 / 4.0**0.8])
    assert log.gpu_s == pytest.approx([4.0 * 16.0 / 4.0**0.8])


def test_successive_halving_by_hand():
    """8 trials until a quarter of 64 s is done, 4 until a half, 2 to the end: 2 + 4 + 16 s, the rest to another job.

    The other one, of 40 s on at most 6 of the 8 GPUs: none for 2 s, 4 for 4 s, 6 for 4 s: 40 s at second 10.
    """
    halving = {0: [(0.25, 8), (0.5, 4), (1.0, 2)]}
    case = Case(jobs_of([(0.0, 64.0, 8), (0.0, 40.0, 6)], stages=halving), cluster_of(8))
    log = case.log(FIFO)
    assert log.end_s.tolist() == [22.0, 10.0]
    assert log.preemptions.tolist() == [0, 0]


def test_a_stage_that_ends_costs_nothing_but_growing_does():
    """As above, with 1 s for a change: the other one grows at 6 s, and so ends a second later."""
    halving = {0: [(0.25, 8), (0.5, 4), (1.0, 2)]}
    case = Case(jobs_of([(0.0, 64.0, 8), (0.0, 40.0, 6)], stages=halving), cluster_of(8, preempt_s=1.0))
    assert case.log(FIFO).end_s.tolist() == [22.0, 11.0]


def test_a_change_stops_a_running_job_for_a_while():
    """2 GPUs shared equally, 1 s for a change. The first has done 10 of 20 s when the second comes at 5 s.

    It stops until 6 s, does 3 s until the second has ended at 9 s, stops until 10 s, then does 7 s on both GPUs.
    """
    case = Case(jobs_of([(0.0, 20.0, 2), (5.0, 4.0, 1)]), cluster_of(2, preempt_s=1.0))
    log = case.log(FAIR, predict=True)
    assert log.end_s.tolist() == [13.5, 9.0]
    assert log.predicted_end_s.tolist() == [10.0, 9.0]
    assert log.preemptions.tolist() == [1, 0]


def test_a_job_that_waited_in_between_pays_when_it_goes_on():
    """One GPU, 2 s for a change. The first has done 4 of 10 s, waits until 9 s, goes on at 11 s."""
    case = Case(jobs_of([(0.0, 10.0, 1), (4.0, 5.0, 1)]), cluster_of(1, preempt_s=2.0))
    assert case.log(SRSF).end_s.tolist() == [17.0, 9.0]


def test_gpu_types_by_hand():
    """2 GPUs of type a, 2 of b. Model 0 is half as fast on b, model 3 twice as fast, both linear.

    The first takes 2 a and 1 b, a rate of 2.5; the second the b that is left, a rate of 2. At 4 s the first has ended;
    the second, with 8 of 20 s done, takes both b at a rate of 4.
    """
    tables = np.stack([np.stack([np.arange(5.0)] * 2)] * 2)
    jobs = jobs_of(
        [(0.0, 10.0, 3, 0, 0), (0.0, 20.0, 2, 0, 1)], tables=tables, speed=np.array([[1.0, 0.5], [1.0, 2.0]])
    )
    case = Case(jobs, cluster_of(2, 2))
    run = case.run(FIFO)
    run.submit(2)
    assert run.state.gpus.tolist() == [[2.0, 1.0], [0.0, 1.0]]
    assert case.log(FIFO).end_s.tolist() == [4.0, 7.0]


def test_an_end_precedes_a_submission_at_the_same_time():
    """So the second never meets the first, and contention stays at 1."""
    case = Case(jobs_of([(0.0, 10.0, 1), (10.0, 10.0, 1)]), cluster_of(1))
    log = case.log(FIFO)
    assert log.contention_events.tolist() == [1.0, 1.0]
    assert log.contention_time.tolist() == [1.0, 1.0]


def test_contention_is_counted_over_events_and_over_time():
    """The first: 1 when it comes, 1 before the second comes, 2 before that one ends, 1 before its own end.

    Over time: 1 for 2 s, 2 for 4 s, 1 for 4 s. The second: 2 when it comes and before it ends.
    """
    case = Case(jobs_of([(0.0, 10.0, 1), (2.0, 4.0, 1)]), cluster_of(2))
    log = case.log(FIFO)
    assert log.contention_events.tolist() == [(1 + 1 + 2 + 1) / 4, 2.0]
    assert log.contention_time == pytest.approx([1.4, 2.0])


def test_a_wrong_size_is_believed_until_it_is_seen_through():
    """Declared 10 s, really 30: the next, at 20 s, is forecast to start at once, for the first may end any time."""
    jobs = jobs_of([(0.0, 10.0, 1), (5.0, 10.0, 1), (20.0, 10.0, 1)])
    run = ElasticReplay(jobs, np.array([30.0, 10.0, 10.0]), cluster_of(1), FIFO)
    log = replay_elastic(run, predict=True)
    assert log.end_s.tolist() == [30.0, 40.0, 50.0]
    assert log.predicted_end_s == pytest.approx([10.0, 20.0, 40.0], abs=0.01)


@njit(RULE)
def broken(view, numbers, gpus):
    """Gives the first job one GPU, and once so many are active as `numbers` say, what they say."""
    gpus[view.active[0], 0] = 1.0 if view.count < int(numbers[1]) else numbers[0]


@pytest.mark.parametrize(
    ("gives", "told"),
    [
        (5.0, "policy broken at 3.000000 s: gives out more GPUs than there are of type 0"),
        (9.0, "policy broken at 3.000000 s: gives job 0 more GPUs than it can use"),
        (-1.0, "policy broken at 3.000000 s: gives job 0 less than no GPUs, or no number of them"),
        (nan, "policy broken at 3.000000 s: gives job 0 less than no GPUs, or no number of them"),
        (0.0, "policy broken at 3.000000 s: leaves job 0 and all others waiting while nothing will arrive"),
    ],
)
@pytest.mark.parametrize("lease_s", [0.0, 1000.0])
@pytest.mark.parametrize("predict", [False, True])
def test_a_rule_that_does_wrong_is_told_so(gives, told, lease_s, predict):
    case = Case(jobs_of([(0.0, 20.0, 8), (3.0, 20.0, 8)]), cluster_of(4))
    policy = ElasticPolicy("broken", broken, np.array([gives, 2.0]), lease_s=lease_s)
    with pytest.raises(DecisionError) as error:
        case.log(policy, predict=predict)
    at_s = 1003 if gives == 0.0 and lease_s and not predict else 3  # found out a lease later, or in the forecast
    assert str(error.value) == told.replace("at 3.", f"at {at_s}.")
