"""Workloads of training jobs; expectations by hand from the tables here."""

import polars as pl
import pytest

from jobcast.domain.errors import ConfigError
from jobcast.domain.jobs import Outcome, Pool
from jobcast.domain.training import Regime
from jobcast.pipelines.experiments.training_jobs import read_tables, training_workload
from jobcast.schedulers.policies import split_settings
from jobcast.schedulers.registry import find_policy
from jobcast.simulator.workload import Workload
from jobcast.traces.table import Trace
from tests.scenarios import pool_scenario

RATES = "gpu_type,model,batch_size,gpus,steps_per_second\nv100,Toy,10,1,2\nv100,Toy,20,1,2\nk80,Toy,10,1,1\n"
POOLS = [Pool("p", 4)]


@pytest.fixture
def settings(tmp_path):
    """Toy has 100 samples: an epoch is 10 steps of 10 (5 s) or 5 steps of 20 (2.5 s)."""
    tables = {
        "throughputs": RATES,
        "datasets": "model,samples\nToy,100\n",
        "regimes": "job_id,epoch,batch_size\n0,0,10\n0,3,20\n2,0,10\n",
    }
    for name, text in tables.items():
        (tmp_path / f"{name}.csv").write_text(text)
    return {name: str(tmp_path / f"{name}.csv") for name in tables}


@pytest.fixture
def trace():
    """Job 0 adapts, 1 names no model, 2 stays as it is."""
    frame = pl.DataFrame(
        {
            "job_id": ["00", "01", "02"],
            "pool": "p",
            "submit_time": [0, 1, 2],
            "duration": [50.0, 7.0, 9.0],
            "gpus": 1,
            "model": ["Toy", None, "Toy"],
            "batch_size": [10, None, 10],
            "steps": [100, None, 20],
            "adaptation": ["gns", None, "static"],
            "weight": [2.0, None, 1.0],
        }
    )
    return Trace.from_frame(frame, name="t")


def test_training_jobs_run_as_long_as_their_true_regimes(trace, settings):
    jobs, durations = trace.to_jobs()
    plain = Workload(jobs, [Outcome(float(duration_s)) for duration_s in durations], POOLS)
    made, trainings = training_workload(plain, trace, read_tables(settings))
    assert made.outcomes == (
        Outcome(3 * 5.0 + 7 * 2.5, (Regime(10, 3.0), Regime(20, 7.0))),
        Outcome(7.0),
        Outcome(10.0, (Regime(10, 2.0),)),
    )
    assert [job.training for job in made.jobs] == list(trainings.trainings)
    assert [job.weight for job in made.jobs] == [2.0, 1.0, 1.0]
    assert made.jobs[1] == jobs[1]
    assert made.jobs[0].training.epoch_s == {10: 5.0, 20: 2.5}


def test_a_scene_tells_what_was_left_as_it_stood(trace, settings):
    scenario = pool_scenario(trace, POOLS, tables=read_tables(settings))
    assert scenario.notes[0] == "1 jobs name no model, batch size or steps and keep their nominal duration"
    assert scenario.facts.training.trainings.steps == (100, None, 20)
    first = pool_scenario(trace, POOLS, limit=1, tables=read_tables(settings))
    assert any(note.startswith("1 courses in ") for note in first.notes)
    assert first.workload.outcomes[0].duration_s == 32.5


def test_the_type_of_gpu_sets_the_pace(trace, settings):
    only = {name: value for name, value in settings.items() if name != "regimes"}
    scenario = pool_scenario(trace, POOLS, tables=read_tables({**only, "gpu_type": "k80"}))
    assert [outcome.duration_s for outcome in scenario.workload.outcomes] == [100.0, 7.0, 20.0]


def test_tables_need_throughputs(settings):
    assert read_tables({"k": "5"}) is None
    with pytest.raises(ConfigError, match="setting regimes: tells nothing without throughputs; add --set thr"):
        read_tables({"regimes": settings["regimes"]})
    split = split_settings(find_policy("shockwave"), {**settings, "gpu_type": "k80", "k": "5"})
    assert (split.plain("own"), split.own.k, split.files.gpu_type) == ({"k": "5"}, 5.0, "k80")
