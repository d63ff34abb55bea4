"""Shockwave, Figure 2: a job that doubles its batch size three times."""

import pytest

from jobcast.domain.jobs import Job
from jobcast.domain.training import Progress, Regime, Training
from jobcast.pipelines.experiments.forecast_specs import ORACLE
from papers.shockwave.figure2 import AGNOSTIC, Agnostic, Watched, doubling_job, watch
from papers.shockwave.runs import GREEDY
from papers.shockwave.workloads import TACC, published


def test_the_agnostic_rule_keeps_the_first_batch_size():
    job = Job(0, "a", "all", 0.0, 1, training=Training("LM", 10, 40, "gns", {10: 60.0, 20: 40.0}))
    left = Agnostic().regimes(job, Progress(25.0, (Regime(10, 20.0), Regime(20, 5.0))))
    assert left == (Regime(10, 15.0),)
    with pytest.raises(ValueError, match="no training job"):
        Agnostic().regimes(Job(0, "a", "all", 0.0, 1), Progress(0.0, (Regime(10, 0.0),)))


def test_fairness_is_by_the_contention_of_the_whole_trace():
    assert Watched("p", "f", [0.0], [100.0], 750.0, 100.0).ftf == pytest.approx(2.0)  # 120 jobs / 32 GPUs = 3.75


@pytest.fixture(scope="module")
def scenario(traces):
    return published(traces, 120, 32, TACC)


def test_the_job_is_the_one_of_the_trace_that_doubles_from_32_to_256(scenario):
    job = scenario.workload.jobs[doubling_job(scenario)]
    assert (job.training.model, job.training.batch_size, job.training.mode) == ("ResNet-18", 32, "gns")


def test_estimates_at_submission_and_at_the_end(scenario):
    seq = doubling_job(scenario)
    training, exclusive_s = scenario.workload.jobs[seq].training, scenario.workload.outcomes[seq].duration_s
    exact = watch(scenario, seq, "srpt", ORACLE)
    assert exact.total_s == pytest.approx([exclusive_s] * len(exact.total_s))
    assert exact.exclusive_s == exclusive_s <= exact.jct_s
    for spec in (GREEDY, AGNOSTIC):  # neither expects the batch size to grow
        assert watch(scenario, seq, "srpt", spec).total_s[0] == pytest.approx(training.epochs * training.epoch_s[32])
