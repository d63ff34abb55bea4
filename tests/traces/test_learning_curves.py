"""Files of training curves; expectations by hand from the texts here."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import TraceError
from jobcast.traces.learning_curves import LearningCurve, read_learning_curves
from tests.shared import refused

HEADER = "app,batch_size,epoch,metric"


def written(folder, *rows, header=HEADER):
    path = folder / "curves.csv"
    path.write_text("".join(f"{line}\n" for line in (header, *rows)), encoding="utf-8")
    return path


def test_rows_in_any_order_become_curves_by_app_and_batch_size(tmp_path):
    path = written(tmp_path, "lm,32,2,0.5", "cv,8,1,0.2", "lm,16,1,0.3", "lm,32,1,0.4", "lm,32,5,0.7")
    table = read_learning_curves(path)
    assert [(curve.app, curve.batch_size) for curve in table.curves] == [("cv", 8), ("lm", 16), ("lm", 32)]
    last = table.curves[-1]
    assert (last.epoch.tolist(), last.metric.tolist()) == ([1, 2, 5], [0.4, 0.5, 0.7])
    assert (last.epoch.dtype, last.metric.dtype) == (np.int64, np.float64)
    assert (len(last), last.epochs) == (3, 5)
    assert last.lr_milestones == ()
    assert (last.grad_sqr, last.grad_var, last.progress, last.iteration) == (None, None, None, None)
    assert (table.rows, table.path, table.epochs, table.notes) == (5, str(path), (None, None, None), ())


def test_what_else_a_file_may_tell(tmp_path):
    header = f"{HEADER},progress,iteration,grad_sqr,grad_var,epochs"
    path = written(tmp_path, "lm,32,1,0.4,10,9,1e300,2,80", "lm,32,2,0.5,20,19,3,4,80", header=header)
    table = read_learning_curves(path)
    (curve,) = table.curves
    assert curve.progress.tolist() == [10.0, 20.0]
    assert curve.iteration.tolist() == [9.0, 19.0]
    assert curve.grad_sqr.tolist() == [1e300, 3.0]
    assert curve.grad_var.tolist() == [2.0, 4.0]
    assert table.epochs == (80,)


def test_gradients_that_some_rows_miss_are_left_out_and_counted(tmp_path):
    rows = ("lm,32,1,0.4,1,x", "lm,32,2,0.5,nan,x", "lm,64,1,0.4,,x", "lm,96,1,0.4,2,x")
    table = read_learning_curves(written(tmp_path, *rows, header=f"{HEADER},grad_sqr,note"))
    assert [curve.grad_sqr is None for curve in table.curves] == [True, True, False]
    assert table.notes == (
        "columns not read: note",
        "grad_sqr: left out of 1 curves, which have it on some of their rows only",
    )


@pytest.mark.parametrize(
    ("text", "milestones"),
    [
        ("30 60 80", (30, 60, 80)),
        ('"30,60,80"', (30, 60, 80)),
        ("30; 60;80", (30, 60, 80)),
        ('"[80, 30, 60]"', (30, 60, 80)),
        ("30.0", (30,)),
        ('" 30, 30 "', (30,)),
        ("[]", ()),
        ("", ()),
    ],
)
def test_milestones_in_every_spelling(tmp_path, text, milestones):
    path = written(tmp_path, f"lm,32,1,0.4,{text}", f"lm,32,2,0.5,{text}", header=f"{HEADER},lr_milestones")
    (curve,) = read_learning_curves(path).curves
    assert curve.lr_milestones == milestones


@pytest.mark.parametrize(
    ("rows", "header", "said"),
    [
        (["lm,32,1,0.1", "lm,32,2,nan"], HEADER, "row 3, column metric: must be a finite number, got 'nan'"),
        (["lm,32,0,0.1"], HEADER, "row 2, column epoch: must be a whole number from 1 to 100000, got '0'"),
        (["lm,32,100001,0.1"], HEADER, "row 2, column epoch: must be a whole number from 1 to 100000, got '100001'"),
        (["lm,32,1,0.1", "lm,0,1,0.1"], HEADER, "row 3, column batch_size: must be a whole number >= 1, got '0'"),
        ([",32,1,0.1"], HEADER, "row 2, column app: must name an application, got nothing"),
        (["lm,32,2,0.1", "lm,32,1,0.1", "lm,32,2,0.2"], HEADER, "row 4, column epoch: is there twice for one app"),
        (["lm,32,1,0.1,inf"], f"{HEADER},grad_var", "row 2, column grad_var: must be a finite number or empty"),
        (["lm,32,5,0.1,4"], f"{HEADER},epochs", "row 2, column epochs: must not be less than the row's epoch, got 4"),
        (
            ["lm,32,1,0.1,9", "lm,32,2,0.1,8"],
            f"{HEADER},epochs",
            "row 3, column epochs: must be the same on all rows of a curve, got 8",
        ),
        (["lm,32,1,0.1,soon"], f"{HEADER},lr_milestones", "column lr_milestones: must be whole epochs .* got 'soon'"),
        (["lm,32,1,0.1,0 5"], f"{HEADER},lr_milestones", "column lr_milestones: must be whole epochs >= 1"),
        (["lm,32,1,0.1,[5"], f"{HEADER},lr_milestones", r"column lr_milestones: must be whole epochs .* got '\[5'"),
        (
            ["lm,32,2,0.1,5", "lm,32,1,0.1,"],
            f"{HEADER},lr_milestones",
            "row 2, column lr_milestones: must be the same on all rows of a curve, got '5'",
        ),
        ([], HEADER, "only a header, no rows; give a row an epoch"),
        (["1,a,0,60,1"], "job_id,pool,submit_time,duration,gpus", "columns app, batch_size, epoch, metric missing"),
    ],
)
def test_a_row_that_cannot_be_used_is_named(tmp_path, rows, header, said):
    path = written(tmp_path, *rows, header=header)
    assert refused(TraceError, said, read_learning_curves, path).startswith(str(path))


def test_a_prefix_cuts_all_columns():
    values = np.array([1.0, 2.0, 3.0])
    curve = LearningCurve("lm", 8, np.array([1, 3, 4]), values, (2,), progress=values, grad_sqr=values)
    cut = curve.prefix(2)
    assert (cut.epoch.tolist(), cut.metric.tolist(), cut.progress.tolist()) == ([1, 3], [1.0, 2.0], [1.0, 2.0])
    assert cut.grad_sqr.tolist() == [1.0, 2.0]
    assert (cut.app, cut.batch_size, cut.lr_milestones, cut.grad_var) == ("lm", 8, (2,), None)
    assert [curve.prefix(seen).epochs for seen in (1, 2, 9)] == [1, 3, 4]


ROWS = st.dictionaries(
    st.tuples(st.sampled_from(["a", "b, c", 'd"e']), st.integers(1, 9), st.integers(1, 50)),
    st.floats(allow_nan=False, allow_infinity=False),
    min_size=1,
)


@given(ROWS, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter_and_nothing_is_lost(tmp_path_factory, rows, random):
    import csv

    path = tmp_path_factory.mktemp("curves") / "curves.csv"
    order = list(rows)
    random.shuffle(order)
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([HEADER.split(","), *((*key, repr(rows[key])) for key in order)])
    found = read_learning_curves(path).curves
    keys = [(curve.app, curve.batch_size) for curve in found]
    assert keys == sorted(set(keys))
    assert all((np.diff(curve.epoch) > 0).all() for curve in found)
    read = {(c.app, c.batch_size, int(e)): m for c in found for e, m in zip(c.epoch, c.metric, strict=True)}
    assert read == rows


def test_published_curves(published):
    table = read_learning_curves(published / "curves/training_curves.csv")
    assert (table.rows, len(table.curves), table.notes) == (1172, 26, ())
    lengths = {(curve.app, len(curve)) for curve in table.curves}
    assert lengths == {("bert", 2), ("cifar10", 100), ("deepspeech2", 80), ("ncf", 10)}
    assert all(curve.grad_sqr is not None and curve.progress is not None for curve in table.curves)
