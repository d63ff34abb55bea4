"""Who is named for a job that was slowed or helped: the reason is known by construction."""

from jobcast.pipelines.experiments.explain.narration import tell
from jobcast.schedulers.pool_rules import HiveD
from tests.pipelines.experiments.explain.conftest import reasons

LENT = [("b0", "b", 0, 300, 1), ("b1", "b", 1, 200, 1), ("a1", "a", 100, 10, 1)]
"""b0 takes b's quota; b1 wants a's GPU for 200 minutes; a1 is due at 100."""
EACH_ONE = {"a": 1, "b": 1}


def test_a_job_that_outlived_its_forecast_bin_is_named(runs):
    told = runs.report("a1", LENT, EACH_ONE, "sia", bins={"b1": 1}, comes={"a": 0})
    assert (told["summary"]["verdict"], told["summary"]["earlier_than_fcfs_s"]) == ("slowed", -101 * 60)
    assert reasons(told) == [(100, 201, "quota_lent", "too_few_idle")]
    assert [job["job_id"] for job in told["waits"][0]["details"]["held_by"]["jobs"]] == ["b1"]
    slowed = told["slowed"]
    assert (slowed["chain"], slowed["first_late"]["job_id"], slowed["at_s"]) == ([], "a1", 100 * 60)
    (culprit,) = slowed["held_by"]["jobs"]
    assert (culprit["job_id"], culprit["duration_bin"], culprit["overstayed_s"]) == ("b1", "5-60min", 140 * 60)
    assert (culprit["let_in"]["at_s"], culprit["let_in"]["window_min"]) == (60, 60)
    assert not culprit["let_in"]["owner"]["missed"]
    late = "job b1 (pool b, 1 GPU, since 1970-01-01T00:01:00Z, forecast 5-60min, ran 3.33 h: 2.33 h too long)"
    assert late in tell(told)


def test_a_forecast_that_nobody_comes_is_named_with_the_job_that_came(runs):
    jobs = [LENT[0], ("b1", "b", 1, 50, 1), ("a1", "a", 30, 10, 1)]
    told = runs.report("a1", jobs, EACH_ONE, "sia", comes={"a": 0})
    (culprit,) = told["slowed"]["held_by"]["jobs"]
    assert culprit["overstayed_s"] == 0
    owner = culprit["let_in"]["owner"]
    assert (owner["pool"], owner["forecast_gpus"], owner["reserved_gpus"], owner["unused_quota_gpus"]) == ("a", 0, 0, 1)
    assert (owner["missed"], owner["first_beyond_forecast"]) == (True, {"job_id": "a1", "at_s": 1800})
    assert "but 1 job with 1 GPU came, too many with job a1 at 1970-01-01T00:30:00Z" in tell(told)


def test_of_a_load_that_was_forecast_too_low_the_first_job_beyond_it_is_named(runs):
    """Two GPUs were kept for a; with a3 more than two were asked for."""
    early = [("b0", "b", 0, 300, 1), ("b1", "b", 1, 50, 1)]
    jobs = [*early, *((f"a{i}", "a", 20 + i, 30, 1) for i in (1, 2, 3))]
    told = runs.report("a3", jobs, {"a": 3, "b": 1}, "sia", comes={"a": 2})
    owner = told["slowed"]["held_by"]["jobs"][0]["let_in"]["owner"]
    assert (owner["forecast_gpus"], owner["reserved_gpus"], owner["lent_gpus"]) == (2, 2, 1)
    assert owner["first_beyond_forecast"] == {"job_id": "a3", "at_s": 23 * 60}
    assert owner["first_arrival"] == {"job_id": "a1", "at_s": 21 * 60}


def test_a_job_that_is_due_while_a_late_one_runs_on_is_led_back_to_who_made_that_one_late(runs):
    """a1 runs from 201 to 211, not from 100 to 110; a2 is due at 205 and finds the quota full."""
    jobs = [*LENT, ("a2", "a", 205, 5, 1)]
    told = runs.report("a2", jobs, EACH_ONE, "sia", bins={"b1": 1}, comes={"a": 0})
    slowed = told["slowed"]
    assert ([late["job_id"] for late in slowed["chain"]], slowed["later_s"]) == (["a1"], 6 * 60)
    assert (slowed["first_late"]["job_id"], slowed["first_late"]["later_s"], slowed["at_s"]) == ("a1", 6060, 6000)
    assert [mention["job_id"] for mention in slowed["held_by"]["jobs"]] == ["b1"]
    assert "It waited for job a1 of its pool, which was 101 min late itself." in tell(told)


def test_under_max_min_fairness_the_pools_beyond_their_quota_are_named(runs):
    jobs = [("b0", "b", 0, 60, 1), ("b1", "b", 0, 40, 1), ("a1", "a", 10, 10, 1)]
    told = runs.report("a1", jobs, EACH_ONE, "mmfs")
    assert reasons(told) == [(10, 40, "quota_lent", None)]
    assert told["slowed"]["pools_beyond_quota"] == [{"pool": "b", "quota_gpus": 1, "allocated_gpus": 2}]
    assert {mention["job_id"] for mention in told["slowed"]["held_by"]["jobs"]} == {"b0", "b1"}
    assert "Pool b held 2 GPUs, its quota is 1." in tell(told)


def test_without_reservations_spare_jobs_are_named_without_any_forecast(runs):
    told = runs.report("a1", LENT, EACH_ONE, "hived", rule=lambda _: HiveD())
    (culprit,) = told["slowed"]["held_by"]["jobs"]
    assert (culprit["job_id"], culprit["let_in"]["window_min"]) == ("b1", None)


def test_under_shortest_first_the_jobs_that_overtook_and_were_overtaken_are_named(runs):
    jobs = [("a0", "a", 0, 10, 1), ("a1", "a", 1, 100, 1), ("a2", "a", 2, 5, 1)]
    told, other = (runs.report(job_id, jobs, {"a": 1}, "ssf") for job_id in ("a1", "a2"))
    assert reasons(told) == [(1, 15, "quota_full", None)]
    assert told["waits"][0]["details"]["head"]["job_id"] == "a2"
    assert [job["job_id"] for job in other["helped"]["overtook"]["jobs"]] == ["a1"]
    assert [mention["job_id"] for mention in told["slowed"]["overtaken_by"]["jobs"]] == ["a2"]
    assert told["summary"]["earlier_than_fcfs_s"] == -300
    assert told["slowed"]["held_by"]["count"] == 0


B = [("b0", "b", 0, 100, 1), ("b1", "b", 1, 50, 1)]


def test_a_job_on_spare_gpus_names_the_lender_its_forecast_and_who_came(runs):
    told = runs.report("b1", [*B, ("a1", "a", 40, 10, 1)], EACH_ONE, "sia", comes={"a": 0})
    assert (told["summary"]["verdict"], told["summary"]["earlier_than_fcfs_s"]) == ("helped", 99 * 60)
    loan = told["helped"]["loan"]
    assert (loan["at_s"], loan["window_min"], loan["count"]) == (60, 60, 1)
    (lender,) = loan["lenders"]
    assert (lender["pool"], lender["forecast_gpus"], lender["lent_gpus"]) == ("a", 0, 1)
    assert lender["before_its_end"] == {"jobs": 1, "gpus": 1, "first": {"job_id": "a1", "at_s": 2400}}
    lent = "pool a: 1 unused, 0 reserved (0 pending, forecast: nobody comes); before it ended 1 job with 1 GPU"
    assert lent in tell(told)


def test_a_job_on_its_quota_names_the_earlier_one_that_ended_on_spare_gpus(runs):
    told = runs.report("b2", [*B, ("b2", "b", 2, 900, 1)], EACH_ONE, "sia")
    helped = told["helped"]
    assert (helped["loan"], helped["on_spare_gpus"], helped["earlier_s"]) == (None, False, 50 * 60)
    assert [job["job_id"] for job in helped["earlier_jobs_done"]["jobs"]] == ["b1"]
    assert helped["earlier_jobs_on_spare"]["count"] == 0
    assert "had ended already" in tell(told)


def test_a_job_on_its_quota_names_the_earlier_one_that_still_runs_on_spare_gpus(runs):
    jobs = [B[0], ("b1", "b", 1, 300, 1), ("b2", "b", 2, 900, 1)]
    helped = runs.report("b2", jobs, EACH_ONE, "sia")["helped"]
    assert [job["job_id"] for job in helped["earlier_jobs_on_spare"]["jobs"]] == ["b1"]


def test_a_job_beyond_its_quota_names_the_pools_that_left_theirs(runs):
    told = runs.report("b1", B, EACH_ONE, "mmfs")
    assert [(lender["pool"], lender["lent_gpus"]) for lender in told["helped"]["loan"]["lenders"]] == [("a", 1)]
    assert told["helped"]["loan"]["window_min"] is None
