"""What is told of policies and predictors: figures, tables, the pages of the documentation, help."""

from pathlib import Path

import pytest

from jobcast.models.predictors import OURS, PREDICTORS
from jobcast.pipelines.cli.reference_pages import (
    all_policies,
    policies_page,
    policy_figures,
    policy_table,
    predictor_row,
    predictors_page,
)
from jobcast.schedulers.registry import BUILT_IN, find_policy

DOCS = Path(__file__).parents[3] / "docs"


def test_the_page_of_policies_is_current():
    assert (DOCS / "policies.md").read_text() == policies_page(), "jobcast policies --markdown > docs/policies.md"


def test_all_policies_are_listed(shell):
    rows = shell.json("policies")["policies"]
    assert [row["name"] for row in rows][: len(BUILT_IN)] == list(BUILT_IN)
    assert rows[0] == all_policies()[0]
    sia = next(row for row in rows if row["name"] == "sia")
    assert (sia["kind"], sia["law"], sia["scope"], sia["preempts"]) == ("pools", "runtime", "pool", False)
    assert sia["asks"] == ["arrivals", "loads", "durations"]


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_setting_is_explained(name):
    told = policy_figures(find_policy(name))
    for settings in told["settings"].values():
        for one in settings:
            assert one["about"], one
            assert one["values"], one
            assert one["name"] in policy_table(told)


def test_one_policy_is_told_with_its_settings(shell):
    told = shell.json("policies", "themis_np")
    (own,) = told["settings"]["own"]
    about = "share of the pending jobs that idle GPUs are offered to"
    assert own == {"name": "filter", "default": 0.2, "values": "a share in (0, 1]", "about": about}
    assert "did you mean sia" in shell.refuses("policies", "siaa")


@pytest.mark.parametrize("command", ["simulate", "backtest"])
def test_help_lists_all(shell, command):
    text = shell.works(command, "--help").out
    assert all(name in text for name in BUILT_IN)


def test_the_page_of_predictors_is_current():
    page = (DOCS / "predictors.md").read_text()
    assert page == predictors_page(), "jobcast predictors --markdown > docs/predictors.md"


def test_all_predictors_are_listed(shell):
    rows = shell.json("predictors")["predictors"]
    assert [row["name"] for row in rows] == list(PREDICTORS)
    lines = shell.works("predictors").out.splitlines()
    assert lines[0].split()[:2] == ["predictor", "question"]
    assert len(lines) == 1 + len(rows)


def test_who_asks_and_who_decides():
    durations = predictor_row("job-duration")
    assert {"sia", "ssf", "sjf", "gssf"} <= set(durations["asked_by"])
    assert durations["gate"] == ["sia", "ssf"]
    assert durations["learns_from"] == ["trace"]
    assert "train" in durations["stages"]
    assert predictor_row("mlf-policy")["asked_by"] == ["mlf_rl", "mlfs"]
    assert all(predictor_row(name)["gate"] for name in ("regime", "accuracy-curve", "epoch-time", "device-rl"))


def test_what_answers_the_same_question_is_told_alike():
    told = {name: predictor_row(name)["beside"] for name in OURS}
    assert told["will-jobs-arrive"][:2] == ["always", "persistence"]
    assert told["regime"] == ["restatement", "bayes", "greedy"]
