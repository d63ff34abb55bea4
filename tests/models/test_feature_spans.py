import json

import numpy as np
import pytest

from jobcast.domain.jobs import Job
from jobcast.models.feature_spans import BeyondTraining, feature_spans
from jobcast.models.forecasts import RegistryForecasts
from jobcast.models.job_duration import JobDuration
from jobcast.models.new_load import NewLoad
from jobcast.models.will_jobs_arrive import WillJobsArrive
from jobcast.simulator.history import RunHistory

PREDICTORS = {one.name: one for one in (WillJobsArrive, NewLoad, JobDuration)}


def test_spans_are_of_all_parts_and_of_finite_values():
    parts = [np.array([[[1.0, -np.inf], [2.0, 5.0]]]), np.array([[np.nan, 4.0]])]
    assert feature_spans(("a", "b"), parts) == {"a": (1.0, 2.0), "b": (4.0, 5.0)}


def test_as_much_again_as_the_span_is_let_pass_and_no_more():
    beyond = BeyondTraining(("a", "b", "unknown"), {"a": (0.0, 10.0), "b": (5.0, 5.0)})
    beyond.look(np.array([[20.0, 5.0, 1e9], [-10.0, 5.0, -1e9], [np.nan, np.nan, np.nan]]))
    assert beyond.figures() == {}
    beyond.look(np.array([[20.1, 5.0, 0.0], [3.0, 5.1, 0.0]]))
    beyond.look(np.array([[-30.0, 5.0, 0.0], [np.inf, 5.0, 0.0]]))
    told = beyond.figures()
    assert told["a"] == {"seen": np.finfo(np.float64).max, "trained": [0.0, 10.0], "rows": 3}
    assert told["b"] == {"seen": 5.1, "trained": [5.0, 5.0], "rows": 1}
    json.dumps(told, allow_nan=False)


@pytest.mark.parametrize("name", PREDICTORS)
def test_spans_are_kept_with_a_version_and_old_versions_without_them_load(saved, predictors, tmp_path, name):
    loaded = PREDICTORS[name].load(saved[name])
    assert loaded.feature_spans_.keys() == predictors[name].feature_spans_.keys() != set()
    told = json.loads((saved[name] / "metadata.json").read_text())
    del told["feature_spans"]
    for file in saved[name].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "metadata.json").write_text(json.dumps(told))
    assert PREDICTORS[name].load(tmp_path).feature_spans_ == {}


def test_rows_like_those_of_training_are_not_told_and_others_are(predictors):
    history = RunHistory(("busy",))
    source = RegistryForecasts(history, *predictors.values())
    start_s = 17_100 * 86400.0
    for number in range(3000):
        now_s = start_s + 0.1 * number
        history.advance(now_s)
        source.advance(now_s)
        history.arrived(Job(number, str(number), "busy", now_s, 64))
    history.advance(start_s + 300.0)
    source.advance(start_s + 300.0)
    source.will_jobs_arrive("busy", 300.0)
    source.new_load("busy", 300.0)
    told = source.beyond_training()
    assert told["will-jobs-arrive"]["arrivals_last_1k"]["seen"] == 3000
    assert "hour_sin" not in told["will-jobs-arrive"]
    assert told["new-load"]["load_1"]["seen"] == 3000 * 64
