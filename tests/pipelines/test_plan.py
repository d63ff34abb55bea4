"""dvc.yaml and `jobcast run` are the same list of stages."""

import ast
import re
from pathlib import Path

import pytest
import yaml

from jobcast.domain.errors import ConfigError
from jobcast.pipelines.config import Params, load_params
from jobcast.pipelines.stages.plan import STAGES, find_stage, steps
from tests.pipelines.dvc_stages import DVC, ROOT, DvcStage

PER_ITEM = ' "${item}"'


def test_dvc_names_the_same_stages_in_the_same_order():
    assert [(stage.name, stage.items) for stage in DVC] == [(stage.name, tuple(stage.items)) for stage in STAGES]


@pytest.mark.parametrize("stage", DVC, ids=lambda stage: stage.name)
def test_dvc_calls_the_stage_and_keeps_its_receipt(stage: DvcStage):
    several = stage.items != ("",)
    assert stage.cmd == f"python -m jobcast stage {stage.name}{PER_ITEM if several else ''}"
    assert f"processed/receipts/{stage.name}{'-${item}' if several else ''}.json" in stage.outs
    assert set(stage.params) <= set(Params.model_fields)


def test_no_stage_depends_on_a_receipt_and_every_dependency_is_made_before():
    made: set[str] = set()
    for stage in DVC:
        assert not any("receipts" in path for path in stage.deps)
        assert set(stage.deps) <= made
        made |= stage.made()


def test_code_dependencies_are_there():
    for stage in DVC:
        for path in stage.code:
            assert (ROOT / path).exists(), path


def test_params_file_holds_the_defaults():
    assert load_params(ROOT / "params.yaml") == Params()
    assert set(yaml.safe_load((ROOT / "params.yaml").read_text())) == set(Params.model_fields)


def test_steps_and_find_stage():
    assert [(stage.name, item) for stage, item in steps()][3:6] == [
        ("train", "will-jobs-arrive"),
        ("train", "new-load"),
        ("train", "job-duration"),
    ]
    assert find_stage("train", "new-load").name == "train"
    with pytest.raises(ConfigError, match=r"stage train: takes .*new-load.*, got none"):
        find_stage("train", "")
    with pytest.raises(ConfigError, match="unknown; choose from prepare, featurize"):
        find_stage("brew", "")


PLUMBING = {"config", "console", "files", "times", "model_tables", "plots", "stages.context", "stages"}
"""Files of pipelines that say how a stage is run or shown, not what it computes."""
DRAWINGS = {"plots_predictors", "wording"}


def file_of(module: str) -> Path:
    """The file of a module of pipelines; a package's is its `__init__.py`."""
    path = ROOT / "pipelines" / module.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def pipelines_imports(module: str, seen: set[str]) -> set[str]:
    """Modules of pipelines that a module imports, itself among them, those behind plumbing aside."""
    if module in seen:
        return seen
    seen.add(module)
    for node in ast.walk(ast.parse(file_of(module).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("jobcast.pipelines."):
            names = [node.module, *(f"{node.module}.{one.name}" for one in node.names)]  # modules, too, are imported
            for name in (name.removeprefix("jobcast.pipelines.") for name in names if name != "jobcast.pipelines"):
                if name not in PLUMBING | DRAWINGS and file_of(name).is_file():
                    pipelines_imports(name, seen)
    return seen


@pytest.mark.parametrize("stage", [stage for stage in DVC if stage.name != "report"], ids=lambda stage: stage.name)
def test_code_dependencies_hold_all_that_a_stage_computes_with(stage: DvcStage):
    needed = {file_of(name).relative_to(ROOT) for name in pipelines_imports(f"stages.{stage.name}", set())}
    named = [ROOT / path for path in stage.code]
    uncovered = [path for path in needed if not any((ROOT / path).is_relative_to(place) for place in named)]
    assert not uncovered


def test_rooms_of_a_stage_hold_what_its_rooms_import():
    for stage in DVC:
        rooms = {path for path in stage.code if "/" not in path} - {"pipelines"}
        for room in rooms:
            for path in (ROOT / room).rglob("*.py"):
                found = set(re.findall(r"from jobcast\.(\w+)", path.read_text(encoding="utf-8")))
                assert found <= rooms, f"{stage.name}: {path} imports {found - rooms}"
