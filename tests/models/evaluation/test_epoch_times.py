"""Figures of forecasts of epoch times: by hand for the rules without a model, and leave-one-out on measurements."""

from types import SimpleNamespace

import numpy as np
import pytest

from jobcast.domain.errors import TrainingError
from jobcast.models.epoch_time.epoch_time import EpochTime
from jobcast.models.epoch_time.fitting import NORMAL_90
from jobcast.models.epoch_time.jobs import jobs_of
from jobcast.models.evaluation import epoch_times
from jobcast.models.evaluation.epoch_times import (
    BASELINES,
    Scored,
    _spread_of,
    figures,
    planned,
    score_epoch_times,
)
from jobcast.pipelines.lifecycle.profile_tables import ImportSettings, import_profiles
from jobcast.traces.profiles import profile_table, read_profiles
from tests.shared import refused

BAR = 0.10


def test_rules_by_hand():
    """linear: 100 s on one GPU are 25 s on 4; nearest: the 30 s on 4 GPUs are 15 s on 8; types stay apart."""
    job = jobs_of(
        profile_table(
            [("A", 16, "t4", 1, 100.0), ("A", 16, "t4", 4, 30.0), ("A", 16, "v100", 2, 8.0), ("A", 16, "t4", 8, 9.9)]
        )
    )[0]
    known, asked = job.at(np.array([0, 1, 2])), job.at(np.array([3])).places
    assert BASELINES["linear"](known, asked).tolist() == [12.5]
    assert BASELINES["nearest"](known, asked).tolist() == [15.0]
    # Twice the GPUs are nearer than a quarter of the batch size.
    rows = [("A", 16, "t4", 2, 50.0), ("A", 64, "t4", 1, 44.0), ("A", 64, "t4", 2, 1.0)]
    job = jobs_of(profile_table(rows))[0]
    asked = (job.places.batch_size == 64) & (job.places.gpus == 2)
    assert BASELINES["nearest"](job.at(np.flatnonzero(~asked)), job.places.at(asked)).tolist() == [22.0]


def test_a_rule_that_is_right_has_no_error_and_nothing_is_drawn_unless_asked_for():
    jobs = jobs_of(profile_table([("A", 16, "t4", gpus, 64.0 / gpus) for gpus in (1, 2, 4, 8, 16)]))
    told = score_epoch_times(jobs, lambda name: EpochTime.untrained())
    assert told["baselines"]["linear"] == pytest.approx(0.0)
    assert told.get("random_points") is None


def test_figures_add_up():
    rows = [(m, s, "t4", g, (1 + s / 64) / (s * g) * 1e4 + 3) for m in "AB" for s in (16, 32, 64) for g in (1, 2, 4)]
    jobs = jobs_of(profile_table(rows))
    told = score_epoch_times(jobs, lambda name: EpochTime.untrained(), draws=3, seed=1)
    assert (told["jobs"], told["points"], told["configurations"]) == (2, 6, 12)
    assert told["plans"] == {"middle-wide": 2}
    assert told["mape"] == pytest.approx(np.mean(list(told["mape_by_model"].values())))
    assert told["mape_by_gpu_type"] == {"t4": pytest.approx(told["mape"])}
    assert told["mape"] <= told["p90_ape"]
    assert set(told["baselines"]) == {"linear", "nearest"}
    drawn = told["random_points"]
    assert drawn["mape_p5"] <= drawn["mape"] <= drawn["mape_p95"]
    assert score_epoch_times(jobs, lambda name: EpochTime.untrained(), draws=3, seed=1) == told


def test_what_is_left_of_a_job_is_scored_by_hand(monkeypatch):
    """Known is 100 s on one GPU; 60 s on 2 and 40 s on 4 are forecast as 50 and 30 s, within 22 % and 30 %.

    The truth of the last one, 1 s, is at the very end of its interval.
    """
    rows = [("A", 16, "t4", gpus, epoch_s) for gpus, epoch_s in ((1, 100.0), (2, 60.0), (4, 40.0), (8, 1.0))]
    (job,) = jobs_of(profile_table(rows))
    end = NORMAL_90 / 8
    told = np.array([np.log(50.0), np.log(30.0), -end]), np.array([0.06, 0.08, 1 / 16])  # 2 x 1.645 of them either way
    monkeypatch.setattr(epoch_times, "pick_points", lambda job, plan, points: np.array([0]))
    monkeypatch.setattr(epoch_times, "forecast_log", lambda fitted, asked: told)
    model = SimpleNamespace(plan_="wide", widening_=2.0, fit_job=lambda known, types, spread: None)
    (found,) = planned([job], {"A": model}, points=1)
    assert (found.model, found.plan, found.points, found.gpu_type.tolist()) == ("A", "wide", 1, ["t4"] * 3)
    assert found.error == pytest.approx([50 / 60 - 1, 30 / 40 - 1, np.exp(-end) - 1])
    assert found.inside.tolist() == [True, False, True]
    assert found.baselines["linear"] == pytest.approx([50 / 60 - 1, 25 / 40 - 1, 12.5 - 1])


def test_figures_by_hand():
    """Errors of 10, 20 and 60 %, two of them too low; the middle one is outside of its interval."""
    one = Scored("A", "wide", 3, np.array(["t4", "v100"]), np.array([-0.1, 0.2]), np.array([True, False]), {})
    two = Scored("B", "all", 2, np.array(["t4"]), np.array([-0.6]), np.array([True]), {})
    rules = [{"r": np.array([0.5, -1.0])}, {"r": np.array([1.5])}]
    found = [made._replace(baselines=rule) for made, rule in zip((one, two), rules, strict=True)]
    assert figures(found) == {
        "jobs": 2,
        "points": 5,
        "configurations": 3,
        "mape": pytest.approx(0.3),
        "p90_ape": pytest.approx(0.2 + 0.8 * 0.4),
        "coverage_90": pytest.approx(2 / 3),
        "mape_by_gpu_type": {"t4": pytest.approx(0.35), "v100": 0.2},
        "mape_by_model": {"A": pytest.approx(0.15), "B": 0.6},
        "baselines": {"r": 1.0},
        "plans": {"wide": 1, "all": 1},
    }
    assert figures(found[:1])["baselines"] == {"r": 0.75}
    ends = {"draws": 3, "mape": pytest.approx(2.0), "mape_p5": pytest.approx(1.1), "mape_p95": pytest.approx(2.9)}
    assert _spread_of([3.0, 1.0, 2.0]) == ends
    assert _spread_of([]) is None


def test_nothing_left_out():
    jobs = jobs_of(profile_table([("A", 16, "t4", 1, 1.0), ("A", 16, "t4", 2, 1.0)]))
    refused(TrainingError, "profile more", score_epoch_times, jobs, lambda name: EpochTime.untrained())


def test_bar_on_step_times_of_applications_left_out(tmp_path, published):
    """Mean absolute percentage error of at most 10 % from three points, on one node."""
    out = tmp_path / "steps.parquet"
    import_profiles([published / "curves" / "step_times.csv"], out, ImportSettings(samples={"": 1000}))
    table = read_profiles(out)
    whole = EpochTime.untrained()
    whole.trained_ = table.frame
    told = score_epoch_times(jobs_of(table), whole.twin_without)
    assert (told["jobs"], told["points"], told["configurations"]) == (4, 12, 155)
    assert told["mape"] <= BAR
    assert told["mape"] < min(told["baselines"].values()) / 3
