"""Files of tasks and of curves: what is written is read, and what cannot be used is refused in one line."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import TraceError
from jobcast.domain.tasks import ALL_ITERATIONS, OPT_STOP, TARGET_ONLY
from jobcast.traces.learning_curves import JobCurves, read_job_curves, write_job_curves
from jobcast.traces.tasks import TaskTable, read_tasks, write_tasks
from tests.shared import refused

DOCS = (Path(__file__).resolve().parents[2] / "docs" / "tasks.md").read_text(encoding="utf-8")
ARRAYS = (
    *("task_of", "edge_of", "demand", "compute_s", "size_share", "is_server", "edge_from", "edge_to", "volume_mb"),
    *("model_mb", "epoch_iterations", "iteration_s", "option", "may_become"),
)


def documented(first_column):
    """The example of the documentation that begins with this header."""
    return next(part.strip() + "\n" for part in DOCS.split("```") if part.strip().startswith(first_column))


TASKS, CURVES = documented("job_id,task,"), documented("job_id,epoch,")


def with_field(text, row, column, value):
    """The table with another value in one field; rows count from the header as 1."""
    lines = [line.split(",") for line in text.strip().splitlines()]
    lines[row - 1][lines[0].index(column)] = value
    return "\n".join(",".join(line) for line in lines) + "\n"


def assert_same(found, wanted):
    assert found.job_ids == wanted.job_ids
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name), err_msg=name)


def test_the_documented_tasks_are_read_as_they_are_told(written):
    table = read_tasks(written("tasks.csv", TASKS))
    assert table.job_ids == ("a", "b")
    assert table.task_of.tolist() == [0, 3, 4]
    assert table.edge_of.tolist() == [0, 3, 3]
    assert table.edge_from.tolist() == [0, 1, 2]
    assert table.edge_to.tolist() == [1, 2, 1]
    assert table.volume_mb.tolist() == [60.0, 80.0, 80.0]
    assert table.demand[2].tolist() == [0.0, 4.0, 8.0, 200.0]
    assert table.is_server.tolist() == [False, False, True, False]
    assert table.compute_s.tolist() == [0.5, 0.7, 0.05, 2.0]
    assert table.size_share.tolist() == [0.3, 0.7, 0.0, 1.0]
    assert table.model_mb.tolist() == [240.0, 100.0]
    assert table.epoch_iterations.tolist() == [200, 50]
    assert table.iteration_s.tolist() == [1.3, 1.9]
    assert table.option.tolist() == [OPT_STOP, ALL_ITERATIONS]
    assert table.may_become.tolist() == [TARGET_ONLY, ALL_ITERATIONS]


def test_rows_may_stand_in_any_order(written):
    header, *rows = TASKS.strip().splitlines()
    path = written("shuffled.csv", "\n".join([header, rows[2], rows[0], rows[3], rows[1]]) + "\n")
    assert_same(read_tasks(path), read_tasks(written("tasks.csv", TASKS)))


def test_options_default_to_all_iterations_and_volumes_may_differ(written):
    lines = [line.split(",")[:-2] for line in TASKS.strip().splitlines()]
    lines[1][9:11] = ["1;2", "60;70"]
    table = read_tasks(written("tasks.csv", "\n".join(",".join(line) for line in lines) + "\n"))
    assert table.option.tolist() == table.may_become.tolist() == [ALL_ITERATIONS] * 2
    assert table.edge_to.tolist() == [1, 2, 2, 1]
    assert table.volume_mb.tolist() == [60.0, 70.0, 80.0, 80.0]


def test_jobs_are_taken_in_the_order_that_is_asked(written):
    table = read_tasks(written("tasks.csv", TASKS))
    turned = table.of_jobs(["b", "a"])
    assert turned.job_ids == ("b", "a")
    assert turned.task_of.tolist() == [0, 1, 4]
    assert turned.edge_of.tolist() == [0, 0, 3]
    assert turned.edge_from.tolist() == [1, 2, 3]
    assert turned.edge_to.tolist() == [2, 3, 2]
    assert turned.demand[:, 0].tolist() == [0.5, 0.4, 0.6, 0.0]
    assert_same(turned.of_jobs(["a", "b"]), table)
    refused(TraceError, r"tasks.csv: no tasks of job c; add a row for each of them", table.of_jobs, ["a", "c"])


REFUSED = [
    (4, "task", "7", "row 4, column task: tasks of job a must be 0, 1, 2, ... each once, 2 is expected here, got 7"),
    (2, "job_id", "", "row 2, column job_id: must name a job, got nothing"),
    (3, "server", "perhaps", "row 3, column server: must be true or false, got 'perhaps'"),
    (3, "server", "true", "row 4, column server: is the job's second parameter server, got 'true'"),
    (5, "gpu", "1.5", "row 5, column gpu: must be a number >= 0 and <= 1, got '1.5'"),
    (5, "gpu", "0", "row 5, column gpu: must be above 0 for a worker, got '0'"),
    (4, "gpu", "0.2", "row 4, column gpu: must be 0 for a parameter server, which uses no GPU, got '0.2'"),
    (3, "bandwidth_mb_s", "0", "row 3, column bandwidth_mb_s: must be above 0 for a task that sends, got '0'"),
    (5, "compute_s", "0", "row 5, column compute_s: must be above 0 for a worker, got '0'"),
    (3, "sends_to", "1", "row 3, column sends_to: must not name the task itself, got '1'"),
    (3, "sends_to", "9", "row 3, column sends_to: must name tasks of the job, got '9'"),
    (3, "sends_to", "x", "row 3, column sends_to: must be numbers of tasks between semicolons, got 'x'"),
    (4, "sends_to", "1;1", "row 4, column sends_to: must name each task once, got '1;1'"),
    (4, "volume_mb", "1;2", "row 4, column volume_mb: must be one number or 1, as many as sends_to, got '1;2'"),
    (4, "volume_mb", "-3", "row 4, column volume_mb: must be numbers >= 0 between semicolons, got '-3'"),
    (4, "volume_mb", "", "row 4, column volume_mb: must be one number or 1, as many as sends_to, got nothing"),
    (5, "volume_mb", "4", "row 5, column volume_mb: must be empty where sends_to is, got '4'"),
    (3, "model_mb", "99", "row 3, column model_mb: must be the same on all rows of a job, got '99'"),
    (5, "epoch_iterations", "0", "row 5, column epoch_iterations: must be a whole number >= 1, got '0'"),
    (5, "iteration_s", "0", "row 5, column iteration_s: must be a number > 0, got '0'"),
    (5, "option", "some", "row 5, column option: must be all, opt_stop, target, got 'some'"),
    (2, "may_become", "all", "row 2, column may_become: must not ask for more than option, got 'all'"),
]


@pytest.mark.parametrize(("row", "column", "value", "line"), REFUSED)
def test_a_field_that_cannot_be_used_is_named(written, row, column, value, line):
    path = written("tasks.csv", with_field(TASKS, row, column, value))
    told = refused(TraceError, "", read_tasks, path)
    assert told.startswith(f"{path}, row ")
    assert line in told
    assert "; " in told
    assert "\n" not in told


def test_a_job_has_a_worker(written):
    alone = with_field(with_field(TASKS, 5, "server", "true"), 5, "gpu", "0")
    told = "row 5, column server: is the job's only task; a job needs a worker"
    refused(TraceError, told, read_tasks, written("tasks.csv", alone))


@st.composite
def tables(draw):
    """Jobs of one to four workers, some with a parameter server, and any forward edges among them."""
    positive = st.floats(1e-6, 1e6)
    task_of, edge_of, rows, edges = [0], [0], [], []
    count = draw(st.integers(1, 4))
    for _ in range(count):
        workers, server = draw(st.integers(1, 4)), draw(st.booleans())
        first, size = task_of[-1], workers + server
        for task in range(size):
            own = task == workers
            rows.append((0.0 if own else draw(st.floats(0.01, 1.0)), draw(positive), own))
            reach = range(workers) if own else range(task + 1, size)
            chosen = draw(st.sets(st.sampled_from(list(reach)))) if len(reach) else set()
            edges += [(first + task, first + other, draw(positive)) for other in sorted(chosen)]
        task_of.append(first + size)
        edge_of.append(len(edges))
    option = np.array([draw(st.integers(1, 3)) for _ in range(count)])
    return TaskTable(
        path="drawn",
        sha256="",
        job_ids=tuple(f"job-{number}" for number in range(count)),
        task_of=np.array(task_of),
        edge_of=np.array(edge_of),
        demand=np.array([(gpu, 1.0, 2.0, number) for gpu, number, _ in rows]),
        compute_s=np.array([number for _, number, _ in rows]),
        size_share=np.array([gpu for gpu, _, _ in rows]),
        is_server=np.array([own for _, _, own in rows]),
        edge_from=np.array([edge[0] for edge in edges], dtype=np.int64),
        edge_to=np.array([edge[1] for edge in edges], dtype=np.int64),
        volume_mb=np.array([edge[2] for edge in edges], dtype=np.float64),
        model_mb=np.array([draw(positive) for _ in range(count)]),
        epoch_iterations=np.array([draw(st.integers(1, 10**6)) for _ in range(count)]),
        iteration_s=np.array([draw(positive) for _ in range(count)]),
        option=option,
        may_become=np.array([draw(st.integers(int(least), 3)) for least in option]),
    )


@given(table=tables(), suffix=st.sampled_from(["csv", "parquet"]))
def test_tasks_that_are_written_are_read_again_to_the_last_bit(table, suffix, tmp_path_factory):
    path = tmp_path_factory.mktemp("tasks") / f"tasks.{suffix}"
    write_tasks(table, path)
    assert_same(read_tasks(path), table)


def test_the_documented_curves_are_read_and_padded(written):
    curves = read_job_curves(written("tasks.csv", CURVES + "b,1,0.4\nb,0,0.2\n"))
    assert curves.job_ids == ("a", "b")
    padded = curves.padded(["b", "a"], np.array([1, 2]))
    np.testing.assert_array_equal(padded, [[0.2, 0.4, np.nan], [0.1, 0.55, 0.7]])
    refused(TraceError, "no curve of job c; add rows job_id, epoch, metric of it", curves.padded, ["c"], np.array([1]))
    with pytest.raises(TraceError, match="the curve of job b ends at epoch 1, the job trains for 2; add the epochs"):
        curves.padded(["b"], np.array([2]))


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ("a,0,0.1\na,2,0.2\n", "row 3, column epoch: epochs of job a must be 0, 1, 2, ... each once, 1 is expected"),
        ("a,0,0.1\nb,0,0.3\na,0,0.2\n", "row 4, column epoch: epochs of job a must be 0, 1, 2, ... each once"),
        ("a,1,0.1\n", "row 2, column epoch: epochs of job a must be 0, 1, 2, ... each once, 0 is expected here, got 1"),
        ("a,0,\n", "row 2, column metric: must be a finite number, got nothing"),
        (",0,1\n", "row 2, column job_id: must name a job, got nothing"),
    ],
)
def test_an_epoch_that_cannot_be_used_is_named(written, rows, line):
    path = written("curves.csv", f"job_id,epoch,metric\n{rows}")
    assert line in refused(TraceError, "", read_job_curves, path)


@given(
    metrics=st.lists(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6), min_size=1, max_size=5),
    suffix=st.sampled_from(["csv", "parquet"]),
)
def test_curves_that_are_written_are_read_again_to_the_last_bit(metrics, suffix, tmp_path_factory):
    begin = np.concatenate([[0], np.cumsum([len(one) for one in metrics])])
    ids = tuple(f"job-{number}" for number in range(len(metrics)))
    path = tmp_path_factory.mktemp("curves") / f"curves.{suffix}"
    write_job_curves(JobCurves("drawn", "", ids, begin, np.concatenate(metrics)), path)
    found = read_job_curves(path)
    assert found.job_ids == ids
    np.testing.assert_array_equal(found.begin, begin)
    np.testing.assert_array_equal(found.metric, np.concatenate(metrics))
