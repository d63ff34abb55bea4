JOBS = [
    ("a", "p", 0, 10, 3),
    ("b", "p", 1, 4, 3),  # service 12
    ("c", "p", 2, 9, 1),  # service 9
    ("d", "p", 3, 3, 3),  # service 9, later
    ("e", "q", 4, 2, 4),  # service 8
    ("f", "q", 4, 7, 1),  # service 7
]
POOLS = {"p": 3, "q": 4}


def test_the_smallest_service_goes_first_and_blocks(workload, starts_of):
    assert starts_of(workload(JOBS, POOLS), "ssf") == {"a": 0, "c": 10, "d": 19, "b": 22, "f": 4, "e": 11}


def test_backfill_starts_any_later_job_that_fits(workload, starts_of):
    jobs = [("a", "p", 0, 10, 2), ("b", "p", 1, 4, 3), ("c", "p", 2, 19, 1), ("d", "p", 3, 1, 3)]
    pools = {"p": 3}
    assert starts_of(workload(jobs, pools), "ssf") == {"a": 0, "b": 11, "c": 15, "d": 10}
    backfilled = starts_of(workload(jobs, pools), "ssf", {"backfill": "true"})
    assert backfilled == {"a": 0, "b": 22, "c": 2, "d": 21}


def test_gssf_takes_all_gpus_as_one_pool(workload, starts_of):
    # b arrives at 1: 4 of 7 GPUs are free, so it starts beyond p's quota; e waits for 4 GPUs, f blocks nobody.
    assert starts_of(workload(JOBS, POOLS), "gssf") == {"a": 0, "b": 1, "c": 2, "f": 5, "e": 10, "d": 12}


def test_gssf_with_backfill_passes_over_what_does_not_fit(workload, starts_of):
    jobs = [("a", "p", 0, 10, 2), ("b", "p", 1, 1, 3), ("c", "q", 1, 9, 1)]
    assert starts_of(workload(jobs, {"p": 3, "q": 1}), "gssf") == {"a": 0, "b": 10, "c": 10}
    assert starts_of(workload(jobs, {"p": 3, "q": 1}), "gssf", {"backfill": True}) == {"a": 0, "b": 10, "c": 1}
