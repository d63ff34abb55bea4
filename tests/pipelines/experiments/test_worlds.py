"""Worlds: all policies that can live in a law meet the same jobs in it."""

import json
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from jobcast.domain.errors import ConfigError, TraceError
from jobcast.pipelines.experiments.experiment import Experiment
from jobcast.pipelines.experiments.forecast_specs import ORACLE
from jobcast.pipelines.experiments.policy_runs import run
from jobcast.pipelines.experiments.sources import Ask
from jobcast.pipelines.experiments.worlds import LAWS, lives
from jobcast.schedulers.registry import BUILT_IN
from jobcast.traces.cluster_file import read_cluster
from jobcast.traces.readers import read_trace
from tests.pipelines.conftest import typed
from tests.scenarios import frame_of
from tests.shared import refused

pytestmark = pytest.mark.xdist_group("worlds")  # what they share is made once
NODES = """nodes:
  - {count: 3, gpus: 4, gpu_type: v100}
  - {count: 1, gpus: 2, gpu_type: v100}
  - {count: 1, gpus: 4, gpu_type: t4}
pools: {a: 8, b: 6}
"""
FACTS = "speedups,training,goodput,tasks,epochs,limits,due"


def frame(count=24, seed=0, pools=("a", "b"), widths=(1, 1, 2, 3, 4, 6)):
    draw = np.random.default_rng(seed)
    pool, submit_s = draw.choice(pools, count), np.sort(draw.integers(0, 4000, count))
    duration = draw.integers(60, 3000, count).astype(float)
    return frame_of(submit_s, pool=pool, duration=duration, gpus=draw.choice(widths, count))


@pytest.fixture(scope="module")
def enriched(tmp_path_factory):
    folder = tmp_path_factory.mktemp("worlds")
    frame().write_csv(folder / "plain.csv")
    (folder / "nodes.yaml").write_text(NODES)
    typed("trace", "enrich", folder / "plain.csv", "--facts", FACTS, "--out", folder / "made", "--seed", 1)
    return folder


def world(folder, law, **more):
    trace = read_trace(folder / "made" / "jobs.parquet")
    return Experiment(trace=trace, cluster=read_cluster(folder / "nodes.yaml"), law=law, **more)


def ran(experiment, policy, home, **chosen):
    return run(experiment, Ask(policy=policy, home=home, spec=ORACLE, settings=chosen))


@pytest.mark.parametrize(
    ("law", "policies"),
    [
        ("epochs", "fcfs,gssf,themis_np,sia_vc,sia_preempt,srpt,las,srsf,elastic_fair,edf"),
        ("tasks", "fcfs,mmfs,sia_vc,las,mlf_h"),
    ],
)
def test_policies_of_several_papers_meet_the_same_jobs(enriched, law, policies, tmp_path):
    """Whether they keep within nodes is asked of all that can live there, in `tests/contract`."""
    experiment, met = world(enriched, law), set()
    for policy in policies.split(","):
        log = ran(experiment, policy, tmp_path).log
        assert log.law == law
        assert np.isfinite(log.end_s).all(), policy
        met.add(str((log.submit_s.tolist(), log.gpus.tolist())))
    assert len(met) == 1


@pytest.mark.parametrize("law", ["runtime", "epochs", "tasks"])
def test_alone_a_gang_takes_its_duration_under_every_law(enriched, law, tmp_path):
    experiment = world(enriched, law, limit=1, given={"fluctuation": "0"} if law == "tasks" else {})
    log = ran(experiment, "fcfs", tmp_path).log
    assert log.jct_s == pytest.approx(experiment.window.duration_s, rel=1e-6)


@pytest.mark.parametrize(
    ("law", "policies"),
    [("runtime", "mmfs"), ("epochs", "fcfs,las,elastic_fair,edf"), ("tasks", "sia,mlf_h")],
)
def test_completions_are_forecast_in_every_world(enriched, law, policies, tmp_path):
    """A copy of the world plays each job to its end, and leaves no trace."""
    for policy in policies.split(","):
        ask = Ask(policy=policy, home=tmp_path, spec=ORACLE)
        log = run(world(enriched, law), ask).log
        told = run(world(enriched, law), replace(ask, predict=True)).log
        assert told.end_s.tolist() == log.end_s.tolist(), policy
        assert set(told.columns) == {*log.columns, "predicted_end_s"}
        assert (told.columns["predicted_end_s"] > told.submit_s).all(), policy
        last = int(np.argmax(told.submit_s))  # after whom nobody comes: where work is declared, that is how it ends
        if law == "epochs" and policy != "las":
            assert told.columns["predicted_end_s"][last] == pytest.approx(told.end_s[last], abs=1e-3), policy


def test_quotas_hold_for_whom_they_are(enriched):
    experiment = world(enriched, "epochs")
    by_quotas, in_one_pool = (experiment.scenario("pools", scope).workload for scope in ("pool", "cluster"))
    assert [(pool.name, pool.quota) for pool in by_quotas.pools] == [("a", 8), ("b", 6)]
    assert [(pool.name, pool.quota) for pool in in_one_pool.pools] == [("all", 18)]
    assert {job.min_gpus for job in in_one_pool.jobs} == {1}
    assert all(job.preemptible and np.isfinite(job.due_s) and job.training for job in by_quotas.jobs)


def test_what_has_no_place_in_a_law_says_so(enriched, tmp_path):
    with pytest.raises(ConfigError, match="policy edf: law tasks has no place for policies of energy"):
        ran(world(enriched, "tasks"), "edf", tmp_path)
    with pytest.raises(ConfigError, match="--law walking: there is no such law; choose from runtime, speedup"):
        world(enriched, "walking")
    refused(ConfigError, "closed loop is replayed as the trace says", world, enriched, "epochs", max_think_s=60.0)
    with pytest.raises(ConfigError, match=r"mechanism=gavel has a law of its own; leave --law epochs out"):
        ran(world(enriched, "epochs"), "las", tmp_path, mechanism="gavel")
    frame(widths=(9,)).write_csv(tmp_path / "plain.csv")
    typed("trace", "enrich", tmp_path / "plain.csv", "--facts", FACTS, "--out", tmp_path / "made")
    nodes = "nodes: [{count: 2, gpus: 4, gpu_type: v100}, {count: 2, gpus: 4, gpu_type: t4}]"
    (tmp_path / "nodes.yaml").write_text(nodes)
    with pytest.raises(TraceError, match=r"job 0000 asks for 9 GPUs, on which it can run on nodes of no one type"):
        ran(world(tmp_path, "epochs"), "fcfs", tmp_path)


def test_a_law_with_one_kind_is_that_kind_alone(enriched, tmp_path):
    named, plain = (ran(world(enriched, law), "srsf", tmp_path).log for law in ("speedup", None))
    assert named.end_s.tolist() == plain.end_s.tolist()
    assert {law: lives(BUILT_IN["fcfs"], law) for law in LAWS}["speedup"] is False


def test_rows_of_a_backtest_are_those_of_simulate(enriched, tmp_path):
    words = ("--trace", enriched / "made" / "jobs.parquet", "--cluster", enriched / "nodes.yaml", "--law", "epochs")
    words = (*words, "--forecasts", "oracle", "--set", "restart_s=30", "--set", "snapshot_epochs=1")
    out = tmp_path / "all.json"
    typed("backtest", *words, "--policies", "srpt,elastic_fifo,edf,gandiva", "--jobs", 1, "--json", out)
    told = json.loads(out.read_text())
    rows = {row["policy"]: row["figures"] for row in told["rows"]}
    assert list(rows) == ["fcfs", "srpt", "elastic_fifo", "edf"]
    assert [one["policy"] for one in told["skipped"]] == ["gandiva"]
    for policy, figures in rows.items():
        own = tmp_path / f"{policy}.json"
        typed("simulate", *words, "--policy", policy, "--baseline", "fcfs", "--json", own)
        alone = json.loads(own.read_text())
        assert alone["law"] == "epochs"
        for name in ("mean_jct_s", "speedup_gmean", "energy_kwh", "preemptions"):
            assert alone.get(name) == figures.get(name), (policy, name)


def rigid(widths):
    """Jobs as (submission, duration, GPUs)."""
    return st.lists(st.tuples(st.integers(0, 600), st.integers(1, 900), widths), min_size=2, max_size=25)


def check_agreement(jobs, nodes):
    """fcfs, elastic_fifo and energy_fifo start rigid jobs of one configuration at the same instants."""
    jobs = sorted(jobs)
    submit_s, duration, gpus = (np.array(column) for column in zip(*jobs, strict=True))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        columns = {"submit_time": submit_s, "duration": duration.astype(float), "gpus": gpus, "duration_gpus": gpus}
        named = {"job_id": [f"{row:03d}" for row in range(len(jobs))], "pool": "p"}
        models = {"model": [f"m{width}" for width in gpus], "epochs": 1 + duration % 7}
        pl.DataFrame(named | columns | models).write_csv(folder / "jobs.csv")
        rows = [f"m{width},,v100,{width},10" for width in sorted(set(gpus.tolist()))]
        (folder / "profiles.csv").write_text("\n".join(["model,batch_size,gpu_type,gpus,epoch_s", *rows]) + "\n")
        count, size = nodes
        (folder / "nodes.yaml").write_text(f"nodes: [{{count: {count}, gpus: {size}, gpu_type: v100}}]\n")
        experiment = Experiment(
            trace=read_trace(folder / "jobs.csv"),
            cluster=read_cluster(folder / "nodes.yaml"),
            given={"profiles": str(folder / "profiles.csv")},
            law="epochs",
        )
        chosen = {"energy_fifo": {"strict": "true"}}
        start_s = {
            policy: ran(experiment, policy, folder, **chosen.get(policy, {})).log.start_s
            for policy in ("fcfs", "elastic_fifo", "energy_fifo")
        }
    for policy, found in start_s.items():
        np.testing.assert_allclose(found, start_s["fcfs"], rtol=0, atol=1e-6, err_msg=policy)


@pytest.mark.parametrize(
    ("examples", "jobs", "nodes"),
    [
        (8, rigid(st.integers(1, 8)), (1, 8)),
        pytest.param(200, rigid(st.integers(1, 8)), (1, 8), marks=pytest.mark.slow),
        (4, st.sampled_from([1, 2, 4]).map(st.just).flatmap(rigid), (3, 4)),
    ],
    ids=["one node", "one node at length", "several nodes"],
)
def test_worlds_agree_on_rigid_jobs(examples, jobs, nodes):
    """Of several nodes those whose GPUs the jobs' one width divides."""
    drawn = given(jobs, st.just(nodes))(check_agreement)
    settings(max_examples=examples, deadline=None, phases=[Phase.generate])(drawn)()
