"""Stages of elastic jobs: read as they are written, refused where they cannot be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import TraceError
from jobcast.traces.readers import read_trace
from jobcast.traces.stages import parse_stages, stages_of, stages_text
from jobcast.traces.table_files import write_trace
from tests.shared import refused

JOBS = (("p", 0, 100, 16), ("p", 1, 50, 4), ("p", 2, 10, 8))


def test_stages_of_all_jobs_stand_one_after_another(make_trace):
    trace = make_trace(*JOBS, min_gpus=[0, 0, 0], stages=["0.5:16;0.25:8;0.25:4", None, "0.3:8;0.7:2"])
    found = stages_of(trace)
    assert found.stage_of.tolist() == [0, 3, 4, 6]
    assert found.stage_end.tolist() == [0.5, 0.75, 1.0, 1.0, 0.3, 1.0]
    assert found.stage_most.tolist() == [16, 8, 4, 4, 8, 2]


def test_jobs_of_a_trace_without_stages_have_one_each(make_trace):
    found = stages_of(make_trace(*JOBS))
    assert found.stage_of.tolist() == [0, 1, 2, 3]
    assert found.stage_end.tolist() == [1.0, 1.0, 1.0]
    assert found.stage_most.tolist() == [16.0, 4.0, 8.0]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_files_keep_them(make_trace, tmp_path, suffix):
    told = ["0.5:16;0.5:8", None, "1.0:3"]
    write_trace(make_trace(*JOBS, min_gpus=[0, 0, 0], stages=told), tmp_path / f"jobs.{suffix}")
    assert read_trace(tmp_path / f"jobs.{suffix}").jobs["stages"].to_list() == told


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0.5;0.5", "a stage must be a share and a number of GPUs"),
        ("half:2", "shares must be numbers"),
        ("0:2;1:2", r"shares must lie in \(0, 1\]"),
        ("nan:2", r"shares must lie in \(0, 1\]"),
        ("0.5:2;0.4:2", r"shares must add up to 1, not 0\.9"),
        ("1:0", "GPUs must be whole numbers >= 1"),
        ("1:2.5", "GPUs must be whole numbers >= 1"),
        ("1:17", "must not use more than the job's 16 GPUs"),
    ],
)
def test_what_cannot_be_used_is_said_in_one_line(make_trace, text, said):
    told = f"made, job 0000, column stages: {said}, got '{text}'; write share:gpus"
    refused(TraceError, told, stages_of, make_trace(*JOBS, stages=[text, None, None]))


@given(st.lists(st.tuples(st.floats(0.01, 1), st.integers(1, 64)), min_size=1, max_size=6))
def test_what_is_written_is_read_again(drawn):
    shares = np.array([share for share, _ in drawn])
    stages = tuple(zip((shares / shares.sum()).tolist(), [most for _, most in drawn], strict=True))
    assert parse_stages(stages_text(stages)) == stages
