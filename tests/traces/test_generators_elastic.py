"""The three workloads of PCS, Table 1: what is set is measured in what is drawn."""

from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import stats

from jobcast.domain.errors import ConfigError, TraceError
from jobcast.domain.jobs import Pool
from jobcast.traces.generators import generate
from jobcast.traces.generators.gavel import GavelElasticConfig
from jobcast.traces.generators.pcs_workloads import SUBLINEAR, AutomlConfig, PhillyElasticConfig, halved
from jobcast.traces.readers import read_trace
from jobcast.traces.stages import stages_of
from tests.shared import refused

UNLIKELY = 1e-3  # a fixed seed either passes or not; this bounds how odd a passing draw may be
KINDS = {"automl": AutomlConfig, "gavel-elastic": GavelElasticConfig, "philly-elastic": PhillyElasticConfig}


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """An elastic trace of 40 jobs, 100 s apart, to draw from."""
    rows = [f"{row},{100.0 * row},{10.0 * (row + 1)},{2 ** (row % 4)},0,model-{row % 3}" for row in range(40)]
    path = tmp_path_factory.mktemp("pcs") / "trace_ab12.csv"
    path.write_text("\n".join(["app_id,submit_time,service,num_jobs,sleep_time,model_name", *rows]) + "\n")
    return path


@pytest.fixture(autouse=True)
def hidden(monkeypatch):
    """The folder of published data, if there is one, is hidden from the generators."""
    monkeypatch.delenv("JOBCAST_DATA", raising=False)


def load_of(trace, pools):
    return trace.gpu_time_s.sum() / (trace.submit_s[-1] - trace.submit_s[0]) / pools[0].quota


def needs(kind, cluster):
    return {"trace": str(cluster)} if kind == "philly-elastic" else {}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kind=st.sampled_from(sorted(KINDS)),
    seed=st.integers(0, 10**6),
    count=st.integers(2, 60),
    gpus=st.integers(8, 128),
    load=st.floats(0.05, 3),
)
def test_the_load_is_met_and_jobs_are_elastic(cluster, kind, seed, count, gpus, load):
    number = "apps" if kind == "automl" else "jobs"
    chosen = {**needs(kind, cluster), number: count, "gpus": gpus, "load": load}
    trace, pools = generate(kind, seed, chosen)
    assert len(trace) == count
    assert trace.jobs["job_id"].n_unique() == count
    assert trace.elastic.all()
    assert trace.jobs["min_gpus"].to_list() == [0] * count
    assert trace.jobs["model"].null_count() == 0
    assert pools == [Pool(trace.pools[0], gpus)]
    assert (np.diff(trace.submit_s) >= 0).all()
    assert load_of(trace, pools) == pytest.approx(load, rel=1e-3)


def test_apps_keep_the_limits_of_the_paper():
    trace, pools = generate("automl", 0, {"apps": 4000})
    assert pools == [Pool("automl", 16)]
    assert load_of(trace, pools) == pytest.approx(0.8, rel=1e-6)
    assert set(trace.gpus) == set(range(1, 21))
    hours = trace.duration_s / 3600
    assert hours.max() <= 2
    assert hours.max() > 1.9
    assert (trace.duration_s / trace.gpus).min() >= 30 - 1e-3  # shortest_min
    weights = 4000 * np.diff(np.log(np.arange(1, 22))) / np.log(21)
    assert stats.chisquare(np.bincount(trace.gpus)[1:], weights).pvalue > UNLIKELY
    one = np.log(hours[trace.gpus == 1] * 120) / np.log(240)  # half a minute to two hours
    assert stats.kstest(one, "uniform").pvalue > UNLIKELY
    assert "stages" not in trace.jobs.columns


def test_halving_changes_nothing_but_stages():
    plain, halving = (generate("automl", 3, {"halving": word})[0] for word in ("false", "TRUE"))
    assert halving.jobs.drop("stages").equals(plain.jobs)
    stages = stages_of(halving)
    assert stages.stage_most[stages.stage_of[:-1]].tolist() == halving.gpus.tolist()
    assert np.diff(stages.stage_of).max() == 3


def test_rungs_of_successive_halving_by_hand():
    # 16 trials for one unit each, 8 for one more, 4 for two more, 2 for four more, 1 for eight more
    assert halved(16, 9) == tuple((share / 48, most) for share, most in ((16, 16), (8, 8), (8, 4), (8, 2), (8, 1)))
    assert halved(16, 3) == ((0.5, 16), (0.25, 8), (0.25, 4))
    assert halved(7, 3) == ((7 / 12, 7), (3 / 12, 3), (2 / 12, 1))
    assert halved(5, 1) == ((1.0, 5),)


@given(st.integers(1, 400), st.integers(1, 12))
def test_each_rung_has_half_the_trials_and_the_shares_are_all_the_work(trials, rungs):
    stages = halved(trials, rungs)
    assert 1 <= len(stages) <= rungs
    assert sum(share for share, _ in stages) == pytest.approx(1)
    mosts = [most for _, most in stages]
    assert mosts[0] == trials
    assert all(later == earlier // 2 for earlier, later in pairwise(mosts))


def test_gavels_run_times_widths_and_rate():
    trace, pools = generate("gavel-elastic", 2, {"jobs": 6000})
    assert pools == [Pool("gavel", 64)]
    seen = [int((trace.gpus == width).sum()) for width in (1, 2, 4, 8)]
    assert stats.chisquare(seen, 6000 * np.array([0.7, 0.1, 0.15, 0.05])).pvalue > UNLIKELY
    logs = np.log10(trace.duration_s / 60)
    assert (logs < 3).mean() == pytest.approx(0.8, abs=0.02)
    assert stats.kstest(logs[logs < 3], stats.uniform(1.5, 1.5).cdf).pvalue > UNLIKELY
    assert stats.kstest(logs[logs >= 3], stats.uniform(3, 1).cdf).pvalue > UNLIKELY
    assert np.diff(trace.submit_s).mean() == pytest.approx(900, rel=0.05)
    mean_h = (0.8 * (1e3 - 10**1.5) / 1.5 + 0.2 * 9e3) / np.log(10) / 60  # mean of 10^x, x uniform
    assert load_of(trace, pools) == pytest.approx(4 * mean_h / 64, rel=0.08)
    assert 4 * mean_h / 64 == pytest.approx(1.05, abs=0.005)


def test_run_times_at_a_width_are_work_by_a_table(written):
    table = written("s.csv", "model,gpus,speedup\na,1,1\na,8,4.5\n")
    alone, wide = (generate("gavel-elastic", 2, {"at_width": word})[0] for word in ("false", "true"))
    np.testing.assert_allclose(wide.duration_s, alone.duration_s * alone.gpus, atol=0.01)
    some = generate("gavel-elastic", 2, {"at_width": "true", "speedups": str(table), "models": "a"})[0]
    np.testing.assert_allclose(some.duration_s, alone.duration_s * (1 + 0.5 * (alone.gpus - 1)), atol=0.01)
    with pytest.raises(ConfigError, match="no row of model 'b'"):
        generate("gavel-elastic", 2, {"at_width": "true", "speedups": str(table), "models": "a, b"})


def test_jobs_of_a_virtual_cluster_are_drawn_as_a_whole(cluster):
    trace, pools = generate("philly-elastic", 4, {"trace": str(cluster), "jobs": 3000})
    assert pools == [Pool("ab12", 64)]
    known = read_trace(cluster).jobs.select("duration", "gpus", "model")
    seen = trace.jobs.group_by("duration", "gpus", "model").len()
    assert seen.join(known, on=["duration", "gpus", "model"], how="anti").is_empty()
    assert len(seen) == 40
    assert stats.chisquare(seen["len"]).pvalue > UNLIKELY
    gaps_s = np.diff(trace.submit_s)
    assert gaps_s.mean() == pytest.approx(100, rel=0.05)  # the trace's own rate
    assert stats.kstest(gaps_s / gaps_s.mean(), "expon").pvalue > UNLIKELY
    assert trace.notes == (f"jobs drawn from {cluster}", "work of rigid jobs by speedups: linear")


def test_gaps_may_be_the_traces_own(cluster):
    trace = generate("philly-elastic", 4, {"trace": str(cluster), "gaps": "resampled"})[0]
    assert set(np.diff(trace.submit_s)) == {100.0}


def test_run_times_of_rigid_jobs_become_work_on_one_gpu(written):
    rigid = written(
        "jobs.csv", "job_id,pool,submit_time,duration,gpus,model\n1,x,0,100,4,a\n2,x,60,10,1,\n3,y,90,7,1,a\n"
    )
    table = written("s.csv", "model,gpus,speedup\na,1,1\na,4,3\nb,1,1\nc,1,1\n")
    chosen = {"trace": str(rigid), "speedups": str(table), "pool": "x", "models": "b,c", "jobs": 200}
    trace, pools = generate("philly-elastic", 0, chosen)
    assert pools == [Pool("x", 64)]
    rows = set(trace.jobs.select("duration", "gpus").rows())
    assert rows == {(300.0, 4), (10.0, 1)}
    assert set(trace.jobs.filter(pl.col("gpus") == 4)["model"]) == {"a"}
    assert set(trace.jobs.filter(pl.col("gpus") == 1)["model"]) < {"b", "c"}  # drawn once for a job of the trace


def test_a_trace_of_one_job_does_not_serve(written):
    one = written("one.csv", "job_id,pool,submit_time,duration,gpus\n1,x,0,100,4\n")
    with pytest.raises(ConfigError, match="tells no gaps between arrivals; give a longer trace"):
        generate("philly-elastic", 0, {"trace": str(one)})


def test_the_published_cluster(published):
    source = published / "pcs" / "trace_0e4a51.csv"
    real = read_trace(source)
    assert set(real.jobs["model"]) == set(SUBLINEAR)
    trace, pools = generate("philly-elastic", 0, {"trace": str(source), "jobs": 20_000})
    span_s = real.submit_s[-1] - real.submit_s[0]
    assert load_of(trace, pools) == pytest.approx(real.gpu_time_s.sum() / span_s / 64, rel=0.1)


@pytest.fixture
def curve(written):
    """A file of a distribution function: half of the numbers lie evenly between 1 and 2, the rest between 2 and 6."""
    return str(written("curve.csv", "#gpus,cdf\n1,0.0\n2,0.5\n6,1.0"))


def test_numbers_are_drawn_from_a_distribution_on_file(curve):
    apps, _ = generate("automl", 1, {"apps": 4000, "services": curve, "trial_counts": curve})
    assert np.mean(apps.duration_s < 2) == pytest.approx(0.5, abs=0.03)
    assert stats.kstest(apps.duration_s[apps.duration_s >= 2], stats.uniform(2, 4).cdf).pvalue > UNLIKELY
    assert np.bincount(apps.gpus)[1:] / 4000 == pytest.approx([0.5, 0.125, 0.125, 0.125, 0.125], abs=0.03)
    wide, _ = generate("automl", 1, {"apps": 4000, "services": curve, "trial_counts": curve, "trial_gpus": curve})
    assert wide.gpus.mean() / apps.gpus.mean() == pytest.approx(2.25, rel=0.05)  # GPUs of a trial
    jobs, _ = generate("gavel-elastic", 1, {"jobs": 4000, "run_times": curve, "max_gpus": curve})
    assert jobs.duration_s.min() >= 60
    assert np.mean(jobs.duration_s < 120) == pytest.approx(0.5, abs=0.03)
    assert set(jobs.gpus) == {1, 2, 3, 4, 5}


@pytest.mark.parametrize("rows", ["1,0\n2,.9", "2,0\n1,1", "1,.5\n2,.2\n3,1", "0,0\n1,1", "1,0,a\n2,1,b", ""])
def test_what_is_no_distribution_is_refused(written, rows):
    path = written("curve.csv", f"value,share{',more' if 'a' in rows else ''}\n{rows}")
    refused(TraceError, r"curve.csv", generate, "automl", 1, {"services": str(path)})
