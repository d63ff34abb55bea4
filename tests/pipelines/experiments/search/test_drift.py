"""Whether a workload is still the one that a front was searched on."""

import pytest

from jobcast.pipelines.experiments.search.workload_samples import compare, described
from tests.pipelines.experiments.search import search_cases as cases


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
