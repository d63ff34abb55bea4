"""Stage promote: three champions or none, what is tried, what stays."""

import json
import shutil
from dataclasses import asdict

import pytest

from jobcast.models.care import Care
from jobcast.pipelines.experiments.forecast_specs import PREDICTORS
from jobcast.pipelines.stages import promote

GOOD = {
    "jobs": 301, "days": 3, "draws": 100, "confidence": 0.95, "speedup": 2.0, "speedup_low": 1.5, "speedup_high": 2.5,
    "slowed_pct": 0.5, "slowed_pct_low": 0.0, "slowed_pct_high": 0.9,
}  # fmt: skip


@pytest.fixture
def out(run, tmp_path):
    """The finished run's folder, copied."""
    shutil.copytree(run.out, tmp_path / "out")
    return tmp_path / "out"


@pytest.fixture
def fresh(store):
    """The registry of the finished run, as the run left it: without champions."""
    with store.store.client() as client:
        for name in PREDICTORS:
            client.delete_registered_model_alias(name, "champion")
    return store


def champions(registry) -> list[int | None]:
    return [registry.show(name).aliases.get("champion") for name in PREDICTORS]


def staged(shell, run, out, **gate) -> dict:
    """Stage promote, after a backtest that found these figures; its receipt."""
    (out / "processed/gate.json").write_text(json.dumps(GOOD | gate))
    shell.works("stage", "promote", "--params", run.params, "--out", out)
    return json.loads((out / "processed/receipts/promote.json").read_text())


def test_a_run_that_does_not_pass_leaves_no_champion_and_its_report_leads_with_it(run):
    told = json.loads((run.out / "processed/receipts/promote.json").read_text())
    assert (told["promoted"], told["before"]) == (False, {})
    assert "no gain beyond doubt" in told["reasons"][0]
    assert [model["aliases"] for model in told["models"]] == [["challenger"]] * 3
    page = (run.out / "processed/report.html").read_text()
    assert page.index('class="alarm"') < page.index('class="finding"')
    assert "No champion: the new trio (will-jobs-arrive:1, new-load:1, job-duration:1) was not promoted" in page
    assert "jobcast models promote job-duration:1 --force" in page


def test_without_champions_the_registry_refuses_with_the_remedy(shell, run, fresh):
    words = ("--trace", run.trace, "--pools", run.pools, "--policy", "sia", "--forecasts", "registry")
    line = shell.refuses("simulate", *words, "--from", run.trained_until)
    assert line.startswith("will-jobs-arrive has no champion: none of its 1 versions was promoted; ")
    assert "jobcast models promote will-jobs-arrive:VERSION" in line


def test_a_trio_that_passes_becomes_champion_together(shell, run, fresh, out):
    told = staged(shell, run, out)
    assert (told["promoted"], told["tries"], champions(fresh)) == (True, 1, [1, 1, 1])
    shell.works("report", out)
    assert 'class="alarm"' not in (out / "processed/report.html").read_text()


def test_other_care_is_tried_where_too_many_are_slowed(shell, run, fresh, out, monkeypatch):
    """The variant that passes is registered, as another version with another cost, and its like not a second time."""
    monkeypatch.setattr(promote, "paired", lambda windows, draws: GOOD)
    told = staged(shell, run, out, slowed_pct=9.0)
    assert (told["promoted"], told["tries"]) == (True, 2)
    assert champions(fresh) == [1, 1, 2]  # the first two cares differ in the cost of durations alone
    costs = [fresh.parameters(fresh.resolve("job-duration", number))["under_cost"] for number in (1, 2)]
    assert costs == ["30.0", "100.0"]
    assert staged(shell, run, out, slowed_pct=9.0)["trio"] == told["trio"]


@pytest.mark.slow
def test_champions_stay_where_the_trio_is_worse(shell, run, fresh, out, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(promote, "paired", lambda windows, draws: GOOD)
        staged(shell, run, out, slowed_pct=9.0)
    monkeypatch.setattr(promote, "why_slower", lambda ours, theirs: ["speedup 1.10 against 2.00"])
    told = staged(shell, run, out)
    assert (told["promoted"], told["before"]["job-duration"], champions(fresh)) == (False, 2, [1, 1, 2])
    assert set(told["beside"]) == {"candidate", "champion"}
    shell.works("report", out)
    assert "Champions stay" in (out / "processed/report.html").read_text()


def test_what_gains_too_little_is_not_tried_with_more_care(shell, run, fresh, out, monkeypatch):
    monkeypatch.setattr(promote, "replay_trio", lambda trio, scenario: pytest.fail("was tried"))
    path = out / "interim/care.json"
    told = json.loads(path.read_text())
    first, *others = (Care(**care) for care in told["cares"])
    path.write_text(
        json.dumps(told | {"cares": [asdict(first), *(asdict(one) for one in others if one.covers(first))]})
    )
    told = staged(shell, run, out, speedup=1.1, speedup_low=1.05)
    assert (told["promoted"], told["tries"], champions(fresh)) == (False, 1, [None] * 3)
