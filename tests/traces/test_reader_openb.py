"""openb; expectations are by hand from the fixtures."""

from pathlib import Path

import pytest

from jobcast.domain.errors import ConfigError, TraceError
from jobcast.traces.readers import read_sources, read_trace

FOLDER = Path(__file__).with_name("fixtures") / "openb"
PODS, NODES = FOLDER / "openb_pod_list_small.csv", FOLDER / "openb_node_list_small.csv"


def test_pods_that_ran_are_jobs_and_the_others_are_counted():
    trace = read_trace(PODS)
    shown = ["job_id", "pool", "duration", "gpus", "state", "gpu_type", "cores", "mem_gb"]
    assert trace.jobs.select(shown).rows() == [
        ("pod-0", "LS", 7200.0, 1, "Running", None, 12.0, 16.0),
        ("pod-1", "LS", 240.0, 1, "Succeeded", None, 6.0, 12.0),
        ("pod-3", "BE", 3600.0, 8, "Failed", "V100M16|V100M32", 32.0, 64.0),
        ("pod-6", "Burstable", 1200.0, 2, "Running", None, 6.0, 12.0),
    ]
    assert trace.jobs["qos"].to_list() == trace.jobs["pool"].to_list()
    assert trace.submit_s.tolist() == [0.0, 100.0, 200.0, 500.0]
    assert trace.start_s.tolist() == [0.0, 160.0, 200.0, 800.0]
    assert trace.dropped == {"CPU pod (num_gpu 0)": 1, "never scheduled": 1, "duration missing or <= 0": 1}
    assert trace.notes[0] == "gpus: fractions rounded up in 1 of 7 rows"


def test_nodes_tell_the_gpus_in_all():
    reading = read_sources([NODES, PODS], format="openb")
    assert reading.pools is None
    assert reading.trace.notes[-1] == "3 nodes hold 18 GPUs: 2 P100, 16 V100M16; quotas of pools are not told"


def test_what_is_missing_is_told():
    with pytest.raises(ConfigError, match="one list of pods and at most one of nodes, got 2 and 0"):
        read_sources([PODS, PODS], format="openb")
    with pytest.raises(TraceError, match=r"row 4, column num_gpu: must be >= 1, got 0"):
        read_sources([PODS], format="openb", strict=True)


def test_the_real_list(published):
    trace = read_trace(published / "openb" / "openb_pod_list_default.csv")
    assert trace.source.rows == 8152
    assert trace.dropped == {"CPU pod (num_gpu 0)": 1088, "never scheduled": 861}
    assert len(trace) == 6203
