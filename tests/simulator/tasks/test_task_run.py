"""Runs of jobs of tasks, by hand: times, stand-stills, costs, and what policies see. MLFS, section 3."""

from inspect import signature
from math import inf, nan

import numpy as np
import pytest

from jobcast.domain.errors import ConfigError, DecisionError
from jobcast.domain.tasks import GPU, MEMORY, QUEUED
from jobcast.schedulers.policies import TaskMechanism
from jobcast.simulator.laws.tasks import PATIENCE, Tasks
from jobcast.simulator.metrics import queued_s
from tests.shared import refused
from tests.simulator.tasks.task_cases import TaskJob, cluster_of, replay_tasks, simulation_of, workload_of
from tests.simulator.tasks.task_policies import Fifo, Script

TWO_SERVERS = cluster_of(2, 2)  # GPUs 0, 1 and 2, 3
LINEAR = np.linspace(0.0, 1.0, 11)[None]  # ten epochs


def run(rows, script, *, cluster=TWO_SERVERS, fluctuation=0.0, metric=None, iterations=None, model_mb=500.0, **options):
    """Log of a run by a script (or a policy), and the policy."""
    policy = Script(script) if isinstance(script, dict) else script
    workload = workload_of(rows, cluster, metric=metric, iterations=iterations, model_mb=model_mb)
    return replay_tasks(workload, policy, fluctuation=fluctuation, **options), policy


def test_a_job_alone_ends_after_all_its_iterations():
    log, _ = run([TaskJob(submit_s=1000.0)], {0: {"put": [(0, 0)]}})
    assert (log.start_s[0], log.end_s[0], log.columns["ran_s"][0], queued_s(log)[0]) == (1000.0, 1100.0, 100.0, 0.0)
    assert log.columns["done"][0] == 100.0
    assert log.columns["used_gpu_s"][0] == 50.0  # half a GPU
    assert (log.totals["decisions"], log.totals["overloads"]) == (2, 0)
    assert 0.0 <= log.totals["decision_s"] < 0.5


def test_a_job_waits_for_the_tick_after_its_submission():
    rows = [TaskJob(submit_s=1000.0), TaskJob(submit_s=1010.0)]
    log, policy = run(rows, {0: {"put": [(0, 0)]}, 60: {"put": [(1, 2)]}})
    assert log.end_s.tolist() == [1100.0, 1160.0]
    assert queued_s(log).tolist() == [0.0, 50.0]
    assert policy.seen[0]["active"].tolist() == [0]
    assert policy.seen[1]["active"].tolist() == [0, 1]


def test_a_job_submitted_at_a_tick_is_there():
    rows = [TaskJob(submit_s=1.7e9 + 0.1), TaskJob(submit_s=1.7e9 + 60.1)]
    log, _ = run(rows, {0: {"put": [(0, 0)]}, 60: {"put": [(1, 2)]}})
    assert log.jct_s == pytest.approx([100.0, 100.0])


def test_parts_of_an_iteration_are_progress_that_is_seen():
    """More than a day of rounds, in each of which .6 of an iteration is done; the other waits for all that."""
    rows = [TaskJob(compute_s=100.0, iterations=1_000.0), TaskJob()]
    log, policy = run(rows, {0: {"put": [(0, 0)]}, 99_960: {"put": [(1, 2)]}})
    assert log.end_s.tolist() == pytest.approx([100_000.0, 100_060.0])
    assert policy.seen[1]["step_s"][0].tolist() == pytest.approx([100.0, nan], nan_ok=True)
    assert queued_s(log).tolist() == pytest.approx([0.0, 99_960.0])


def test_ends_that_are_one_instant_to_the_clock_keep_their_own():
    rows = [TaskJob(iterations=75.5), TaskJob(iterations=75.5000003)]
    log, _ = run(rows, {0: {"put": [(0, 0), (1, 2)]}})
    assert np.diff(log.end_s).tolist() == pytest.approx([3e-7], rel=1e-3)
    assert log.end_s[0] == 75.5
    assert log.spans.until_s.tolist() == log.end_s.tolist()


def test_ticks_without_jobs_are_left_out():
    rows = [TaskJob(submit_s=0.0), TaskJob(submit_s=86_401.0)]
    log, policy = run(rows, {0: {"put": [(0, 0)]}, 86_460: {"put": [(1, 0)]}})
    assert policy.at_s == [0.0, 60.0, 86_460.0, 86_520.0]
    assert log.end_s[1] == 86_560.0


def test_what_a_completion_frees_is_used_from_the_next_tick_on():
    rows = [TaskJob(iterations=70.0, gpu=1.0), TaskJob(iterations=70.0, gpu=1.0)]
    log, policy = run(rows, {0: {"put": [(0, 0)]}, 120: {"put": [(1, 0)]}})
    assert log.end_s.tolist() == [70.0, 190.0]
    assert policy.seen[2]["load"][0, GPU] == 0.0
    assert queued_s(log)[1] == 120.0


@pytest.mark.parametrize(("gpu", "seconds"), [(2, 110.4), (1, 110.0)])
def test_a_move_costs_a_restart_and_what_it_takes_along_to_another_server(gpu, seconds):
    """500 MB at 1250 MB/s take 0.4 s; within a server nothing is sent."""
    log, _ = run([TaskJob()], {0: {"put": [(0, 0)]}, 60: {"put": [(0, gpu)]}})
    assert log.end_s[0] == pytest.approx(seconds)
    assert (log.columns["migrations"][0], log.preemptions[0]) == (1, 0)
    assert log.columns["moved_mb"][0] == (500.0 if gpu == 2 else 0.0)
    assert log.columns["ran_s"][0] == pytest.approx(seconds)
    log, _ = run([TaskJob()], {0: {"put": [(0, 0)]}, 60: {"put": [(0, gpu)]}}, restart_s=0.0)
    assert log.end_s[0] == pytest.approx(seconds - 10.0)


def test_a_task_takes_along_its_share_of_the_model_and_the_slower_network_counts():
    cluster = cluster_of(2, 2)
    cluster.capacity[1, 3] = 100.0
    rows = [TaskJob(workers=2, bandwidth=1.0, server=True)]
    log, _ = run(rows, {0: {"put": [(0, 0), (1, 0), (2, 0)]}, 60: {"put": [(1, 2), (2, 2)]}}, cluster=cluster)
    assert log.columns["moved_mb"][0] == 250.0  # half of it, and nothing for the parameter server
    assert log.end_s[0] == pytest.approx(110.0 + 2.5)
    assert log.columns["migrations"][0] == 2


@pytest.mark.parametrize(("gpu", "moved_mb", "end_s"), [(0, 0.0, 170.0), (1, 0.0, 170.0), (3, 500.0, 170.4)])
def test_a_stop_keeps_the_work_done_and_costs_a_restart(gpu, moved_mb, end_s):
    script = {0: {"put": [(0, 0)]}, 60: {"stop": [0]}, 120: {"put": [(0, gpu)]}}
    log, policy = run([TaskJob()], script)
    assert policy.of("done") == pytest.approx({0: 0.0, 60: 60.0, 120: 60.0})
    assert log.end_s[0] == pytest.approx(end_s)
    assert (log.preemptions[0], log.columns["migrations"][0], log.columns["moved_mb"][0]) == (1, 0, moved_mb)
    assert (log.start_s[0], queued_s(log)[0]) == (0.0, 60.0)
    assert log.columns["ran_s"][0] == pytest.approx(end_s - 60.0)


def test_service_is_work_at_the_speed_alone():
    """Iterations of 2 s: 30 of them in the first minute, none in the second, stopped; 25 more by 180, after 10 s."""
    script = {0: {"put": [(0, 0)]}, 60: {"stop": [0]}, 120: {"put": [(0, 0)]}}
    workload = workload_of([TaskJob(iterations=100.0, compute_s=2.0)], TWO_SERVERS)
    run = simulation_of(workload, Script(script), fluctuation=0.0)[0].run(180.0)
    told = run.law.service(run, run.jobs[0])
    assert (told.done, told.saved) == pytest.approx((55.0, 55.0))
    assert told.run_s == pytest.approx(110.0)
    assert (told.held_s, told.starts) == (120.0, 2)
    assert run.law.due(269.9) == []
    assert run.law.due(270.0) == [(270.0, 0, 0)]


def test_stopped_and_started_in_one_decision_is_a_stop_and_a_restart():
    log, _ = run([TaskJob()], {0: {"put": [(0, 0)]}, 60: {"stop": [0], "put": [(0, 0)]}})
    assert log.end_s[0] == pytest.approx(110.0)
    assert (log.preemptions[0], log.columns["migrations"][0], queued_s(log)[0]) == (1, 0, 0.0)


def test_a_task_back_in_the_queue_stops_its_job_which_neither_waits_nor_runs():
    script = {0: {"put": [(0, 2), (1, 0), (2, 1)]}, 60: {"put": [(2, QUEUED)]}, 120: {"put": [(2, 1)]}}
    log, policy = run([TaskJob(), TaskJob(workers=2)], script)
    assert log.end_s.tolist() == pytest.approx([100.0, 170.0])
    assert (log.preemptions.tolist(), queued_s(log).tolist()) == ([0, 1], [0.0, 0.0])
    assert log.columns["ran_s"].tolist() == pytest.approx([100.0, 110.0])
    assert policy.seen[2]["load"][0, GPU] == 0.5


def test_a_job_in_part_on_gpus_stands_still_and_its_first_start_is_free():
    log, policy = run([TaskJob(workers=2)], {0: {"put": [(0, 0)]}, 60: {"put": [(1, 1)]}})
    assert policy.of("done")[60] == 0.0
    assert (log.start_s[0], log.end_s[0], log.preemptions[0], log.columns["used_gpu_s"][0]) == (60.0, 160.0, 0, 100.0)


def test_a_second_move_stands_still_anew():
    script = {0: {"put": [(0, 0)]}, 60: {"put": [(0, 1)]}, 120: {"put": [(0, 0)]}}
    log, _ = run([TaskJob(iterations=200.0)], script, restart_s=90.0)
    assert log.end_s[0] == pytest.approx(60.0 + 60.0 + 90.0 + 140.0)


@pytest.mark.parametrize("stop", [[], [0]])
def test_a_quick_move_does_not_cut_a_slow_one_short(stop):
    """125,000 MB take 100 s, until second 170; a move within the server at second 120 changes nothing of that.

    Nor does a stop, with which the job is put there anew.
    """
    script = {0: {"put": [(0, 0)]}, 60: {"put": [(0, 2)]}, 120: {"stop": stop, "put": [(0, 3)]}}
    log, _ = run([TaskJob()], script, model_mb=125_000.0)
    assert log.end_s[0] == pytest.approx(170.0 + 40.0)


def test_a_limit_ends_a_job_in_the_middle_or_at_once():
    log, _ = run([TaskJob()], {0: {"put": [(0, 0)], "limited": [0], "limits": [75.5]}})
    assert (log.end_s[0], log.columns["done"][0]) == (75.5, 75.5)
    assert log.columns["accuracy"][0] == pytest.approx(0.9 * (1 - np.exp(-2.1)))
    for put in ([], [(0, 3)]):  # also while it would stand still, until second 170, for 125,000 MB
        script = {0: {"put": [(0, 0), (1, 2)]}, 60: {"put": put, "limited": [0], "limits": [60.0]}}
        log, policy = run([TaskJob(), TaskJob(iterations=130.0)], script, model_mb=125_000.0)
        assert (log.end_s.tolist(), log.columns["done"][0], policy.at_s) == ([60.0, 130.0], 60.0, [0.0, 60.0, 120.0])
    log, _ = run([TaskJob()], {60: {"limited": [0], "limits": [0.0]}})
    assert (log.end_s[0], log.columns["done"][0], log.columns["accuracy"][0]) == (60.0, 0.0, 0.0)
    assert np.isnan(log.start_s[0])


def test_a_limit_may_be_taken_back():
    script = {0: {"put": [(0, 0)], "limited": [0], "limits": [70.0]}, 60: {"limited": [0], "limits": [100.0]}}
    log, _ = run([TaskJob()], script, round_s=1.0)
    assert log.end_s[0] == 100.0


def test_a_job_may_really_end_before_it_declares():
    rows, script = [TaskJob(), TaskJob()], {0: {"put": [(0, 0), (1, 2)]}}
    log, policy = run(rows, script, iterations=np.array([42.0, 100.0]), metric=np.repeat(LINEAR, 2, axis=0))
    assert (log.end_s[0], log.columns["iterations"][0]) == (42.0, 42.0)
    # Its fifth epoch is a short one.
    assert log.columns["accuracy"][0] == policy.of("accuracy")[60] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("deadline_s", "accuracy"), [(9.9, 0.0), (10.0, 0.1), (35.0, 0.3), (99.0, 0.9), (100.0, 1.0), (inf, 1.0)]
)
def test_accuracy_by_the_deadline_is_that_of_the_latest_epoch_by_then(deadline_s, accuracy):
    log, _ = run([TaskJob(submit_s=5e8, deadline_s=5e8 + deadline_s)], {0: {"put": [(0, 0)]}}, metric=LINEAR)
    assert log.columns["deadline_accuracy"][0] == pytest.approx(accuracy)
    assert log.columns["accuracy"][0] == 1.0


def test_accuracy_by_a_deadline_while_the_job_stands_still():
    script = {0: {"put": [(0, 0)]}, 60: {"stop": [0]}, 120: {"put": [(0, 0)]}}
    for deadline_s, accuracy in ((100.0, 0.4), (125.0, 0.4), (141.0, 0.5)):  # epochs of 12.1 s, 60 s until the stop
        log, _ = run([TaskJob(iterations=121.0, deadline_s=deadline_s)], script, metric=LINEAR)
        assert log.columns["deadline_accuracy"][0] == pytest.approx(accuracy)


def test_what_is_seen_of_a_metric_that_also_falls():
    """Epochs of 40 s: after 60 s one is seen, after 120 s three, of which the third lost."""
    metric = np.array([[0.1, 0.3, 0.7, 0.5, 0.6, 0.9]])
    log, policy = run([TaskJob(epochs=5, iterations=200.0)], {0: {"put": [(0, 0)]}}, metric=metric)
    assert policy.of("accuracy") == pytest.approx({0: nan, 60: 0.3, 120: 0.5, 180: 0.6}, nan_ok=True)
    assert policy.of("last_gain") == pytest.approx({0: nan, 60: 0.2, 120: 0.0, 180: 0.1}, nan_ok=True)
    assert policy.of("all_gain") == pytest.approx({0: nan, 60: 0.2, 120: 0.6, 180: 0.7}, nan_ok=True)
    assert log.columns["accuracy"][0] == 0.9


def test_traffic_between_servers_counts_by_iterations_done():
    rows = [TaskJob(workers=2, chain=True, volume_mb=50.0)]
    apart, _ = run(rows, {0: {"put": [(0, 0), (1, 2)]}})
    beside, _ = run(rows, {0: {"put": [(0, 0), (1, 1)]}})
    assert (apart.columns["edge_mb"][0], beside.columns["edge_mb"][0]) == (pytest.approx(5000.0), 0.0)
    assert (apart.end_s[0], beside.end_s[0]) == (pytest.approx(250.0), pytest.approx(200.0))


@pytest.mark.parametrize(
    ("cpu", "bandwidth", "overloads"),
    [(10.0, 100.0, 0), (14.4, 100.0, 0), (14.5, 100.0, 2), (14.5, 600.0, 2)],  # 28.8 of 32 cores are 0.9
    ids=["idle", "at the limit", "cores", "cores and network count once"],
)
def test_servers_are_overloaded_beyond_nine_tenths_of_any_resource(cpu, bandwidth, overloads):
    row = TaskJob(workers=2, gpu=0.5, cpu=cpu, bandwidth=bandwidth, iterations=110.0)
    assert run([row], {0: {"put": [(0, 0), (1, 1)]}})[0].totals["overloads"] == overloads


def test_a_gpu_is_never_used_beyond_what_it_has():
    rows = [TaskJob(gpu=0.75, iterations=60.0), TaskJob(gpu=0.75, iterations=60.0)]
    log, _ = run(rows, {0: {"put": [(0, 0), (1, 0)]}})
    assert log.end_s.tolist() == [90.0, 90.0]
    assert log.columns["used_gpu_s"].tolist() == [45.0, 45.0]


def test_loads_fluctuate_every_five_minutes_but_memory_does_not():
    row = TaskJob(workers=64, gpu=0.01, cpu=0.1, memory=1.0, iterations=6000.0)
    put = [(task, task % 4) for task in range(64)]
    log, policy = run([row], {0: {"put": put}}, fluctuation=0.2)
    loads = np.array([seen["task_load"] for seen in policy.seen[1:]])
    factors = loads[:, :, 0] / 0.01
    assert (loads[:, :, MEMORY] == 1.0).all()
    assert np.allclose(loads[:, :, 3] / 100.0, factors)
    assert np.array_equal(factors[0], factors[3])
    assert not np.isclose(factors[3], factors[4]).any()
    apart = factors[4::5].ravel()  # a draw each
    assert (apart.min() >= 0.6, apart.max() <= 1.4) == (True, True)
    assert apart.mean() == pytest.approx(1.0, abs=0.02)
    assert apart.std() == pytest.approx(0.2 * 0.959, abs=0.01)  # sd of a normal clipped to +-2
    again, other = (run([row], {0: {"put": put}}, fluctuation=0.2, seed=seed)[1] for seed in (0, 1))
    assert np.array_equal(again.seen[7]["task_load"], policy.seen[7]["task_load"])
    assert not np.array_equal(other.seen[7]["task_load"], policy.seen[7]["task_load"])
    assert log.columns["done"][0] == 6000.0


def test_progress_is_told_to_the_end():
    told = []
    rows = [TaskJob(iterations=60.0 * 450)]
    run(rows, {0: {"put": [(0, 0)]}}, progress=lambda over, count: told.append((over, count)))
    assert told == [(1, 1)]


def wrong(script, *, rows=None, **options):
    rows = rows or (TaskJob(), TaskJob(submit_s=600.0, workers=2))
    return refused(DecisionError, "", run, list(rows), script, **options)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"put": [(9, 0)]}, "place task 9: there is none"),
        ({"put": [(-1, 0)]}, "place task -1: there is none"),
        ({"put": [(2, 0)]}, "place job job-1: it is not active"),
        ({"put": [(0, 4)]}, "place job job-0: task 0 goes to GPU 4, of which there are 4"),
        ({"put": [(0, -2)]}, "place job job-0: task 0 goes to GPU -2, of which there are 4"),
        ({"stop": [0]}, "stop job job-0: it is not running"),
        ({"stop": [1]}, "change job job-1: it is submitted only at 600.000000 s"),
        ({"stop": [7]}, "change job number 7: it is none of this run's jobs, or not submitted yet"),
        ({"limited": [1], "limits": [5.0]}, "change job job-1: it is submitted only at 600.000000 s"),
        ({"limited": [0], "limits": [101.0]}, "limit job job-0: 101 iterations are more than its 100"),
        ({"limited": [0], "limits": [nan]}, "limit job job-0: nan iterations are fewer than the 0 that it has done"),
    ],
)
def test_what_cannot_be_is_refused(said, told):
    assert wrong({0: said}) == f"policy script at 0.000000 s: cannot {told}"


def test_a_limit_below_what_is_done_is_refused():
    told = wrong({0: {"put": [(0, 0)]}, 60: {"limited": [0], "limits": [59.0]}})
    assert told == (
        "policy script at 60.000000 s: cannot limit job job-0: 59 iterations are fewer than the 60 that it has done"
    )


@pytest.mark.parametrize(("put", "task"), [([(1, 0), (2, 1), (3, 0)], 2), ([(1, 0), (3, 1), (2, 0), (4, 2)], 1)])
def test_more_memory_than_there_is_is_refused(put, task):
    rows = (TaskJob(), TaskJob(workers=4, memory=90.0))
    told = wrong({0: {"put": put}}, rows=rows)
    assert told == (
        f"policy script at 0.000000 s: cannot place job job-1: task {task} goes to server 0, which lacks the memory "
        "for it (244 GB in all)"
    )


def test_as_much_memory_as_there_is_is_taken():
    rows = (TaskJob(workers=3, memory=100.0),)
    full, _ = run(rows, {0: {"put": [(0, 0), (1, 1), (2, 2)]}}, cluster=cluster_of(2, 2, memory=200.0))
    assert full.end_s[0] == 100.0


@pytest.mark.parametrize("script", [{}, {600: {"put": [(1, 0)]}}])
def test_jobs_left_for_ever_are_refused(script):
    """Nowhere, or in part on GPUs."""
    told = wrong(script)
    at_s = 600.0 + 60.0 * (PATIENCE - 1)  # patience begins with the last submission
    assert told == (
        f"policy script at {at_s + 60.0:.6f} s: 2 jobs are pending, job job-0 first, while none gets on and nothing "
        "will arrive; it must start one, leave it its GPUs for longer than a start takes (longer rounds, cheaper "
        "starts), or ask to be woken"
    )


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        *((setting, -1.0) for setting in ("round_s", "fluctuation", "restart_s", "forecast_every")),
        *((setting, 0.0) for setting in ("round_s", "forecast_every")),
        *((setting, inf) for setting in ("fluctuation", "restart_s", "forecast_every")),
        *(("stragglers", share) for share in (-0.1, 1.1)),
        *(("straggler_factor", factor) for factor in (0.5, inf)),
        *(("straggler_h", hours) for hours in (0.0, inf)),
    ],
)
def test_settings_that_mean_nothing_are_refused(setting, value):
    with pytest.raises(ConfigError, match=f"{setting} (is )?{value:g}"):
        run([TaskJob()], Fifo(), **{setting: value})


def test_costs_that_nobody_sets_are_those_of_the_policies_settings():
    settings, law = TaskMechanism().model_dump(exclude={"round_s"}), signature(Tasks).parameters
    assert settings == {name: law[name].default for name in settings}


SERVERS = cluster_of(1, 4)


class Asked:
    """A forecast that keeps its questions."""

    def __init__(self):
        self.questions = []

    def __call__(self, jobs, shown, seen, epochs):
        self.questions.append((jobs.tolist(), shown.copy(), seen.tolist(), epochs.tolist()))
        return 0.5 + 0.01 * seen, 0.1 * jobs + 0.1

    def seen_of(self, job):
        return [seen[jobs.index(job)] for jobs, _, seen, _ in self.questions if job in jobs]


def ask(rows, **options):
    """Questions, and what the policy saw; each job's first task on its own GPU from the beginning, 60 s a round."""
    forecast, policy = Asked(), Script({0: {"put": [(job, job) for job in range(len(rows))]}})
    replay_tasks(workload_of(rows, SERVERS), policy, forecast, fluctuation=0.0, **options)
    return forecast, policy


@pytest.mark.parametrize(
    ("epochs", "every", "seen"),
    [
        (40, 0.1, [4, 8, 12, 16, 20, 24, 28, 32, 36]),
        (40, 0.25, [12, 24, 36]),  # not after 8, fewer than ten
        (11, 0.1, [2, 4, 6, 8]),  # 1.1 epochs or more
        (11, 0.05, [2, 3, 4, 5, 6, 7, 8, 9]),  # not after the first alone
        (10, 0.1, [1, 2, 3, 4, 5, 6, 7, 8, 9]),  # of few epochs one is enough
        (5, 0.1, [1, 2, 3, 4]),  # once an epoch, no oftener
        (2, 0.1, [1]),
        (1, 0.1, []),
    ],
)
def test_every_share_of_the_epochs(epochs, every, seen):
    """Ten rounds of 60 iterations: at their ends a tenth of the epochs more is over."""
    forecast, _ = ask([TaskJob(epochs=epochs, iterations=600.0)], forecast_every=every)
    assert forecast.seen_of(0) == seen


def test_what_is_shown_ends_with_what_is_over_and_jobs_are_asked_about_together():
    rows = [TaskJob(epochs=5, iterations=600.0), TaskJob(epochs=10, iterations=600.0), TaskJob(iterations=50.0)]
    forecast, policy = ask(rows)
    jobs, shown, seen, epochs = forecast.questions[1]  # after 120 s
    assert (jobs, seen, epochs) == ([0, 1], [1, 2], [5, 10])
    curves = [0.9 * (1.0 - np.exp(-3.0 * np.arange(1, 3) / count)) for count in (5, 10)]
    assert np.allclose(shown, [[curves[0][0], np.nan], curves[1]], equal_nan=True)
    assert [question[0] for question in forecast.questions[:2]] == [[1], [0, 1]]  # the third job was over by then
    assert policy.of("final_mean", 0) == pytest.approx(
        {0: np.nan, 60: np.nan, 120: 0.51, 180: 0.51, 240: 0.52, 300: 0.52, 360: 0.53, 420: 0.53, 480: 0.54, 540: 0.54},
        nan_ok=True,
    )
    assert policy.of("final_sd", 1)[60] == pytest.approx(0.2)


def test_without_a_forecast_nothing_is_known():
    policy = Script({0: {"put": [(0, 0)]}})
    replay_tasks(workload_of([TaskJob(iterations=600.0)], SERVERS), policy, fluctuation=0.0)
    assert np.isnan(list(policy.of("final_mean").values())).all()


def test_the_best_metric_as_of_an_epoch_before_is_told():
    """Ten epochs of a minute, of which the third and fourth lose what was gained."""
    policy, best = Script({0: {"put": [(0, 0)]}}), [0.3, 0.7, 0.7, 0.7, 0.8, 0.8, 0.8, 0.8]
    metric = np.array([[0.1, 0.3, 0.7, 0.5, 0.6, 0.8, 0.8, 0.8, 0.8, 0.8, 0.9]])
    replay_tasks(workload_of([TaskJob(iterations=600.0)], SERVERS, metric=metric), policy, fluctuation=0.0)
    seen = policy.of("earlier")
    assert [seen[60 * minute] for minute in range(10)] == pytest.approx([nan, nan, *best], nan_ok=True)
