"""The engine against the published simulator's own results: 301 jobs of a Philly virtual cluster, 64 GPUs."""

import json

import numpy as np
import polars as pl
import pytest

from jobcast.pipelines.experiments.completion_meters import AtSubmission
from jobcast.schedulers.elastic.config import parse_config
from jobcast.schedulers.registry import make_policy
from jobcast.simulator.elastic.run import replay_elastic
from tests.simulator.elastic.elastic_cases import Case, cluster_of, jobs_of

GPUS = 64
JOBS = 301
NAMES = ("FIFO", "SRSF", "PCS_bal")


@pytest.fixture(scope="module")
def folder(published):
    return published / "pcs"


def first_jobs(folder, count):
    """The first jobs of the trace, sizes in seconds on one GPU, speedups as measured."""
    rows, table = pl.read_csv(folder / "trace_0e4a51.csv").head(count), pl.read_csv(folder / "speedups.csv")
    models = rows["model_name"].unique(maintain_order=True).to_list()
    tables = np.zeros((len(models), 2, GPUS + 1))
    for number, model in enumerate(models):
        known = table.filter(pl.col("model") == model).sort("gpus")
        tables[number] = np.interp(
            np.arange(GPUS + 1), [0, *known["gpus"].to_list()], [0.0, *known["speedup"].to_list()]
        )
    columns = (rows["sleep_time"].cum_sum(), rows["service"], rows["num_jobs"], rows["model_name"])
    found = [(at_s, size_s, most, 0, models.index(model)) for at_s, size_s, most, model in zip(*columns, strict=True)]
    return jobs_of(found, tables=tables)


def policy(name, folder):
    if name in ("FIFO", "SRSF"):
        return make_policy({"FIFO": "elastic_fifo", "SRSF": "srsf"}[name])
    told = json.loads((folder / "configs_0e4a51.json").read_text())["PCS_config_0e4a51_bal"]
    return parse_config(told, "bal").policy()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_copies_of_the_engine_forecast_what_is_forecast_there(name, folder):
    jobs = first_jobs(folder, JOBS)
    rule, case, watch = policy(name, folder), Case(jobs, cluster_of(GPUS)), AtSubmission()
    log = case.simulation(rule, meters=[watch]).run().log()
    twin = case.log(rule, predict=True)
    assert not watch.failed
    assert log.columns["predicted_end_s"] == pytest.approx(twin.columns["predicted_end_s"], abs=1e-6, rel=0)
    measured = pl.read_csv(folder / f"measured_0e4a51_{name}.csv")["predicted_jct_s"].to_numpy()
    assert log.columns["predicted_end_s"] - log.submit_s == pytest.approx(measured, abs=1e-6, rel=0)


@pytest.fixture(scope="module", params=NAMES)
def played(request, folder):
    """Log with forecasts, the published figures."""
    jobs = first_jobs(folder, JOBS)
    log = Case(jobs, cluster_of(GPUS)).log(policy(request.param, folder), predict=True)
    return log, pl.read_csv(folder / f"measured_0e4a51_{request.param}.csv")


def test_every_job_ends_when_it_does_there(played):
    log, measured = played
    assert log.end_s - log.submit_s == pytest.approx(measured["completion_time_s"].to_numpy(), abs=1e-3, rel=0)


def test_every_job_is_forecast_to_end_when_it_is_there(played):
    log, measured = played
    predicted_s = log.columns["predicted_end_s"] - log.submit_s
    assert predicted_s == pytest.approx(measured["predicted_jct_s"].to_numpy(), abs=1e-3, rel=0)


def test_fair_finish_times_are_those_found_there(played):
    log, measured = played
    fair_s = log.columns["work_s"] / np.minimum(GPUS / log.columns["contention_events"], log.gpus)
    assert fair_s == pytest.approx(measured["fair_finish_time_s"].to_numpy(), abs=1e-3, rel=0)


@pytest.mark.parametrize(("pending_lease", "error_percent"), [(True, 0.03), (False, 3.9)])
def test_themis_is_forecast_as_well_as_there(folder, pending_lease, error_percent):
    """100 jobs: with the lease that is running kept in the forecast, and without it."""
    jobs = first_jobs(folder, 100)
    run = Case(jobs, cluster_of(GPUS)).run(make_policy("elastic_themis"), pending_lease=pending_lease)
    log = replay_elastic(run, predict=True)
    predicted_s = log.columns["predicted_end_s"] - log.submit_s
    error = 100.0 * np.abs(log.end_s - log.columns["predicted_end_s"]) / predicted_s
    assert error.mean() == pytest.approx(error_percent, rel=0.02)
