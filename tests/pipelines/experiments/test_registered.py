"""Registered predictors that are not there, or answer what cannot be: what a simulation does, and tells."""

import csv
import json
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from jobcast.domain.bad_answers import EPOCHS, BadAnswers
from jobcast.domain.errors import RegistryError
from jobcast.pipelines.experiments import rounds, sources
from jobcast.pipelines.experiments.energy import simulation as forecasting
from jobcast.pipelines.experiments.forecast_specs import parse_forecasts
from jobcast.pipelines.experiments.sources import Registered, registered, trust
from jobcast.pipelines.experiments.tasks import simulation as accuracy
from tests.scenarios import write_energy_scene, write_tasks_scene
from tests.shared import refused

REGISTRY = parse_forecasts("registry")
TIMES = ("wall_s", "cpu_s", "decision_ms_mean", "decision_ms_max", "solve_s_total")
TOLD = ("forecasts", "configuration", "models", "bad_forecasts", "degraded", "command")


class Broken:
    """A model of anything, which answers nothing."""

    plan_, models_ = "middle-wide", ()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Small workloads of tasks and of energy."""
    at = tmp_path_factory.mktemp("kinds")
    settings = {"jobs": 12, "gpus": 8, "widths": "1,2", "epochs": "5,10", "longest_h": 2, "load": 0.05}
    write_tasks_scene(at, settings)
    write_energy_scene(at, {"nodes": 2, "jobs": 8, "epochs": "5,20"})
    return at


@pytest.fixture
def words(files, training):
    """The command that simulates a policy which asks for regimes, curves or epochs, and the module that asks."""
    tables = (f"--set=tasks={files / 'tasks.parquet'}", f"--set=curves={files / 'curves.parquet'}", "--set=round_s=600")
    energy = ("--cluster", files / "energy.yaml", f"--set=profiles={files / 'profiles.csv'}", "--baseline", "none")
    return {
        "regimes": (rounds, (*training[1:], "--policy", "srpt")),
        "curves": (sources, ("--trace", files / "tasks.jobs.parquet", "--gpus", "8", *tables, "--policy", "mlf_c")),
        "epochs": (forecasting, ("--trace", files / "energy.jobs.parquet", *energy, "--policy", "edf")),
    }


CAUTIOUS = {"regimes": "restatement", "curves": "conservative", "epochs": "conservative"}


def figures(shell, *words):
    answer = shell.works("simulate", *words, "--out", "done.csv", "--json", "told.json")
    with open("told.json", encoding="utf-8") as file:
        told = json.load(file)
    with open("done.csv", encoding="utf-8") as file:
        return told, [row[:8] for row in csv.reader(file)], answer.err  # further columns tell what was forecast


def comparable(told):
    return {name: value for name, value in told.items() if name not in (*TIMES, *TOLD)}


@pytest.mark.parametrize("kind", CAUTIOUS)
def test_a_registered_model_that_answers_nothing_is_as_good_as_caution_and_that_is_told(
    shell, words, monkeypatch, kind
):
    """Without a model it refuses, or degrades to the same."""
    asks, line = words[kind]
    refused = shell.refuses("simulate", *line, "--forecasts", "registry")
    assert "pass --degrade to go on with conservative answers" in refused
    without, least, degraded = figures(shell, *line, "--forecasts", "registry", "--degrade")
    version = SimpleNamespace(version=7, trace_sha256="other", train_until_s=0.0, train_from_s=0.0, name=kind)
    monkeypatch.setattr(asks, "registered", lambda *asked: Registered(version, Broken()))
    told, jobs, err = figures(shell, *line, "--forecasts", "registry")
    cautious, same, _ = figures(shell, *line, "--forecasts", CAUTIOUS[kind])
    assert jobs == same
    assert comparable(told) == comparable(cautious)
    bad = told["bad_forecasts"][kind]
    assert bad["checked"] == bad["bad"] > 0
    assert list(bad["reasons"]) == ["raised"]
    assert "AttributeError" in bad["first"]
    assert told["models"] == {kind: 7}  # by the name of whoever answered, which need not be ours
    assert "degraded" not in told
    assert f"bad forecasts, {kind}: {bad['bad']:,} of {bad['checked']:,} answers were bad" in err
    assert "bad_forecasts" not in cautious
    assert least == same
    assert comparable(without) == comparable(cautious)
    assert without["bad_forecasts"][kind]["reasons"] == {"degraded": 1}
    assert without["degraded"] == [without["bad_forecasts"][kind]["first"]]
    assert "no model" in without["degraded"][0]
    assert "degraded: no model" in degraded
    assert without["models"] == {}


@pytest.mark.parametrize(
    ("policy", "rule", "settings"),
    [
        ("mlf_rl", "mlf_h", ("--set", "h_r=0.5", "--set", "preempt=false")),
        ("device_rl", "mlf_h", ()),
        ("mlfs", "mlfs", ()),
    ],
)
def test_a_learned_scheduler_degrades_to_the_rule_whose_place_it_takes(shell, words, policy, rule, settings):
    """Settings of the learned one are the rule's."""
    line = [*words["curves"][1][:-1]]
    told, jobs, _ = figures(shell, *line, policy, "--forecasts", "oracle", "--degrade", *settings)
    plain, same, _ = figures(shell, *line, rule, "--forecasts", "oracle", *settings)
    assert jobs == same
    assert told["mean_jct_s"] == plain["mean_jct_s"]
    if policy != "mlfs":  # which runs without until a better policy has been learned
        assert told["bad_forecasts"]["decisions"]["reasons"] == {"degraded": 1}


def test_a_damaged_registry_degrades_whatever_it_raises(store, monkeypatch):
    told = BadAnswers()
    refused(RegistryError, "--degrade", registered, "epoch-time", REGISTRY, store.home, told, EPOCHS, degrade=False)
    refused(RegistryError, r"first$", registered, "epoch-time", REGISTRY, store.home, told, EPOCHS)
    assert told.figures() == {}

    def damaged(home, name, number):
        raise KeyError("tags")

    monkeypatch.setattr(sources, "loaded_version", damaged)
    with pytest.raises(KeyError):
        registered("new-load", REGISTRY, store.home, told, EPOCHS, degrade=False)
    assert registered("new-load", REGISTRY, store.home, told, EPOCHS, degrade=True) is None
    assert trust(told, {})["degraded"] == ["KeyError: 'tags'"]
    shutil.rmtree(store.home)
    assert registered("new-load", REGISTRY, store.home, told, EPOCHS, degrade=True) is None
    assert told.figures()[EPOCHS]["reasons"] == {"degraded": 2}


def test_an_interval_that_does_not_hold_its_mean_is_no_interval():
    final = {"mean": (0.5, 0.5), "low": (0.4, 0.6), "high": (0.7, 0.9)}
    told = SimpleNamespace(**{f"final_{name}": np.array(values) for name, values in final.items()})
    model = SimpleNamespace(forecast_arrays=lambda *asked: told)
    mean, spread = accuracy.by_model(model)(*[np.zeros(2, dtype=np.int64)] * 4)
    assert mean.tolist() == [0.5, 0.5]
    assert spread.tolist() == [pytest.approx(0.2 / accuracy.UPPER_Z), -1.0]
