"""Scenes of jobs of tasks: three files and servers, brought together or refused."""

import json
from pathlib import Path

import numpy as np
import pytest

from jobcast.domain.errors import TraceError
from jobcast.domain.hardware import flat_cluster
from jobcast.domain.tasks import ALL_ITERATIONS, OPT_STOP, TARGET_ONLY
from jobcast.pipelines.experiments.clusters import task_cluster
from jobcast.pipelines.experiments.scenarios import cut_scenario
from jobcast.pipelines.experiments.tasks.jobs import task_jobs
from jobcast.traces.cluster_file import read_cluster
from jobcast.traces.generators import generate, generate_tasks
from jobcast.traces.learning_curves import write_job_curves
from jobcast.traces.readers import read_trace
from jobcast.traces.tasks import write_tasks
from tests.shared import refused

pytestmark = pytest.mark.usefixtures("untrained")
DOCS = (Path(__file__).resolve().parents[4] / "docs" / "tasks.md").read_text(encoding="utf-8")
TRACE = (
    "job_id,pool,submit_time,duration,gpus,model,epochs,deadline,weight,target_accuracy\n"
    "b,p,1000,100,1,svm,1,,,\n"
    "a,p,2000,500,2,mlp,2,9000,9,0.65\n"
)
CURVES = "job_id,epoch,metric\na,0,0.1\na,1,0.55\na,2,0.7\nb,0,0.2\nb,1,0.4\n"


def documented(first_words):
    return next(part.strip() + "\n" for part in DOCS.split("```") if part.strip().startswith(first_words))


TASKS = documented("job_id,task,")


@pytest.fixture
def scenario_of(tmp_path):
    """Builds a scenario from texts; by default those of the documentation."""

    def build(trace=TRACE, tasks=TASKS, curves=CURVES, drop_wide=False, **window):
        for name, text in (("trace", trace), ("tasks", tasks), ("curves", curves)):
            (tmp_path / f"{name}.csv").write_text(text)
        files = {"tasks": tmp_path / "tasks.csv", "curves": tmp_path / "curves.csv"}
        cut = cut_scenario(read_trace(tmp_path / "trace.csv"), flat_cluster(4), **window)
        return task_jobs(cut, **files, drop_wide=drop_wide)

    return build


def test_jobs_that_no_servers_can_hold_are_refused_or_left_out_and_counted(scenario_of):
    """On one server of 244 GB: a task of 245 GB fits nowhere, nor do two of 123 GB, of which one job is made."""
    large = TASKS.replace("a,0,false,0.4,2,8,", "a,0,false,0.4,2,245,")
    many = TASKS.replace(",2,8,100,", ",2,123,100,")
    for tasks in (large, many):
        assert tasks != TASKS
        with pytest.raises(TraceError, match=r"more memory than .*; give larger servers, or .* \(--drop-too-wide\)"):
            scenario_of(tasks=tasks)
        scenario = scenario_of(tasks=tasks, drop_wide=True)
        assert scenario.job_ids == ("b",)
        assert len(scenario.workload) == 1
        assert scenario.provenance()["dropped"] == {"more memory than the servers have": 1}
    assert scenario_of(drop_wide=True).provenance()["dropped"] == {}


def test_jobs_come_in_order_of_submission_with_all_that_is_known(scenario_of):
    scenario = scenario_of()
    jobs = scenario.workload.jobs
    assert scenario.job_ids == ("b", "a")
    assert jobs.submit_s.tolist() == [1000.0, 2000.0]
    assert jobs.deadline_s.tolist() == [np.inf, 9000.0]
    assert jobs.urgency.tolist() == [1.0, 9.0]
    np.testing.assert_array_equal(jobs.target, [np.nan, 0.65])
    assert jobs.iterations.tolist() == [50.0, 400.0]
    assert jobs.epoch_iterations.tolist() == [50.0, 200.0]
    assert jobs.iteration_s.tolist() == [1.9, 1.3]
    assert jobs.option.tolist() == [ALL_ITERATIONS, OPT_STOP]
    assert jobs.may_become.tolist() == [ALL_ITERATIONS, TARGET_ONLY]
    assert jobs.algorithm.tolist() == [1, 0]  # mlp, svm
    assert jobs.gpus.tolist() == [1, 2]
    assert jobs.task_of.tolist() == [0, 1, 4]
    assert jobs.edge_of.tolist() == [0, 0, 3]
    assert jobs.job_of.tolist() == [0, 1, 1, 1]
    assert jobs.edge_from.tolist() == [1, 2, 3]
    assert jobs.edge_to.tolist() == [2, 3, 2]
    assert jobs.volume_mb.tolist() == [60.0, 80.0, 80.0]
    assert scenario.workload.truth.model_mb.tolist() == [100.0, 240.0]
    np.testing.assert_array_equal(scenario.workload.truth.metric, [[0.2, 0.4, np.nan], [0.1, 0.55, 0.7]])
    scenario.workload.check()


def test_provenance_names_files_and_servers(scenario_of):
    said = scenario_of().provenance()
    for name in ("trace", "tasks", "curves"):
        assert (Path(said[name]["path"]).name, len(said[name]["sha256"])) == (f"{name}.csv", 64)
    assert (said["gpus"], said["servers"]) == (4, 1)
    assert json.loads(json.dumps(said)) == said


def test_what_a_trace_does_not_say_is_told(scenario_of):
    lines = [line.split(",") for line in TRACE.splitlines()]
    bare = "\n".join(",".join([*line[:5], line[6]]) for line in lines) + "\n"
    scenario = scenario_of(trace=bare)
    lacks = [note.partition(":")[0] for note in scenario.notes[-3:]]
    assert lacks == ["no deadline", "no weight", "no target_accuracy"]
    assert scenario.workload.jobs.deadline_s.tolist() == [np.inf] * 2
    assert scenario.workload.jobs.urgency.tolist() == [1.0] * 2
    assert np.isnan(scenario.workload.jobs.target).all()
    assert scenario.workload.jobs.algorithm.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("trace", TRACE.replace("a,p,2000", "c,p,2000"), "job a is not in .*trace.csv; drop its rows or give its"),
        ("trace", TRACE.replace("500,2,mlp", "500,4,mlp"), "job a has 2 workers, .*trace.csv gives it 4 GPUs"),
        ("trace", TRACE.replace("svm,1,", "svm,,"), "job b names no epochs; fill the column epochs"),
        ("trace", TRACE.replace(",epochs,", ",rounds,"), "column epochs missing, which jobs of tasks need; add it"),
        ("tasks", TASKS.replace("b,0,false,0.5,1,4", "b,0,false,0.5,1,400"), "more memory"),
    ],
)
def test_files_that_do_not_fit_together_are_refused(scenario_of, name, text, line):
    refused(TraceError, line, scenario_of, **{name: text})


def test_the_documented_servers(tmp_path):
    path = tmp_path / "cluster.yaml"
    path.write_text(documented("nodes:"))
    found = task_cluster(read_cluster(path))
    assert len(found.server_of) == 80
    assert found.capacity[0].tolist() == [4.0, 32.0, 244.0, 1250.0]
    assert found.capacity[-1].tolist() == [8.0, 64.0, 244.0, 1250.0]
    assert found.server_of[-8:].tolist() == [17] * 8


def test_the_command_writes_what_a_scene_reads(shell):
    files = ("--out", "jobs.parquet", "--tasks-out", "tasks.csv", "--curves-out", "curves.parquet")
    told = shell.works("trace", "generate", "mlfs", *files, "--seed", 3, "--set", "jobs=40", "--set", "load=0.4")
    assert told.err.splitlines() == [
        "jobs.parquet: 40 jobs of 1 pool",
        "  arrivals: a Poisson process with a daily rhythm",
        "  offered load: 0.0258 of 80 GPUs, in shares of GPUs",
    ]
    trace = read_trace("jobs.parquet")
    assert trace.jobs.equals(generate("mlfs", 3, {"jobs": 40, "load": 0.4})[0].jobs)
    scenario = task_jobs(cut_scenario(trace, flat_cluster(80)), tasks=Path("tasks.csv"), curves=Path("curves.parquet"))
    tasks, curves = generate_tasks("mlfs", 3, {"jobs": 40, "load": 0.4})
    write_tasks(tasks, "again.csv")
    write_job_curves(curves, "again.parquet")
    assert Path("again.csv").read_bytes() == Path("tasks.csv").read_bytes()
    assert Path("again.parquet").read_bytes() == Path("curves.parquet").read_bytes()
    assert len(scenario) == 40
    np.testing.assert_array_equal(scenario.workload.jobs.compute_s, tasks.compute_s)
    np.testing.assert_array_equal(scenario.workload.jobs.edge_to, tasks.edge_to)
    assert (scenario.workload.jobs.deadline_s > scenario.workload.jobs.submit_s).all()
    at_end = scenario.workload.truth.metric[np.arange(40), trace.jobs["epochs"].to_numpy()]
    assert (scenario.workload.jobs.target < at_end).all()
