"""Trained models as files: cards that come back as they were, registries filled from them."""

import json
import shutil
from pathlib import Path

import pytest

from jobcast.models.registry import ModelCard, open_registry
from jobcast.pipelines.experiments.forecast_specs import PREDICTORS
from jobcast.pipelines.lifecycle.model_files import read_card, write_card


def test_a_card_comes_back_as_it_was(tmp_path):
    (tmp_path / "draft").mkdir()
    drawing = tmp_path / "draft/curve.svg"
    drawing.write_text("<svg/>")
    card = ModelCard(
        *("new-load", "quantile", 7, "mine", "ab" * 32, 100, 0.1, 864000.0),
        feature_names=("hour", "load"),
        parameters={"coverage": 0.95, "demands": None, "tuned": True},
        metrics={"validation": {"horizons": {"5min": {"over": 1.5}}}},
        series={"tuning/value": (0.25, 0.5)},
        files=(drawing,),
        description="one line",
    )
    write_card(tmp_path / "card", card)
    back = read_card(tmp_path / "card")
    assert back.files == (tmp_path / "card/curve.svg",)
    assert back.files[0].read_text() == "<svg/>"
    assert {**vars_of(back), "files": ()} == {**vars_of(card), "files": ()}


def vars_of(card: ModelCard) -> dict[str, object]:
    return {name: getattr(card, name) for name in ModelCard.__slots__}


@pytest.fixture
def pulled(run, shell, tmp_path) -> Path:
    """A home with the finished run's files, receipts aside, and an empty registry."""
    shell.home = tmp_path / "clone"
    shutil.copytree(run.out, shell.home / "data", ignore=shutil.ignore_patterns("receipts"))
    return shell.home / "data"


APART = ("card_sha256", "code_sha256", "backtests")
"""Tags that tell of the code that registers, and of what happened to a version since."""


def test_an_empty_registry_is_filled_with_all_that_the_first_one_knew(pulled, run, shell):
    told = shell.json("models", "restore")
    assert sorted(told["restored"]) == ["job-duration:1", "new-load:1", "will-jobs-arrive:1"]
    assert (told["known"], told["champions"]) == ([], [])  # its trio did not pass the gate
    ours, theirs = open_registry(shell.home), open_registry(run.home)
    for name in PREDICTORS:
        new, old = ours.resolve(name, 1), theirs.resolve(name, 1)
        for key in old.tags.keys() - {*APART}:
            assert new.tags[key] == old.tags[key], key
        assert ours.metrics(new) == theirs.metrics(old)
        assert ours.parameters(new) == theirs.parameters(old)
    again = shell.json("models", "restore", pulled)
    assert (again["restored"], sorted(again["known"])) == ([], sorted(told["restored"]))


def test_what_passed_the_gate_becomes_champion_where_there_is_none(pulled, shell):
    path = pulled / "processed/promotion.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"passed": True}))
    told = shell.json("models", "restore")
    assert len(told["champions"]) == 3
    registry = open_registry(shell.home)
    assert all("champion" in registry.resolve(name).aliases for name in PREDICTORS)
    with registry.store.client() as client:
        client.delete_registered_model_alias("new-load", "champion")
    assert shell.json("models", "restore")["champions"] == []  # champions that there are stay


def test_what_cannot_be_restored_is_said(pulled, shell):
    shutil.rmtree(pulled / "processed/models/new-load")
    line = shell.refuses("models", "restore")
    assert "new-load" in line
    assert "no such model; `dvc pull` or the stage train new-load brings it" in line
    line = shell.refuses("models", "restore", "nowhere")
    assert "no trained models there; `dvc pull` or `dvc repro` brings them" in line
    (pulled / "processed/cards/job-duration/tag-pool-width/card.json").write_text("{}")
    assert "no card that this jobcast can read" in shell.refuses("models", "restore")
