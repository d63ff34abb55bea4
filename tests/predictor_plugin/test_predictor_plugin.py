"""A package of two files brings a predictor of each question of pools and jobs, and all of jobcast works with it."""

import os
import sys
import tomllib
from pathlib import Path

import pytest
from joblib.externals.loky import get_reusable_executor

from jobcast.models import predictors
from jobcast.pipelines.lifecycle.predictors import find_predictor
from jobcast.testing import check_predictor

HERE = Path(__file__).parent
PROJECT = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
NAMES = tuple(PROJECT["entry-points"]["jobcast.predictors"])
OURS = {
    "recent-arrivals": "will-jobs-arrive",
    "past-loads": "new-load",
    "width-durations": "job-duration",
}


def install(site: Path, points: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Entry points as pip leaves them on the path."""
    info = site / f"{PROJECT['name'].replace('-', '_')}-{PROJECT['version']}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {PROJECT['name']}\nVersion: {PROJECT['version']}\n")
    told = ["[jobcast.predictors]", *(f"{name} = {place}" for name, place in points.items()), ""]
    (info / "entry_points.txt").write_text("\n".join(told))
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (site, HERE))))  # for processes that replay
    get_reusable_executor().shutdown(wait=True)
    predictors._installed.cache_clear()


@pytest.fixture(autouse=True)
def installed(tmp_path, monkeypatch):
    """The package as pip installs it: its folder on the path, its entry points beside it."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(HERE)
    install(tmp_path / "site", PROJECT["entry-points"]["jobcast.predictors"], monkeypatch)
    yield
    monkeypatch.undo()
    predictors._installed.cache_clear()


def test_it_is_two_files():
    files = {path.name for path in HERE.iterdir() if path.is_file()}
    assert files - {"conftest.py", Path(__file__).name} == {"pyproject.toml", "jobcast_forecasters.py"}


@pytest.mark.parametrize("name", NAMES)
def test_it_keeps_to_the_rules(name):
    check_predictor(lambda: find_predictor(name), range(1))


@pytest.mark.slow
def test_the_whole_life(shell, store, run, tmp_path):
    """Trained, scored, asked, simulated and backtested under sia, promoted, watched: by the command line alone."""
    window = ("--trace", run.trace, "--from", run.trained_until)
    replay = (*window, "--pools", run.pools)
    pins = []
    for name in NAMES:
        words = ("train", name, "--trace", run.trace, "--min-jobs", 50, "--horizons", "5,60")
        first = shell.json(*words, "--until", "2024-01-04")
        assert (first["version"], first["algorithm"]) == (1, "own")
        assert shell.json(*words, "--until", run.trained_until)["version"] == 2
        pins.append(f"{name}=2")
        ours = shell.json("evaluate", OURS[name], *window, "--draws", 0, "--no-paper-recipe")
        theirs = shell.json("evaluate", f"{name}:2", *window, "--draws", 0, "--no-paper-recipe")
        assert set(theirs) == set(ours)
        asked = shell.json("predict", f"{name}:2", "--trace", run.trace, "--at", run.trained_until)
        assert asked["predictor"] == name
        forecasts = ("--policy", "sia", "--forecasts", f"registry:{name}=2", "--baseline", "none")
        assert shell.json("simulate", *replay, *forecasts)["models"] == {
            name: 2,
            **{one: 1 for one in OURS.values() if one != OURS[name]},
        }
        assert shell.json("models", "promote", f"{name}:2", *replay, "--force")["compared"]
        assert shell.json("drift", name, *window)["weeks"]
    together = ",".join(pins)
    words = ("--policies", "sia", "--forecasts", f"registry,registry:{together}", "--jobs", 1)
    rows = shell.json("backtest", *replay, *words)["rows"]
    versions = [row["versions"] for row in rows if row["policy"] == "sia"]
    assert versions == [dict.fromkeys(OURS.values(), 1), dict.fromkeys(NAMES, 2)]


def test_two_answers_to_one_question_are_refused(shell, run):
    words = ("simulate", "--trace", run.trace, "--pools", run.pools, "--policy", "sia", "--forecasts")
    line = shell.refuses(*words, "registry:past-loads=1,new-load=1")
    assert "past-loads and new-load both answer loads; name one" in line


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("nowhere:Model", "does not load (ModuleNotFoundError: No module named 'nowhere')"),
        ("json:dumps", "and no class"),
        ("jobcast_forecasters:PastLoads", "names itself 'past-loads'"),
    ],
)
def test_a_broken_one_is_named_and_hinders_no_other(shell, run, tmp_path, monkeypatch, place, told):
    install(tmp_path / "more", {"broken": place}, monkeypatch)
    line = shell.refuses("train", "broken", "--trace", run.trace)
    assert line.startswith(f"predictor broken: the plug-in {place} ")
    assert told in line
    asked = shell.json("predict", "new-load", "--trace", run.trace, "--at", run.trained_until)
    assert asked["predictor"] == "new-load"
    shell.refuses("drift", "no-such", "--trace", run.trace)
