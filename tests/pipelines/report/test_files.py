import json

import pytest

from jobcast.domain.errors import ConfigError
from jobcast.pipelines.report.files import read_json, sha256_of, to_json, write_json
from jobcast.traces.files import replacing


def test_an_interrupted_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "figures.json"
    write_json(path, {"a": 1})
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012, SIM117 - the interruption comes in the middle of a write
        with replacing(path) as draft:
            draft.write_text("half")
            raise KeyboardInterrupt
    assert read_json(path) == {"a": 1}
    assert [item.name for item in tmp_path.iterdir()] == ["figures.json"]


def test_a_folder_takes_the_place_of_a_folder(tmp_path):
    path = tmp_path / "model"
    for text in ("old", "new"):
        with replacing(path) as draft:
            draft.mkdir()
            (draft / f"{text}.txt").write_text(text)
    assert [item.name for item in path.iterdir()] == ["new.txt"]


def test_a_file_does_not_replace_a_folder(tmp_path):
    with pytest.raises(ConfigError, match="cannot be written"):
        write_json(tmp_path, {})


def test_a_place_that_cannot_be_written_to_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written"):
        write_json(tmp_path / "file" / "figures.json", {})


def test_json_is_the_same_for_the_same_value_and_refuses_not_a_number():
    numpy = pytest.importorskip("numpy")
    assert json.loads(to_json({"x": numpy.float64(1.5), "y": numpy.arange(2)})) == {"x": 1.5, "y": [0, 1]}
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_json({"x": float("nan")})


def test_hash_is_of_the_content(tmp_path):
    (tmp_path / "a").write_bytes(b"")
    assert sha256_of(tmp_path / "a").startswith("e3b0c44298fc1c14")


@pytest.mark.parametrize("text", ["[1]", "{", ""])
def test_what_is_no_json_object_is_refused(tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(ConfigError, match=r"x\.json"):
        read_json(tmp_path / "x.json")


def test_a_folder_stays_when_its_successor_cannot_take_its_place(tmp_path, monkeypatch):
    path = tmp_path / "model"
    path.mkdir()
    (path / "old.txt").write_text("old")

    def interrupted(source, target):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("jobcast.traces.files.os.replace", interrupted)
        with pytest.raises(KeyboardInterrupt):  # noqa: SIM117 - the interruption comes between two renames
            with replacing(path) as draft:
                draft.mkdir()
    assert [item.name for item in path.iterdir()] == ["old.txt"]
    assert [item.name for item in tmp_path.iterdir()] == ["model"]
