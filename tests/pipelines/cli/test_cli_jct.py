"""`jobcast predict jct` and `jobcast evaluate jct`: answers, plots, mistakes."""

import numpy as np
import polars as pl
import pytest

HEADER = "job_id,pool,submit_time,duration,gpus,min_gpus,model"
of_each_kind = pytest.mark.parametrize("policy", [("srsf",), ("fcfs", "--forecasts", "oracle")], ids=" ".join)


@pytest.fixture
def stream(csv, store):
    """Two hundred small jobs, one every 100 s, of 60 to 600 s; two GPUs are busy three quarters of the time."""
    sizes = np.random.default_rng(0).uniform(30.0, 270.0, 200)
    rows = [f"{i},vc,{100 * i},{size:.1f},{1 + i % 2},0,a" for i, size in enumerate(sizes)]
    return ("--trace", csv(*rows, header=HEADER), "--gpus", "2", "--policy", "srsf")


@of_each_kind
def test_a_new_job_at_several_widths(shell, stream, tmp_path, policy):
    new = ("--job", "new", "--ask-gpus", "1,2", "--size-s", "400")
    words = ("predict", "jct", *stream[:-1], *policy, "--at", "10050", *new)
    told = shell.json(*words, "--futures", "10", "--plot", "when.svg", "--by", "10950")
    one, two = told["answers"]
    assert (told["job_id"], told["policy"], told["sizes"]) == ("new", policy[0], "forecast")
    assert (one["gpus"], two["gpus"]) == (1, 2)
    assert one["point_h"] * 3600 >= 400.0
    assert two["point_h"] * 3600 >= 200.0
    for answer in (one, two):
        assert answer["p5_h"] <= answer["p25_h"] <= answer["p50_h"] <= answer["p75_h"] <= answer["p95_h"]
        assert 0.0 <= answer["by_probability"] <= 1.0
    assert one["p5_h"] * 3600 >= 400.0
    assert (tmp_path / "when.svg").read_text().startswith("<svg")


def test_a_date_that_is_over_is_no_date_to_be_asked_about(shell, stream):
    words = ("predict", "jct", *stream, "--at", "10050", "--job", "new", "--size-s", "400", "--futures", "10")
    told = shell.refuses(*words, "--by", "1970-01-01T02:00")
    assert (
        told == "--by 1970-01-01T02:00: is over by 1970-01-01T02:47:30Z, the instant that is asked at; name a later one"
    )
    assert shell.json(*words, "--by", "10050")["answers"][0]["by_probability"] == 0.0


def test_a_job_of_the_trace_and_the_same_asked_again(shell, stream):
    told = shell.json("predict", "jct", *stream, "--at", "10010", "--job", "100", "--futures", "20", "--every", "0.02")
    assert told["state"] in ("running", "queued")
    assert told["submitted"] == "1970-01-01T02:46:40Z"
    assert "has finished at" in told["again"][-1]["finished"]


def test_all_jobs_and_one_of_them_at_other_widths(shell, stream):
    """From the instant on job 99 may use other numbers of GPUs; what it did by then it keeps."""
    words = ("predict", "jct", *stream, "--at", "9950", "--futures", "20", "--timezone", "UTC")
    told = shell.json(*words)
    assert [one["state"] for one in told["jobs"]] == sorted(one["state"] for one in told["jobs"])
    job = told["jobs"][-1]
    asked = shell.json(*words, "--job", job["job_id"], "--ask-gpus", "1,2,4")
    assert asked["answers"][0] == job["answers"][0]
    assert [one["gpus"] for one in asked["answers"]] == [job["gpus"], *{1, 2, 4} - {job["gpus"]}]
    points = {one["gpus"]: one["point_h"] for one in asked["answers"]}
    # It runs alone on both GPUs; on one it takes twice as long from then on.
    assert points[1] == pytest.approx(2 * points[2])
    assert f"; with 4 GPUs instead of {job['gpus']}: ends" in asked["text"]


def test_all_jobs_are_counted_as_they_are_answered(shell, stream, monkeypatch):
    """A queue of thousands takes hours."""
    monkeypatch.setattr("jobcast.pipelines.report.console.PLAIN_LINE_EVERY_S", 0.0)
    done = shell.works("predict", "jct", *stream, "--at", "9950", "--futures", "2", "--timezone", "UTC")
    jobs = len(done.out.splitlines()) - 2
    counted = [line for line in done.err.splitlines() if line.startswith("predict all jobs")]
    assert jobs >= 2
    assert counted == [f"predict all jobs: {100 * number // jobs} %" for number in range(jobs)]


@of_each_kind
def test_nothing_after_the_instant_is_read(shell, stream, csv, policy):
    """The same trace cut off at the instant gives the same answer."""
    words = (*stream[2:-1], *policy, "--at", "10010", "--job", "100", "--futures", "20")
    whole = shell.json("predict", "jct", *stream[:2], *words)
    lines = stream[1].read_text().splitlines()
    cut = csv(*lines[1:102], name="cut.csv", header=HEADER)
    assert shell.json("predict", "jct", "--trace", cut, *words)["answers"] == whole["answers"]


def test_declared_sizes_are_an_option(shell, stream):
    words = ("predict", "jct", *stream, "--at", "10010", "--job", "100", "--futures", "20", "--sizes", "declared")
    (answer,) = shell.json(*words)["answers"]
    assert answer["p5_h"] == pytest.approx(answer["point_h"], rel=0.2)


@pytest.mark.parametrize("policy", [pytest.param("srsf", marks=pytest.mark.slow), "elastic_fifo"])
def test_declared_sizes_that_are_wrong_make_intervals_that_hold(shell, stream, policy):
    words = ("evaluate", "jct", *stream[:-1], policy, "--futures", "30", "--every-job", "2", "--from", "8000")
    noisy, exact = (shell.json(*words, "--sizes", sizes) for sizes in ("noisy:0.4", "declared"))
    assert (noisy["sizes"], noisy["gpus"], noisy["n"], noisy["policy"]) == ("noisy:0.4", 2.0, 60, policy)
    assert 0.8 <= noisy["coverage_90"] <= 1.0
    assert noisy["coverage_90"] == pytest.approx((noisy["first_half"] + noisy["second_half"]) / 2)
    assert noisy["ratio_median"] > exact["ratio_median"] >= 1.0
    assert noisy["pinball"] > exact["pinball"] >= 0.0
    if policy == "elastic_fifo":
        # Nothing can delay whose size and queue are known: a point, and right but for rounding.
        assert (exact["coverage_90"], exact["wide_share"], exact["coverage_90_wide"]) == (1.0, 0.0, None)


@pytest.mark.parametrize("sizes", ["noisy", "noisy:x", "noisy:-1", "noisy:inf", "declared:2", "guessed"])
def test_sizes_that_name_nothing(shell, stream, sizes):
    line = shell.refuses("evaluate", "jct", *stream, "--sizes", sizes)
    assert f"--sizes {sizes}: pass forecast, declared or noisy:S" in line


def test_intervals_are_scored_on_later_jobs(shell, stream):
    # On four GPUs, or arrivals of some futures are more than can be served, and those take long.
    words = [*stream, "--gpus", "4", "--futures", "20", "--every-job", "12", "--from", "8000"]
    told = shell.json("evaluate", "jct", *words)
    assert told["jobs"] == 10
    assert told["coverage_90_pct"] + told["below_90_pct"] + told["above_90_pct"] == pytest.approx(100.0)
    assert 70.0 <= told["coverage_90_pct"] <= 100.0
    assert told["coverage_50_pct"] < told["coverage_90_pct"]
    assert told["bare"]["jobs"] == 10


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--at", "10010", "--job", "100", "--sizes", "noisy:0.4"), "forecast or declared"),
        (("--at", "10010", "--job", "100", "--size-s", "2"), "--size-s: job 100 is in the trace with what it asked"),
        (("--at", "10010", "--job", "new", "--ask-gpus", "1,2"), "for one amount of work alone; add --size-s SECONDS"),
        (("--at", "10010", "--job", "new", "--every", "1"), "--every: a job that is only asked about"),
        (("--at", "1969-12-31", "--job", "new"), "no job was submitted by 1969-12-31T00:00:00Z; choose a later --at"),
        (("--at", "10010", "--job", "new", "--ask-gpus", "1000000000000"), "more than the cluster's 2; ask for fewer"),
        (("--at", "9950", "--job", "99", "--ask-gpus", f"{10**30}"), "more than the cluster's 2; ask for fewer"),
        (
            ("--at", "10010", "--policy", "fcfs", "--job", "new", "--size-s", "9", "--ask-gpus", "4"),
            "--ask-gpus 4: the cluster has 2 GPUs; ask for fewer",
        ),
        (("--at", "50", "--job", "0"), "sizes are forecast from finished jobs, of which there are none"),
    ],
)
def test_one_line_for_each_mistake(shell, stream, words, told):
    assert told in shell.refuses("predict", "jct", *stream, *words)


def test_a_job_wider_than_any_cluster_is_refused_for_its_width(shell, csv, stream):
    trace = csv("0,vc,0,9.0,1,0,a", "1,vc,9,9.0,1000000000000,1,a", name="wide.csv", header=HEADER)
    told = shell.refuses("predict", "jct", "--trace", trace, *stream[2:], "--at", "10")
    assert told.endswith("wide.csv: job 1: 1,000,000,000,000 GPUs are more than the cluster's 2; ask for fewer")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "--job new: in which pool? add --pool NAME: a (2 GPUs), b (4 GPUs)"),
        (("--pool", "a", "--ask-gpus", "1,4"), "--ask-gpus 4: pool a has 2 GPUs; ask for fewer, or name another pool"),
    ],
)
def test_a_new_job_is_of_a_pool_that_can_hold_it(shell, csv, tmp_path, words, told):
    trace = csv("1,a,0,60,1", "2,b,10,60,1")
    (tmp_path / "pools.csv").write_text("pool,gpus\na,2\nb,4\n")
    asked = ("predict", "jct", "--trace", trace, "--pools", "pools.csv", "--policy", "fcfs", "--at", "20")
    assert told in shell.refuses(*asked, "--job", "new", "--size-s", "60", *words)


def test_options_of_completion_times_go_with_jct_alone(shell, stream):
    line = shell.refuses("predict", "new-load", *stream, "--at", "10010")
    assert line.startswith("--gpus: goes with the predictor jct, not with new-load")
    line = shell.refuses("evaluate", "new-load", *stream[:2], "--futures", "3")
    assert line.startswith("--futures: goes with the predictor jct")
    assert "needs --policy" in shell.refuses("evaluate", "jct", *stream[:4])


def test_completions_of_whole_jobs_by_registered_run_times(shell, run, store):
    """What the champion says of run times is played out under quotas; the policy itself asks for nothing."""
    words = ("simulate", "--trace", run.trace, "--pools", run.pools, "--from", run.trained_until, "--limit", "40")
    told = shell.json(*words, "--policy", "fcfs", "--predict", "--out", "told.csv")
    bare = shell.json(*words, "--policy", "fcfs")
    rows = pl.read_csv("told.csv", schema_overrides={"job_id": pl.String})
    assert (told["forecasts"], told["future"]) == ("registry", False)
    assert told["models"].keys() >= {"job-duration"}
    assert (bare["forecasts"], bare["models"]) == (None, {})
    assert told["mean_jct_s"] == bare["mean_jct_s"]
    assert rows["predicted_jct_s"].is_not_null().all()
    alone = rows.filter(pl.col("waited_s") == 0.0)["predicted_jct_s"]
    assert alone.n_unique() > 1
    at, job = rows["submit_time"][20], rows["job_id"][20]
    asked = ("predict", "jct", *words[1:-2], "--policy", "fcfs")
    answer = shell.json(*asked, "--at", f"{at:.6f}", "--job", job, "--futures", "10")
    assert answer["answers"][0]["point_h"] * 3600 == pytest.approx(rows["predicted_jct_s"][20], abs=1.0)
    # A later instant does not help a replay that begins where training does.
    line = shell.refuses(*asked[:6], "--policy", "fcfs", "--at", f"{at:.6f}")
    assert line.endswith("; begin after that by --from, or pass --forecasts conservative")
    started = pl.read_parquet(run.trace).with_columns(start_time=pl.col("submit_time"))
    started.write_parquet("started.parquet")
    now = ("predict", "jct", "--trace", "started.parquet", "--gpus", "10000", "--policy", "fcfs", "--begin", "recorded")
    line = shell.refuses(*now, "--at", "2024-01-01T06:00:00Z")
    assert line.endswith("; ask later by --at, or pass --forecasts conservative")
