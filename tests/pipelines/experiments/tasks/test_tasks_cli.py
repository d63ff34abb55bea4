"""`jobcast simulate` for schedulers of tasks: figures, the job table, sources of accuracy, mistakes."""

import polars as pl
import pytest

from tests.scenarios import write_tasks_scene

pytestmark = pytest.mark.usefixtures("untrained")
SETTINGS = {"jobs": 20, "gpus": 16, "widths": "1,2,4", "epochs": "5,20", "longest_h": 6}
PAPERS = ("deadline_ratio", "accuracy_mean", "accuracy_ratio", "bandwidth_tb")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Twenty jobs of tasks: trace, tasks, curves."""
    at = tmp_path_factory.mktemp("tasks")
    write_tasks_scene(at, SETTINGS)
    return at


@pytest.fixture
def words(folder):
    """The command that simulates them under a policy."""

    def of(policy, *more):
        files = [f"--set=tasks={folder / 'tasks.parquet'}", f"--set=curves={folder / 'curves.parquet'}"]
        trace = ("--trace", folder / "tasks.jobs.parquet", "--gpus", "16")
        return ("simulate", *trace, "--forecasts", "oracle", "--policy", policy, *files, *more)

    return of


def test_a_baseline_is_given_settings_of_files_and_cluster_alone(shell, words):
    """A policy with settings of its own is compared with itself as it is by default."""
    assert shell.json(*words("mlf_h", "--baseline", "mlf_h", "--limit", 8))["speedup_mean"] == 1.0
    assert shell.json(*words("mlf_h", "--baseline", "mlf_h", "--set", "h_r=0.4", "--limit", 8))["speedup_mean"] < 1.0


def test_one_row_a_job(shell, words):
    shell.json(*words("mlf_h", "--out", "jobs.csv"))
    rows = pl.read_csv("jobs.csv", schema_overrides={"job_id": pl.String})
    assert len(rows) == 20
    assert (rows["submit_time"] <= rows["start_time"]).all()
    assert (rows["start_time"] < rows["end_time"]).all()
    assert rows["accuracy_by_deadline"].is_between(0.0, 1.0).all()
    assert rows["iterations_done"].to_list() == pytest.approx([1.0] * 20)
    late = rows.sort("waited_s").to_dicts()[-1]
    told = shell.json("explain", "--out", "jobs.csv", "--job", late["job_id"])
    waited_s = told["while_waiting"]["seconds"] if told["while_waiting"] else 0.0
    assert waited_s == pytest.approx(late["waited_s"], abs=1e-3)
    assert all(stretch["nodes"] for stretch in told["held"])


def test_quotas_are_put_together(shell, words, csv):
    alone = words("tiresias", "--limit", 8)
    pools = csv("a,10", "b,6", name="pools.csv", header="pool,gpus")
    with_pools = [pools if word == "16" else "--pools" if word == "--gpus" else word for word in alone]
    together, given = shell.json(*with_pools), shell.json(*alone)
    assert [together[name] for name in (*PAPERS, "mean_jct_s")] == [given[name] for name in (*PAPERS, "mean_jct_s")]
    assert f"servers: 16 GPUs in all, pools file {pools}; quotas are ignored" in together["inputs"]["notes"]


def test_a_source_that_tells_nothing_of_accuracies_is_refused_by_who_asks(shell, words):
    assert "forecasts regimes, not accuracies" in shell.refuses(*words("mlf_c", "--forecasts", "bayes"))
    assert shell.json(*words("mlf_h", "--forecasts", "bayes", "--limit", "3"))["forecasts"] is None


@pytest.mark.parametrize(("policy", "name"), [("mlf_rl", "mlf-policy"), ("device_rl", "device-rl")])
def test_a_learned_policy_must_have_been_trained(shell, words, policy, name):
    told = shell.refuses(*words(policy))
    assert f"policy {policy}: no {name} is registered" in told
    assert f"jobcast train {name}" in told
