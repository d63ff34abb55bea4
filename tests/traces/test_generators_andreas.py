"""ANDREAS's campaign: what section V.B says, measured in what is drawn; and Table V as it is printed."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from jobcast.domain.errors import ConfigError
from jobcast.traces.generators import generate, generate_nodes, generate_profiles
from jobcast.traces.generators.andreas import APPLICATIONS, TABLE_V, AndreasConfig, arrivals_s, epoch_s
from tests.shared import refused

UNLIKELY = 1e-3  # a fixed seed either passes or not; this bounds how odd a passing draw may be
MICROSECOND_S = 1e-6


@pytest.fixture(scope="module")
def campaign():
    """The largest campaign of scenario 1: trace and profiles."""
    asked = {"nodes": 100}
    return generate("andreas", 1, asked)[0], generate_profiles("andreas", asked)


def due_shares(trace):
    """(n_jobs,) due dates after submission, as multiples of the fastest run time."""
    due_s = trace.jobs["deadline"].dt.timestamp("us").to_numpy() / 1e6 - trace.submit_s
    return due_s / trace.duration_s


def test_ten_jobs_a_node_unless_it_is_said_otherwise(campaign):
    assert len(campaign[0]) == 1000
    assert len(generate("andreas", 0, {"nodes": 7, "jobs": 11})[0]) == 11
    assert [pool.quota for pool in generate("andreas", 0, {"nodes": 11})[1]] == [6 * 2 + 5]


def test_jobs_are_drawn_evenly(campaign):
    trace = campaign[0].jobs
    for count in trace.group_by("model").len()["len"].to_list():
        assert stats.binomtest(count, 1000, 1 / len(APPLICATIONS)).pvalue > UNLIKELY
    for weight in range(1, 6):
        assert stats.binomtest(int((trace["weight"] == weight).sum()), 1000, 1 / 5).pvalue > UNLIKELY
    assert (trace["epochs"].min(), trace["epochs"].max()) == (20, 160)
    for model, batch_size in trace.select("model", "batch_size").unique().rows():
        assert batch_size in APPLICATIONS[model].batch_sizes


def test_due_dates_are_1_2_to_3_times_the_fastest_run_time(campaign):
    shares = due_shares(campaign[0])
    assert stats.kstest(shares, stats.uniform(1.2, 1.8).cdf).pvalue > UNLIKELY


def test_gpus_and_duration_are_those_of_the_fastest_configuration(campaign):
    trace, profiles = campaign
    quickest = profiles.sort("epoch_s", "gpus").unique(("model", "batch_size"), keep="first", maintain_order=True)
    told = trace.jobs.join(quickest, on=("model", "batch_size"), how="left", maintain_order="left")
    assert told["gpus"].equals(told["gpus_right"], check_names=False)
    np.testing.assert_allclose(told["duration"], told["epochs"] * told["epoch_s"], atol=6e-4)


@given(st.floats(0.2, 3.0), st.integers(1, 2), st.integers(2, 30))
@settings(max_examples=20)
def test_the_offered_load_is_what_was_asked_for(load, scenario, nodes):
    """Work of all jobs on one GPU each, over what all GPUs do in the stretches."""
    asked = {"nodes": nodes, "scenario": scenario, "load": load}
    trace = generate("andreas", 5, asked)[0]
    alone = generate_profiles("andreas", asked).filter(pl.col("gpus") == 1)
    gpus = {}
    for group in generate_nodes("andreas", asked).groups:
        gpus[group.gpu_type] = gpus.get(group.gpu_type, 0) + group.count * group.gpus
    rate = (
        alone.with_columns(held=pl.col("gpu_type").replace_strict(gpus))
        .group_by("model", "batch_size")
        .agg(epochs_a_second=(pl.col("held") / pl.col("epoch_s")).sum())
    )
    jobs = trace.jobs.join(rate, on=("model", "batch_size"), how="left")
    work_s = float((jobs["epochs"] / jobs["epochs_a_second"]).sum())
    since_s = trace.submit_s[-1] - AndreasConfig().start.timestamp()
    assert 0.4 * work_s / load < since_s <= work_s / load + MICROSECOND_S


def test_rates_are_high_and_low_by_turns():
    config = AndreasConfig(ratio=3.0, stretches=4)
    at_s = arrivals_s(40_000, 400.0, config, np.random.default_rng(7))
    in_stretch = np.histogram(at_s, bins=[0, 100, 200, 300, 400])[0]
    for count, share in zip(in_stretch, (3 / 8, 1 / 8, 3 / 8, 1 / 8), strict=True):
        assert stats.binomtest(int(count), 40_000, share).pvalue > UNLIKELY
    high = at_s[at_s < 100.0]
    assert stats.kstest(high, stats.uniform(0, 100).cdf).pvalue > UNLIKELY
    assert (np.diff(at_s) >= 0).all()


def test_speedups_are_below_the_number_of_gpus_and_larger_batches_are_faster():
    """ANDREAS, section IV.B: sub-linear; and a T4 is slower than a V100."""
    for one in APPLICATIONS.values():
        for batch_size in one.batch_sizes:
            times = [epoch_s(one, batch_size, "v100", gpus) for gpus in (1, 2, 4)]
            assert times[0] > times[1] > times[2] > times[0] / 4
            assert times[1] > times[0] / 2
            assert 1.0 < epoch_s(one, batch_size, "t4", 1) / times[0] < one.t4_slower
        by_size = [epoch_s(one, batch_size, "v100", 1) for batch_size in one.batch_sizes]
        assert by_size == sorted(by_size, reverse=True)


def test_an_epoch_by_hand():
    """EfficientNet, 4,096: 13 steps; 5.5 + 13 (0.08 + 0.025) + 50,000 x 0.66 ms / 2 = 23.365 s on two V100."""
    assert epoch_s(APPLICATIONS["EfficientNet"], 4096, "v100", 2) == pytest.approx(23.365)
    assert epoch_s(APPLICATIONS["EfficientNet"], 4096, "T4", 1) == pytest.approx(5.5 + 1.04 + 33 * 3.3)


def test_more_v100_make_an_epoch_dearer():
    """ANDREAS, section IV.B: costs grow linearly with GPUs, speedups do not."""
    power_w = generate_nodes("andreas", {"scenario": 2}).groups[0].power_w
    for one in APPLICATIONS.values():
        for batch_size in one.batch_sizes:
            costs = [power_w[gpus] * epoch_s(one, batch_size, "v100", gpus) for gpus in (1, 2, 3, 4)]
            assert costs == sorted(costs)


def test_a_cluster_file_stands_in_for_nodes_and_scenario(written):
    nodes = "nodes: [{count: 3, gpus: 4, gpu_type: A10, power_w: [0, 1, 2, 3, 4]}, {gpus: 1, gpu_type: p100}]"
    asked = {"cluster": str(written("cluster.yaml", nodes))}
    trace, pools = generate("andreas", 0, asked)
    assert (len(trace), pools[0].quota) == (40, 13)
    assert set(generate_profiles("andreas", asked)["gpu_type"]) == {"A10", "p100"}
    assert generate_nodes("andreas", asked).groups[0].power_w == (0.0, 1.0, 2.0, 3.0, 4.0)


def test_a_type_of_which_nothing_is_assumed_is_refused(written):
    path = written("cluster.yaml", "nodes: [{gpus: 1, gpu_type: x9, power_w: [0, 5]}]")
    refused(ConfigError, "nothing is assumed of GPUs 'x9'", generate, "andreas", 0, {"cluster": str(path)})


def test_table_v_as_it_is_printed():
    """Submissions every 1,200 s; due dates count from them, for J1's is printed as less than its submission."""
    trace = generate("armida", 3)[0]
    jobs = trace.jobs
    assert jobs["job_id"].to_list() == ["J6", "J9", "J10", "J7", "J8", "J1", "J2", "J3"]
    np.testing.assert_array_equal(np.diff(trace.submit_s), 1200.0)
    due_s = (jobs["deadline"] - jobs["submit_time"]).dt.total_seconds().to_list()
    assert due_s == [3600, 2600, 7600, 17600, 7600, 5600, 12600, 11600]
    assert jobs["weight"].to_list() == [4, 2, 3, 3, 3, 5, 2, 1]
    assert jobs["epochs"].to_list() == [80, 160, 80, 160, 160, 60, 60, 60]
    assert jobs["batch_size"].to_list() == [4096, 8192, 8192, 8192, 8192, 8192, 8192, 4096]


def test_each_job_of_table_v_can_meet_its_due_date_and_takes_a_fair_share_of_the_time_until_then():
    nodes = generate_nodes("armida")
    assert [name for group in nodes.groups for name in group.names] == ["armida-05", "armida-06", "armida-07"]
    assert [(group.gpu_type, group.gpus) for group in nodes.groups] == [("v100", 1), ("v100", 2), ("t4", 1)]
    for job, run_s in zip(TABLE_V, generate("armida")[0].duration_s, strict=True):
        assert 0.05 < run_s / job.due_s < 0.7
