"""Workloads of MLFS's figures."""

from fractions import Fraction

import numpy as np
import pytest

from jobcast.domain.hardware import flat_cluster
from jobcast.pipelines.experiments.clusters import task_cluster
from jobcast.pipelines.experiments.tasks.simulation import Learned
from jobcast.traces.generators import generate
from jobcast.traces.table_files import write_trace
from papers.bench import Unit
from papers.mlfs import bench
from papers.mlfs.bench import QUANTILES, SCALES, UNDER, Workload, philly_week, run_unit, scaled, write_workload
from papers.mlfs.rows import EXACT, Row

FEW = Workload("few", 8, ((2, 4),), (("widths", "1,2"), ("epochs", "3,6"), ("load", 0.05)))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mlfs")
    write_trace(generate("mlfs", 9, {"jobs": 50})[0], folder / "arrivals.parquet")
    return write_workload(FEW, 3, folder / "arrivals.parquet", folder / "few")


def test_the_papers_clusters():
    # section 4.1: 620x jobs on 20 servers of 4 GPUs; 117,325x jobs of 18 weeks on 550 servers with 2,474 GPUs
    assert [int(620 * Fraction(x)) for x in SCALES] == list(SCALES.values())
    place, default = task_cluster(scaled("3").place()), task_cluster(flat_cluster(80))
    np.testing.assert_array_equal(place.capacity, default.capacity)
    np.testing.assert_array_equal(place.server_of, default.server_of)
    large = philly_week("1", 1.0)
    assert (large.gpus, len(task_cluster(large.place()).capacity)) == (2474, 550)
    assert large.jobs == round(117_325 / 18)
    assert task_cluster(large.place()).capacity[-1].tolist() == [8.0, 64.0, 488.0, 2500.0]


def test_a_unit_is_a_replay_whatever_it_is_called(files, tmp_path):
    row = Row("MLFS, exact forecasts", "mlfs", forecasts=EXACT)
    [(key, kept)] = run_unit(Unit(FEW, 3, row), files, tmp_path, tmp_path)
    assert key == Unit(FEW, 3, Row("another title", "mlfs", forecasts=EXACT)).key
    assert key != Unit(FEW, 3, Row(row.title, "mlfs", {"give_up": "false"}, EXACT)).key
    assert key != Unit(FEW, 4, row).key
    assert kept.figures["jobs"] == 8
    assert len(kept.jct_s) == len(QUANTILES)
    assert 0.0 <= kept.figures[UNDER] <= 1.0
    assert kept.jct_s[0] <= kept.figures["mean_jct_s"] <= kept.jct_s[-1]
    assert run_unit(Unit(FEW, 3, row), files, tmp_path, tmp_path)[0][1].jct_s == kept.jct_s
    assert run_unit(Unit(FEW, 3, Row("MLF-H", "mlf_h")), files, tmp_path, tmp_path)[0][1].figures["stopped_early"] == 0


def test_what_was_learned_is_the_version_that_the_row_pins(files, tmp_path, monkeypatch):
    asked = []

    def learned(ask, window):
        asked.append((ask.policy, dict(ask.source.versions), len(window), ask.home, ask.allow_overlap))
        return Learned(None, {"mlf-policy": 7})

    monkeypatch.setattr(bench, "learned_policy", learned)
    row = Row("MLFS", "mlfs", forecasts=EXACT, versions=(("mlf-policy", 7),))
    [(key, _)] = run_unit(Unit(FEW, 3, row), files, tmp_path, tmp_path / "home")
    assert asked == [("mlfs", {"mlf-policy": 7}, 8, tmp_path / "home", False)]
    assert '"versions": {"mlf-policy": 7}' in key
