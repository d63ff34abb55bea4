"""`jobcast simulate` by rounds on nodes, and planned beside the round that runs."""

import polars as pl
import pytest

from jobcast.schedulers.policies import ROUNDS
from jobcast.schedulers.registry import names_of

pytestmark = pytest.mark.usefixtures("untrained")
HEADER = "job_id,pool,submit_time,duration,gpus"
# Two jobs a node of two GPUs; one on each ends within the first round, and the fifth wants a node for itself.
HALVES = ("01,a,0,50,1", "02,a,0,300,1", "03,a,0,50,1", "04,a,0,300,1", "05,a,10,100,2")
TWO = "nodes: [{count: 2, gpus: 2, gpu_type: v100}]\n"


@pytest.fixture
def cluster(tmp_path):
    """Writes a cluster file."""

    def write(text):
        (tmp_path / "cluster.yaml").write_text(text, encoding="utf-8")
        return tmp_path / "cluster.yaml"

    return write


@pytest.fixture
def words(csv):
    """A line that lacks its cluster and policy."""
    return ("simulate", "--trace", csv(*HALVES, header=HEADER), "--forecasts", "oracle", "--baseline", "none")


@pytest.mark.parametrize("policy", names_of(ROUNDS))
def test_one_job_is_moved_so_that_another_gets_a_node(shell, words, cluster, policy):
    """Every policy runs them all; the second, seated beside the first, makes room at 120 s and starts anew."""
    found = shell.json(*words, "--cluster", cluster(TWO), "--policy", policy, "--out", "done.csv")
    assert (found["moves"], found["spread_pct"], found["inputs"]["pools"]) == (1.0, 0.0, {"all": 4})
    jobs = pl.read_csv("done.csv", schema_overrides={"nodes": pl.String})
    assert jobs["end_time"].to_list() == [70.0, 340.0, 70.0, 320.0, 240.0]
    assert jobs["preemptions"].to_list() == [0, 1, 0, 0, 0]
    assert jobs["nodes"].to_list() == ["0", "1", "1", "1", "0"]


def test_a_flat_cluster_knows_no_nodes(shell, words):
    found = shell.json(*words, "--gpus", "4", "--policy", "srpt", "--out", "done.csv")
    assert not {"moves", "spread_pct"} & found.keys()
    jobs = pl.read_csv("done.csv")
    assert "nodes" not in jobs.columns
    assert jobs["end_time"].to_list() == [70.0, 320.0, 70.0, 320.0, 240.0]


def test_planned_beside(shell, csv):
    """The first ends at 70 s; the plan for 120 s was made with it at 0 s, so that `gavel` brings the third at 240 s."""
    trace = csv("1,a,0,50,1", "2,a,0,300,1", "3,a,10,50,1", header=HEADER)
    words = ("simulate", "--trace", trace, "--gpus", "2", "--out", "done.csv", "--forecasts", "oracle")
    started = {}
    for policy, how in (("ossp", "before"), ("ossp", "beside"), ("las", "beside")):
        shell.json(*words, "--policy", policy, "--set", f"solve={how}")
        started[policy, how] = pl.read_csv("done.csv")["start_time"].to_list()
    assert started["ossp", "before"] == [0.0, 0.0, 120.0]
    assert started["ossp", "beside"] == [0.0, 0.0, 240.0]
    assert started["las", "beside"] == [0.0, 0.0, 120.0]  # fills what is free by its own order


def test_mistakes_get_one_line(shell, words, cluster):
    for text, message in {
        "nodes: [{count: 200000, gpus: 4}]": "200000 nodes, rounds place jobs on 100000 at most",
        "nodes: [{count: 900000000, gpus: 8}]": "its nodes have more than 1,000,000 GPUs together",
    }.items():
        assert message in shell.refuses(*words, "--policy", "shockwave", "--cluster", cluster(text))
