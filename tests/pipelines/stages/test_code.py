"""What a stage's code is: all that it imports, and no more."""

import subprocess
import sys

import pytest

from jobcast.pipelines.report.console import Console
from jobcast.pipelines.stages import code
from jobcast.pipelines.stages.code import FOLDER, PLUMBING, closure, code_of, file_of, imports_of
from jobcast.pipelines.stages.config import Params
from jobcast.pipelines.stages.context import Context
from jobcast.pipelines.stages.plan import find_stage, steps

LOADED = """
import sys
import jobcast.pipelines.stages.{stage}
print("\\n".join(name for name in sys.modules if name.split(".")[0] == "jobcast"))
"""
LIVES = "pipelines/lifecycle/predictors"


def test_every_stage_writes_its_code(tmp_path, monkeypatch):
    monkeypatch.setattr(code, "code_of", lambda stage, predictor="": {stage: predictor})
    find_stage("code", "").work(Context(Params(), tmp_path, tmp_path, Console(quiet=True)), "")
    written = {path.relative_to(tmp_path / FOLDER).as_posix() for path in tmp_path.rglob("*.json")}
    named = {f"{file_of(stage.name, item)}.json" for stage, item in steps()}
    assert written == named - {"code.json"}


@pytest.mark.parametrize("stage", ["train", "backtest"])
def test_what_a_stage_imports_is_found(stage):
    command = [sys.executable, "-c", LOADED.format(stage=stage)]
    loaded = set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    behind = {name for place in PLUMBING for name in loaded if f"{name}.".startswith(f"{place}.")}
    for name in list(behind):
        behind |= closure(name)
    assert loaded - behind <= closure(f"jobcast.pipelines.stages.{stage}")


def test_what_is_imported_late_or_named_in_a_text_or_an_entry_point_is_found():
    assert "schedulers/sia.py" in code_of("backtest")  # "sia:Sia" in the table of policies
    assert "schedulers/elastic/afs.py" in code_of("backtest")
    assert "traces/readers/swf.py" in code_of("prepare")
    assert "models/curves/accuracy_curve.py" in code_of("evaluate")
    assert "pipelines/report/templates/report.html.j2" in code_of("report")


def test_what_a_stage_does_not_import_is_no_dependency():
    assert not [file for file in code_of("train") if file.startswith("schedulers/")]
    assert not [file for file in code_of("featurize") if file.startswith(("models/", "simulator/"))]
    assert "pipelines/stages/config.py" not in code_of("prepare")


@pytest.mark.parametrize(
    ("stage", "predictor", "own", "others"),
    [
        ("train", "new-load", "models/new_load.py", "models/curves/accuracy_curve.py"),
        ("learn", "regime", "models/regimes/prior.py", "models/epoch_time/epoch_time.py"),
        ("learn", "epoch-time", f"{LIVES}/epoch_times.py", f"{LIVES}/task_order.py"),
        ("schedule", "mlf-policy", "models/curves/accuracy_curve.py", f"{LIVES}/epoch_times.py"),
    ],
)
def test_a_stage_of_one_predictor_computes_with_its_model_and_life(stage, predictor, own, others):
    found = code_of(stage, predictor)
    assert own in found
    assert others not in found
    assert set(found) <= set(code_of(stage))


def test_a_predictors_training_depends_on_no_scheduler_unless_it_is_one():
    for predictor in ("regime", "accuracy-curve", "epoch-time"):
        assert not [file for file in code_of("learn", predictor) if file.startswith("schedulers/")], predictor
    assert "schedulers/tasks/mlf_rl.py" in code_of("schedule", "mlf-policy")


def test_imports_for_the_type_checker_alone_are_none():
    assert "jobcast.pipelines.report.console" not in imports_of("jobcast.models.forecasts")
    assert "jobcast.domain.errors" in imports_of("jobcast.pipelines.stages.care")
