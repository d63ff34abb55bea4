"""Grants completed to whole widths, by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from jobcast.domain.jobs import Job
from jobcast.domain.policy import EVENTS, Decision, Grant
from jobcast.schedulers.elastic.whole_widths import WholeWidths, whole_widths


@pytest.mark.parametrize(
    ("granted", "widths", "served"),
    [
        ([1.0, 3.0], [2, 8], [2, 0]),  # the greater part of its width first; the other blocks
        ([2.0, 2.0], [4, 4], [4, 0]),  # of equals the first; it takes all that is left
        ([4.0 - 5e-10, 2.0 + 5e-10], [4, 2], [4, 2]),
        ([1.0 - 5e-10] * 3, [1, 1, 1], [1, 1, 1]),  # together, what they lack is more than rounding
        ([5.5, 2.5], [4, 3], [5, 3]),  # what is no whole GPU goes to who waits
        ([5.5, 0.5, 0.0], [4, 1, 1], [5, 1, 0]),
        ([0.5, 0.25, 0.25], [3, 1, 1], [0, 1, 0]),
        ([0.0, 0.0], [1, 1], [0, 0]),
    ],
)
def test_whole_widths(granted, widths, served):
    assert whole_widths(np.array(granted), np.array(widths)).tolist() == served


def test_only_what_changes_is_decided():
    """Of jobs of two GPUs, d may shrink to one: a goes on, b starts, c stops, d keeps its one. e starts on its one."""
    jobs = {seq: Job(seq, "abcd"[seq], "p", 0.0, 2) for seq in range(4)}
    jobs[3], jobs[4] = Job(3, "d", "p", 0.0, 2, min_gpus=1), Job(4, "e", "p", 0.0, 1)
    running = {seq: SimpleNamespace(grant=Grant(gpus)) for seq, gpus in ((0, 2), (2, 2), (3, 1))}
    seen = SimpleNamespace(left_s=np.ones(5), capacity=np.array([5.0, 1.0]))

    def rule(view, numbers, gpus):
        assert numbers == "numbers"
        gpus[:] = [[2.0, 0.0], [1.0, 1.0], [0.0, 0.0], [1.0, 0.0], [1.0, 0.0]]

    policy = WholeWidths(SimpleNamespace(rule=rule, numbers="numbers", name="rule", trigger=EVENTS))
    view = SimpleNamespace(facts=lambda kind: seen, active=jobs, running=running)
    assert policy.decide(view) == Decision({1: Grant(2), 2: None, 4: Grant(1)})
    assert (policy.name, policy.trigger) == ("rule", EVENTS)
