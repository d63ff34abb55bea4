"""What was simulated survives an interruption."""

import pytest

from jobcast.domain.errors import ConfigError
from jobcast.pipelines.experiments.search.evaluation import Journal


def test_what_is_noted_is_known_to_the_next(tmp_path):
    path = tmp_path / "front.journal.jsonl"
    first = Journal(path, "a")
    first.add("x train-0", [1.5, 1e-300])
    second = Journal(path, "a")
    assert second.get("x train-0") == [1.5, 1e-300]
    assert (second.resumed, len(second)) == (1, 1)
    assert Journal(path, "b").get("x train-0") is None


def test_a_line_that_was_cut_off_costs_one_simulation(tmp_path):
    path = tmp_path / "j.jsonl"
    Journal(path, "a").add("x", [1.0])
    Journal(path, "a").add("y", [2.0])
    path.write_bytes(path.read_bytes()[:-9])
    again = Journal(path, "a")
    assert again.get("x") == [1.0]
    assert again.get("y") is None
    again.add("z", [3.0])
    assert Journal(path, "a").get("z") == [3.0]


def test_a_folder_that_is_not_there_is_made(tmp_path):
    Journal(tmp_path / "new" / "j.jsonl", "a").add("x", [1.0])
    assert Journal(tmp_path / "new" / "j.jsonl", "a").get("x") == [1.0]
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"file/j\.jsonl: cannot be (written|used)"):
        Journal(tmp_path / "file" / "j.jsonl", "a").add("x", [1.0])
