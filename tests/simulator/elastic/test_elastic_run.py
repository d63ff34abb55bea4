"""What holds for every run: forecasts play the run forward, leave it alone, and tell what then happens."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from jobcast.schedulers.registry import make_policy
from jobcast.simulator.elastic.run import ElasticReplay, replay_elastic
from jobcast.simulator.metrics import figures, queued_s
from tests.contract.random_jobs import check_same
from tests.simulator.elastic.elastic_cases import Case, cases, cluster_of, jobs_of, policies

POLICIES = policies()
FIFO, SRSF = POLICIES["elastic_fifo"], POLICIES["srsf"]


def same(one, other):
    """Whether two states are the same to the last bit."""
    return all(np.array_equal(a, b, equal_nan=a.dtype == np.float64) for a, b in zip(one, other, strict=True))


def placed_where_whole(policy, case):
    """Without nodes where GPUs are dealt out in fractions: nothing sits on a fraction of a place."""
    return case if policy.integral else Case(case.jobs, cluster_of(case.cluster.gpus, preempt_s=case.cluster.preempt_s))


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("placed", [False, True])
@examples(max_examples=40)
@given(data=st.data())
def test_a_forecast_is_what_happens_if_nothing_more_arrives(name, placed, data):
    case = placed_where_whole(POLICIES[name], data.draw(cases(placed=placed)))
    arrived = data.draw(st.integers(1, len(case.jobs.size_s)))
    run = case.run(POLICIES[name])
    run.forecast(arrived)
    forecast_s = run.predicted_end_s[arrived - 1]
    run.finish()
    assert run.log().end_s[-1] == forecast_s


@pytest.mark.parametrize("name", POLICIES)
@examples(max_examples=40)
@given(case=cases())
def test_playing_forward_leaves_the_run_alone(name, case):
    for arrived in range(1, len(case.jobs.size_s) + 1):
        plain, looking = case.run(POLICIES[name]), case.run(POLICIES[name])
        plain.submit(arrived)
        looking.forecast(arrived)
        assert same(plain.state, looking.state)


@examples(max_examples=200)
@given(cases())
def test_fifo_forecasts_are_exact(case):
    """No later job delays an earlier one. PCS, section 2.2."""
    log = case.log(FIFO, predict=True)
    assert log.columns["predicted_end_s"] == pytest.approx(log.end_s, abs=1e-6)


@pytest.mark.parametrize("name", POLICIES)
@examples(max_examples=20)
@given(case=cases())
def test_runs_are_repeatable_and_may_be_interrupted(name, case):
    whole, stepwise = case.log(POLICIES[name], predict=True), case.run(POLICIES[name])
    for arrived in range(1, len(case.jobs.size_s) + 1):
        stepwise.forecast(arrived)
    stepwise.finish()
    assert stepwise.log().end_s.tolist() == whole.end_s.tolist()
    assert stepwise.log().columns["predicted_end_s"].tolist() == whole.columns["predicted_end_s"].tolist()


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
    """20 s on 2 GPUs from 0 on, 6 s on 2 of the same from 3 on; shortest first: the first is stopped from 3 to 6."""
    case = Case(jobs_of([(0.0, 20.0, 2), (3.0, 6.0, 2)]), cluster_of(2))
    log = replay_elastic(case.run(SRSF, origin_s=100.0))
    spans = log.spans
    assert list(zip(spans.job, spans.from_s, spans.until_s, spans.gpus, spans.node, strict=True)) == [
        (0, 100.0, 103.0, 2.0, -1),
        (1, 103.0, 106.0, 2.0, -1),
        (0, 106.0, 113.0, 2.0, -1),
    ]
    assert queued_s(log).tolist() == [3.0, 0.0]
    assert figures(log, 101.0)["mean_jct_s"] == 3.0


def test_placed_jobs_are_told_by_node():
    case = Case(jobs_of([(0.0, 60.0, 6)]), cluster_of(8, nodes=[(0, 4), (0, 4)]))
    spans = case.log(FIFO).spans
    assert sorted(zip(spans.node.tolist(), spans.gpus.tolist(), strict=True)) == [(0, 4.0), (1, 2.0)]


def test_room_for_changes_grows_without_a_trace(monkeypatch):
    """A run that begins without room for any change tells the same as one that never lacks it."""
    case = Case(jobs_of([(float(i), 30.0 + 7 * (i % 5), 1 + i % 4) for i in range(60)]), cluster_of(6))
    roomy = case.log(SRSF, predict=True)
    monkeypatch.setattr("jobcast.simulator.elastic.state.ROWS", 0)
    tight = case.log(SRSF, predict=True)
    check_same(roomy, tight)


def test_without_a_record_a_job_is_told_to_hold_its_mean():
    case = Case(jobs_of([(0.0, 20.0, 2), (3.0, 6.0, 2)]), cluster_of(2))
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
