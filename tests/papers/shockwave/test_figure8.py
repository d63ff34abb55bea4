"""Shockwave, Figure 8: groups of jobs and who held GPUs when, by hand."""

import numpy as np

from jobcast.simulator.log import flat_spans
from papers.results import Replayed
from papers.shockwave.figure8 import size_groups
from tests.scenarios import log_of


def done_of(gpus, duration_s, spans):
    """Jobs that came at 100 s and ended at 400 s; of spans each has (job, begin, end)."""
    count, seq = len(gpus), np.array([span[0] for span in spans])
    held = flat_spans(seq, np.array([s[1] for s in spans]), np.array([s[2] for s in spans]), np.array(gpus)[seq])
    at_s = np.full(count, 100.0)
    log = log_of(at_s, at_s, at_s + 300.0, gpus=gpus, duration_s=np.array(duration_s), spans=held)
    return Replayed("c", "p", {}, log=log)


def test_groups_are_by_rank_of_gpu_time():
    done = done_of([2] + [1] * 9, [60.0, 100.0, *range(80, 0, -10)], [(0, 100.0, 160.0)])
    # largest 2 x 60; then 100 and 80; 70, 60, 50; the other four are the smallest
    assert size_groups(done).tolist() == [0, 1, 1, 2, 2, 2, 3, 3, 3, 3]
