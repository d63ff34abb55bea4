"""Reasons of a wait: one workload each, where the reason is known by construction."""

from dataclasses import replace

from jobcast.pipelines.experiments.explain.cluster_history import ClusterPast
from jobcast.pipelines.experiments.explain.narration import tell
from jobcast.pipelines.experiments.explain.phrases import said_of
from jobcast.pipelines.experiments.explain.reservations import Answers, Reservations
from jobcast.schedulers.pool_rules import HiveD, MaxMinFair
from jobcast.schedulers.sia_vc import SiaVc
from tests.pipelines.experiments.explain.conftest import reasons

EACH_ONE = {"a": 1, "b": 1}


def test_a_full_quota_names_who_holds_it_most_gpu_time_first(runs):
    jobs = [("a0", "a", 0, 20, 2), ("a1", "a", 0, 10, 1), ("a2", "a", 0, 50, 1), ("a3", "a", 5, 1, 1)]
    told = runs.report("a3", jobs, {"a": 4}, "fcfs")
    assert reasons(told) == [(5, 10, "quota_full", None)]
    held = told["waits"][0]["details"]["held_by"]
    assert ([job["job_id"] for job in held["jobs"]], held["count"], held["gpus"]) == (["a0", "a1", "a2"], 3, 4)


def test_a_job_that_fits_behind_one_that_does_not_names_the_head(runs):
    jobs = [("a0", "a", 0, 60, 3), ("a1", "a", 1, 10, 2), ("a2", "a", 2, 10, 1)]
    told = runs.report("a2", jobs, {"a": 4}, "fcfs")
    assert reasons(told) == [(2, 60, "behind_others", None)]
    details = told["waits"][0]["details"]
    assert (details["jobs_ahead"], details["head"]["job_id"], details["head"]["gpus"]) == (1, "a1", 2)
    head = "with job a1 (2 GPUs, ran 10.0 min) at the head"
    assert f"{head}, for which 1 unused GPU of the quota did not suffice" in tell(told)


def test_a_job_too_long_for_any_window_waits_for_its_quota(runs):
    jobs = [("b0", "b", 0, 300, 1), ("b1", "b", 1, 800, 1)]
    told = runs.report("b1", jobs, EACH_ONE, "sia")
    assert reasons(told) == [(1, 300, "quota_full", "too_long")]
    assert "forecast >720min, it ends within no window" in tell(told)


def test_reservations_are_told_by_window_with_forecast_and_truth(runs):
    jobs = [("b0", "b", 0, 300, 1), ("b1", "b", 1, 50, 1), ("a1", "a", 30, 100, 1)]
    told = runs.report("b1", jobs, EACH_ONE, "sia")
    assert reasons(told) == [(1, 30, "quota_full", "reserved"), (30, 130, "quota_full", "too_few_idle")]
    windows = told["waits"][0]["details"]["windows"]
    told_of = [(window["horizon_min"], window["idle_gpus"], window["usable_gpus"]) for window in windows]
    assert told_of == [(60, 1, 0), (720, 1, 0)]
    (owner,) = windows[0]["pools"]
    assert (owner["pool"], owner["forecast_gpus"], owner["reserved_gpus"], owner["arrived_gpus"]) == ("a", 1, 1, 1)
    assert "within 60 min, 1 reserved: pool a 1 (0 pending, forecast: 1 come, 1 job with 1 GPU came)" in tell(told)


def test_spare_gpus_go_to_the_head_alone_under_hived(runs):
    """One GPU is idle, and b1 before it wants two."""
    jobs = [("a0", "a", 0, 100, 1), ("b0", "b", 0, 300, 2), ("b1", "b", 1, 50, 2), ("b2", "b", 2, 50, 1)]
    told = runs.report("b2", jobs, {"a": 2, "b": 2}, "hived", rule=lambda _: HiveD())
    assert reasons(told) == [(2, 100, "quota_full", "behind_others"), (100, 150, "quota_full", "too_few_idle")]


def test_virtual_starts_that_keep_a_job_waiting_are_named(runs):
    """b1 would hold a's GPU from 1 to 51; a1 virtually starts at 30."""
    jobs = [("b0", "b", 0, 300, 1), ("b1", "b", 1, 50, 1), ("a1", "a", 30, 10, 1)]
    told = runs.report("b1", jobs, EACH_ONE, "sia_vc", rule=SiaVc)
    assert reasons(told) == [(1, 30, "reserved_for_virtual_starts", None), (30, 40, "quota_full", None)]
    virtual = told["waits"][0]["details"]["virtual"]
    assert (virtual["at_s"], [job["job_id"] for job in virtual["reserved_for"]["jobs"]]) == (1800, ["a1"])


def test_where_quotas_bound_nobody_idle_gpus_are_told_and_no_quota_is_said_to_be_used(runs):
    jobs = [("b0", "b", 0, 60, 3), ("b1", "b", 1, 10, 2), ("b2", "b", 2, 10, 1)]
    text = tell(runs.report("b2", jobs, {"a": 1, "b": 3}, "mmfs"))
    assert "behind 1 job of its queue, with job b1 (2 GPUs, ran 10.0 min) at the head, for which 1 idle GPU did" in text
    text = tell(runs.report("b1", [("b00", "b", 0, 60, 1), *jobs], {"a": 2, "b": 3}, "mmfs"))
    assert "waited 59.0 min, done after 69.0 min\n" in text
    assert "needs 2 GPUs, but only 1 idle, and 0 of its pool's 3 were unused; 2 jobs of its pool held 4 GPUs" in text
    assert "with exact forecasts" in text


def test_a_head_that_would_fit_is_not_said_to_lack_gpus(runs):
    """a1, for which 1 idle GPU is too few, blocks b, whose share is larger: b1 would fit, and b2 behind it."""
    jobs = [
        ("a0", "a", 0, 60, 3), ("b0", "b", 0, 60, 2), ("a1", "a", 1, 9, 2), ("b1", "b", 2, 10, 1), ("b2", "b", 2, 9, 1),
    ]  # fmt: skip
    told = runs.report("b2", jobs, {"a": 4, "b": 2}, "mmfs", rule=lambda forecasts: MaxMinFair(strict=True))
    assert reasons(told) == [(2, 60, "behind_others", None)]
    assert "with job b1 (1 GPU, ran 10.0 min) at the head, not started either, with 1 idle GPU" in tell(told)


def test_an_older_forecast_is_told_with_its_instant(runs):
    """b1 is let wait at 1 for the 1 GPU that comes to a at 30; nobody asks again while it runs."""
    jobs = [("b0", "b", 0, 300, 1), ("b1", "b", 1, 50, 1), ("a1", "a", 30, 10, 1), ("a2", "a", 45, 100, 1)]
    table = runs.table(jobs, EACH_ONE, "sia")
    owner = Reservations(ClusterPast(table), Answers(table)).of_pool(0, 60, 60.0)
    assert (owner["forecast_at_s"], owner["forecast_gpus"]) == (60.0, 2)
    assert said_of(owner) == "0 pending, forecast: 2 come"
    later = Reservations(ClusterPast(table), Answers(table)).of_pool(0, 60, 90.0)
    assert said_of(later) == "0 pending, forecast of 1970-01-01T00:01:00Z: 2 come"


def test_where_pending_jobs_leave_too_little_no_older_forecast_is_told(runs):
    """At 50 a2 waits for 2 of a's GPUs, which leaves none of the 1 idle one: what was forecast at 1 counts no more."""
    jobs = [
        ("b0", "b", 0, 300, 1), ("b1", "b", 1, 40, 1), ("a1", "a", 30, 90, 1), ("a2", "a", 50, 100, 2),
    ]  # fmt: skip
    table = runs.table(jobs, {"a": 2, "b": 1}, "sia", comes={"a": 2})
    reservations = Reservations(ClusterPast(table), Answers(table))
    window = reservations.window(60, 3600.0, 1)
    (owner,) = window["pools"]
    assert (window["idle_gpus"], window["reserved_gpus"], window["usable_gpus"]) == (1, 1, 0)
    assert said_of(owner) == "2 pending, no forecast needed"
    early = reservations.window(60, 1200.0, 1)["pools"][0]
    assert said_of(early) == "0 pending, forecast of 1970-01-01T00:01:00Z: 2 come"


def test_a_job_that_starts_at_once_did_not_wait(runs):
    told = runs.report("a0", [("a0", "a", 0, 10, 1)], {"a": 1}, "fcfs")
    assert (told["waits"], told["wait_by_reason"], told["summary"]["verdict"]) == ([], [], "same")
    assert "It did not wait." in tell(told)


def test_of_many_stretches_the_longest_are_detailed_and_all_are_counted(runs):
    """b1 waits while a takes its GPU and gives it back ten times, until nobody of a will come any more."""
    short = [(f"a{i}", "a", 10 * i, 5 + i / 10, 1) for i in range(1, 11)]
    told = runs.report("b1", [("b0", "b", 0, 300, 1), ("b1", "b", 1, 400, 1), *short], EACH_ONE, "sia")
    detailed = [stretch for stretch in told["waits"] if stretch["details"] is not None]
    assert (len(told["waits"]), len(detailed)) == (20, 6)
    assert sum(row["seconds"] for row in told["wait_by_reason"]) == told["summary"]["wait_s"]
    assert "Those are the longest of 20 stretches; in all:" in tell(told)


def test_a_job_that_became_first_after_quotas_were_served_waits_for_the_next_event(runs):
    """At 100 b1 does not fit b's quota and goes to spare GPUs; b2 would fit the quota then, and is asked for at 150."""
    jobs = [("b0", "b", 0, 1000, 1), ("a0", "a", 0, 100, 3), ("b1", "b", 1, 50, 2), ("b2", "b", 2, 800, 1)]
    told = runs.report("b2", jobs, {"a": 3, "b": 2}, "sia")
    assert reasons(told) == [(2, 100, "behind_others", "too_long"), (100, 150, "not_chosen", "too_long")]
    assert [job["job_id"] for job in told["waits"][1]["details"]["made_way"]["jobs"]] == ["b1"]
    assert "only then job b1 (2 GPUs, since 1970-01-01T01:40:00Z, ran 50.0 min) before it took some" in tell(told)


def test_slack_is_reserved_and_windows_that_are_not_used_are_left_out(runs):
    jobs = [("b0", "b", 0, 300, 1), ("b1", "b", 1, 50, 1)]
    table = runs.table(jobs, EACH_ONE, "sia")
    for settings, windows, reserved in (({}, (5, 60, 720), 0), ({"slack": "1", "windows_min": "5,60"}, (5, 60), 1)):
        record = replace(table.record, figures={**table.record.figures, "configuration": {"settings": settings}})
        answers = Answers(replace(table, record=record))
        assert answers.windows_min == windows
        assert Reservations(ClusterPast(table), answers).reserved(0, 60, 60.0).tolist() == [reserved]
