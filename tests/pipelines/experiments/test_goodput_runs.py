"""Jobs that scale, from tables to figures; expectations by hand from the tables here."""

from dataclasses import replace

import numpy as np
import pytest

from jobcast.domain.errors import ConfigError, TraceError
from jobcast.domain.hardware import Cluster, NodeGroup, flat_cluster, numbered
from jobcast.domain.jobs import Outcome, Pool
from jobcast.domain.training import Phase, Regime
from jobcast.models.goodput import Limits, Throughput
from jobcast.pipelines.experiments.forecast_specs import ORACLE
from jobcast.pipelines.experiments.goodput_runs import metric_change_pct, scaling_figures
from jobcast.pipelines.experiments.rigid_jobs import WholeFacts, rigid_jobs
from jobcast.pipelines.experiments.scaling_jobs import Application, read_scaling
from jobcast.pipelines.experiments.scenarios import cut_scenario
from jobcast.pipelines.experiments.simulation import simulate
from jobcast.pipelines.experiments.sources import Ask
from jobcast.pipelines.experiments.training_jobs import read_tables, training_workload
from jobcast.schedulers.policies import split_settings
from jobcast.schedulers.registry import find_policy
from jobcast.simulator.laws.goodput import ScalableWork, Stretch
from jobcast.simulator.log import flat_spans
from jobcast.simulator.metrics import figures
from jobcast.simulator.workload import Workload
from jobcast.traces.goodput_tables import NoiseCurve
from jobcast.traces.table import Trace
from tests.scenarios import frame_of, log_of, pool_scenario
from tests.shared import refused

pytestmark = pytest.mark.usefixtures("untrained")
STEPS = "app,num_nodes,num_replicas,local_bsz,step_time,sync_time\n"
CURVES = "app,batch_size,epoch,progress,iteration,metric,grad_sqr,grad_var\n"
PHASES = (Phase(1000.0, (10.0, 20.0), (10, 20)),)
APP = Application(
    "a", Throughput(1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0), Limits(10, 40, 1, 40), ScalableWork(0.0, 1, PHASES)
)
"""A step takes a second whatever it holds: a batch size is the samples a second."""


def curve(*metric):
    count = len(metric)
    return NoiseCurve(
        *np.array([range(1, count + 1), np.linspace(100 / count, 100, count), metric, [1] * count, [1] * count])
    )


@pytest.fixture
def tables(tmp_path):
    """`net` scales perfectly up to 8 GPUs of a node or two, and has noise enough for its largest batch."""
    steps = [f"net,{-(-gpus // 4)},{gpus},{size},{0.01 * size},0.001" for gpus in (1, 2, 4, 8) for size in (8, 16, 32)]
    curves = [
        f"net,{size},{epoch},{100 * epoch},1,{0.5 + 0.1 * epoch - size / 1000},1,1000"
        for size in (16, 64)
        for epoch in (1, 2, 3)
    ]
    (tmp_path / "steps.csv").write_text(STEPS + "\n".join(steps) + "\n")
    (tmp_path / "curves.csv").write_text(CURVES + "\n".join(curves) + "\n")
    return {"step_times": str(tmp_path / "steps.csv"), "training_curves": str(tmp_path / "curves.csv")}


def trace_of(**columns):
    plain = {"job_id": ["0", "1", "2"], "pool": "p", "duration": 60.0, "gpus": [1, 2, 1], "model": "net"}
    return Trace.from_frame(frame_of([0, 5, 9], **plain | columns), name="t")


def scenario_of(trace, settings, gpus=8):
    return rigid_jobs(cut_scenario(trace, flat_cluster(gpus)), scaling=read_scaling(settings))


def asked(policy, home, **settings):
    return Ask(policy=policy, spec=ORACLE, home=home, settings=settings)


def test_jobs_run_alone_as_long_as_their_samples_take(tables):
    # 300 steps of 16 samples at 100 samples a second a GPU
    scenario = scenario_of(trace_of(batch_size=[16, 16, 64], epochs=[3, 3, 1]), tables)
    long, wide, short = (outcome.duration_s for outcome in scenario.workload.outcomes)
    assert long == pytest.approx(48.0, rel=0.02)
    assert wide == pytest.approx(long / 2, rel=0.02)
    assert short == pytest.approx(long / 3, rel=0.02)
    assert [app.limits.initial for app in scenario.facts.scaling.applications] == [16, 16, 64]
    assert "alone on the GPUs asked for" in scenario.notes[-1]


def test_jobs_scale_to_the_cluster_or_to_what_they_ask_for(tables):
    reach = [len(work.phases[0].goodput) for work in scenario_of(trace_of(), tables, 4).facts.scaling.works]
    assert reach == [4, 4, 4]
    kept = scenario_of(trace_of(), tables | {"scale_to": "asked"}, 4)
    assert [len(work.phases[0].goodput) for work in kept.facts.scaling.works] == [1, 2, 1]


def test_any_policy_runs_the_same_jobs(tables, tmp_path):
    scenario = scenario_of(trace_of(), tables)
    rigid = simulate(scenario, asked("fcfs", tmp_path))
    assert rigid.log.end_s == pytest.approx(rigid.log.submit_s + rigid.log.duration_s)
    assert rigid.log.duration_s.tolist() == [outcome.duration_s for outcome in scenario.workload.outcomes]


def test_figures_by_hand():
    # 50 s at 10 and 25 s at 20 samples a second; the second half of the work took two GPUs
    ran = (Stretch(0.0, 50.0, 1, 10, 500.0), Stretch(60.0, 85.0, 2, 20, 400.0))
    two = (Pool("all", 2),)
    spans = flat_spans(np.array([0, 0]), np.array([0.0, 50.0]), np.array([50.0, 85.0]), np.array([1, 2]))
    log = log_of([0.0], [0.0], [85.0], pools=two, duration_s=np.array([100.0]), spans=spans, policy="pollux")
    curves = {"a": {10: curve(0.5, 0.8), 40: curve(0.5, 0.7)}}
    found = scaling_figures([APP], curves, log, [ran])
    assert found["gpu_time_asked_to_held"] == pytest.approx(100 / 120)
    assert found["batch_growth_mean"] == pytest.approx((50 * 1 + 25 * 2) / 75)
    assert found["batch_growth_max"] == 2.0
    assert found["efficiency_mean"] == pytest.approx(900 / 1000)
    # 500 of 900 end at 0.8, 400 halfway between 0.8 and 0.7
    assert found["metric_change_mean_pct"] == pytest.approx(-100 * 0.05 * 4 / 9 / 0.8)
    assert figures(log)["utilization"] == pytest.approx(120 / 170)


def test_where_less_is_better_a_rise_is_a_loss():
    ran = [Stretch(0.0, 1.0, 1, 40, 10.0)]
    assert metric_change_pct({10: curve(90.0, 20.0), 40: curve(90.0, 22.0)}, APP, ran) == pytest.approx(-10.0)
    assert metric_change_pct({10: curve(20.0, 90.0), 40: curve(20.0, 99.0)}, APP, ran) == pytest.approx(10.0)
    assert np.isnan(metric_change_pct({10: curve(1.0, 0.0), 40: curve(1.0, 0.5)}, APP, ran))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"model": ["net", "gpt", "net"]}, "job 1: model gpt is not in .*steps.csv, which has net; correct"),
        ({"model": [None, "net", "net"]}, "job 0: names no model; correct"),
        ({"batch_size": [16, 17, 16]}, "job 1: batch size 17 of net is not in .*curves.csv, which has 16, 64;"),
        ({"epochs": [3, 3, 4]}, "job 2: 4 epochs of net, 3 were measured in .*curves.csv;"),
        ({"gpus": [1, 16, 1]}, "job 1: asks for 16 GPUs, net can use 8 at its largest batch size;"),
    ],
)
def test_jobs_that_were_not_measured_are_named(tables, columns, message):
    refused(TraceError, message, scenario_of, trace_of(**columns), tables, 16)


def test_what_is_missing_is_named(tables, tmp_path):
    scenario = scenario_of(trace_of(), tables)
    with pytest.raises(ConfigError, match="how jobs scale is not known; add --set step_times=FILE"):
        simulate(replace(scenario, facts=WholeFacts()), asked("pollux", tmp_path))
    uneven = Cluster(tuple(NodeGroup("", gpus, (), numbered(1)) for gpus in (4, 8)))
    with pytest.raises(ConfigError, match="need nodes of one size"):
        rigid_jobs(cut_scenario(trace_of(), uneven), scaling=scenario.facts.scaling.tables)
    trace = trace_of(pool=["p", "q", "p"])
    pools = pool_scenario(trace, [Pool("p", 4), Pool("q", 4)], scaling=scenario.facts.scaling.tables)
    with pytest.raises(ConfigError, match="shares one cluster out, got 2 pools; pass --gpus N"):
        simulate(pools, asked("pollux", tmp_path))
    nameless = replace(trace_of(), jobs=trace_of().jobs.drop("model"))
    refused(TraceError, "need the column model", scenario_of, nameless, tables)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"training_curves": None}, "setting step_times: tells nothing without training_curves"),
        ({"step_times": None, "training_curves": None, "scale_to": "asked"}, "setting scale_to: tells nothing without"),
        ({"throughputs": "t.csv"}, "settings step_times and throughputs exclude each other"),
        ({"scale_to": "sky"}, "setting scale_to must be cluster or asked, got sky"),
    ],
)
def test_settings_that_do_not_go_together(tables, given, message):
    settings = {name: value for name, value in (tables | given).items() if value is not None}
    refused(ConfigError, message, read_scaling, settings)


def test_the_command_line(shell, csv, tables):
    header = "job_id,pool,submit_time,duration,gpus,model"
    trace = csv("0,p,0,60,1,net", "1,p,5,60,2,net", "2,p,9,60,1,net", header=header)
    pairs = [part for name, value in tables.items() for part in ("--set", f"{name}={value}")]
    words = ("simulate", "--trace", trace, "--gpus", "8", *pairs, "--policy")
    told = shell.json(*words, "pollux")
    assert (told["policy"], told["baseline"], told["forecasts"]) == ("pollux", None, "oracle")
    assert {"worst_ftf", "rounds", "mean_jct_s", "batch_growth_mean", "metric_change_mean_pct"} <= set(told)
    assert shell.json(*words, "pollux", "--baseline", "srpt", "--forecasts", "oracle")["speedup_mean"] > 0
    assert shell.json(*words, "las", "--baseline", "pollux")["speedup_mean"] > 0


RATES = "gpu_type,model,batch_size,gpus,steps_per_second\nv100,Toy,10,1,2\nv100,Toy,20,1,2\nk80,Toy,10,1,1\n"
POOLS = [Pool("p", 4)]


@pytest.fixture
def settings(tmp_path):
    """Toy has 100 samples: an epoch is 10 steps of 10 (5 s) or 5 steps of 20 (2.5 s)."""
    tables = {
        "throughputs": RATES,
        "datasets": "model,samples\nToy,100\n",
        "regimes": "job_id,epoch,batch_size\n0,0,10\n0,3,20\n2,0,10\n",
    }
    for name, text in tables.items():
        (tmp_path / f"{name}.csv").write_text(text)
    return {name: str(tmp_path / f"{name}.csv") for name in tables}


@pytest.fixture
def trace():
    """Job 0 adapts, 1 names no model, 2 stays as it is."""
    told = {"model": ["Toy", None, "Toy"], "batch_size": [10, None, 10], "steps": [100, None, 20]}
    told |= {"adaptation": ["gns", None, "static"], "weight": [2.0, None, 1.0]}
    names = ["00", "01", "02"]
    return Trace.from_frame(frame_of([0, 1, 2], job_id=names, pool="p", duration=[50.0, 7.0, 9.0], **told), name="t")


def test_training_jobs_run_as_long_as_their_true_regimes(trace, settings):
    jobs, durations = trace.to_jobs()
    plain = Workload(jobs, [Outcome(float(duration_s)) for duration_s in durations], POOLS)
    made, trainings = training_workload(plain, trace, read_tables(settings))
    assert made.outcomes == (
        Outcome(3 * 5.0 + 7 * 2.5, (Regime(10, 3.0), Regime(20, 7.0))),
        Outcome(7.0),
        Outcome(10.0, (Regime(10, 2.0),)),
    )
    assert [job.training for job in made.jobs] == list(trainings.trainings)
    assert [job.weight for job in made.jobs] == [2.0, 1.0, 1.0]
    assert made.jobs[1] == jobs[1]
    assert made.jobs[0].training.epoch_s == {10: 5.0, 20: 2.5}


def test_a_scene_tells_what_was_left_as_it_stood(trace, settings):
    scenario = pool_scenario(trace, POOLS, tables=read_tables(settings))
    assert scenario.facts.training.trainings.steps == (100, None, 20)
    first = pool_scenario(trace, POOLS, limit=1, tables=read_tables(settings))
    assert any(note.startswith("1 courses in ") for note in first.notes)
    assert first.workload.outcomes[0].duration_s == 32.5


def test_tables_need_throughputs(settings):
    assert read_tables({"k": "5"}) is None
    with pytest.raises(ConfigError, match="setting regimes: tells nothing without throughputs; add --set thr"):
        read_tables({"regimes": settings["regimes"]})
    split = split_settings(find_policy("shockwave"), {**settings, "gpu_type": "k80", "k": "5"})
    assert (split.plain("own"), split.own.k, split.files.gpu_type) == ({"k": "5"}, 5.0, "k80")
