"""Tables beside an enriched trace: what their readers make of them, by hand where it can be."""

import numpy as np
import pytest

from jobcast.traces.enrich.columns import EnrichConfig, enriched_jobs
from jobcast.traces.enrich.tables import (
    enriched_tasks,
    noise_table,
    profile_rows,
    regime_courses,
    speedup_table,
    step_time_table,
    throughput_table,
)
from jobcast.traces.goodput_tables import read_noise_curves, read_step_times
from jobcast.traces.profiles import read_profiles
from jobcast.traces.speedups import read_speedups
from jobcast.traces.table import Trace
from jobcast.traces.table_files import write_plain
from jobcast.traces.tasks import read_tasks, write_tasks
from jobcast.traces.trainings import read_throughputs
from tests.scenarios import frame_of
from tests.traces.test_generators_mlfs import jobs_of, longest_path

CONFIG = EnrichConfig()
OWN = {"model": ["LM", "ResNet-18", "mine"], "batch_size": [20, 64, 32], "epochs": [50, 7, 5]}
OWN_MODES = {"adaptation": ["accordion", "static", "gns"]}


@pytest.fixture
def jobs():
    told = {"job_id": ["a", "b", "c"], "duration": [600.0, 60.0, 90.0], "gpus": [4, 1, 12]}
    return enriched_jobs(Trace.from_frame(frame_of([0, 1, 2], **told, **OWN, **OWN_MODES), name="t"), CONFIG, 0)


@pytest.fixture
def written(tmp_path):
    def write(table):
        write_plain(table, tmp_path / "table.csv")
        return tmp_path / "table.csv"

    return write


def test_speedups(jobs, written):
    read = read_speedups(written(speedup_table(jobs, CONFIG)))
    assert set(read.models) == {"LM", "ResNet-18", "mine"}
    assert read.speedup[read.row_of("LM"), 0, [1, 2, 3, 4]].tolist() == pytest.approx([1, 1.28, 1.715, 2.15])
    assert read.gpu_types == ("v100", "p100", "t4", "k80")
    assert read.speed[0].tolist() == [1.0, 0.6, 0.4, 0.25]


def test_throughputs_reach_all_batch_sizes_of_a_course(jobs, written):
    rates = read_throughputs(written(throughput_table(jobs, CONFIG))).rates
    assert list(rates["LM", 4]) == [20, 40, 80]
    assert rates["LM", 4][40] == pytest.approx(2.15 / (0.0053 + 40 * 0.000467))
    assert list(rates["ResNet-18", 1]) == [64, 128, 256]
    courses = regime_courses(jobs)
    assert courses["a"] == ((0, 20), (15, 80))  # 30 % of 50 epochs, then the largest
    assert "b" not in courses


def test_profiles_follow_the_same_formula(jobs, written):
    read = read_profiles(written(profile_rows(jobs, CONFIG)))
    assert read.gpu_types[0] == "v100"
    step_s = (0.0053 + 20 * 0.000467) / 2.15
    assert read.epoch_s_of("LM", 20, 4) == pytest.approx(59_675 / 20 * step_s)
    on_t4 = read.epoch_s(["LM"], [20], ["t4"], 12)[0, 0]
    assert on_t4[3] == pytest.approx(59_675 / 20 * step_s / 0.4)
    assert np.isfinite(on_t4).all()


def test_step_times_agree_with_the_speedups_at_the_largest_batch_size(jobs, written):
    read = read_step_times(written(step_time_table(jobs)))["ResNet-18"]
    at = {
        (int(gpus), int(local)): s for gpus, local, s in zip(read.gpus, read.local_batch_size, read.step_s, strict=True)
    }
    alone_s = 0.00698 + 256 * 0.000593
    assert at[1, 256] == pytest.approx(alone_s)
    for gpus, speedup in ((2, 1.70), (4, 3.26), (8, 5.35)):
        assert at[gpus, 256 // gpus] == pytest.approx(alone_s / speedup, rel=2e-3)


def test_noise_grows_and_curves_reach_as_far_as_jobs(jobs, written):
    read = read_noise_curves(written(noise_table(jobs)))
    assert len(read["LM"][20].epoch) == 50
    assert max(read["mine"]) >= 12
    noise = 5 * read["LM"][20].grad_var / read["LM"][20].grad_sqr
    assert noise[0] == pytest.approx(500)
    assert (np.diff(noise) > 0).all()
    small, large = read["LM"][5].progress, read["LM"][80].progress
    assert small[0] == pytest.approx(59_675 / 5)
    assert (large < small).all()


def test_tasks_last_for_the_duration_and_pass_their_reader(jobs, tmp_path):
    table = enriched_tasks(jobs, 0)
    write_tasks(table, tmp_path / "tasks.parquet")
    read = read_tasks(tmp_path / "tasks.parquet")
    assert read.job_ids == ("a", "b", "c")
    workers = np.add.reduceat(~read.is_server, read.task_of[:-1])
    assert workers.tolist() == [4, 1, 12]
    iterations = jobs.epochs * read.epoch_iterations
    runs = zip(jobs_of(read), iterations, jobs.duration_s, strict=True)
    for (tasks, edge_from, edge_to, _), times, duration_s in runs:
        path_s = longest_path(read.compute_s[tasks], edge_from, edge_to)
        assert times * path_s == pytest.approx(duration_s, rel=1e-9)
