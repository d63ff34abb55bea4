"""Elastic jobs on the command line: speedup tables, workloads, conversion and description."""

import pytest

from jobcast.traces.speedups import read_speedups

pytestmark = pytest.mark.usefixtures("untrained")
STEPS = "app,num_nodes,num_replicas,local_bsz,step_time,sync_time"


@pytest.fixture
def steps(csv):
    """Two apps that synchronise fast and slowly, on nodes of 4 GPUs, measured with a little noise."""
    rows = []
    for app, sync_s in (("a", 0.02), ("b", 0.2)):
        for nodes, gpus in ((1, 1), (1, 2), (2, 2), (1, 4), (2, 4), (4, 4)):
            for local in (8, 16, 32, 64):
                noise = (0.97, 1.02, 1.0, 1.03, 0.99)[(gpus + local // 8 + nodes) % 5]
                step_s = noise * (0.1 + 0.01 * local + sync_s * (gpus > 1) + 0.1 * (nodes > 1))
                rows.append(f"{app},{nodes},{gpus},{local},{step_s},{sync_s}")
    return csv(*rows, name="steps.csv", header=STEPS)


@pytest.mark.parametrize("fit", ["best", "power"])
def test_a_table_is_made_of_step_times(shell, steps, fit):
    told = shell.json("trace", "speedups", steps, "--out", "s.csv", "--fit", fit, "--most", 8)
    table = read_speedups("s.csv")
    assert table.models == ("a", "b")
    assert table.speedup.shape == (2, 2, 9)
    for row, (app, its) in enumerate(told["apps"].items()):
        assert its["fit"] == fit or fit == "best"
        assert its["batch_size"] == 64
        assert its["speedup"]["packed"]["4"] == pytest.approx(table.speedup[row, 0, 4]), app
        assert set(its["left_out"]) == {"throughput", "amdahl", "power", "table"}
    assert told["apps"]["a"]["speedup"]["packed"]["4"] > told["apps"]["b"]["speedup"]["packed"]["4"]


def test_a_table_is_shown_and_the_batch_size_chosen(shell, steps):
    answer = shell.works("trace", "speedups", steps, "--out", "s.parquet", "--batch-size", "b=128", "--most", 4)
    assert answer.err == "s.parquet: 2 models, 1 to 4 GPUs\n"
    assert "128" in answer.out
    assert "errors are those of speedups on configurations that the fit did not see" in answer.out
    assert read_speedups("s.parquet").speedup.shape == (2, 2, 5)


def test_a_trace_of_elastic_and_rigid_jobs_is_described(shell, csv):
    header = "job_id,pool,submit_time,duration,gpus,min_gpus"
    jobs = csv("1,a,0,7200,2,0", "2,a,1800,1800,4,", "3,a,7200,60,1,", header=header)
    told = shell.json("trace", "describe", jobs, "--pools", csv("a,4", name="pools.csv", header="pool,gpus"))
    assert told["notes"][-1].startswith("1 of 3 jobs are elastic: ")
    # The elastic job holds 2 GPUs for an hour, the rigid one 4 for half an hour: 4 of 8 GPU-hours.
    assert told["total"]["utilization_mean"] == pytest.approx(0.5)
