"""Objectives as text and their values for a run, PCS, section 3.2; what was simulated survives an interruption."""

import numpy as np
import pytest

from jobcast.domain.errors import ConfigError
from jobcast.domain.law import SPEEDUP
from jobcast.pipelines.experiments.search.evaluation import Journal, parse_objectives, values_of
from tests.scenarios import log_of
from tests.shared import refused


def test_values_by_hand():
    """JCT 100, 300: errors |100 - 100| / 100 and |300 - 200| / 200; alone on a GPU 100 s are fair."""
    columns = {"predicted_end_s": np.array([100.0, 200.0]), "contention_events": np.ones(2)}
    none, duration_s = np.zeros(2), np.full(2, 100.0)
    log = log_of(none, none, [100.0, 300.0], duration_s=duration_s, law=SPEEDUP, columns=columns)
    objectives = parse_objectives("jct:mean,jct:p50,error:avg,error:p99,unfairness:p90")
    assert values_of(log, objectives) == pytest.approx([200.0, 200.0, 25.0, 49.5, 180.0])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "names none"),
        (" , ", "names none"),
        ("speed:mean", "metric 'speed' is unknown; choose from jct, error, unfairness"),
        ("jct", "measure '' is unknown"),
        ("jct:median", "measure 'median' is unknown; write mean, avg or pNN"),
        ("jct:p0", "measure 'p0' is unknown"),
        ("jct:p100", "measure 'p100' is unknown"),
        ("jct:p9x", "measure 'p9x' is unknown"),
        ("jct:mean,jct:avg", "jct:mean: is given twice"),
    ],
)
def test_what_is_refused(text, told):
    refused(ConfigError, told, parse_objectives, text)


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
