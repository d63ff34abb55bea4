"""Gavel and Shockwave; expectations are by hand from the fixtures."""

from pathlib import Path

import pytest

from jobcast.domain.errors import ConfigError, TraceError
from jobcast.traces.readers import read_sources, read_trace
from tests.shared import refused

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
    refused(TraceError, "holds steps but no durations; give a table of throughputs", read_trace, GAVEL)
    refused(ConfigError, "got 2 and 0; convert traces one by one", read_sources, [GAVEL, GAVEL], format="gavel")


def test_shockwaves_mode_and_nominal_duration():
    trace = read_trace(SHOCKWAVE)
    shown = ["job_id", "duration", "gpus", "steps", "model", "batch_size", "adaptation", "weight"]
    assert trace.jobs.select(shown).rows() == [
        ("0", 3338.0, 1, 7200, "ResNet-18", 32, "accordion", 1.0),
        ("1", 1418.0, 2, 1000, "LM", 10, "gns", 2.0),
    ]
    assert trace.dropped == {"duration missing or <= 0": 1}
    refused(TraceError, "row 3, column duration: must be > 0", read_trace, SHOCKWAVE, format="shockwave", strict=True)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("(batch size 10)", "(batch 10)", "row 2, column job_type: must read Model"),
        ("\t1418\t", "\t", "row 2: 11 fields where 12 are due"),
        ("\t1000\t", "\tmany\t", "row 2, column steps: must be a number, got 'many'"),
    ],
)
def test_a_bad_line_is_named(written, old, new, message):
    path = written("jobs.trace", SHOCKWAVE.read_text().replace(old, new))
    refused(TraceError, message, read_trace, path, format="shockwave")


def test_the_real_traces(published):
    trace = read_trace(published / "shockwave" / "120_jobs.trace")
    modes = dict(trace.jobs["adaptation"].value_counts().iter_rows())
    assert modes == {"accordion": 59, "gns": 57, "static": 4}
    assert dict(trace.jobs["gpus"].value_counts().iter_rows()) == {1: 92, 2: 20, 4: 8}
    assert trace.submit_s[-1] == 5011.0
    assert len(read_trace(published / "shockwave" / "220_jobs.trace")) == 220


def test_a_model_without_a_batch_size(tmp_path):
    trace, throughputs = tmp_path / "jobs.trace", tmp_path / "throughputs.csv"
    trace.write_text("A3C\tpython3 main.py\trl\t--max-steps\t0\t1000\t1\t1\t-1\t5\n" + GAVEL.read_text())
    throughputs.write_text(THROUGHPUTS.read_text() + "v100,A3C,,1,10\n")
    jobs = read_sources([trace, throughputs]).trace.jobs.filter(model="A3C")
    assert jobs.select("batch_size", "duration", "gpus").rows() == [(None, 100.0, 1)]


def test_a_service_level_objective_is_a_deadline(written):
    trace = written("jobs.trace", SHOCKWAVE.read_text().replace("\t2\t-1.000000", "\t2\t1.5"))
    read = read_trace(trace)
    # 55 s + 1.5 x 1418 s
    assert read.jobs["deadline"].dt.epoch("s").to_list() == [None, 2182]
    assert read.notes[-1] == "deadline: submit_time + slo x duration, where slo is > 0"
    assert "deadline" not in read_trace(SHOCKWAVE).jobs.columns
    trace.write_text(SHOCKWAVE.read_text().replace("\t2\t-1.000000", "\t2\tinf"))
    refused(TraceError, "row 2, column slo: must be a finite number", read_trace, trace)
