"""The engine of elastic jobs by hand: stages, types of GPUs, costs of changes, leases, and rules that do wrong."""

from dataclasses import replace
from math import nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.compiled import njit
from jobcast.domain.elastic import ElasticPolicy
from jobcast.domain.elastic_kernels import RULE
from jobcast.domain.errors import DecisionError
from jobcast.schedulers.registry import make_policy
from jobcast.simulator.elastic.kernel import place
from jobcast.simulator.elastic.run import ElasticCluster, ElasticReplay, alone_s, replay_elastic
from jobcast.simulator.metrics import figures, mean_active, queued_s
from tests.contract.random_jobs import check_same
from tests.simulator.elastic.elastic_cases import Case, cases, cluster_of, jobs_of, policies

FIFO, SRSF, FAIR = (make_policy(name) for name in ("elastic_fifo", "srsf", "elastic_fair"))


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
    assert log.columns["predicted_end_s"].tolist() == [10.0, 9.0]
    assert log.preemptions.tolist() == [1, 0]
    free = Case(case.jobs, ElasticCluster(np.array([2.0])))  # as changes are where nothing is said
    assert free.log(FAIR).end_s.tolist() == [12.0, 9.0]


def test_a_stand_still_outlasts_what_happens_in_it():
    """Three GPUs, 5 s for a change: the second has done 8 of 32 s when it grows at 4 s, and goes on at 9 s."""
    case = Case(jobs_of([(0.0, 4.0, 1), (0.0, 32.0, 3), (6.0, 3.0, 3)]), cluster_of(3, preempt_s=5.0))
    assert case.log(FIFO).end_s.tolist() == [4.0, 17.0, 18.0]


def test_an_end_precedes_a_submission_at_the_same_time():
    """So the second never meets the first, and contention stays at 1."""
    case = Case(jobs_of([(0.0, 10.0, 1), (10.0, 10.0, 1)]), cluster_of(1))
    log = case.log(FIFO)
    assert log.columns["contention_events"].tolist() == [1.0, 1.0]
    assert mean_active(log).tolist() == [1.0, 1.0]


def test_ends_at_one_instant_go_by_submission():
    """So the first meets two before its end, and the second one more event, alone.

    Between them nobody is asked: the one that ends last would be given the other's GPU, and stand still for it, as the
    first does when the second comes.
    """
    log = Case(jobs_of([(0.0, 10.0 + 2e-7, 1), (0.0, 10.0, 1)]), cluster_of(2)).log(FIFO)
    assert log.columns["contention_events"] == pytest.approx([(1 + 1 + 2) / 3, (2 + 2 + 1) / 3])
    assert log.end_s.tolist() == [10.0 + 2e-7] * 2  # time does not go back
    log = Case(jobs_of([(0.0, 10.0, 2), (0.0, 11.0, 2)]), cluster_of(2, preempt_s=1.0)).log(FAIR)
    assert log.end_s.tolist() == [11.0, 11.0]


def test_contention_is_counted_over_events_and_over_time():
    """The first: 1 when it comes, 1 before the second comes, 2 before that one ends, 1 before its own end.

    Over time: 1 for 2 s, 2 for 4 s, 1 for 4 s. The second: 2 when it comes and before it ends.
    """
    case = Case(jobs_of([(0.0, 10.0, 1), (2.0, 4.0, 1)]), cluster_of(2))
    log = case.log(FIFO)
    assert log.columns["contention_events"].tolist() == [(1 + 1 + 2 + 1) / 4, 2.0]
    assert mean_active(log) == pytest.approx([1.4, 2.0])


def test_a_wrong_size_is_believed_until_it_is_seen_through():
    """Declared 10 s, really 30: from 10 s on it is forecast to end a millisecond later, whenever another one comes."""
    jobs = jobs_of([(0.0, 10.0, 1), (5.0, 10.0, 1), (10.0, 10.0, 1), (20.0, 10.0, 1)])
    run = ElasticReplay(jobs, np.array([30.0, 10.0, 10.0, 10.0]), cluster_of(1), FIFO)
    log = replay_elastic(run, predict=True)
    assert log.end_s.tolist() == [30.0, 40.0, 50.0, 60.0]
    assert log.columns["predicted_end_s"] == pytest.approx([10.0, 20.0, 30.001, 50.001], abs=1e-9)


def test_who_is_overdue_for_longer_is_no_shorter():
    """Declared 10 and 5 s, really 30 and 40. The first could use both GPUs from 15 s on, and gets them."""
    jobs = jobs_of([(0.0, 10.0, 2), (0.0, 5.0, 1)], stages={0: [(0.5, 1), (1.0, 2)]})
    log = replay_elastic(ElasticReplay(jobs, np.array([30.0, 40.0]), cluster_of(2), SRSF))
    assert log.end_s.tolist() == [22.5, 47.5]


@njit(RULE, cache=True)
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
        (1e-12, "policy broken at 3.000000 s: leaves job 0 and all others waiting while nothing will arrive"),
    ],
)
@pytest.mark.parametrize("lease_s", [0.0, 1000.0])
@pytest.mark.parametrize("predict", [False, True])
def test_a_rule_that_does_wrong_is_told_so(gives, told, lease_s, predict):
    case = Case(jobs_of([(0.0, 20.0, 8), (3.0, 20.0, 8)]), cluster_of(4))
    policy = ElasticPolicy("broken", broken, np.array([gives, 2.0]), lease_s=lease_s)
    with pytest.raises(DecisionError) as error:
        case.log(policy, predict=predict)
    at_s = 1003 if "waiting" in told and lease_s and not predict else 3  # found out a lease later, or in the forecast
    assert str(error.value) == told.replace("at 3.", f"at {at_s}.")


@pytest.mark.parametrize(("lease_s", "predict", "at_s"), [(0.0, False, 15), (3.0, False, 18), (0.0, True, 1)])
def test_who_cannot_run_is_found_out_once_all_others_are_over(lease_s, predict, at_s):
    """The second needs more GPUs than there are; leases go by while nobody runs and the third is to come, at 10 s.

    A forecast finds it out when the second comes.
    """
    case = Case(jobs_of([(0.0, 5.0, 1), (1.0, 5.0, 4, 4), (10.0, 5.0, 1)]), cluster_of(2))
    with pytest.raises(DecisionError, match=rf"at {at_s}\.000000 s: leaves job 1 and all others waiting"):
        case.log(replace(FIFO, lease_s=lease_s), predict=predict)


TWO_NODES = [(0, 4), (0, 4)]


def nodes_of(case, policy, arrived):
    """(arrived, n_nodes) GPUs by node, and locality, right after a submission."""
    run = case.run(policy)
    run.submit(arrived)
    return run.state.on_node[:arrived].tolist(), run.state.locality[:arrived].tolist()


def test_jobs_are_packed_onto_the_fullest_node_that_takes_them():
    """3, then 2 that the first node cannot take, then 1 that it can."""
    case = Case(jobs_of([(0.0, 9.0, 3), (0.0, 9.0, 2), (0.0, 9.0, 1)]), cluster_of(8, nodes=TWO_NODES))
    assert nodes_of(case, FIFO, 3) == ([[3.0, 0.0], [0.0, 2.0], [1.0, 0.0]], [0, 0, 0])


def test_a_job_on_more_nodes_than_it_needs_is_slow():
    """3 and 3 leave one GPU on either node: the third job of 2 lies on both, at 0.9 x 2, so 18 s take 10 s."""
    rows = [(0.0, 300.0, 3), (0.0, 300.0, 3), (0.0, 18.0, 2)]
    case = Case(jobs_of(rows), cluster_of(8, nodes=TWO_NODES))
    assert nodes_of(case, FIFO, 3) == ([[3.0, 0.0], [0.0, 3.0], [1.0, 1.0]], [0, 0, 1])
    assert case.log(FIFO).end_s[2] == pytest.approx(10.0)


def test_a_job_wider_than_a_node_lies_on_two_and_is_not_slow():
    case = Case(jobs_of([(0.0, 80.0, 8)]), cluster_of(8, nodes=TWO_NODES))
    assert nodes_of(case, FIFO, 1) == ([[4.0, 4.0]], [0])
    assert case.log(FIFO).end_s.tolist() == [10.0]


def test_what_stays_stays():
    """The one on both nodes does not move when a node gets free, which another one takes."""
    rows = [(0.0, 3.0, 3), (0.0, 300.0, 3), (0.0, 180.0, 2), (2.0, 300.0, 3)]
    case = Case(jobs_of(rows), cluster_of(8, nodes=TWO_NODES))
    on_node, locality = nodes_of(case, FIFO, 4)
    assert on_node == [[0.0, 0.0], [0.0, 3.0], [1.0, 1.0], [3.0, 0.0]]
    assert locality[1:] == [0, 1, 0]


def test_who_shrinks_leaves_the_node_on_which_it_holds_least():
    """6 on two nodes, 4 and 2; a shorter one of 4 comes, so that 4 are left: on the first node."""
    case = Case(jobs_of([(0.0, 600.0, 6), (1.0, 4.0, 4)]), cluster_of(8, nodes=TWO_NODES))
    assert nodes_of(case, SRSF, 1) == ([[4.0, 2.0]], [0])
    assert nodes_of(case, SRSF, 2) == ([[4.0, 0.0], [0.0, 4.0]], [0, 0])
    case = Case(jobs_of([(0.0, 800.0, 8), (1.0, 4.0, 4)]), cluster_of(8, nodes=TWO_NODES))
    assert nodes_of(case, SRSF, 2) == ([[0.0, 4.0], [4.0, 0.0]], [0, 0])  # of equals the first


@pytest.mark.parametrize(
    ("node_gpus", "before", "gpus", "after", "spread"),
    [
        ([4.0, 4.0], [[1.0, 0.0], [0.0, 2.0]], [3.0, 2.0], [[3.0, 0.0], [0.0, 2.0]], [0, 0]),  # a node that it is on
        ([1.0, 2.0, 2.0], [[0.0] * 3], [4.0], [[0.0, 2.0, 2.0]], [0]),  # else the emptiest, for the fewest pieces
        ([4.0, 2.0], [[2.0, 2.0]], [4.0], [[2.0, 2.0]], [1]),  # who stays where one node would do, the widest
    ],
)
def test_who_grows(node_gpus, before, gpus, after, spread):
    on_node, count = np.array(before), len(gpus)
    node_type, locality = np.zeros(len(node_gpus), np.int64), np.zeros(count, np.int64)
    place(np.arange(count), count, np.array(gpus)[:, None], node_type, np.array(node_gpus), on_node, locality)
    assert (on_node.tolist(), locality.tolist()) == (after, spread)


def test_run_times_alone_are_of_stages_on_the_most_gpus_of_the_first_type():
    """Half as fast as a GPU of the tables: 32 s on 16 GPUs, beyond which no speed is known; 5 s on 4 and 5 s on 2."""
    rows, stages = [(0.0, 32.0, 20), (0.0, 10.0, 4)], {1: [(0.5, 4), (1.0, 2)]}
    jobs = jobs_of(rows, stages=stages, speed=np.tile([0.5, 1.0], (4, 1)))
    assert alone_s(jobs, jobs.size_s).tolist() == [4.0, 7.5]


def test_types_lie_on_their_own_nodes():
    """One node of each type; model 1 prefers the second."""
    jobs = jobs_of([(0.0, 9.0, 3, 0, 1), (0.0, 9.0, 2, 0, 1)], speed=[[1.0, 1.0], [0.5, 1.0], [1, 1], [1, 1]])
    case = Case(jobs, cluster_of(4, 4, nodes=[(0, 4), (1, 4)]))
    assert nodes_of(case, FIFO, 2) == ([[0.0, 3.0], [1.0, 1.0]], [0, 0])


POLICIES = policies()


@pytest.mark.parametrize("name", POLICIES)
@given(data=st.data())
def test_a_forecast_is_what_happens_if_nothing_more_arrives(name, data):
    """Without nodes where GPUs are dealt out in fractions: nothing sits on a fraction of a place."""
    case = data.draw(cases() | cases(placed=True) if POLICIES[name].integral else cases())
    arrived = data.draw(st.integers(1, len(case.jobs.size_s)))
    run = case.run(POLICIES[name])
    run.forecast(arrived)
    forecast_s = run.predicted_end_s[arrived - 1]
    run.finish()
    assert run.log().end_s[-1] == forecast_s


@given(cases())
def test_fifo_forecasts_are_exact(case):
    """No later job delays an earlier one. PCS, section 2.2."""
    log = case.log(FIFO, predict=True)
    assert log.columns["predicted_end_s"] == pytest.approx(log.end_s, abs=1e-6)


def test_figure_1_delays_of_the_first_job():
    """One GPU; J2 and J4 of 8 units each, shorter than what is left of J1, J3 longer. PCS, section 2.2 and Figure 1.

    The paper gives the delays, not the sizes of J1 and J3: SRSF makes J1 8 units later when J2 and again when J4
    arrives, Themis with a lease of one unit when J2 arrives, FIFO never.
    """
    case = Case(jobs_of([(0.0, 20.0, 1), (1.0, 8.0, 1), (10.0, 30.0, 1), (11.0, 8.0, 1)]), cluster_of(1))

    def first_ends_s(policy):
        found = []
        for arrived in range(1, 5):
            run = case.run(policy)
            run.submit(arrived)
            run.finish()
            found.append(run.log().end_s[0])
        return found

    assert first_ends_s(SRSF) == [20.0, 28.0, 28.0, 36.0]
    assert first_ends_s(FIFO) == [20.0, 20.0, 20.0, 20.0]
    assert first_ends_s(make_policy("elastic_themis", None, {"lease_s": "1"}))[:2] == [20.0, 28.0]


def test_the_log_tells_who_held_what_by_hand():
    """20 s on 2 GPUs from 0 on, 6 s and 2 s on 2 of the same from 3 on; shortest first: the first is stopped till 7."""
    case = Case(jobs_of([(0.0, 20.0, 2), (3.0, 6.0, 2), (3.0, 2.0, 2)]), cluster_of(2))
    log = replay_elastic(case.run(SRSF, origin_s=100.0))
    spans = log.spans
    assert list(zip(spans.job, spans.from_s, spans.until_s, spans.gpus, spans.node, strict=True)) == [
        (0, 100.0, 103.0, 2.0, -1),
        (2, 103.0, 104.0, 2.0, -1),
        (1, 104.0, 107.0, 2.0, -1),
        (0, 107.0, 114.0, 2.0, -1),
    ]
    assert queued_s(log).tolist() == [4.0, 1.0, 0.0]
    assert figures(log, 101.0)["mean_jct_s"] == (4.0 + 1.0) / 2


def test_placed_jobs_are_told_by_node():
    case = Case(jobs_of([(0.0, 60.0, 6)]), cluster_of(8, nodes=[(0, 4), (0, 4)]))
    spans = case.log(FIFO).spans
    assert list(zip(spans.node.tolist(), spans.gpus.tolist(), strict=True)) == [(0, 4.0), (1, 2.0)]


def test_room_for_changes_grows_without_a_trace(monkeypatch):
    """A run that begins without room for any change tells the same as one that never lacks it."""
    case = Case(jobs_of([(float(i), 30.0 + 7 * (i % 5), 1 + i % 4) for i in range(60)]), cluster_of(6))
    roomy = case.log(SRSF, predict=True)
    monkeypatch.setattr("jobcast.simulator.elastic.state.ROOM", 0)
    tight = case.log(SRSF, predict=True)
    check_same(roomy, tight)


def test_without_a_record_a_job_is_told_to_hold_its_mean():
    case = Case(jobs_of([(0.0, 0.2, 2), (0.03, 0.06, 2)]), cluster_of(2))
    told, mean = (replay_elastic(case.run(SRSF, record=record)) for record in (True, False))
    assert mean.spans.gpu_s == pytest.approx(told.columns["gpu_s"])
    assert len(mean.spans) == 2
    assert figures(mean)["utilization"] == pytest.approx(figures(told)["utilization"])


def test_progress_is_told():
    told = []
    case = Case(jobs_of([(float(i), 1.0, 1) for i in range(450)]), cluster_of(2))
    replay_elastic(case.run(FIFO), progress=lambda done, all_of: told.append((done, all_of)))
    assert told == [(200, 450), (400, 450), (450, 450)]


def test_arrays_that_may_not_be_written_are_taken_too():
    """Other processes hand arrays over that way."""
    jobs = jobs_of([(0.0, 30.0, 1), (5.0, 10.0, 1)])
    for column in jobs:
        column.setflags(write=False)
    run = ElasticReplay(jobs, jobs.size_s, cluster_of(1), FIFO)
    run.forecast(2)
    run.finish()
    assert run.log().end_s.tolist() == [30.0, 40.0]
