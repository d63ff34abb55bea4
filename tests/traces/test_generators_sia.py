"""The sia generator: every figure of SIA's appendices A.1 and C is measured in the traces."""

import numpy as np
import polars as pl
import pytest
from scipy import stats

from jobcast.domain.jobs import Pool
from jobcast.traces.generators import generate
from jobcast.traces.generators.sia import SHORTEST_MIN, VARIANTS, SiaConfig, burst_widths

DAY_S = 86400.0
UNLIKELY = 1e-3  # a fixed seed either passes or not; this bounds how odd a passing draw may be


def bursts(trace):
    """Per burst: queue, instant and total width."""
    return (
        trace.jobs.group_by("pool", "submit_time", maintain_order=True)
        .agg(pl.col("gpus").sum().alias("total"), pl.col("gpus").last().alias("last"), pl.len().alias("jobs"))
        .sort("pool", "submit_time")
    )


def queue_loads(trace, pools, days):
    work = dict(trace.jobs.group_by("pool").agg((pl.col("gpus") * pl.col("duration")).sum()).iter_rows())
    return np.array([work[pool.name] / (pool.quota * days * DAY_S) for pool in pools])


@pytest.fixture(scope="module")
def long_base():
    return generate("sia", 1, {"days": 120})


def test_base_has_four_queues_of_eight_gpus_over_three_days():
    trace, pools = generate("sia", 0, {})
    assert pools == [Pool(f"q{i}", 8) for i in range(4)]
    assert trace.pools == [pool.name for pool in pools]
    start_s = SiaConfig().start.timestamp()
    assert trace.submit_s.min() >= start_s
    assert trace.submit_s.max() < start_s + 3 * DAY_S
    assert set(trace.gpus) <= {1, 2, 4, 8}


def test_durations_are_bimodal(long_base):
    minutes = long_base[0].duration_s / 60
    short = minutes[minutes < 100]
    assert minutes.min() >= SHORTEST_MIN - 1e-4
    assert minutes.max() <= 1000
    assert abs(len(short) / len(minutes) - 0.8) < 3 * np.sqrt(0.8 * 0.2 / len(minutes))
    assert stats.kstest(short, stats.uniform(SHORTEST_MIN, 100 - SHORTEST_MIN).cdf).pvalue > UNLIKELY
    assert stats.kstest(minutes[minutes >= 100], stats.uniform(100, 900).cdf).pvalue > UNLIKELY


def test_widths_keep_their_shares_although_bursts_overshoot(long_base):
    gpus = long_base[0].gpus
    seen = [np.sum(gpus == width) for width in (1, 2, 4, 8)]
    assert stats.chisquare(seen, len(gpus) * np.array([0.7, 0.1, 0.15, 0.05])).pvalue > UNLIKELY


def test_a_burst_stops_at_the_job_that_reaches_its_target():
    config, rng = SiaConfig(), np.random.default_rng(2)
    for target in range(1, 9):
        for _ in range(50):
            widths = burst_widths(target, config, rng)
            assert widths.sum() >= target > widths[:-1].sum()


def test_targets_are_uniform_up_to_the_queue_size():
    trace, _ = generate("sia", 3, {"days": 60, "widths": "1", "width_shares": "1"})
    totals = np.bincount(bursts(trace)["total"].to_numpy(), minlength=9)[1:]
    assert len(totals) == 8
    assert stats.chisquare(totals).pvalue > UNLIKELY


def test_bursts_arrive_as_a_poisson_process(long_base):
    start_s = SiaConfig().start.timestamp()
    for _, queue in bursts(long_base[0]).group_by("pool"):
        instants_s = queue["submit_time"].dt.timestamp("us").to_numpy() / 1e6 - start_s
        assert stats.kstest(instants_s / (120 * DAY_S), "uniform").pvalue > UNLIKELY
        gaps_s = np.diff(instants_s)
        assert stats.kstest(gaps_s / gaps_s.mean(), "expon").pvalue > UNLIKELY


@pytest.mark.slow
def test_loads_are_uniform_between_their_bounds():
    trace, pools = generate("sia", 4, {"days": 30, "queues": 60})
    found = queue_loads(trace, pools, 30)
    widest_burst = 15 * 1000 * 60 / (8 * 30 * DAY_S)  # GPU-time of one burst, as load: how far a queue may overshoot
    assert found.min() >= 0.6
    assert found.max() <= 0.95 + widest_burst
    assert stats.kstest(found, stats.uniform(0.6, 0.35).cdf).pvalue > UNLIKELY


@pytest.mark.slow
@pytest.mark.parametrize(("variant", "factor"), [("base", 1.0), ("higher_load", 1.05), ("lower_load", 0.75)])
def test_load_variants_scale_each_queue(variant, factor):
    settings = {"days": 200, "queues": 2, "load_low": 0.8, "load_high": 0.8, "variant": variant}
    found = queue_loads(*generate("sia", 5, settings), 200)
    assert found == pytest.approx(np.full(2, 0.8 * factor), rel=0.005)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variant", "long_share", "longest_min"),
    [("base", 0.2, 1000), ("more_skewed", 0.1, 2000), ("less_skewed", None, 300)],
)
def test_duration_variants_keep_the_mean(variant, long_share, longest_min):
    minutes = generate("sia", 6, {"days": 400, "variant": variant})[0].duration_s / 60
    assert 0.98 * longest_min < minutes.max() <= longest_min
    assert minutes.mean() == pytest.approx(151.5, rel=0.02)  # SIA, appendix C: "the same job length"
    if long_share is None:
        assert stats.kstest(minutes, stats.uniform(SHORTEST_MIN, 300 - SHORTEST_MIN).cdf).pvalue > UNLIKELY
    else:
        assert np.mean(minutes > 100) == pytest.approx(long_share, abs=0.01)


def test_every_variant_of_appendix_c_is_there():
    assert len(VARIANTS) == 9
    for variant in VARIANTS:
        assert len(generate("sia", 0, {"variant": variant})[0]) > 0
