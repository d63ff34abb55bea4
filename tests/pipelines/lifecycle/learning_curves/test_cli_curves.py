"""`jobcast train`, `evaluate`, `predict` and `models` with the predictor accuracy-curve."""

import csv
import hashlib
import json

import numpy as np
import polars as pl
import pytest

import jobcast
from jobcast.models.registry import open_registry
from jobcast.traces.learning_curves import read_learning_curves

NAME = "accuracy-curve"
CONTRACT = {"curves", "mae", "mae_last_value", "coverage_90", "width_90", "families"}


def curves_of(path):
    """Metric by (app, batch size), read without any of jobcast's code."""
    found = {}
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault((row["app"], row["batch_size"]), []).append(float(row["metric"]))
    return found


def test_training_registers_what_it_was_trained_on(shell, run, store):
    told = shell.json("train", NAME, "--trace", run.curves, "--seed", 3)  # draws nothing: the same version
    assert (told["predictor"], told["version"], told["new"]) == (NAME, 1, False)
    assert (told["algorithm"], told["seed"], told["jobcast"]) == ("combination", 3, jobcast.__version__)
    counts = {"curves": 9, "epochs": 270, "curves_with_lr_milestones": 3}
    assert told["training"] == counts | {"apps": ["boxes", "speech", "vision"]}
    sha256 = hashlib.sha256(run.curves.read_bytes()).hexdigest()
    assert told["inputs"]["trace"] == {"path": str(run.curves), "sha256": sha256, "rows": 270}
    assert told["validation"]["left_out"] == "app"
    assert set(told["validation"]["prefixes"]) == {"0.2", "0.5"}
    for figures in told["validation"]["prefixes"].values():
        assert set(figures) == CONTRACT
        assert figures["curves"] == 9
    shown = shell.json("models", "show", f"{NAME}:1")
    assert shown["parameters"] | {"apps": "boxes, speech, vision", "curves": "9"} == shown["parameters"]
    assert (shown["trace_sha256"], shown["trained_from"], shown["trained_until"]) == (sha256, None, None)
    mae = told["validation"]["prefixes"]["0.2"]["mae"]
    assert shown["metrics"]["validation/prefix_0.2/mae"] == pytest.approx(mae)
    assert open_registry(shell.home).resolve(NAME).version == 1


def test_priors_learnt_with_pymc_go_into_the_model(shell, run, store, monkeypatch):
    from jobcast.models.curves import learning
    from jobcast.models.curves.prior import CurvePrior

    asked = []

    def learn_prior(curves, seed, progress=None):
        asked.append((len(curves), seed))
        return CurvePrior.default()

    monkeypatch.setattr(learning, "learn_prior", learn_prior)
    told = shell.json("train", NAME, "--trace", run.curves, "--algorithm", "bayes", "--seed", 4)
    assert told["algorithm"] == "bayes"
    assert asked == [(9, 4), (6, 4), (6, 4), (6, 4)]  # the version, and twins without an application
    registry = open_registry(shell.home)
    assert registry.load(registry.resolve(NAME, 2)).prior.as_dict() == CurvePrior.default().as_dict()


def test_an_evaluation_holds_what_is_promised(shell, run):
    told = shell.json("evaluate", NAME, "--trace", run.later, "--prefix", 0.2)
    assert set(told) >= CONTRACT | {"version", "aliases", "inputs", "by_app"}
    assert (told["curves"], told["version"], told["prefix"]) == (6, 1, 0.2)
    assert told["overlap_allowed"] is False
    assert told["mae"] < told["mae_last_value"]
    assert set(told["by_app"]) == {"boxes", "speech", "vision"}
    assert np.mean([block["mae"] for block in told["by_app"].values()]) == pytest.approx(told["mae"])
    assert sum(block["curves"] for block in told["by_app"].values()) == 6
    assert 0 <= told["coverage_90"] <= 1
    assert told["width_90"] > 0
    assert len(told["families"]) == 11


def test_a_table_for_people(shell, run):
    out = shell.works("evaluate", NAME, "--trace", run.later).out
    assert out.startswith("accuracy-curve 1, 20% of the epochs seen")
    for word in ("boxes", "speech", "vision", "all", "pow3"):
        assert any(line.startswith(word) for line in out.splitlines()), out


def test_curves_that_a_version_was_trained_on_are_refused(shell, run, tmp_path):
    line = shell.refuses("evaluate", NAME, "--trace", run.curves)
    assert line == (
        f"{run.curves}: accuracy-curve version 1 was trained on all curves in it; "
        "leave them out, or pass --allow-overlap to score it all the same"
    )
    head, *rows = run.curves.read_text().splitlines()
    mixed = tmp_path / "mixed.csv"
    later = run.later.read_text().splitlines()[1:]
    mixed.write_text("\n".join([head, *(row for row in rows if row.startswith("speech")), *later]) + "\n")
    line = shell.refuses("evaluate", NAME, "--trace", mixed)
    assert "was trained on 3 of the 9 curves in it; leave them out" in line
    told = shell.json("evaluate", NAME, "--trace", mixed, "--allow-overlap")
    assert (told["curves"], told["overlap_allowed"]) == (9, True)
    assert "warning" in shell.works("evaluate", NAME, "--trace", mixed, "--allow-overlap").out


def test_running_jobs_get_a_final_value_with_an_interval(shell, run, seen):
    told = shell.json("predict", NAME, "--trace", seen(10), "--epochs", 30)
    assert (told["version"], told["target"], told["overlap"], len(told["curves"])) == (1, None, False, 6)
    whole = curves_of(run.later)
    for one in told["curves"]:
        metric = whole[one["app"], str(one["batch_size"])]
        assert (one["seen"], one["epochs"], one["last"]) == (10, 30, metric[9])
        assert one["final_low"] < one["final"] < one["final_high"]
        assert abs(one["final"] - metric[-1]) < 0.25 * (max(metric) - min(metric))
        assert "reach_probability" not in one


def test_a_target_is_reached_with_a_probability_and_at_an_epoch(shell, run, seen):
    words = ("predict", NAME, "--trace", seen(10), "--epochs", 30)
    low, high = (
        next(row for row in shell.json(*words, "--target", target)["curves"] if row["app"] == "vision")
        for target in (0.7, 0.99)
    )
    assert low["reach_probability"] > 0.9
    assert 1 <= low["reach_epoch"] <= 30
    assert high["reach_probability"] < 0.1
    assert high["reach_epoch"] is None
    out = shell.works(*words, "--target", 0.85).out
    assert "reaches 0.85" in out
    assert len(out.splitlines()) == 8


def test_the_files_own_epochs_win(shell, seen):
    told = shell.json("predict", NAME, "--trace", seen(10, ",epochs", ",40"), "--epochs", 30)
    assert {one["epochs"] for one in told["curves"]} == {40}
    assert shell.json("predict", NAME, "--trace", seen(10, ",epochs", ",40"))["curves"] == told["curves"]


def test_a_forecast_of_curves_that_were_trained_on_says_so(shell, run):
    words = ("predict", NAME, "--trace", run.curves, "--epochs", 40)
    assert shell.json(*words)["overlap"] is True
    assert "note: the version was trained on some of these curves" in shell.works(*words).out


def test_promotion_with_and_without_a_comparison(shell, run, store, tmp_path):
    fewer = pl.read_csv(run.curves).filter(pl.col("epoch") <= 29)
    fewer.write_csv(tmp_path / "fewer.csv")
    shell.works("train", NAME, "--trace", tmp_path / "fewer.csv")
    assert shell.works("models", "promote", f"{NAME}:2").out == f"{NAME}: champion is version 2\n"
    assert shell.works("models", "rollback", NAME).out == f"{NAME}: champion is version 1 again\n"
    told = shell.json("models", "promote", f"{NAME}:2", "--trace", run.later)
    assert (told["compared"], told["promoted"], told["against"], told["reasons"]) == (True, True, 1, [])
    assert set(told["figures"]["blocks"]) == {"20% seen", "50% seen"}
    assert open_registry(shell.home).resolve(NAME).version == 2
    words = ("models", "promote", f"{NAME}:1", "--trace", run.curves)
    assert "version 1 was trained on all curves in it" in shell.refuses(*words)
    out = shell.works(*words, "--allow-overlap").out
    assert "WHICH A MODEL HAS SEEN" in out
    assert out.endswith(f"{NAME}: champion is version 1\n")


def test_mlflow_serves_an_export(shell, seen, tmp_path):
    import mlflow.pyfunc
    import pandas as pd

    shell.works("models", "export", NAME, "exported")
    model = mlflow.pyfunc.load_model(str(tmp_path / "exported"))
    told = shell.json("predict", NAME, "--trace", seen(10), "--epochs", 30, "--target", 0.85)["curves"]
    rows = [
        [c.app, c.batch_size, "", json.dumps(c.metric.tolist()), 30, json.dumps(list(c.lr_milestones)), 0.85]
        for c in read_learning_curves(seen(10)).curves
    ]
    columns = ["app", "batch_size", "epoch", "metric", "epochs", "lr_milestones", "target"]
    answers = model.predict(pd.DataFrame(rows, columns=columns))
    for name, key in (("final", "final"), ("low", "final_low"), ("high", "final_high")):
        assert answers[name].tolist() == pytest.approx([one[key] for one in told])
    assert answers["reach_probability"].tolist() == pytest.approx([one["reach_probability"] for one in told])
    whens = [np.nan if one["reach_epoch"] is None else one["reach_epoch"] for one in told]
    assert answers["reach_epoch"].tolist() == pytest.approx(whens, nan_ok=True)


def test_a_page_of_drift_on_curves_counts_them_where_weeks_are_counted_elsewhere(shell, run, tmp_path):
    page = tmp_path / "drift.html"
    told = shell.works("drift", NAME, "--trace", run.later, "--html", page).out
    assert "group from" in told
    assert "Error of the last value by group" in page.read_text()
    assert "from curve" in page.read_text()
