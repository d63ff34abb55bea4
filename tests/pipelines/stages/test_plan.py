"""dvc.yaml and `jobcast run` are the same list of stages."""

from pathlib import Path

import pytest
import yaml

import jobcast
from jobcast.domain.errors import ConfigError
from jobcast.models.predictors import OURS
from jobcast.pipelines.stages.code import FOLDER, file_of
from jobcast.pipelines.stages.config import Learn, Params, Schedule, Train, load_params
from jobcast.pipelines.stages.plan import PARTS, STAGES, find_stage, steps
from tests.pipelines.stages.dvc_stages import DVC, ENTRIES, ROOT, DvcStage
from tests.shared import refused

PER_ITEM = ' "${key}"'


def test_dvc_names_the_same_stages_in_the_same_order():
    assert [(stage.name, stage.items) for stage in DVC] == [(stage.name, tuple(stage.items)) for stage in STAGES]


@pytest.mark.parametrize("stage", DVC, ids=lambda stage: stage.name)
def test_dvc_calls_the_stage(stage: DvcStage):
    assert stage.cmd == f"python -m jobcast stage {stage.name}{PER_ITEM if stage.items != ('',) else ''}"
    assert {name.partition(".")[0] for name in stage.params} <= set(Params.model_fields)


def test_a_predictor_is_trained_by_its_own_parameters_alone():
    train = ENTRIES["train"]
    sections = {f"train.{section}" for section in train["foreach"].values()}
    assert sections == {f"train.{name}" for name in Train.model_fields}
    assert train["do"]["params"] == ["featurize", "train.${item}"]


@pytest.mark.parametrize(("name", "sections"), [("learn", Learn), ("judge", Learn), ("schedule", Schedule)])
def test_each_predictor_of_enriched_traces_has_a_section_and_a_stage_of_its_own(name, sections):
    entry = ENTRIES[name]
    assert tuple(entry["foreach"].values()) == tuple(sections.model_fields)
    own = [one for one in entry["do"]["params"] if "${item}" in one]
    assert own == [f"{'schedule' if sections is Schedule else 'learn'}.${{item}}"]


def test_every_predictor_of_ours_is_trained_by_a_stage():
    trained = [item for stage in STAGES if stage.name in ("train", "learn", "schedule") for item in stage.items]
    assert sorted(trained) == sorted(OURS)


def test_outs_are_cached_and_hold_no_receipt():
    for entry in ENTRIES.values():
        told = entry.get("do", entry)
        outs = [*told.get("outs", ()), *told.get("metrics", ())]
        assert all(isinstance(path, str) and "receipts" not in path for path in outs)  # no {cache: false}


def test_every_dependency_is_made_before():
    made: set[str] = set()
    for stage in DVC:
        assert all(path in made or path.startswith(tuple(f"{one}/" for one in made)) for path in stage.made_from())
        made |= stage.made()


def test_params_file_holds_the_defaults():
    assert load_params(ROOT / "params.yaml") == Params()
    assert set(yaml.safe_load((ROOT / "params.yaml").read_text())) == set(Params.model_fields)


def test_the_main_job_leaves_no_stage_out_and_does_none_twice():
    placed = [name for names in PARTS.values() for name in names]
    assert sorted([*placed, "report"]) == sorted(stage.name for stage in STAGES)


def test_steps_and_find_stage():
    told = [(stage.name, item) for stage, item in steps()][4:7]
    assert told == [("train", "will-jobs-arrive"), ("train", "new-load"), ("train", "job-duration")]
    assert find_stage("train", "new-load").name == "train"
    refused(ConfigError, r"stage train: takes .*new-load.*, got none", find_stage, "train", "")
    refused(ConfigError, "unknown; choose from code, prepare, featurize", find_stage, "brew", "")


@pytest.mark.parametrize("stage", DVC, ids=lambda stage: stage.name)
def test_a_stage_depends_on_its_own_code_and_the_stage_code_on_all_rooms(stage: DvcStage):
    if stage.name == "code":
        rooms = {path.name for path in Path(jobcast.__file__).parent.iterdir() if path.is_dir()}
        assert set(stage.code) == rooms - {"__pycache__"}
    else:
        assert stage.code == ()
        name = file_of(stage.name, "${key}" if stage.items != ("",) else "")
        assert [path for path in stage.deps if path.startswith(FOLDER)] == [f"{FOLDER}/{name}.json"]
