"""Courses of batch sizes: by hand from the stated windows, and against the courses of the published traces."""

import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import TraceError
from jobcast.traces.generators.gavel import BATCH_SIZES
from jobcast.traces.generators.gavel_courses import MODES, jittered, planned_course, read_doublings
from jobcast.traces.readers import read_trace
from jobcast.traces.throughputs import TrainingTables, read_courses, read_throughputs
from jobcast.traces.trainings import trainings_of

LM = BATCH_SIZES["LM"]
RECOMMENDATION = BATCH_SIZES["Recommendation"]


@pytest.mark.parametrize(
    ("model", "batch_size", "epochs", "course"),
    [
        ("LM", 20, 100, ((0, 20), (30, 80))),
        ("LM", 20, 20, ((0, 20), (10, 80))),  # 30 % are 6 epochs, the window 10
        ("LM", 80, 100, ((0, 80),)),
        ("LM", 20, 8, ((0, 20),)),
        ("ResNet-18", 64, 200, ((0, 64), (60, 256), (150, 64), (160, 256))),
        ("ResNet-50", 32, 70, ((0, 32), (21, 128), (30, 32), (40, 128), (60, 32))),
        ("Recommendation", 2048, 100, ((0, 2048), (40, 8192), (60, 2048), (70, 8192), (80, 2048), (90, 8192))),
        ("Recommendation", 4096, 50, ((0, 4096), (15, 8192))),
        ("Transformer", 16, 400, ((0, 16),)),
    ],
)
def test_accordion_grows_outside_critical_windows_after_the_first_30_percent(model, batch_size, epochs, course):
    assert planned_course(model, batch_size, "accordion", epochs, BATCH_SIZES[model], 1, None) == course


def test_accordion_goes_to_the_largest_size_that_is_available():
    assert planned_course("LM", 10, "accordion", 100, (10, 20), 2, None) == ((0, 10), (30, 20))


def test_gns_doubles_by_the_table_else_every_20_epochs():
    table = {("LM", 20, 2): ((0, 20), (31, 40), (41, 80))}
    assert planned_course("LM", 20, "gns", 100, LM, 2, table) == ((0, 20), (31, 40), (41, 80))
    assert planned_course("LM", 20, "gns", 41, LM, 2, table) == ((0, 20), (31, 40))
    assert planned_course("LM", 20, "gns", 100, LM, 1, table) == ((0, 20),)
    assert planned_course("LM", 20, "gns", 100, LM, 1, None) == ((0, 20), (20, 40), (40, 80))
    assert planned_course("LM", 20, "gns", 100, (20, 40), 2, table) == ((0, 20), (31, 40))


def test_static_jobs_and_rules_that_are_not_known_stay():
    for mode in ("static", "cyclic"):
        assert planned_course("LM", 20, mode, 100, LM, 1, None) == ((0, 20),)


models = st.sampled_from(sorted(BATCH_SIZES))


@given(models, st.data(), st.sampled_from(MODES), st.integers(1, 900), st.floats(0.0, 2.0), st.integers(0, 99))
def test_courses_are_valid_with_jitter_and_without(model, data, mode, epochs, sigma, seed):
    batch_size = data.draw(st.sampled_from(BATCH_SIZES[model]))
    plain = planned_course(model, batch_size, mode, epochs, BATCH_SIZES[model], 1, None)
    moved = jittered(plain, epochs, sigma, np.random.default_rng(seed))
    for course in (plain, moved):
        begins, sizes = zip(*course, strict=True)
        assert course[0] == (0, batch_size)
        assert list(begins) == sorted(set(begins))
        assert begins[-1] < epochs
        assert all(earlier != later for earlier, later in pairwise(sizes))
        assert set(sizes) <= set(BATCH_SIZES[model])
        if mode == "gns":
            assert all(later == 2 * earlier for earlier, later in pairwise(sizes))
    assert [size for _, size in moved] == [size for _, size in plain][: len(moved)]


def test_jitter_is_lognormal_on_all_regimes_but_the_last():
    rng = np.random.default_rng(0)
    course = ((0, 10), (1000, 20), (3000, 40))
    drawn = np.array([[begin for begin, _ in jittered(course, 10**6, 0.3, rng)] for _ in range(4000)])
    logs = np.log(np.diff(drawn, axis=1) / [1000, 2000])
    assert np.mean(logs, axis=0) == pytest.approx([0, 0], abs=0.02)
    assert np.std(logs, axis=0) == pytest.approx([0.3, 0.3], rel=0.05)
    assert np.corrcoef(logs.T)[0, 1] == pytest.approx(0, abs=0.05)


def test_a_table_of_doublings_is_read(tmp_path):
    path = tmp_path / "regimes.csv"
    header = "model,initial_batch_size,mode,scale_factor,epoch,batch_size\n"
    path.write_text(header + "LM,5,gns,2,31,10\nLM,5,gns,2,0,5\nLM,5,accordion,2,0,5\nLM,10,gns,1,0,10\n")
    assert read_doublings(path) == {("LM", 5, 2): ((0, 5), (31, 10)), ("LM", 10, 1): ((0, 10),)}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("LM,5,gns,2,0,5\nLM,5,gns,2,1.5,10\n", r"row 3, column epoch: must be a whole number, got 1\.5"),
        ("LM,5,gns,2,nan,5\n", "row 2, column epoch: must be a whole number, got nan"),
        ("LM,5,gns,2,0,inf\n", "row 2, column batch_size: must be a whole number, got inf"),
        ("LM,5,gns,,0,5\n", "row 2, column scale_factor: must be a whole number, got nothing"),
        ("LM,5,gns,2,3,10\n", "row 2, column epoch: LM from 5 on 2 GPUs must begin at epoch 0 with its initial"),
        ("LM,5,gns,2,0,10\n", "row 2, column epoch: LM from 5 on 2 GPUs must begin at epoch 0 with its initial"),
        ("LM,5,gns,2,0,5\nLM,5,gns,2,9,10\nLM,5,gns,2,9,20\n", "row 4, column epoch: LM from 5 on 2 GPUs is there twi"),
    ],
)
def test_a_bad_table_of_doublings_is_named(tmp_path, rows, said):
    path = tmp_path / "regimes.csv"
    path.write_text("model,initial_batch_size,mode,scale_factor,epoch,batch_size\n" + rows)
    with pytest.raises(TraceError, match=said) as caught:
        read_doublings(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("jobs", "table"), [(120, "tacc"), (220, "wisr")])
def test_the_courses_of_the_published_traces_come_out(jobs, table):
    """Each of the 340 jobs, epoch by epoch; doublings are looked up, Accordion's windows and share are ours."""
    if "JOBCAST_DATA" not in os.environ:
        pytest.skip("JOBCAST_DATA is not set: no Shockwave traces")
    folder = Path(os.environ["JOBCAST_DATA"], "shockwave")
    trace = read_trace(folder / f"{jobs}_jobs.trace", format="shockwave")
    published = read_courses(folder / f"regimes_{jobs}_planned.csv").by_job
    doublings = read_doublings(folder / "regimes.csv")
    known = trainings_of(trace, TrainingTables(read_throughputs(folder / f"throughputs_{table}.csv"))).trainings
    made = {
        str(row): planned_course(t.model, t.batch_size, t.mode, t.epochs, tuple(t.epoch_s), gpus, doublings)
        for row, (t, gpus) in enumerate(zip(known, trace.gpus.tolist(), strict=True))
    }
    assert made == published
