import math

import pytest

from jobcast.domain.errors import ConfigError
from jobcast.domain.jobs import Pool
from jobcast.pipelines.experiments.forecast_specs import parse_forecasts
from jobcast.pipelines.experiments.simulation import figures, figures_table, simulate, warmup_end
from jobcast.pipelines.experiments.sources import Ask
from jobcast.traces.readers import read_trace
from tests.scenarios import pool_scenario
from tests.shared import refused

ORACLE = parse_forecasts("oracle")


@pytest.fixture
def small(csv):
    trace = read_trace(csv("1,a,0,100,2", "2,a,10,50,2", "3,a,86410,10,1"))
    return pool_scenario(trace, [Pool("a", 2)])


def test_a_simulation_is_timed_and_says_what_answered(small, tmp_path):
    calls = []
    asked = Ask(policy="sia", spec=ORACLE, home=tmp_path)
    run = simulate(small, asked, lambda done, total: calls.append((done, total)))
    assert run.cpu_s >= 0
    assert run.wall_s > 0
    assert (dict(run.models), run.overlap) == ({}, False)
    assert calls[-1] == (3, 3)
    assert run.log.end_s.tolist() == [100.0, 150.0, 86420.0]


def test_figures_are_none_where_nothing_is_counted(small, tmp_path):
    run = simulate(small, Ask(policy="fcfs", spec=ORACLE, home=tmp_path))
    told = figures(run, run, policy="fcfs", warmup_until_s=1e9)
    assert told["jobs"] == 0
    unknown = {"mean_jct_s", "p50_jct_s", "p99_jct_s", "mean_wait_s", "makespan_s", "utilization", "speedup_mean"}
    assert {key for key, value in told.items() if value is None} >= unknown
    assert not any(isinstance(value, float) and not math.isfinite(value) for value in told.values())
    assert "mean_jct_s" not in figures_table(told)


def test_people_read_long_times_in_hours_and_days():
    told = {"mean_jct_s": 22446.0, "mean_wait_s": 30.0, "slowdown_total_min": 4320.0, "slowdown_max_min": 71.2}
    told |= {"utilization": 9e3, "seed": 700}
    assert figures_table(told).splitlines() == [
        "mean_jct_s             22,446 (6.24 h)",
        "mean_wait_s            30",
        "slowdown_total_min     4,320 (3.00 d)",
        "slowdown_max_min       71.2",
        "utilization            9,000",
        "seed                   700",
    ]


def test_a_warm_up_must_leave_a_job(small):
    assert warmup_end(small, 0.0) is None
    assert warmup_end(small, 1.0) == 86400.0
    refused(ConfigError, r"--warmup 2: leaves no job .* the last one is submitted 1 days after", warmup_end, small, 2.0)
