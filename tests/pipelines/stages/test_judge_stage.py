"""Stages enrich, learn, judge: a predictor of enriched traces from the trace to a champion, and from files to one."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import polars as pl
import pytest
import yaml

from jobcast.domain.errors import ConfigError, TrainingError
from jobcast.domain.jobs import Pool
from jobcast.models.registry import open_registry
from jobcast.pipelines.experiments.backtest import NOT_REPEATABLE
from jobcast.pipelines.report.console import Console
from jobcast.pipelines.stages import judge, learn
from jobcast.pipelines.stages.config import Params
from jobcast.pipelines.stages.context import Context
from jobcast.pipelines.stages.enrich import lessons, nodes_of, small_pools
from jobcast.pipelines.stages.plan import STAGES, find_stage
from jobcast.traces.enrich.columns import EnrichConfig
from jobcast.traces.generators import generate
from tests.pipelines.conftest import PARAMS
from tests.shared import refused

FEW = {"train_jobs": 60, "test_jobs": 20, "settings": {"gpu_types": "v100,t4", "epochs": "5,20"}}
LEARN = {"epoch_time": {"algorithms": ["steps"]}, "queue_wait": {"algorithms": ["hazard"]}}


@pytest.fixture(scope="module")
def campus():
    return generate("campus", 0, {"weeks": 1, "pools": 3, "jobs": 1200, "widest": 8})[0]


def test_the_smallest_pools_are_taken_of_those_whose_jobs_differ_in_width(campus):
    names = sorted(campus.pools)
    alike = replace(
        campus,
        jobs=campus.jobs.with_columns(gpus=pl.when(pl.col("pool") == names[0]).then(1).otherwise(pl.col("gpus"))),
    )
    pools = [Pool(names[0], 2), Pool(names[1], 9), Pool(names[2], 4)]
    assert [pool.name for pool in small_pools(campus, pools, 1)] == [names[0]]
    assert [pool.name for pool in small_pools(alike, pools, 1)] == [names[2]]
    assert [pool.name for pool in small_pools(alike, pools, 2)] == names[1:]
    assert [pool.name for pool in small_pools(alike, pools, 9)] == names


def test_lessons_are_the_last_jobs_but_of_two_days_at_least(campus):
    until_s, two_days_s = float(campus.submit_s[-1]) + 1.0, 2 * 86400.0
    late = campus.between(until_s - two_days_s, None).jobs["job_id"].to_list()
    assert len(late) > 20
    few = lessons(campus, until_s, 20)["job_id"].to_list()
    assert (len(few), few[0], few[-1]) == (20, late[0], late[-1])
    assert lessons(campus, until_s, len(late) + 5).equals(campus.jobs.tail(len(late) + 5))


def test_nodes_hold_the_quotas_half_of_them_of_each_type():
    told = nodes_of([Pool("a", 8), Pool("b", 9)], EnrichConfig(gpu_types="t4,v100,k80"))
    assert told == {
        "nodes": [{"count": 3, "gpus": 4, "gpu_type": "v100"}, {"count": 3, "gpus": 4, "gpu_type": "t4"}],
        "pools": {"a": 8, "b": 9},
    }


def test_what_cannot_be_trained_here_is_told_unless_it_is_left_out(monkeypatch):
    monkeypatch.setattr(learn, "find_spec", lambda package: None)
    params = Params()
    assert learn.lacks(params, "mlf-policy") == (
        "mlf-policy needs the extra rl: pip install 'jobcast[rl]'; or leave it out: `algorithms: []`"
    )
    assert learn.lacks(params, "epoch-time") == ""
    without = params.learned("mlf-policy").model_copy(update={"algorithms": ()})
    schedule = params.schedule.model_copy(update={"mlf_policy": without})
    assert learn.lacks(params.model_copy(update={"schedule": schedule}), "mlf-policy") == ""
    assert [stage.name for stage in STAGES if stage.lacks(params, "mlf-policy")] == ["learn", "judge", "schedule"]
    context = Context(params, Path("nowhere"), Path("nowhere"), Console(quiet=True))
    refused(ConfigError, "needs the extra rl", find_stage("schedule", "mlf-policy").work, context, "mlf-policy")


def test_a_scheduler_that_finds_too_few_narrow_jobs_to_learn_on_is_left_out(monkeypatch, tmp_path, capsys):
    """A trace of wide jobs ended `jobcast run` at its last stages; what else cannot be trained still does."""
    monkeypatch.setattr(learn, "find_spec", lambda package: True)
    monkeypatch.setattr(learn, "_fitted", Mock(side_effect=TrainingError("1 jobs fit on 4 servers")))
    context = Context(Params(), tmp_path, tmp_path / "home", Console())
    learn.work(context, "device-rl")
    judge.work(context, "device-rl")
    said = capsys.readouterr().err
    assert "learn: device-rl is left out: 1 jobs fit on 4 servers" in said
    assert "judge: device-rl was left out" in said
    with pytest.raises(TrainingError):
        learn.work(context, "epoch-time")


@pytest.fixture(name="staged")
def staged_beside_a_run(shell, run, tmp_path):
    """Works on a stage of epoch-time or queue-wait in a copy of a run's files; what it says, and the folder."""
    shell.home, out, params = tmp_path / "home", tmp_path / "home/data", tmp_path / "params.yaml"
    own = {**PARAMS, "enrich": FEW, "learn": LEARN}
    params.write_text(yaml.safe_dump(own))
    shutil.copytree(run.out, out, ignore=shutil.ignore_patterns("enriched", "models", "cards", "judged", "receipts"))

    def works(*stage):
        return shell.works("stage", *stage, "--params", params, "--out", out).err

    return works, out


@pytest.mark.slow
def test_from_the_trace_to_a_champion_and_from_the_files_to_one(shell, staged, tmp_path):
    works, out = staged
    works("enrich")
    works("learn", "epoch-time")
    said = works("judge", "epoch-time")
    verdict = json.loads((out / "processed/judged/epoch-time/verdict.json").read_text())
    registry = open_registry(shell.home)
    version = registry.resolve("epoch-time", 1)
    assert ("champion" in version.aliases) == verdict["passed"]
    assert "judge: epoch-time " in said
    block = verdict["figures"]["steps"]["jobs"]
    assert block["n"] > 0
    told = json.loads((out / "processed/judged/epoch-time/results.json").read_text())
    asked = {f"{policy} registry (steps)" for policy in ("energy_fifo", "andreas")}
    assert {row["label"] for row in told["rows"]} == {"fcfs", "andreas oracle", *asked}
    assert not {*NOT_REPEATABLE} & {figure for row in told["rows"] for figure in row["figures"]}
    assert told["baselines"] == {"runtime": "fcfs", "epochs": "energy_fifo registry (steps)"}
    headlines = json.loads((out / "processed/metrics/epoch-time.json").read_text())
    assert headlines["mape"] == block["mape"]
    shutil.rmtree(out / "processed/receipts")
    shell.home = tmp_path / "clone"
    shutil.copytree(out, shell.home / "data")
    restored = shell.json("models", "restore")
    assert restored["restored"] == ["epoch-time:1"]
    assert restored["champions"] == (["epoch-time:1"] if verdict["passed"] else [])
    assert open_registry(shell.home).resolve("epoch-time", 1).content_sha256 == version.content_sha256


@pytest.mark.slow
def test_waits_of_a_replay_are_learnt_and_judged(shell, staged):
    works, out = staged
    pools = pl.read_csv(out / "raw/pools.csv")
    pools.with_columns(gpus=pl.col("gpus") * 0 + 16).write_csv(out / "raw/pools.csv")
    assert " of which waited" in works("queue")
    told = pl.read_parquet(out / "interim/queue.parquet")
    assert (told["start_time"] > told["submit_time"]).any()
    assert "queue-wait hazard is version 1" in works("learn", "queue-wait")
    assert "judge: queue-wait " in works("judge", "queue-wait")
    verdict = json.loads((out / "processed/judged/queue-wait/verdict.json").read_text())
    assert verdict["figures"]["hazard"]["jobs"]["n"] > 0
    aliases = open_registry(shell.home).resolve("queue-wait", 1).aliases
    assert ("champion" in aliases) == verdict["passed"]
    # From the files alone, and a second time nothing new.
    assert "version 1" in works("learn", "queue-wait")


def test_where_nobody_waits_queue_wait_is_left_out(staged):
    works, out = staged
    pools = pl.read_csv(out / "raw/pools.csv")
    pools.with_columns(gpus=pl.col("gpus") * 1000).write_csv(out / "raw/pools.csv")
    assert "0 of which waited" in works("queue")
    assert "learn: queue-wait is left out: " in works("learn", "queue-wait")
    assert "judge: queue-wait was left out" in works("judge", "queue-wait")
    verdict = json.loads((out / "processed/judged/queue-wait/verdict.json").read_text())
    assert verdict == {"passed": False, "reasons": ["no version"]}
