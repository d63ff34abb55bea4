"""Backfilling, recorded starts and fidelity through the command line."""

import polars as pl
import pytest

pytestmark = pytest.mark.usefixtures("untrained")
PLAIN = "job_id,pool,submit_time,duration,gpus,time_limit_s"
LIMITED = f"{PLAIN},start_time,account"
ROWS = ("a,p,0,100,3,100,0,lab", "b,p,1,50,4,60,100,lab", "c,p,2,98,1,98,2,guests", "d,p,3,98,1,98,200,new")
CLUSTER = "nodes: [{count: 1, gpus: 4}]\npools: {p: 4}\n"


@pytest.fixture
def trace(csv):
    return csv(*ROWS, header=LIMITED)


def starts(shell, *words):
    shell.works("simulate", *words, "--out", "log.csv")
    return pl.read_csv("log.csv")["start_time"].to_list()


def file(tmp_path, text):
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    return path


def test_how_near_starts_are_to_those_of_the_trace(shell, trace):
    words = ("--trace", trace, "--gpus", "4", "--baseline", "none")
    told = shell.json("simulate", *words, "--policy", "easy")["fidelity"]
    assert told["weeks"] == [{"from": "1969-12-29", **{key: told[key] for key in ("n", "median", "p90")}}]
    # d starts at 150 and not at 200, after a wait of 197.
    assert (told["n"], told["median"], told["p90"]) == (4, 0.0, pytest.approx(0.7 * 50 / 197))
    shown = shell.works("simulate", *words, "--policy", "easy").out
    assert "4 starts are off by 0 recorded waits (median)" in shown
    rows = shell.json("backtest", *words[:4], "--policies", "easy", "--out", "b")["rows"]
    assert [row["figures"]["fidelity"] for row in rows if row["policy"] == "easy"] == [told]


def test_recorded_starts_are_those_of_the_trace(shell, trace):
    words = ("--trace", trace, "--gpus", "4", "--policy", "as_recorded", "--baseline", "none")
    assert starts(shell, *words) == [0, 100, 2, 200]
    assert pl.read_csv("log.csv")["recorded_start_time"].to_list() == [0, 100, 2, 200]
    told = shell.json("simulate", *words)
    assert (told["forecasts"], told["future"], told["fidelity"]["p90"]) == ("oracle", True, 0.0)


def test_quotas_that_the_trace_exceeded_are_told(shell, csv):
    header = "job_id,pool,submit_time,duration,gpus,start_time"
    trace = csv("a,p,0,100,3,0", "b,p,0,100,1,", "c,p,1,9,3,50", header=header)
    words = ("--trace", trace, "--gpus", "4", "--policy", "as_recorded", "--baseline", "none")
    told = shell.works("simulate", *words, "--out", "log.csv").err
    assert pl.read_csv("log.csv")["start_time"].to_list() == [0, 0, 50]
    assert "1 of 3 jobs tell no start; they start when submitted" in told
    assert (
        "as_recorded: the trace held more than the quota in 1 of 1 pools, most in all, 7 GPUs of 4 at "
        "1970-01-01T00:00:50Z; here the quotas are what was held" in told
    )


def test_what_jobs_do_not_tell_is_told(shell, csv):
    rows = ("a,p,0,100,3,", "b,p,1,50,4,60", "c,p,2,98,1,50")
    trace = csv(*rows, header="job_id,pool,submit_time,duration,gpus,time_limit_s")
    told = shell.works("simulate", "--trace", trace, "--gpus", "4", "--policy", "easy", "--baseline", "none").err
    assert "1 of 3 jobs have no time limit; they count as if it were a year" in told
    assert "1 of 3 jobs ran beyond their time limit in the trace; they do so here" in told


def test_weights_and_limits_of_the_cluster_file(shell, trace, tmp_path):
    words = ("--trace", trace, "--policy", "easy", "--baseline", "none", "--cluster")
    rules = "priority: {qos: 1}\naccounts: {lab: {grp_jobs: 1}, guests: {}}\n"
    told = shell.works("simulate", *words, file(tmp_path, CLUSTER + rules))
    assert "accounts: new not in the cluster file; 1 share each, no limits" in told.err
    # b is held until a has ended, so that nothing is kept for it, and c and d go first.
    assert starts(shell, *words, file(tmp_path, CLUSTER + "accounts: {lab: {grp_jobs: 1}}\n")) == [0, 100, 2, 150]
    assert starts(shell, *words, file(tmp_path, CLUSTER + "priority: {job_size: 9, favor_small: true}\n"))[3] == 100
    aside = shell.works("simulate", *words[:2], "--policy", "fcfs", "--cluster", file(tmp_path, CLUSTER + rules))
    assert "fcfs knows no accounts: priority and limits of the cluster file are left aside" in aside.err


def test_where_the_cluster_has_no_pools_those_of_the_trace_stand_for_accounts(shell, csv, tmp_path):
    trace = csv("a,p,0,100,1,100", "b,p,1,100,1,100", "c,q,2,100,1,100", header=PLAIN)
    words = ("--trace", trace, "--policy", "easy", "--baseline", "none", "--cluster")
    nodes = "nodes: [{count: 1, gpus: 4}]\n"
    assert starts(shell, *words, file(tmp_path, nodes + "accounts: {p: {grp_gpus: 1}, q: {}}")) == [0, 100, 2]
    # Nobody has used anything but p, whose second job came first.
    one = "nodes: [{count: 1, gpus: 1}]\npriority: {fairshare: 9, period_s: 1}\n"
    assert starts(shell, *words, file(tmp_path, one)) == [0, 200, 100]


def test_a_qos_or_partition_that_the_cluster_file_does_not_name_is_told(shell, csv, tmp_path):
    trace = csv("a,p,0,100,1,100,hi,gpu", 'b,p,1,100,1,100,,"long,new"', header=f"{PLAIN},qos,partition")
    words = ("simulate", "--trace", trace, "--policy", "easy", "--baseline", "none", "--cluster")
    named = file(tmp_path, CLUSTER + "qos: {high: {priority: 1}}\npartitions: {gpu: 1, long: 2}\n")
    told = shell.works(*words, named).err
    assert "qos: hi not in the cluster file; priority 0, no limits" in told
    assert "partitions: new not in the cluster file; priority 0" in told
    assert "not in the cluster file" not in shell.works(*words, file(tmp_path, CLUSTER)).err


def test_jobs_without_a_user_are_one_users_and_that_is_told(shell, csv, tmp_path):
    trace = csv("a,p,0,100,1,100,", "b,p,1,100,1,100,", "c,p,2,100,1,100,u", header=f"{PLAIN},user")
    words = ("--trace", trace, "--policy", "easy", "--baseline", "none", "--cluster")
    limited = file(tmp_path, CLUSTER + "accounts: {p: {user_jobs: 1}}")
    assert starts(shell, *words, limited) == [0, 100, 2]
    told = "users: 2 of 3 jobs name none; limits and shares of users take them for one"
    assert told in shell.works("simulate", *words, limited).err
    grouped = file(tmp_path, CLUSTER + "accounts: {p: {grp_jobs: 9}}")
    assert "users:" not in shell.works("simulate", *words, grouped).err


def test_who_never_fits_its_own_limits_is_left_out_if_asked_and_by_forecasts(shell, trace, tmp_path):
    # a and b ask for 3 and 4 GPUs; with two of an account's d would wait for c.
    place = file(tmp_path, CLUSTER + "accounts: {lab: {user_gpus: 2}, guests: {user_gpus: 1}}")
    words = ("--trace", trace, "--cluster", place, "--policy", "easy")
    found = shell.works("simulate", *words, "--drop-too-wide", "--baseline", "fcfs", "--out", "log.csv")
    assert "dropped 2: wider than limits of their account or QOS" in found.err
    assert pl.read_csv("log.csv")["job_id"].to_list() == ["c", "d"]
    asked = shell.json("predict", "jct", *words, "--begin", "recorded", "--at", "150", "--sizes", "declared")
    assert [job["job_id"] for job in asked["jobs"]] == ["d"]


@pytest.mark.parametrize("policy", ["easy", "conservative_backfill"])
def test_limits_are_asked_for_where_there_are_none(shell, csv, policy):
    line = shell.refuses("simulate", "--trace", csv("a,p,0,100,1"), "--gpus", "4", "--policy", policy)
    assert f"policy {policy} needs time limits, and " in line
    assert "`jobcast trace enrich --facts limits` supplies them" in line


def test_starts_are_asked_for_where_there_are_none(shell, csv):
    words = ("simulate", "--trace", csv("a,p,0,100,1"), "--gpus", "4", "--policy", "as_recorded")
    assert "policy as_recorded needs recorded starts, and " in shell.refuses(*words)
    assert "nothing is left to forecast" in shell.refuses(*words, "--predict")


@pytest.mark.parametrize(
    ("words", "text", "line"),
    [
        (("--set", "priority=lifo"), "", "setting priority must be cluster or fifo or multifactor, got lifo"),
        (("--set", "bf_max_job_test=-1"), "", "setting bf_max_job_test must be a whole number >= 0, got -1"),
        (("--set", "priority=multifactor"), "", "priority=multifactor needs weights; give --cluster FILE with"),
        ((), "accounts: {lab: {user_gpus: 2}}", "job a asks for 3 GPUs, and limits of its account or QOS leave it 2"),
        ((), "accounts: {lab: {grp_jobs: 0}}", "leave it 0 at most (2 such jobs); raise them, or pass --drop-too-wide"),
        ((), "account: {lab: {}}", "account is not known; did you mean accounts? known are nodes, pools, energy,"),
    ],
)
def test_wrong_input(shell, trace, tmp_path, words, text, line):
    place = file(tmp_path, CLUSTER + text)
    assert line in shell.refuses("simulate", "--trace", trace, "--cluster", place, "--policy", "easy", *words)


@pytest.mark.parametrize("command", ["backtest", "choose"])
def test_a_value_that_no_policy_takes_is_refused_and_no_row_left_out(shell, trace, command):
    words = (command, "--trace", trace, "--gpus", "4", "--policies", "easy,conservative_backfill", "--set")
    why = "policy easy: setting bf_max_job_test must be a whole number >= 0, got -1"
    assert shell.refuses(*words, "bf_max_job_test=-1") == why
    assert "setting reservations must be kept or renewed, got never" in shell.refuses(*words, "reservations=never")


def test_what_if_and_completions_tell_the_fidelity_by_then(shell, trace):
    words = ("--trace", trace, "--gpus", "4", "--policy", "easy", "--forecasts", "oracle")
    shell.works("simulate", *words, "--baseline", "none", "--out", "log.csv")
    asked = ("explain", "--out", "log.csv", "--job", "d", "--what-if", "gpus=1")
    assert shell.json(*asked)["what_if"][0]["fidelity"]["n"] == 2
    assert "fidelity by then: 2 starts are off by 0 recorded waits" in shell.works(*asked).err
    told = shell.json("predict", "jct", *words, "--job", "d", "--at", "120", "--sizes", "declared")
    assert told["fidelity"]["n"] == 3
