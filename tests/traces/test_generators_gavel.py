"""The gavel generator: every figure of Shockwave's section 8.1 is measured in the traces.

Courses of batch sizes: by hand from the stated windows, and against the courses of the published traces.
"""

from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import stats

from jobcast.domain.errors import ConfigError, TraceError
from jobcast.traces.generators import generate, generate_courses
from jobcast.traces.generators.gavel import (
    BATCH_SIZES,
    MODES,
    jittered,
    parse_gavel,
    planned_course,
    read_doublings,
)
from jobcast.traces.readers import read_trace
from jobcast.traces.trainings import TrainingTables, read_courses, read_throughputs, trainings_of, write_courses
from tests.shared import refused

UNLIKELY = 1e-3  # a fixed seed either passes or not; this bounds how odd a passing draw may be
WIDTHS = (1, 2, 4, 8)


@pytest.fixture(scope="session")
def rates(tmp_path_factory):
    """A table of our own: rates fall with the batch size and grow with the width; Recommendation has one GPU."""
    path = tmp_path_factory.mktemp("rates") / "throughputs.csv"
    rows = [
        ("v100", model, size, width, 40.0 * width**0.8 / (1 + rank) * (model != "Transformer" or size < 256))
        for model, sizes in BATCH_SIZES.items()
        for rank, size in enumerate(sizes)
        for width in (WIDTHS if model != "Recommendation" else (1,))
    ]
    names = ("gpu_type", "model", "batch_size", "gpus", "steps_per_second")
    pl.DataFrame(rows, schema=names, orient="row").write_csv(path)
    return path


@pytest.fixture
def drawn(rates):
    def draw(seed=0, **chosen):
        return generate("gavel", seed, {"throughputs": str(rates), "gns": "rule", **chosen})

    return draw


@pytest.fixture(scope="session")
def many(rates):
    return generate("gavel", 1, {"throughputs": str(rates), "gns": "rule", "jobs": 6000})


def seen(values, among):
    return [np.sum(np.asarray(values) == one) for one in among]


def test_widths_have_their_shares(many):
    assert stats.chisquare(seen(many[0].gpus, WIDTHS), 6000 * np.array([0.6, 0.3, 0.09, 0.01])).pvalue > UNLIKELY


def test_modes_have_their_shares(many, drawn):
    modes = ("static", "accordion", "gns")
    assert stats.chisquare(seen(many[0].jobs["adaptation"], modes)).pvalue > UNLIKELY
    mixed = drawn(jobs=3000, mode_shares="0.2,0.5,0.3")[0].jobs["adaptation"]
    assert stats.chisquare(seen(mixed, modes), 3000 * np.array([0.2, 0.5, 0.3])).pvalue > UNLIKELY
    assert set(drawn(mode_shares="0,0,1")[0].jobs["adaptation"]) == {"gns"}


def test_run_times_stay_within_their_limits_and_sizes_are_drawn_among_those_in_reach(many):
    trace = many[0]
    hours, gpu_hours = trace.duration_s / 3600, trace.gpu_time_s / 3600
    assert hours.min() >= 0.2 - 1e-6
    assert hours.max() <= 5 + 1e-6
    assert gpu_hours[trace.gpus == 1].max() <= 5 + 1e-6
    for width, shares in ((2, [0.72, 0.2]), (4, [0.72, 0.2, 0.05])):
        mine = gpu_hours[trace.gpus == width]
        sizes = np.searchsorted([8, 16, 72], mine)
        expected = len(mine) * np.array(shares) / sum(shares)
        assert stats.chisquare(np.bincount(sizes, minlength=len(shares)), expected).pvalue > UNLIKELY


def test_gpu_time_is_log_uniform_within_a_size(many):
    trace = many[0]
    logs = np.log(trace.duration_s[trace.gpus == 1] / 3600)
    assert stats.kstest(logs, stats.uniform(np.log(0.2), np.log(25)).cdf).pvalue > UNLIKELY


def test_extra_large_jobs_come_when_run_times_may_be_long_enough(drawn):
    trace = drawn(jobs=4000, longest_h=400)[0]
    sizes = np.searchsorted([8, 16, 72], trace.gpu_time_s / 3600)
    assert stats.chisquare(np.bincount(sizes), 4000 * np.array([0.72, 0.2, 0.05, 0.03])).pvalue > UNLIKELY


def test_configurations_are_uniform_among_those_that_the_table_knows(many):
    wide = many[0].jobs.filter(pl.col("gpus") == 2)
    pairs = wide.group_by("model", "batch_size").len()
    assert len(pairs) == 4 + 5 + 5 + 4  # no Recommendation, no Transformer of 256
    assert stats.chisquare(pairs["len"]).pvalue > UNLIKELY
    narrow = many[0].jobs.filter(pl.col("gpus") == 1)
    assert set(narrow["model"]) == set(BATCH_SIZES)
    assert narrow.select("model", "batch_size").n_unique() == 4 + 5 + 5 + 4 + 5


def test_steps_are_those_of_the_nominal_run_time(many, rates):
    table = read_throughputs(rates).rates
    rows = many[0].jobs.select("model", "gpus", "batch_size", "steps", "duration").head(300).iter_rows()
    for model, gpus, size, steps, duration_s in rows:
        assert steps == pytest.approx(duration_s * table[model, gpus][size], abs=0.51)


def test_arrivals_are_a_poisson_process_from_the_start_on(many, drawn):
    gaps_s = np.diff(many[0].submit_s)
    assert stats.kstest(gaps_s / gaps_s.mean(), "expon").pvalue > UNLIKELY
    trace = drawn(jobs=4000, interarrival_s=50, start="2024-03-01")[0]
    assert trace.submit_s[0] == 1709251200.0  # 2024-03-01
    assert np.diff(trace.submit_s).mean() == pytest.approx(50, rel=0.05)


def test_a_batch_arrives_at_once(drawn):
    trace = drawn(jobs=50, arrivals="batch")[0]
    assert np.ptp(trace.submit_s) == 0
    assert trace.jobs["duration"].to_list() == drawn(jobs=50)[0].jobs["duration"].to_list()


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10**6), jobs=st.integers(1, 80), jitter=st.sampled_from([0.0, 0.3]))
def test_courses_fit_their_trace(drawn, rates, tmp_path, seed, jobs, jitter):
    trace = drawn(seed, jobs=jobs, jitter=jitter)[0]
    courses = generate_courses(
        "gavel", trace, seed, {"throughputs": str(rates), "gns": "rule", "jobs": jobs, "jitter": jitter}
    )
    write_courses(courses, tmp_path / "regimes.csv")
    tables = TrainingTables(read_throughputs(rates), courses=read_courses(tmp_path / "regimes.csv"))
    found = trainings_of(trace, tables)
    assert found.notes == ()
    for training, regimes in zip(found.trainings, found.regimes, strict=True):
        assert sum(regime.epochs for regime in regimes) == training.epochs
        assert regimes[0].batch_size == training.batch_size
        assert training.run_time_s(regimes) > 0
        if training.mode == "static":
            assert len(regimes) == 1


def test_doublings_are_taken_from_a_table(drawn, rates, tmp_path):
    table = tmp_path / "doublings.csv"
    table.write_text("model,initial_batch_size,mode,scale_factor,epoch,batch_size\nLM,5,gns,1,0,5\nLM,5,gns,1,7,10\n")
    trace = drawn(jobs=400, mode_shares="0,0,1", shortest_h=4)[0]
    courses = generate_courses("gavel", trace, 0, {"throughputs": str(rates), "gns": str(table)})
    told = trace.jobs.filter(pl.col("model") == "LM", pl.col("batch_size") == 5, pl.col("gpus") == 1)["job_id"]
    assert {courses[job_id] for job_id in told} == {((0, 5), (7, 10))}
    assert all(len(course) == 1 for job_id, course in courses.items() if job_id not in set(told))


def test_files_are_found_under_the_folder_of_data(rates, tmp_path, monkeypatch):
    monkeypatch.delenv("JOBCAST_DATA", raising=False)
    with pytest.raises(ConfigError, match=r"gavel: throughputs are needed .* give --set throughputs=FILE, or point"):
        generate("gavel", 0, {})
    assert parse_gavel({"throughputs": "t.csv"}).gns == "rule"
    folder = tmp_path / "shockwave"
    folder.mkdir()
    (folder / "throughputs_tacc.csv").write_bytes(rates.read_bytes())
    monkeypatch.setenv("JOBCAST_DATA", str(tmp_path))
    trace = generate("gavel", 0, {})[0]
    assert trace.notes == (f"throughputs: {folder / 'throughputs_tacc.csv'}, v100", "gns doubles every 20 epochs")
    (folder / "regimes.csv").write_text("x")
    assert parse_gavel({}).gns == str(folder / "regimes.csv")


LM = BATCH_SIZES["LM"]


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


DOUBLINGS = "model,initial_batch_size,mode,scale_factor,epoch,batch_size\n"


def test_a_table_of_doublings_is_read(written):
    rows = "LM,5,gns,2,31,10\nLM,5,gns,2,0,5\nLM,5,accordion,2,0,5\nLM,10,gns,1,0,10\n"
    path = written("regimes.csv", DOUBLINGS + rows)
    assert read_doublings(path) == {
        ("LM", 5, 2): ((0, 5), (31, 10)),
        ("LM", 10, 1): ((0, 10),),
    }


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("LM,5,gns,2,0,5\nLM,5,gns,2,1.5,10\n", r"row 3, column epoch: must be a whole number >= 0, got '1.5'"),
        ("LM,5,gns,,0,5\n", "row 2, column scale_factor: must be a whole number >= 0, got nothing"),
        ("LM,5,gns,2,3,10\n", "row 2, column epoch: LM from 5 on 2 GPUs must begin at epoch 0 with its initial"),
        ("LM,5,gns,2,0,5\nLM,5,gns,2,9,10\nLM,5,gns,2,9,20\n", "row 4, column epoch: LM from 5 on 2 GPUs is there twi"),
    ],
)
def test_a_bad_table_of_doublings_is_named(written, rows, said):
    refused(TraceError, said, read_doublings, written("regimes.csv", DOUBLINGS + rows))


@pytest.mark.parametrize(("jobs", "table"), [(120, "tacc"), (220, "wisr")])
def test_the_courses_of_the_published_traces_come_out(published, jobs, table):
    """Each of the 340 jobs, epoch by epoch; doublings are looked up, Accordion's windows and share are ours."""
    folder = published / "shockwave"
    trace = read_trace(folder / f"{jobs}_jobs.trace", format="shockwave")
    courses = read_courses(folder / f"regimes_{jobs}_planned.csv").by_job
    doublings = read_doublings(folder / "regimes.csv")
    known = trainings_of(trace, TrainingTables(read_throughputs(folder / f"throughputs_{table}.csv"))).trainings
    made = {
        str(row): planned_course(t.model, t.batch_size, t.mode, t.epochs, tuple(t.epoch_s), gpus, doublings)
        for row, (t, gpus) in enumerate(zip(known, trace.gpus.tolist(), strict=True))
    }
    assert made == courses
