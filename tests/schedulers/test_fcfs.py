def test_the_head_blocks_and_nothing_is_shared(workload, starts_of):
    jobs = [("a", "p", 0, 5, 2), ("b", "p", 1, 9, 3), ("c", "p", 2, 1, 1), ("d", "q", 2, 1, 3), ("e", "q", 2, 4, 1)]
    assert starts_of(workload(jobs, {"p": 3, "q": 3}), "fcfs") == {"a": 0, "b": 5, "c": 14, "d": 2, "e": 3}


def test_ties_go_by_job_id(workload, starts_of):
    jobs = [("b", "p", 0, 1, 1), ("a", "p", 0, 2, 1)]
    assert starts_of(workload(jobs, {"p": 1}), "fcfs") == {"a": 0, "b": 2}
