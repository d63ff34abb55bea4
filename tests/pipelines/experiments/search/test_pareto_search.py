"""A search for configurations: apart samples, its budget, the same again, default until there is history."""

import numpy as np
import pytest

from jobcast.pipelines.experiments.search import evaluation as evaluating
from jobcast.pipelines.experiments.search.front import front_plots
from jobcast.pipelines.experiments.search.pareto_search import pareto_mask, run_hash, search_front
from jobcast.pipelines.experiments.search.workload_samples import Sampling
from jobcast.schedulers.elastic.config import WfqConfig
from tests.pipelines.experiments.search import search_cases as cases

pytest.importorskip("pymoo", reason=cases.NEEDS_PYMOO)


@pytest.fixture(scope="module")
def found():
    return search_front(cases.small_workload(), cases.small_world(), cases.small_request())


def counted(monkeypatch):
    calls = []
    real = evaluating.simulated

    def counting(*arguments):
        calls.append(arguments)
        return real(*arguments)

    monkeypatch.setattr(evaluating, "simulated", counting)
    return calls


def rows_of(front):
    return [(row.pick, row.config, row.train, row.test, row.pareto) for row in front.rows]


def test_the_budget_is_spent_on_configurations_that_differ(found):
    assert len(found.history) == 30
    assert len({repr(one.config) for one in found.history}) == 30


def test_fifo_is_tried_first_and_errs_nowhere(found):
    first = found.history[0]
    assert first.config == WfqConfig(delta=first.config.delta)
    assert first.values[1] == pytest.approx(0.0, abs=1e-9)
    assert found.front.references["elastic_fifo"][1] == pytest.approx(0.0, abs=1e-9)


def test_the_front_is_judged_on_samples_that_the_search_did_not_see(found):
    rows = found.front.rows
    tests, trains = np.array([row.test for row in rows]), np.array([row.train for row in rows])
    assert pareto_mask(trains).all()
    assert [row.pareto for row in rows] == pareto_mask(tests).tolist()
    assert (np.diff(tests[:, 0]) >= 0).all()
    assert not np.allclose(tests, trains)
    assert tests[:, 0].min() < 0.9 * found.front.references["elastic_fifo"][0]


def test_begun_again_it_skips_what_is_there(found, tmp_path, monkeypatch):
    """Interrupted after 20 simulations; the whole is then as if it never was, and a third run simulates nothing."""
    calls = counted(monkeypatch)
    workload, world, request = cases.small_workload(), cases.small_world(), cases.small_request()
    journal = tmp_path / "front.journal.jsonl"

    def stop(done, total):
        if done == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search_front(workload, world, request, journal=journal, progress=stop)
    begun = len(calls)
    assert 20 <= begun <= 22
    again = search_front(workload, world, request, journal=journal)
    assert again.resumed == 20
    assert rows_of(again.front) == rows_of(found.front)
    total = len(calls)
    third = search_front(workload, world, request, journal=journal)
    assert len(calls) == total
    assert third.values.tolist() == found.values.tolist()


def test_another_seed_or_workload_is_another_run():
    world, request = cases.small_world(), cases.small_request()
    hashes = {
        run_hash(cases.small_workload(), world, request),
        run_hash(cases.small_workload(seed=1), world, request),
        run_hash(cases.small_workload(), world, cases.small_request(seed=4)),
        run_hash(cases.small_workload(), world, cases.small_request(sampling=Sampling(81))),
    }
    assert len(hashes) == 4
    assert run_hash(cases.small_workload(), world, cases.small_request(algorithm="nsga2")) in hashes


def test_too_little_history_leaves_the_default():
    found = search_front(cases.small_workload(count=49), cases.small_world(), cases.small_request())
    assert [(row.config, row.test) for row in found.front.rows] == [(WfqConfig(), None)]
    assert found.history == ()
    assert front_plots(found.front) == {}


def test_the_raw_space():
    request = cases.small_request(space="raw", evaluations=12)
    found = search_front(cases.small_workload(), cases.small_world(), request)
    assert len(found.history) == 6
    assert found.front.rows[0].parameters["T"] is None
