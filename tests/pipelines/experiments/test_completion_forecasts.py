"""Completions forecast by copies of the run: at submission, at an instant, and had a job asked for something else."""

import polars as pl
import pytest

from jobcast.simulator.forecast_sources import bin_durations_s

pytestmark = pytest.mark.usefixtures("untrained")
QUEUE = ("a,p,0,100,1", "b,p,10,50,1", "c,p,20,30,1", "d,q,25,40,1")
"""One GPU a pool; under ssf the short job c overtakes b, which b's forecast does not know."""


@pytest.fixture
def queue(csv):
    quotas = csv("p,1", "q,1", name="pools.csv", header="pool,gpus")
    return ("--trace", csv(*QUEUE), "--pools", quotas)


def predicted(shell, *words):
    shell.works("simulate", *words, "--predict", "--out", "log.csv")
    return pl.read_csv("log.csv")["predicted_jct_s"].to_list()


def test_forecasts_at_submission_by_hand(shell, queue):
    figures = shell.json("simulate", *queue, "--policy", "ssf", "--forecasts", "oracle", "--predict")
    assert predicted(shell, *queue, "--policy", "ssf", "--forecasts", "oracle") == [100.0, 140.0, 110.0, 40.0]
    assert figures["pred_err_mean_pct"] == pytest.approx(100.0 * 30.0 / 140.0 / 4)  # b ends at 180, not 150
    assert (figures["forecasts"], figures["future"]) == ("oracle", True)


def test_run_times_are_those_of_the_source(shell, queue):
    long_s = bin_durations_s()[-1]
    found = predicted(shell, *queue, "--policy", "fcfs", "--forecasts", "conservative")
    # At 20 s a has run 20 s of its believed time; b waits for it, c for both.
    assert found == pytest.approx([long_s, 2 * long_s - 10.0, 3 * long_s - 20.0, long_s])


@pytest.mark.parametrize(("job", "left_s"), [("b", 125.0), ("c", 155.0)])
def test_predict_jct_under_quotas(shell, queue, job, left_s):
    words = ("predict", "jct", *queue, "--at", "25", "--policy", "fcfs", "--sizes", "declared", "--job", job)
    told = shell.json(*words)
    assert (told["state"], told["policy"], told["active_jobs"]) == ("queued", "fcfs", 4)
    assert told["answers"][0]["point_h"] * 3600 == pytest.approx(left_s)


@pytest.mark.parametrize(("words", "ends_s"), [((), 1600.0), (("--time-limit-s", "600"), 520.0)])
def test_a_new_job_back_fills_by_its_time_limit(shell, csv, words, ends_s):
    """On two of four GPUs a runs until 1000 s, b waits for all four until 1100 s; there is room for 600 s before b."""
    trace = csv("a,p,0,1000,2,1000", "b,p,10,100,4,100", header="job_id,pool,submit_time,duration,gpus,time_limit_s")
    asked = ("predict", "jct", "--trace", trace, "--gpus", "4", "--policy", "easy", "--sizes", "declared", "--at", "20")
    told = shell.json(*asked, "--job", "new", "--ask-gpus", "1", "--size-s", "500", *words)
    assert 20.0 + told["answers"][0]["point_h"] * 3600 == pytest.approx(ends_s, abs=1e-3)


def test_a_time_limit_is_of_new_whole_jobs(shell, queue):
    words = ("predict", "jct", *queue[:2], "--policy", "elastic_fifo", "--gpus", "4", "--time-limit-s", "60")
    assert "--time-limit-s: does not go with elastic_fifo" in shell.refuses(*words)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--job", "b", "--time-limit-s", "60"), "--time-limit-s: job b is in the trace with what it asked for"),
        (("--job", "z"), "holds no job 'z'"),
        (("--job", "d", "--at", "20"), "job d: is not submitted by 1970-01-01T00:00:20Z; ask later"),
        (("--job", "a", "--pool", "q"), "--pool: job a is in the trace with what it asked for; pass --job new"),
        (("--job", "new", "--pool", "z", "--size-s", "5"), "--pool z: no job of the trace is of it; known are p, q"),
        (("--job", "new"), "--job new: its work is not known; add --size-s SECONDS"),
        (("--job", "a", "--model", "x"), "--model: goes with elastic policies, not with fcfs"),
    ],
)
def test_questions_that_cannot_be_asked(shell, queue, more, told):
    words = ("predict", "jct", *queue, "--policy", "fcfs", "--sizes", "declared", "--at", "25")
    assert told in shell.refuses(*words, *more)


def test_evaluate_jct_under_quotas(shell, csv):
    rows = [f"{at},p,{100 * at},{40 + at % 9 * 20},{1 + at % 2},86400" for at in range(80)]
    header = "job_id,pool,submit_time,duration,gpus,time_limit_s"
    words = ("evaluate", "jct", "--trace", csv(*rows, header=header), "--gpus", "3", "--policy", "fcfs")
    told = shell.json(*words, "--forecasts", "oracle", "--futures", "20", "--every-job", "4")
    assert (told["policy"], told["sizes"], told["jobs"]) == ("fcfs", "forecast", 12)
    assert 0.0 <= told["coverage_90_pct"] <= 100.0
    assert told["point_err_p50_pct"] == pytest.approx(0.0, abs=1e-9)  # later jobs delay nobody under fcfs
    limit, pool = told["rules"]["time_limit"], told["rules"]["pool_median"]
    assert (limit["coverage_90"], limit["width_90_s_p50"]) == (1.0, pytest.approx(86400.0))
    # Jobs wait now and then: they took 40 to 200 s alone, and most of them about that.
    assert 100.0 < pool["width_90_s_p50"] < 400.0
    assert 0.5 < pool["coverage_90"] <= 1.0
    assert pool["pinball"] < limit["pinball"]


def test_what_if_a_job_had_asked_for_something_else(shell, queue):
    shell.works("simulate", *queue, "--policy", "fcfs", "--forecasts", "oracle", "--out", "log.csv")
    asked = ("explain", "--out", "log.csv", "--job", "c")
    told = shell.json(*asked, "--what-if", "pool=q")["what_if"]
    assert [(one["change"], one["pool"], one["start_s"], one["end_s"]) for one in told] == [
        ("as it was", "p", 150.0, 180.0),
        ("pool=q", "q", 20.0, 50.0),
    ]
    assert "pool=q (1 GPU, pool q): would start 1970-01-01T00:00:20Z" in shell.works(*asked, "--what-if", "pool=q").out
    assert "what_if" not in shell.json(*asked)
    for change, line in {
        "cores=2": "write gpus=N, pool=NAME, or both between commas",
        "gpus=0": "write gpus=N",
        "pool=z": "there is no such pool; known are p, q",
    }.items():
        assert f"--what-if {change}: {line}" in shell.refuses(*asked, "--what-if", change)
    with open("jobs.csv", "a", encoding="utf-8") as file:
        file.write("e,p,30,5,1\n")
    assert "has changed since; simulate again" in shell.refuses(*asked, "--what-if", "pool=q")


def test_what_if_of_a_run_without_forecasts_says_whose_options_would_help(shell, queue):
    shell.works("simulate", *queue, "--policy", "fcfs", "--out", "log.csv")
    why = shell.refuses("explain", "--out", "log.csv", "--job", "c", "--what-if", "pool=q")
    assert why.startswith(
        "--what-if plays the run again, whose options `jobcast simulate` takes: no model 'job-duration'"
    )


def test_what_if_with_fewer_gpus_a_job_takes_longer(shell, csv):
    trace = csv("a,p,0,100,1", "b,p,10,50,2", name="two.csv")
    words = ("--trace", trace, "--gpus", "2", "--policy", "fcfs", "--forecasts", "oracle")
    shell.works("simulate", *words, "--out", "l.csv")
    told = shell.json("explain", "--out", "l.csv", "--job", "b", "--what-if", "gpus=1")
    spans = [(one["gpus"], one["start_s"], one["end_s"]) for one in told["what_if"]]
    assert spans == [(2, 100.0, 150.0), (1, 10.0, 110.0)]
    assert any("as many GPU-seconds" in note for note in told["notes"])


def test_what_if_an_elastic_job_could_use_fewer_gpus(shell, csv):
    header = "job_id,pool,submit_time,duration,gpus,min_gpus"
    trace = csv("a,p,0,400,4,1", "b,p,10,400,4,1", name="elastic.csv", header=header)
    words = ("--trace", trace, "--gpus", "4", "--policy", "elastic_fifo")
    shell.works("simulate", *words, "--out", "log.csv")
    asked = ("explain", "--out", "log.csv", "--job", "b", "--what-if")
    told = shell.json(*asked, "gpus=2")["what_if"]
    assert [(one["gpus"], one["start_s"], one["end_s"]) for one in told] == [(4, 100.0, 200.0), (2, 100.0, 300.0)]
    assert "under elastic_fifo all jobs share all GPUs" in shell.refuses(*asked, "pool=q")
