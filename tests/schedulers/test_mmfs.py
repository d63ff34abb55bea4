def test_heads_start_in_order_of_allocation_per_quota(workload, starts_of):
    jobs = [
        ("a", "p", 0, 9, 2),
        ("b", "q", 0, 9, 4),
        ("c", "q", 1, 9, 4),  # p's share is 1, q's 4/6: q borrows p's idle GPUs
        ("d", "p", 2, 1, 1),
        ("e", "r", 3, 1, 2),
    ]
    # at 9: 6 GPUs free; shares p 0 (d), q 4/6 (none pending), r 0 (e): both start
    assert starts_of(workload(jobs, {"p": 2, "q": 6, "r": 2}), "mmfs") == {"a": 0, "b": 0, "c": 1, "d": 9, "e": 9}


def test_ties_between_pools_go_by_name(workload, starts_of):
    jobs = [("a", "z", 0, 9, 2), ("b", "y", 0, 9, 2), ("c", "z", 1, 1, 1), ("d", "y", 1, 1, 1), ("h", "x", 0, 5, 1)]
    jobs[4] = ("h", "x", 0, 5, 2)
    # x, y and z hold 2 of 2 each until 5; then d (y) goes before c (z), and both fit
    assert starts_of(workload(jobs, {"x": 2, "y": 2, "z": 2}), "mmfs") == {"a": 0, "b": 0, "h": 0, "c": 5, "d": 5}
    narrow = [*jobs[:2], ("h", "x", 0, 5, 1), *jobs[2:4]]
    assert starts_of(workload(narrow, {"x": 1, "y": 2, "z": 2}), "mmfs") == {"a": 0, "b": 0, "h": 0, "d": 5, "c": 6}


def test_strict_lets_the_lowest_share_block(workload, starts_of):
    jobs = [("a", "p", 0, 9, 3), ("b", "q", 1, 9, 2), ("c", "p", 2, 1, 1)]
    pools = {"p": 3, "q": 2}
    jobs[1] = ("b", "q", 0, 9, 1)
    jobs.append(("d", "q", 1, 2, 2))
    # at 2 one GPU is free: q's share 1/2 is lowest, its head d needs two
    assert starts_of(workload(jobs, pools), "mmfs") == {"a": 0, "b": 0, "d": 9, "c": 2}
    assert starts_of(workload(jobs, pools), "mmfs", {"strict": "yes"}) == {"a": 0, "b": 0, "d": 9, "c": 9}
