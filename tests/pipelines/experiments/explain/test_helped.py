"""Why a job was helped: whose GPUs it took, and who made room."""

from jobcast.pipelines.experiments.explain.narration import tell

EACH_ONE = {"a": 1, "b": 1}
B = [("b0", "b", 0, 100, 1), ("b1", "b", 1, 50, 1)]


def test_a_job_on_spare_gpus_names_the_lender_its_forecast_and_who_came(runs):
    told = runs.told("b1", [*B, ("a1", "a", 40, 10, 1)], EACH_ONE, "sia", comes={"a": 0})
    assert (told["summary"]["verdict"], told["summary"]["earlier_than_fcfs_s"]) == ("helped", 99 * 60)
    loan = told["helped"]["loan"]
    assert (loan["at_s"], loan["window_min"], loan["count"]) == (60, 60, 1)
    (lender,) = loan["lenders"]
    assert (lender["pool"], lender["forecast_gpus"], lender["lent_gpus"]) == ("a", 0, 1)
    assert lender["before_its_end"] == {"jobs": 1, "gpus": 1, "first": {"job_id": "a1", "at_s": 2400}}
    assert "pool a: 1 unused, 0 reserved (0 pending, forecast: nobody comes); before it ended 1 job with 1 GPU" in tell(
        told
    )


def test_a_job_on_its_quota_names_the_earlier_one_that_ended_on_spare_gpus(runs):
    told = runs.told("b2", [*B, ("b2", "b", 2, 900, 1)], EACH_ONE, "sia")
    helped = told["helped"]
    assert (helped["loan"], helped["on_spare_gpus"], helped["earlier_s"]) == (None, False, 50 * 60)
    assert [job["job_id"] for job in helped["earlier_jobs_done"]["jobs"]] == ["b1"]
    assert helped["earlier_jobs_on_spare"]["count"] == 0
    assert "had ended already" in tell(told)


def test_a_job_on_its_quota_names_the_earlier_one_that_still_runs_on_spare_gpus(runs):
    jobs = [B[0], ("b1", "b", 1, 300, 1), ("b2", "b", 2, 900, 1)]
    helped = runs.told("b2", jobs, EACH_ONE, "sia")["helped"]
    assert [job["job_id"] for job in helped["earlier_jobs_on_spare"]["jobs"]] == ["b1"]


def test_a_job_that_overtook_names_whom(runs):
    jobs = [("a0", "a", 0, 10, 1), ("a1", "a", 1, 100, 1), ("a2", "a", 2, 5, 1)]
    told = runs.told("a2", jobs, {"a": 1}, "ssf")
    assert [job["job_id"] for job in told["helped"]["overtook"]["jobs"]] == ["a1"]


def test_a_job_beyond_its_quota_names_the_pools_that_left_theirs(runs):
    told = runs.told("b1", B, EACH_ONE, "mmfs")
    assert [(lender["pool"], lender["lent_gpus"]) for lender in told["helped"]["loan"]["lenders"]] == [("a", 1)]
    assert told["helped"]["loan"]["window_min"] is None
