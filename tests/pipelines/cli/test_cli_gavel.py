"""`jobcast trace generate gavel`, and its trace simulated."""

import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("untrained")
RATES = "gpu_type,model,batch_size,gpus,steps_per_second\n" + "".join(
    f"v100,LM,{size},{gpus},{40 * gpus / size + 20}\n" for size in (5, 10, 20, 40, 80) for gpus in (1, 2, 4, 8)
)
FILES = ("--out", "jobs.csv", "--pools-out", "pools.csv", "--regimes-out", "regimes.csv")


@pytest.fixture
def drawn(shell, monkeypatch):
    monkeypatch.delenv("JOBCAST_DATA", raising=False)
    Path("rates.csv").write_text(RATES)
    words = ("--set", "throughputs=rates.csv", "--set", "jobs=30", "--set", "mode_shares=0,0.5,0.5")
    return shell.works("trace", "generate", "gavel", *FILES, "--seed", 1, *words)


def test_a_generated_trace_runs_with_its_regimes(shell, drawn):
    assert drawn.out == ""
    assert drawn.err.splitlines() == [
        "jobs.csv: 30 jobs of 1 pool",
        "  throughputs: rates.csv, v100",
        "  gns doubles every 20 epochs",
    ]
    regimes = Path("regimes.csv").read_text().splitlines()
    assert regimes[0] == "job_id,epoch,batch_size"
    assert len(regimes) > 31  # some jobs change
    tables = ("--set", "throughputs=rates.csv", "--set", "regimes=regimes.csv")
    run = ("simulate", "--trace", "jobs.csv", "--pools", "pools.csv", "--policy", "srpt", "--json", "-")
    adapted, static = (json.loads(shell.works(*run, *words).out) for words in (tables, tables[:2]))
    assert adapted["jobs"] == static["jobs"] == 30
    assert adapted["makespan_s"] != static["makespan_s"]


def test_regimes_are_asked_of_kinds_that_have_them(shell):
    line = shell.refuses("trace", "generate", "sia", *FILES)
    assert line == "sia: its jobs have no courses of batch sizes; kinds that have are gavel"
    assert not Path("jobs.csv").exists()
