"""What is told of predictors: figures, a table, the page of the documentation."""

from pathlib import Path

from jobcast.models.predictors import OURS, PREDICTORS
from jobcast.pipelines.reference_pages import predictor_row, predictors_page

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_current():
    assert (DOCS / "predictors.md").read_text() == predictors_page(), (
        "jobcast predictors --markdown > docs/predictors.md"
    )


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
