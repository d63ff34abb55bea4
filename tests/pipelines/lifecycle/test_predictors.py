"""All of ours keep to what every predictor must, and commands say which predictors they are for."""

import subprocess
import sys
from pkgutil import resolve_name

import pytest

from jobcast.domain.errors import ConfigError, TrainingError
from jobcast.models.predictor import Known
from jobcast.models.predictors import OURS, answers_of
from jobcast.models.regimes import Restatement
from jobcast.pipelines.experiments.training_jobs import read_tables
from jobcast.pipelines.lifecycle.predictors import LIVES, find_predictor, life_of
from jobcast.pipelines.lifecycle.predictors.life import PREDICT
from jobcast.pipelines.lifecycle.recipes.common import TrainSettings
from jobcast.testing import check_predictor
from jobcast.traces.readers import read_trace
from tests.shared import refused

FAST = {"job-size": "pooled"}
SLOW = {
    "will-jobs-arrive": "logistic",
    "completion-time": "futures",
    "new-load": "quantile",
    "job-duration": "blended",
    "regime": "hierarchical",
    "accuracy-curve": "combination",
    "epoch-time": "steps",
    "queue-wait": "hazard",
    "goodput": "pollux",
}

FEWER = {"regime": {"steps": "200"}}
"""Of what is learned step by step; twelve fits are made."""


@pytest.mark.parametrize(
    ("name", "algorithm"),
    [*FAST.items(), *(pytest.param(*one, marks=pytest.mark.slow) for one in SLOW.items())],
)
def test_it_keeps_to_the_rules(name, algorithm):
    settings = TrainSettings(horizons_min=(5, 60), min_train_jobs=50, given=FEWER.get(name, {}))
    check_predictor(lambda: find_predictor(name, algorithm, settings), range(1))


def test_whoever_can_be_asked_is_tried():
    """What is asked by schedulers alone is learned, and compared, by replays; see `learning_to_schedule`."""
    assert {*FAST, *SLOW} == {name for name in OURS if PREDICT in life_of(name).commands}


def test_every_question_has_a_life():
    assert {answers_of(name) for name in OURS} == set(LIVES)
    for name in OURS:
        one = find_predictor(name)
        assert (one.name, one.answers, one.algorithm) == (name, answers_of(name), one.algorithms[0])


def test_who_cannot_be_asked_says_so():
    for name in OURS:
        if PREDICT not in life_of(name).commands:
            refused(ConfigError, "is asked by schedulers alone", find_predictor(name).predict, None)


def test_what_is_said_to_a_person_is_there_for_every_command():
    """Functions that are named by text, which no checker of imports sees."""
    for life in map(life_of, OURS):
        assert all(callable(resolve_name(f"jobcast.pipelines.{life.says[command]}")) for command in life.commands)


def test_lives_are_there_without_what_trains_schedulers():
    """Lists of predictors and the checks of a run ask for them wherever Gymnasium and PyTorch are missing."""
    hidden = "import sys; sys.modules.update(gymnasium=None, torch=None); "
    asked = "from jobcast.pipelines.lifecycle.predictors import find_predictor; find_predictor('mlf-policy')"
    subprocess.run([sys.executable, "-c", hidden + asked], check=True)


def test_every_command_refuses_a_predictor_that_it_does_not_know(shell, run):
    asked = (("evaluate", "no-such"), ("drift", "no-such"), ("predict", "no-such", "--at", "2024-01-06"))
    commands = {words[0]: words for words in asked} | {"models promote --trace": ("models", "promote", "no-such:1")}
    for command, words in commands.items():
        line = shell.refuses(*words, "--trace", run.trace)
        assert line.startswith(f"'no-such' is no predictor of `jobcast {command}`; choose from will-jobs-arrive, ")


def test_a_rule_has_nothing_to_tune(shell, run):
    for predictor, algorithm in (("new-load", "sliding-max"), ("job-duration", "last-n"), ("regime", None)):
        find_predictor(predictor, algorithm).check_tune()
        with pytest.raises(ConfigError, match="has no settings to search; leave it out"):
            find_predictor(predictor, algorithm, TrainSettings(tune=2)).check_tune()
    find_predictor("new-load", None, TrainSettings(tune=2)).check_tune()
    line = shell.refuses("train", "new-load", "--trace", run.trace, "--algorithm", "sliding-max", "--tune", 2)
    assert line == "--tune 2: sliding-max of new-load has no settings to search; leave it out"


THROUGHPUTS = """gpu_type,model,batch_size,gpus,steps_per_second
v100,LM,10,1,100
v100,LM,20,1,80
"""


def regimes_of(folder, jobs, courses):
    """Scores of the restatement rule, as that of a version, on jobs (id, seconds or none) and courses, as rows."""
    texts = {
        "jobs.csv": "job_id,pool,submit_time,duration,gpus,model,batch_size,epochs,adaptation\n"
        + "".join(f"{name},a,{row},{lasts},1,LM,10,10,accordion\n" for row, (name, lasts) in enumerate(jobs)),
        "courses.csv": "job_id,epoch,batch_size\n" + "".join(f"{course}\n" for course in courses),
        "rates.csv": THROUGHPUTS,
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    tables = read_tables({"throughputs": str(folder / "rates.csv"), "regimes": str(folder / "courses.csv")})
    life = find_predictor("regime")
    life.model_ = Restatement()
    return life.evaluate(Known(read_trace(folder / "jobs.csv"), {"training": tables}))["regimes"]


def test_regimes_of_jobs_that_still_run_are_not_scored(tmp_path):
    """b runs: its course holds what was seen of it, and would count as one that never changes."""
    ended = regimes_of(tmp_path, [("a", 700)], ["a,0,10", "a,4,20"])
    found = regimes_of(tmp_path, [("a", 700), ("b", "")], ["a,0,10", "a,4,20", "b,0,10"])
    assert found == ended
    assert found["all"]["jobs"] == found["changing"]["jobs"] == 1
    # Of 4 and 6 epochs restatement forecasts 5 and 5 at the beginning, greedy all ten at the first batch size.
    at_first = {name: rule["by_progress"]["regime_error"][0] for name, rule in found["all"]["rules"].items()}
    assert at_first["prior"] == pytest.approx(10.0)
    assert at_first["greedy"] == pytest.approx(60.0)
    with pytest.raises(TrainingError, match="none of the 1 jobs to score had ended; widen the window"):
        regimes_of(tmp_path, [("b", "")], ["b,0,10"])
