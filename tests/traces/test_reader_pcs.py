"""PCS; expectations are by hand from the fixture."""

from pathlib import Path

from jobcast.domain.errors import TraceError
from jobcast.traces.readers import read_trace
from tests.shared import refused

TRACE = Path(__file__).with_name("fixtures") / "pcs" / "trace_small.csv"


def test_jobs_are_elastic():
    trace = read_trace(TRACE)
    shown = ["job_id", "pool", "duration", "gpus", "min_gpus", "model"]
    assert trace.jobs.select(shown).rows() == [
        ("0", "small", 16482.0, 1, 0, "TransformerModel256"),
        ("1", "small", 2683411.0, 8, 0, "VggnetModel256"),
    ]
    assert trace.submit_s.tolist() == [0.0, 6.0]
    assert trace.gpu_time_s.tolist() == [16482.0, 2683411.0]  # seconds on one GPU, whatever the width
    assert trace.dropped == {"duration missing or <= 0": 1}
    refused(TraceError, "row 4, column service: must be > 0", read_trace, TRACE, format="pcs", strict=True)


def test_the_real_trace(published):
    trace = read_trace(published / "pcs" / "trace_0e4a51.csv")
    assert len(trace) == 2465
    assert trace.pools == ["0e4a51"]
