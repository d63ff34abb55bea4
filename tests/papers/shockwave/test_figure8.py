"""Shockwave, Figure 8: groups of jobs and who held GPUs when, by hand."""

import numpy as np

from jobcast.domain.jobs import Pool
from jobcast.simulator.log import RunLog, flat_spans
from papers.results import Replayed
from papers.shockwave.figure8 import size_groups


def done_of(gpus, duration_s, spans):
    count, seq = len(gpus), np.array([span[0] for span in spans])
    zeros = np.zeros(count)
    log = RunLog(
        "p", (Pool("all", 4),), zeros + 100.0, zeros + 100.0, zeros + 400.0, np.array(duration_s), np.array(gpus),
        zeros.astype(int), zeros.astype(int), zeros.astype(bool),
        flat_spans(seq, np.array([s[1] for s in spans]), np.array([s[2] for s in spans]), np.array(gpus)[seq]), 0,
    )  # fmt: skip
    return Replayed("c", "p", {}, log=log)


def test_groups_are_by_rank_of_gpu_time():
    done = done_of([2] + [1] * 9, [60.0, 100.0, *range(80, 0, -10)], [(0, 100.0, 160.0)])
    # largest 2 x 60; then 100 and 80; 70, 60, 50; the other four are the smallest
    assert size_groups(done).tolist() == [0, 1, 1, 2, 2, 2, 3, 3, 3, 3]
