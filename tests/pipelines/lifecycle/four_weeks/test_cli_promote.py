"""`jobcast models promote --trace`: the comparison, the refusal, what is recorded."""

import json
import shutil

import pytest

from jobcast.models.registry import open_registry
from tests.pipelines.conftest import typed

FIGURES = {"speedup_gmean", "slowed_pct", "slowdown_total_min", "mean_jct_s"}


@pytest.fixture(scope="module")
def with_versions(run, tmp_path_factory):
    """A home with new-load 2, made to fall short, and 3, trained all but like the champion."""
    home = tmp_path_factory.mktemp("versions") / "home"
    shutil.copytree(run.home, home)
    words = ("train", "new-load", "--trace", run.trace, "--min-jobs", 50, "--horizons", "5,60")
    for coverage in (0.05, 0.951):
        more = ("--algorithm", "sliding-max", "--until", run.trained_until, "--coverage", coverage)
        typed(*words, *more, home=home)
    return home


@pytest.fixture
def versions(with_versions, shell, tmp_path):
    """Its copy, which the command line reads and writes."""
    shell.home = tmp_path / "home"
    shutil.copytree(with_versions, shell.home)
    return open_registry(shell.home)


@pytest.fixture
def compare(run):
    return ("--trace", run.trace, "--pools", run.pools)


def champion(store, name="new-load"):
    return open_registry(store.home).resolve(name).version


def refused(shell, *words):
    """Figures on stdout, and the one line on stderr, of a promotion that is refused."""
    answer = shell("--quiet", *words, "--json", "-")
    assert answer.code == 2
    assert answer.err.count("\n") == 1
    return json.loads(answer.out), answer.err


def test_a_version_that_is_worse_is_refused_with_the_figures(shell, versions, compare, run):
    told, line = refused(shell, "models", "promote", "new-load:2", *compare)
    assert champion(versions) == 1
    assert line.startswith("jobcast: new-load:2 is worse than champion 1 from 2024-01-15T00:00:00Z to 2024-01-2")
    assert any(reason.startswith("pinball ") for reason in told["reasons"])
    assert f": {'; '.join(told['reasons'])}; champion stays" in line
    assert "champion stays version 1, --force promotes all the same" in line
    assert (told["promoted"], told["forced"], told["compared"], told["against"]) == (False, False, True, 1)
    assert told["window"]["from"] == run.trained_until
    figures = told["figures"]
    assert figures["figure"] == "pinball"
    assert figures["interval"][0] <= figures["difference"] <= figures["interval"][1]
    for block in figures["blocks"].values():
        assert block["difference"] == pytest.approx(block["candidate"]["pinball"] - block["champion"]["pinball"])
    (backtest,) = told["backtests"].values()
    for side in ("candidate", "champion"):
        assert set(backtest[side]) >= FIGURES
    assert backtest["policy"] == "sia"
    assert backtest["others"] == {"will-jobs-arrive": 1, "job-duration": 1}
    assert backtest["quotas"] == f"pools file {run.pools}"


def test_force_overrules_and_says_so_and_rollback_takes_it_back(shell, versions, compare):
    answer = shell.works("models", "promote", "new-load:2", *compare, "--force")
    assert "worse, promoted by --force: pinball " in answer.out
    assert answer.out.endswith("new-load: champion is version 2\n")
    assert champion(versions) == 2
    shell.works("models", "rollback", "new-load")
    assert champion(versions) == 1


def test_a_version_that_is_not_worse_is_promoted_with_the_figures_and_both_are_recorded(shell, versions, compare):
    answer = shell.works("models", "promote", "new-load:3", *compare)
    assert "which neither saw" in answer.out
    assert "jobs slowed (%)" in answer.out
    assert champion(versions) == 3
    version = open_registry(versions.home).resolve("new-load", 3)
    tag = json.loads(version.tags["promotion"])
    assert (tag["promoted"], tag["against"], tag["reasons"]) == (True, 1, [])
    from mlflow import MlflowClient

    run = MlflowClient(f"sqlite:///{versions.home}/mlruns/mlflow.db").get_run(tag["run_id"])
    assert run.data.tags["jobcast.kind"] == "promotion"
    assert run.data.metrics["backtests/sia/candidate/speedup_gmean"] > 0


def test_without_quotas_they_are_derived_and_told(shell, versions, run):
    told = shell.json("models", "promote", "new-load:3", "--trace", run.trace, "--until", "2024-01-20")
    assert told["backtests"]["sia"]["quotas"].startswith("derived: ")
    assert told["window"]["until"] == "2024-01-20T00:00:00Z"
    assert told["figures"]["interval"] is not None


def test_without_a_trace_nothing_is_compared(shell, versions):
    answer = shell.works("models", "promote", "new-load:2")
    assert answer.out == "new-load: champion is version 2\n"
    assert "nothing was compared" in answer.err
    told = shell.json("models", "promote", "new-load:3")
    assert (told["compared"], told["promoted"]) == (False, True)


def test_a_champion_is_not_compared_with_itself(shell, versions, compare):
    answer = shell.works("models", "promote", "new-load:1", *compare)
    assert "nothing was compared: it is champion already" in answer.err


def test_a_window_that_either_saw_is_refused_unless_allowed(shell, versions, run, compare):
    words = ("models", "promote", "new-load:3", *compare, "--from", "2024-01-14")
    assert "was trained on data until 2024-01-15T00:00:00Z" in shell.refuses(*words)
    told = shell.json(*words, "--allow-overlap", "--until", "2024-01-19")
    assert told["overlap_allowed"] is True
    assert champion(versions) == 3


def test_other_predictors_that_nobody_trained_leave_the_backtest_out(shell, run, tmp_path, compare):
    shell.home = tmp_path / "alone"
    words = ("train", "new-load", "--trace", run.trace, "--min-jobs", 50, "--horizons", "5", "--algorithm")
    for until in ("2024-01-13", "2024-01-14"):
        shell.works(*words, "sliding-max", "--until", until)
    told = shell.json("models", "promote", "new-load:2", *compare)
    assert told["backtests"] == {}
    assert "no backtest of sia: job-duration, will-jobs-arrive not trained yet" in told["notes"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("new-load:1", "--from", "2024-01-15"), "--from: is for a comparison; add --trace FILE"),
        (("new-load:1", "--pools", "p.csv"), "--pools: is for a comparison"),
        (("new-load:9", "--trace", "TRACE"), "new-load has no version 9"),
        (("new-load:1", "--trace", "nowhere.csv"), "no such file"),
    ],
)
def test_wrong_input_is_one_line(shell, run, words, told):
    assert told in shell.refuses("models", "promote", *(run.trace if word == "TRACE" else word for word in words))
