"""Random samples of a workload, and whether it is still the one that a front was searched on."""

import numpy as np
import pytest

from jobcast.pipelines.experiments.search.workload_samples import Sampling, Workload, compare, described, draw
from tests.pipelines.experiments.search import search_cases as cases
from tests.scenarios import elastic_jobs_of


@pytest.fixture
def workload():
    """Job j: size 10 (j + 1), most j + 1, j % 2 + 1 stages; gaps 1, 1, ... and a long one."""
    rows = np.arange(40)
    counts = rows % 2 + 1
    stage_of = np.concatenate([[0], np.cumsum(counts)])
    stage_end = np.concatenate([np.linspace(0, 1, one + 1)[1:] for one in counts])
    jobs = elastic_jobs_of(
        np.concatenate([rows[:39].astype(float), [1000.0]]),
        10.0 * (rows + 1),
        rows + 1.0,
        model=rows % 3,
        stage_of=stage_of,
        stage_end=stage_end,
        stage_most=np.repeat(rows + 1.0, counts),
        speedup=range(42),
    )
    jobs = jobs._replace(speedup=np.tile(np.arange(42.0), (3, 2, 1)), speed=np.ones((3, 1)))
    return Workload(jobs, 2.0 * jobs.size_s, 8.0)


def test_jobs_are_drawn_whole(workload):
    sample = draw(workload, Sampling(500), (1, 0))
    jobs = sample.jobs
    row = (jobs.size_s / 10.0 - 1).astype(int)
    assert len(set(row.tolist())) > 35
    assert jobs.most.tolist() == (row + 1.0).tolist()
    assert jobs.model.tolist() == (row % 3).tolist()
    assert sample.size_s.tolist() == (2.0 * jobs.size_s).tolist()
    counts = np.diff(jobs.stage_of)
    assert counts.tolist() == (row % 2 + 1).tolist()
    assert jobs.stage_most.tolist() == np.repeat(row + 1.0, counts).tolist()
    assert (jobs.stage_end[jobs.stage_of[1:] - 1] == 1.0).all()
    assert (jobs.stage_end[jobs.stage_of[:-1]] == np.where(counts == 2, 0.5, 1.0)).all()


def test_arrivals_keep_their_mean_rate_or_take_a_load(workload):
    mean_s = 1000.0 / 39
    assert np.diff(draw(workload, Sampling(20_000), (0,)).jobs.submit_s).mean() == pytest.approx(mean_s, rel=0.03)
    asked = draw(workload, Sampling(20_000, load=0.5), (0,))
    load = asked.size_s.mean() / np.diff(asked.jobs.submit_s).mean() / 8.0
    assert load == pytest.approx(0.5, rel=0.05)
    assert workload.load == pytest.approx(2 * 205.0 / mean_s / 8.0)


def test_resampled_gaps_are_those_seen(workload):
    """One gap of 40 is long; a Poisson process would have none such."""
    gaps = np.diff(draw(workload, Sampling(3000, gaps="resampled"), (2,)).jobs.submit_s)
    assert set(gaps.round(6).tolist()) == {1.0, 962.0}
    assert np.diff(draw(workload, Sampling(3000), (2,)).jobs.submit_s).max() < 500.0


def test_a_seed_is_a_sample(workload):
    one, same, other = (draw(workload, Sampling(50), seed) for seed in ((0, 0, 1), (0, 0, 1), (0, 1, 1)))
    assert one.jobs.submit_s.tolist() == same.jobs.submit_s.tolist()
    assert one.jobs.size_s.tolist() == same.jobs.size_s.tolist() != other.jobs.size_s.tolist()


def test_the_fingerprint_sees_every_part(workload):
    other = Workload(workload.jobs._replace(most=workload.jobs.most + 1), workload.size_s, 8.0)
    assert (
        len({workload.fingerprint, other.fingerprint, Workload(workload.jobs, workload.size_s, 9.0).fingerprint}) == 3
    )


def test_the_same_workload_is_no_reason():
    workload = cases.small_workload(count=600)
    verdict = compare(described(workload), workload)
    assert verdict["search_due"] is False
    assert verdict["sizes"]["distance"] < 0.01
    assert verdict["load"]["ratio"] == verdict["rate"]["ratio"] == 1.0


def test_a_fresh_draw_of_it_is_none_either():
    verdicts = [
        compare(described(cases.small_workload(count=600)), cases.small_workload(count=600, seed=seed))
        for seed in range(1, 11)
    ]
    assert sum(one["search_due"] for one in verdicts) <= 1


def test_other_sizes_are_a_reason():
    """Sizes four times as large at a quarter of the rate: the load is the same."""
    workload = cases.small_workload(count=600)
    jobs = workload.jobs._replace(submit_s=4.0 * workload.jobs.submit_s, size_s=4.0 * workload.size_s)
    verdict = compare(described(workload), type(workload)(jobs, 4.0 * workload.size_s, workload.gpus))
    assert verdict["search_due"] is True
    assert verdict["load"]["ratio"] == pytest.approx(1.0)
    assert verdict["rate"]["ratio"] == pytest.approx(0.25)
    assert verdict["sizes"]["p_value"] < 1e-6


def test_twice_the_rate_is_a_reason_unless_few_jobs_tell_it():
    workload = cases.small_workload(count=600)
    twice = type(workload)(workload.jobs._replace(submit_s=workload.jobs.submit_s / 2), workload.size_s, workload.gpus)
    verdict = compare(described(workload), twice)
    assert verdict["rate"]["changed"] is True
    assert verdict["reasons"] == ["rate of arrivals is 2.00 times that of the search"]
    few = cases.small_workload(count=8)
    half = type(few)(few.jobs._replace(submit_s=few.jobs.submit_s / 2), few.size_s, few.gpus)
    assert compare(described(few), half)["search_due"] is False
