"""What cannot be done with accuracy-curve: one line each, exit code 2, nothing written."""

import sys

import pytest

NAME = "accuracy-curve"
CURVES = "app,batch_size,epoch,metric"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("train {} --from 0", "--from: does not go with the predictor accuracy-curve (curves have no calendar)"),
        ("train {} --retrain weekly", "--retrain: does not go with"),
        ("train {} --tune 3", "--tune: does not go with the predictor accuracy-curve (it has no settings to search)"),
        ("train {} --set a=b", "--set a: only curves=FILE is read here"),
        ("train {} --horizons 5", "--horizons: does not go with the predictor accuracy-curve; leave it out"),
        ("train {} --algorithm guess", "--algorithm guess: accuracy-curve knows combination"),
        ("evaluate {} --prefix 0", "Invalid value for '--prefix'"),
        ("evaluate {} --from 0", "--from: does not go with"),
        ("evaluate {} --policy srsf", "--policy: goes with the predictor jct, not with accuracy-curve"),
        ("evaluate {} --out there", "--out: does not go with the predictor accuracy-curve (use --json FILE)"),
        ("evaluate {}:9", "accuracy-curve has no version 9, it has: 1"),
        ("predict {}", "--epochs: how many epochs boxes at batch size 48 runs in all is not told; give N, or a column"),
        ("predict {} --epochs 9", "--epochs 9: boxes at batch size 48 has reached epoch 10 already"),
        ("predict {} --epochs 30 --target nan", "Invalid value for '--target'"),
        ("predict {} --epochs 30 --job 1", "--job: goes with the predictor jct, not with accuracy-curve"),
    ],
)
def test_what_curves_do_not_have_is_refused(shell, run, seen, line, said):
    command, *more = line.format(NAME).split()
    trace = {"train": run.curves, "evaluate": run.later, "predict": seen(10)}[command]
    assert said in shell.refuses(command, *more, "--trace", trace)


def test_bayes_without_its_extra(shell, run, monkeypatch):
    monkeypatch.setitem(sys.modules, "pymc", None)
    line = shell.refuses("train", NAME, "--trace", run.curves, "--algorithm", "bayes")
    assert "jobcast[bayes]" in line


def test_curves_with_nothing_left_to_forecast(shell, csv):
    short = csv("a,8,1,0.5", "b,8,1,0.7", name="short.csv", header=CURVES)
    assert "short.csv: no curve varies and goes on" in shell.refuses("evaluate", NAME, "--trace", short)
    flat = csv("a,8,1,0.5", "a,8,2,0.5", name="flat.csv", header=CURVES)
    assert "no curve varies" in shell.refuses("evaluate", NAME, "--trace", flat, "--prefix", "0.5")


def test_promotion_takes_no_window_of_time(shell, run, store):
    words = ("models", "promote", f"{NAME}:1", "--trace", run.later)
    assert shell.refuses(*words, "--pools", "pools.csv").startswith("--pools: does not go with")
    assert shell.refuses(*words, "--from", "0").startswith("--from: does not go with")
