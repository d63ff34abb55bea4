"""One law after another: alone on the GPUs that it asks for, a job takes the trace's duration."""

import os
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from jobcast.pipelines.experiments.experiment import Experiment
from jobcast.pipelines.lifecycle.recipes.regimes import training_jobs
from jobcast.traces.readers import read_trace
from tests.pipelines.conftest import typed

APART_S = 2 * 86400
"""Between submissions: the longest job is over before the next comes; whole rounds and minutes."""
FACTS = "speedups,training,goodput,tasks,epochs"
MOST_GPUS = 64
SERVER = f"nodes: [{{count: 1, gpus: {MOST_GPUS}, cpus: 10000, memory_gb: 100000, bandwidth_mb_s: 1000000}}]\n"
NODE = f"nodes: [{{count: 1, gpus: {MOST_GPUS}, gpu_type: v100, node_w: 100, gpu_w: 250}}]\n"
FLAT = ("--gpus", MOST_GPUS)
FREE = ("--set", "restart_s=0")
"""A start costs time by the mechanism, not by the law; so does a use of GPUs that fluctuates."""
LAWS = {
    "runtime": ("fcfs", *FLAT),
    "speedup": ("srsf", *FLAT),
    "training": ("srpt", *FLAT, *FREE),
    "training, planned": ("shockwave", *FLAT, *FREE),
    "goodput": ("pollux", *FLAT, *FREE),
    "tasks": ("tiresias", "--cluster", "server.yaml", "--set", "fluctuation=0"),
    "epochs": ("edf", "--cluster", "node.yaml", *FREE),
}
JOBS = st.lists(st.tuples(st.sampled_from([1, 2, 3, 4, 6, 8, 24, 64]), st.floats(0.5, 86400.0)), min_size=1, max_size=3)


def alone_s(policy, *words):
    """(n_jobs,) completion times of jobs that never meet."""
    typed(
        *("simulate", "--trace", "made/jobs.parquet", "--policy", policy, "--forecasts", "oracle"),
        *("--baseline", "none", "--out", "log.csv"),
        *words,
    )
    log = pl.read_csv("log.csv").sort("submit_time")
    return (log["end_time"] - log["submit_time"]).to_numpy()


def check_laws(jobs, seed, regimes):
    gpus, duration = (np.array(column) for column in zip(*jobs, strict=True))
    frame = {"job_id": [f"{row:03d}" for row in range(len(gpus))], "pool": "p"}
    submit_s = np.arange(len(gpus)) * APART_S
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            pl.DataFrame(frame | {"submit_time": submit_s, "duration": duration, "gpus": gpus}).write_csv("plain.csv")
            Path("server.yaml").write_text(SERVER)
            Path("node.yaml").write_text(NODE)
            # Due as soon as can be, so that edf takes the GPUs asked for and no fewer.
            choices = ("--set", f"regimes={regimes}", "--set", "due=1,1")
            typed("trace", "enrich", "plain.csv", "--facts", FACTS, "--out", "made", "--seed", seed, *choices)
            for law, words in LAWS.items():
                found = alone_s(*words)
                if law == "goodput":  # Pollux may find fewer GPUs to be faster
                    assert (found <= duration * (1 + 1e-6) + 2e-6).all(), law
                else:
                    # Instants of the job table are whole microseconds.
                    np.testing.assert_allclose(found, duration, rtol=1e-6, atol=2e-6, err_msg=law)
        finally:
            os.chdir(before)


@pytest.mark.parametrize("examples", [3, pytest.param(40, marks=pytest.mark.slow)])
def test_alone_a_job_takes_its_duration_under_every_law(examples):
    drawn = given(JOBS, st.integers(0, 10**6), st.sampled_from(["mixed", "accordion", "gns", "static"]))(check_laws)
    settings(max_examples=examples, deadline=None, phases=[Phase.generate])(drawn)()


def test_a_table_that_is_named_goes_before(tmp_path):
    (tmp_path / "plain.csv").write_text("job_id,pool,submit_time,duration,gpus\na,p,0,100,1\n")
    made = tmp_path / "made"
    typed("trace", "enrich", tmp_path / "plain.csv", "--facts", "speedups", "--out", made)
    trace = read_trace(made / "jobs.parquet")
    beside = Experiment(trace=trace)
    assert beside.files("elastic") == {"speedups": str(made / "speedups.csv")}
    assert beside.assumptions("elastic")[0].startswith("Scaling is assumed")
    own = Experiment(trace=trace, given={"speedups": "own.csv", "profiles": "p.csv"})
    assert (own.files("elastic"), own.assumptions("elastic")) == ({"speedups": "own.csv"}, ())
    assert Experiment(trace=read_trace(tmp_path / "plain.csv")).files("elastic") == {}


def test_regimes_are_learned_from_the_tables_beside_the_trace(tmp_path):
    rows = [f"j{row},p,{row},{1000 * (1 + row)},1" for row in range(9)]
    (tmp_path / "plain.csv").write_text("\n".join(["job_id,pool,submit_time,duration,gpus", *rows]) + "\n")
    made = tmp_path / "made"
    typed("trace", "enrich", tmp_path / "plain.csv", "--facts", "training", "--out", made, "--set", "regimes=gns")
    trace = read_trace(made / "jobs.parquet")
    jobs, truth = training_jobs(trace, {}, 0)
    assert len(jobs) == 9
    assert max(map(len, truth)) > 1
    run_s = [job.training.run_time_s(regimes) for job, regimes in zip(jobs, truth, strict=True)]
    assert run_s == pytest.approx(trace.duration_s)
