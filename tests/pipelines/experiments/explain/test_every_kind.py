"""A policy of every kind: what a job held, who held what while it waited, what was forecast of it, beside the truth."""

import json
import shutil
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest

from jobcast.domain import tolerance
from jobcast.schedulers.registry import find_policy
from tests.enriching import enriched_trace

pytestmark = pytest.mark.usefixtures("untrained")
ROWS = [f"j{at},{'ab'[at % 2]},u{at % 3},{300 * at},{900 + 400 * (at % 5)},{(1, 2, 4)[at % 3]}" for at in range(9)]
NODES = "nodes: [{count: 2, gpus: 4, gpu_type: v100}]\n"
WRONG = ("--forecasts", "noisy:0.5")
KINDS = {
    "fcfs": ((), None),
    "ssf": (WRONG, "duration_s"),
    "sia": (WRONG, "duration_bin"),
    "shockwave": (("--forecasts", "greedy"), "left_s"),
    "srpt": (("--forecasts", "greedy", "--set", "noise=0.4"), "left_s"),
    "allox": (("--forecasts", "greedy", "--set", "mechanism=gavel"), "left_s"),
    "las": ((), None),
    "srsf": (("--predict", "--set", "noise=0.4"), "duration_s"),
    "elastic_las": (("--predict",), None),
    "mlf_c": (WRONG, "final_accuracy"),
    "tiresias": ((), None),
    "edf": (("--forecasts", "noisy:0.2"), "epoch_s"),
    "pollux": ((), None),
}
"""Policy -> how it is asked, and the question about jobs that it asks."""
TOLD = {
    "duration_s": "to run for",
    "left_s": "left, batch size x epochs:",
    "final_accuracy": "final accuracy",
    "epoch_s": "an epoch on v100 x 2",
    "duration_bin": "forecast to run",
}
ERRORS = {
    "duration_s": "duration_err_mean_pct",
    "left_s": "duration_err_mean_pct",
    "final_accuracy": "accuracy_err_mean",
    "epoch_s": "epoch_time_err_mean_pct",
    "duration_bin": "duration_bin_right_pct",
}
TIMED = ("wall_s", "cpu_s", "decision_ms_mean", "decision_ms_max", "solve_s_total", "solve_s_max")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    facts = ("--facts", "speedups,training,goodput,tasks,epochs,due")
    return enriched_trace(tmp_path_factory.mktemp("kinds"), ROWS, NODES, *facts)


@pytest.fixture
def words(place):
    """What makes a run of a policy."""
    return lambda policy: ("simulate", *place, "--baseline", "none", "--policy", policy, *KINDS[policy][0])


def explained(shell, job_id):
    return shell.json("--quiet", "explain", "--out", "log.csv", "--job", job_id)


def without(figures, names):
    return {name: one for name, one in figures.items() if name not in names}


@pytest.mark.parametrize("policy", KINDS)
def test_what_was_held_and_forecast_is_told(shell, words, policy):
    """And figures are of the first answers, with a record and without."""
    question, asks = KINDS[policy][1], list(find_policy(policy).asks)
    figures = shell.json(*words(policy), "--out", "log.csv")
    told = {f"j{at}": explained(shell, f"j{at}") for at in range(9)}
    assert all(one["held"] for one in told.values())
    waited = [one["while_waiting"] for one in told.values() if one["while_waiting"] is not None]
    assert waited or policy == "pollux"  # which gives everybody a GPU at once
    assert all(one["gpus_held"] > 0.0 and one["jobs"] and one["users"] for one in waited)
    assert all(one["forecast"]["asks"] == asks for one in told.values())
    answers = [answer for one in told.values() for answer in one["forecast"]["answers"]]
    assert {answer["question"] for answer in answers} == ({question} - {None, "duration_bin"})
    assert all(np.isfinite([answer["answer"], answer["truth"]]).all() for answer in answers)
    text = shell.works("--quiet", "explain", "--out", "log.csv", "--job", "j2").out
    nothing = f"{policy} asks for {', '.join(asks) or 'no forecasts'}"
    assert (TOLD[question] if question else nothing) in text
    assert ("of a GPU-round" in text or "a GPU-round;" in text) == (policy == "shockwave")
    assert set(ERRORS.values()) & figures.keys() == ({ERRORS[question]} if question else set())
    assert ("predicted_end_s" in told["j2"]["forecast"]) == ("--predict" in KINDS[policy][0])
    if question is None:
        return
    plain = shell.json(*words(policy))
    assert without(plain, TIMED) == without(figures, TIMED)
    if question == "duration_bin":
        assert 0.0 <= figures["duration_bin_short_pct"] <= 100.0 - figures["duration_bin_right_pct"]
        return
    rows = pl.read_parquet("log.csv.run/job_forecasts.parquet")
    off = (pl.col("answer") - pl.col("truth")).abs()
    if question == "epoch_s":
        errors = rows.group_by("job_id").agg((100.0 * off / pl.col("truth")).mean().alias("off"))["off"]
    else:
        scale = 1.0 if question == "final_accuracy" else 100.0 / pl.col("truth")
        errors = rows.group_by("job_id", maintain_order=True).first().with_columns(off=off * scale)["off"]
    assert errors.mean() > tolerance.ERRORS_PCT
    assert figures[ERRORS[question]] == pytest.approx(errors.mean())


def test_the_oracle_is_marked_as_the_future_and_never_wrong(shell, words):
    figures = shell.json(*words("srpt")[:-4], "--forecasts", "oracle", "--out", "log.csv")
    assert figures["duration_err_mean_pct"] == figures["duration_err_p99_pct"] == 0.0
    told = shell.works("--quiet", "explain", "--out", "log.csv", "--job", "j2").out
    assert "What was forecast of it (the oracle: the future itself, which nobody has), and came" in told
    shell.works(*words("srsf")[:-3], "--out", "log.csv")
    told = shell.works("--quiet", "explain", "--out", "log.csv", "--job", "j2").out
    assert "What was forecast of it (declared sizes), and came" in told
    submitted = datetime.fromisoformat(told.split("submitted ")[1].split(",")[0])
    there = shell.works("--quiet", "explain", "--out", "log.csv", "--job", "j2", "--timezone", "Asia/Tokyo").out
    assert f"submitted {submitted.astimezone(ZoneInfo('Asia/Tokyo')).isoformat()}," in there


def test_records_without_forecasts_of_jobs_are_read_and_damaged_ones_refused(shell, words):
    shell.works(*words("ssf"), "--out", "log.csv")
    place = Path("log.csv.run")
    shutil.copytree(place, "kept")
    (place / "job_forecasts.parquet").write_bytes(b"nothing")
    refused = shell.refuses("explain", "--out", "log.csv", "--job", "j2")
    assert "job_forecasts.parquet: not a Parquet file that can be read" in refused
    (place / "job_forecasts.parquet").unlink()
    told = json.loads((place / "run.json").read_text())
    del told["asks"], told["answers_left_out"]
    (place / "run.json").write_text(json.dumps(told))  # as before jobs' forecasts were kept
    forecast = explained(shell, "j2")["forecast"]
    assert (forecast["asks"], forecast["answers"]) == (None, [])
    assert "asks for" not in shell.works("--quiet", "explain", "--out", "log.csv", "--job", "j2").out


@pytest.mark.parametrize("policy", [policy for policy in KINDS if policy != "allox"])
def test_completions_are_forecast_and_nothing_else_is_another(shell, words, policy):
    """Copies of the run leave no trace in it, in its forecasts of jobs, or in its figures."""
    asked = [word for word in words(policy) if word != "--predict"]
    asked += ["--forecasts", "oracle"] if policy in ("fcfs", "las") else []
    bare = shell.json(*asked, "--out", "bare.csv")
    told = shell.json(*asked, "--predict", "--out", "told.csv")
    rows = pl.read_csv("told.csv")
    assert rows["predicted_jct_s"].is_not_null().all()
    assert (rows["predicted_jct_s"] > 0.0).all()
    beside = ("predicted_jct_s", "predicted_end_time", "fair_finish_by_sharing_s")
    assert rows.drop(beside, strict=False).equals(pl.read_csv("bare.csv"))
    errors = 100.0 * (rows["end_time"] - rows["predicted_end_time"]).abs() / rows["predicted_jct_s"]
    assert told["pred_err_mean_pct"] == pytest.approx(errors.mean(), abs=1e-3)
    apart = (*TIMED, "forecasts", "future", "configuration", "command")
    assert {name: told[name] for name in without(bare, apart)} == without(bare, apart)
    answers = [Path(f"{name}.csv.run/job_forecasts.parquet") for name in ("bare", "told")]
    assert answers[0].exists() == answers[1].exists()
    if answers[0].exists():
        assert pl.read_parquet(answers[0]).equals(pl.read_parquet(answers[1]))


def test_a_mechanism_that_cannot_be_copied_says_so(shell, words):
    answer = shell(*words("allox"), "--predict")
    assert answer.code == 2
    assert "no completions are forecast under mechanism=gavel; leave it out" in answer.err


def test_in_a_closed_loop_answers_are_the_jobs_own(shell, csv):
    """b is submitted 100 s after a's end, which is when the run says: it arrives as the second, whatever the trace."""
    header = "job_id,pool,submit_time,duration,gpus,user"
    trace = csv("a,p,0,1000,2,ann", "c,p,10,500,2,eve", "b,p,1100,300,2,ann", header=header)
    where = ("--gpus", 2, "--policy", "ssf", "--forecasts", "oracle", "--closed-loop", "--baseline", "none")
    figures = shell.json("simulate", "--trace", trace, *where, "--out", "log.csv")
    assert figures["duration_err_mean_pct"] == 0.0
    rows = pl.read_parquet("log.csv.run/job_forecasts.parquet")
    assert dict(rows.select("job_id", "answer").iter_rows()) == {"a": 1000.0, "c": 500.0, "b": 300.0}
    assert rows["answer"].to_list() == rows["truth"].to_list()
