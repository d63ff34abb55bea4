"""Accuracy and batch size: schedules of batches over measured trainings."""

import csv

import numpy as np
import pytest

from jobcast.models.goodput import Limits, Throughput, phases
from jobcast.pipelines.experiments.scaling_jobs import Application
from jobcast.simulator.laws.goodput import ScalableWork
from jobcast.traces.goodput_tables import NoiseCurve
from papers.shockwave.__main__ import PAPER
from papers.shockwave.figure3 import schedules

UNIT = 10
THROUGHPUT = Throughput(1.0, 0.1, 0.0, 0.0, 0.0, 0.0, 1.0)
"""A step takes 1 s and .1 s a sample on each of two GPUs: 2 s for 20 samples, 5 s for 80."""


def curve(*metric, noise):
    steps = np.arange(1.0, len(metric) + 1)
    return NoiseCurve(steps, 6 * steps, np.array(metric), np.ones(len(metric)), np.full(len(metric), noise / UNIT))


CURVES = {10: curve(0.5, 0.7, 0.9, noise=1e9), 80: curve(0.4, 0.6, 0.8, noise=1e9)}
"""Of 6 steps an epoch; so noisy that every sample counts."""


def test_schedules_of_batches_by_hand():
    limits = Limits(UNIT, 80, 1, 40)
    work = ScalableWork(0.0, 1, phases(THROUGHPUT, limits, CURVES[10], 2))
    vanilla, expert, pollux = schedules(Application("app", THROUGHPUT, limits, work), CURVES, first=3)
    assert vanilla.sizes.tolist() == [10, 10, 10]
    assert expert.sizes.tolist() == [10, 10, 80]
    assert pollux.sizes.tolist() == [80, 80, 80]
    # An epoch is 60 samples: six steps of 1.5 s at 10 samples, three quarters of one of 5 s at 80.
    assert vanilla.end_min * 60 == pytest.approx([9.0, 18.0, 27.0])
    assert expert.end_min * 60 == pytest.approx([9.0, 18.0, 21.75], rel=1e-6)
    assert pollux.end_min * 60 == pytest.approx([3.75, 7.5, 11.25], rel=1e-6)
    assert expert.metric.tolist() == [50.0, 70.0, 80.0]


@pytest.mark.parametrize("name", ["figure3", "figure14"])
def test_pages_are_whole(traces, tmp_path, name):
    PAPER.item(name)(traces, PAPER.page(name, tmp_path))
    rows = list(csv.DictReader((tmp_path / f"{name}.csv").open()))
    assert [row["schedule"] for row in rows[:: len(rows) // 3]] == ["vanilla", "expert", "pollux"]
    assert (tmp_path / f"{name}.md").read_text().count("| vanilla |") == 1
    assert (tmp_path / f"{name}.svg").is_file()
