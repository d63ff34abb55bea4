import pytest

from jobcast.domain.errors import TraceError
from jobcast.traces.goodput_tables import read_noise_curves, read_step_times
from tests.shared import refused

STEPS = "app,num_nodes,num_replicas,local_bsz,step_time,sync_time\n"
CURVES = "app,batch_size,epoch,progress,iteration,metric,grad_sqr,grad_var\n"


def test_step_times_by_application(written):
    times = read_step_times(written("steps.csv", STEPS + "a,1,1,32,0.5,0.1\nb,2,8,16,0.7,0.3\na,1,2,32,0.6,0.2\n"))
    assert list(times) == ["a", "b"]
    assert times["a"].gpus.tolist() == [1.0, 2.0]
    assert times["b"].step_s.tolist() == [0.7]
    assert times["b"].local_batch_size.tolist() == [16.0]


def test_curves_by_application_and_batch_size(written):
    path = written(
        "curves.csv", CURVES + "a,256,1,10,5,0.4,2.0,6.0\na,128,1,10,10,0.5,1.0,3.0\na,128,2,20,20,0.6,0.0,3.0\n"
    )
    curves = read_noise_curves(path)
    assert list(curves["a"]) == [128, 256]
    assert curves["a"][128].progress.tolist() == [10.0, 20.0]
    assert curves["a"][128].grad_sqr.tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("app,num_nodes\n", "columns num_replicas, local_bsz, step_time, sync_time missing"),
        (STEPS + "a,1,1,32,0.5,0.1\na,1,1,32,fast,0.1\n", "row 3, column step_time: must be a number, got 'fast'"),
        (STEPS + "a,1,0,32,0.5,0.1\n", "row 2, column num_replicas: must be a number > 0, got '0'"),
    ],
)
def test_bad_rows_are_named(written, text, message):
    path = written("steps.csv", text)
    assert str(path) in refused(TraceError, message, read_step_times, path)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a,128,1,10,1,0.5,1,3\na,128,2,10,2,0.6,1,3\n", "row 3, column progress: must be more than the epoch before"),
        ("a,128,1,10,1,0.5,-1,3\n", "row 2, column grad_sqr: must be a number >= 0, got '-1'"),
        (",128,1,10,1,0.5,1,3\n", "row 2, column app: must name an application, got nothing"),
    ],
)
def test_bad_curves_are_named(written, rows, message):
    refused(TraceError, message, read_noise_curves, written("curves.csv", CURVES + rows))


def test_a_missing_file(tmp_path):
    refused(TraceError, "no such file", read_noise_curves, tmp_path / "none.csv")


def test_the_measurements_of_pollux(published):
    folder = published / "curves"
    times, curves = read_step_times(folder / "step_times.csv"), read_noise_curves(folder / "training_curves.csv")
    assert {app: len(one.gpus) for app, one in times.items()} == {
        "cifar10": 1512, "deepspeech2": 952, "ncf": 2119, "bert": 720,
    }  # fmt: skip
    assert {app: min(sizes) for app, sizes in curves.items()} == {
        "cifar10": 128, "deepspeech2": 20, "ncf": 256, "bert": 12,
    }  # fmt: skip
