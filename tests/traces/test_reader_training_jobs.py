"""Gavel and Shockwave; expectations are by hand from the fixtures."""

import os
from pathlib import Path

import pytest

from jobcast.domain.errors import ConfigError, TraceError
from jobcast.traces.readers import read_sources, read_trace

FIXTURES = Path(__file__).with_name("fixtures")
GAVEL, THROUGHPUTS = FIXTURES / "gavel" / "jobs.trace", FIXTURES / "gavel" / "throughputs.csv"
SHOCKWAVE = FIXTURES / "shockwave" / "jobs.trace"


def test_gavels_run_times_are_steps_over_steps_per_second_of_a_v100():
    trace = read_sources([GAVEL, THROUGHPUTS]).trace
    shown = ["job_id", "pool", "duration", "gpus", "steps", "model", "batch_size", "weight"]
    assert trace.jobs.select(shown).rows() == [
        ("0", "gavel", 360.0, 1, 7200, "ResNet-18", 32, 1.0),
        ("1", "gavel", 200.0, 2, 1000, "LM", 10, 1.0),
    ]
    assert trace.submit_s.tolist() == [0.5, 60.0]
    assert trace.dropped == {"no throughput of its model, batch size and width": 1}
    with pytest.raises(TraceError, match="holds steps but no durations; give a table of throughputs"):
        read_trace(GAVEL)
    with pytest.raises(ConfigError, match="got 2 and 0; convert traces one by one"):
        read_sources([GAVEL, GAVEL], format="gavel")


def test_shockwaves_mode_and_nominal_duration():
    trace = read_trace(SHOCKWAVE)
    shown = ["job_id", "duration", "gpus", "steps", "model", "batch_size", "adaptation", "weight"]
    assert trace.jobs.select(shown).rows() == [
        ("0", 3338.0, 1, 7200, "ResNet-18", 32, "accordion", 1.0),
        ("1", 1418.0, 2, 1000, "LM", 10, "gns", 2.0),
    ]
    assert trace.dropped == {"duration missing or <= 0": 1}
    with pytest.raises(TraceError, match="row 3, column duration: must be > 0"):
        read_trace(SHOCKWAVE, format="shockwave", strict=True)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("(batch size 10)", "(batch 10)", "row 2, column job_type: must read Model"),
        ("\t1418\t", "\t", "row 2: 11 fields where 12 are due"),
        ("\t1000\t", "\tmany\t", "row 2, column steps: must be a number, got 'many'"),
    ],
)
def test_a_bad_line_is_named(tmp_path, old, new, message):
    path = tmp_path / "jobs.trace"
    path.write_text(SHOCKWAVE.read_text().replace(old, new))
    with pytest.raises(TraceError, match=message):
        read_trace(path, format="shockwave")


def test_the_real_traces():
    data = os.environ.get("JOBCAST_DATA")
    if data is None:
        pytest.skip("JOBCAST_DATA is not set: name the folder that holds shockwave/120_jobs.trace")
    trace = read_trace(Path(data) / "shockwave" / "120_jobs.trace")
    modes = dict(trace.jobs["adaptation"].value_counts().iter_rows())
    assert modes == {"accordion": 59, "gns": 57, "static": 4}
    assert dict(trace.jobs["gpus"].value_counts().iter_rows()) == {1: 92, 2: 20, 4: 8}
    assert trace.submit_s[-1] == 5011.0
    assert len(read_trace(Path(data) / "shockwave" / "220_jobs.trace")) == 220
