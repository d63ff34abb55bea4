"""`jobcast promises` and the answers of `predict jct` that it judges: whole queues, other widths, the ledger."""

import json

import numpy as np
import polars as pl
import pytest

import jobcast
from jobcast.models.promise_ledger import PromiseLedger
from jobcast.pipelines.experiments.elastic.completion_prediction import Answer, combined
from tests.enriching import enriched_trace

pytestmark = pytest.mark.usefixtures("untrained")
RECORDED = "job_id,pool,submit_time,start_time,end_time,duration,gpus"
ROWS = [f"{at:03},{'pq'[at % 2]},{100 * at},{60 + at % 9 * 40},{1 + at % 2}" for at in range(120)]


@pytest.fixture
def queue(csv):
    quotas = csv("p,1", "q,2", name="pools.csv", header="pool,gpus")
    return ("--trace", csv(*ROWS), "--pools", quotas, "--policy", "fcfs", "--forecasts", "oracle", "--futures", "20")


@pytest.fixture
def ask(shell, queue):
    return lambda *words: shell.json("predict", "jct", *queue, "--timezone", "UTC", *words)


def kept(shell):
    return PromiseLedger(shell.home).promises()


def test_all_jobs_that_wait_or_run(shell, queue, ask):
    told = ask("--at", "6000")
    states = [one["state"] for one in told["jobs"]]
    assert states == sorted(states)  # queued ones first
    assert set(states) == {"queued", "running"}
    for one in told["jobs"]:
        (answer,) = one["answers"]
        assert ("start" in answer) == (one["started"] is None)
        assert answer["p5_h"] <= answer["p95_h"]
        assert one["text"].startswith(f"job {one['job_id']} (")
    # One of them asked alone: the point is the same, whatever is drawn.
    first = told["jobs"][0]
    alone = ask("--at", "6000", "--job", first["job_id"])
    assert alone["answers"][0]["point"] == first["answers"][0]["point"]
    assert alone["answers"][0]["start"]["point"] == first["answers"][0]["start"]["point"]
    named = [one["job_id"] for one in told["jobs"]]
    assert [one["job_id"] for one in ask("--at", "6000", "--limit", "2")["jobs"]] == named[:2]
    out = shell.works("predict", "jct", *queue, "--at", "6000", "--timezone", "Europe/Berlin").out
    assert out.startswith("as of 1970-01-01 02:40, times in Europe/Berlin; under fcfs; ")
    assert len(out.splitlines()) == 2 + len(told["jobs"])


def test_the_instant_is_the_last_that_the_trace_knows_of(shell, csv, queue):
    rows = ["a,p,0,0,100,100,1", "b,p,50,100,300,200,1", "c,q,290,290,900,610,1"]
    words = ("predict", "jct", "--trace", csv(*rows, name="recorded.csv", header=RECORDED), *queue[2:])
    asked = shell.json(*words)
    assert (asked["at"], asked["jobs"]) == ("1970-01-01T00:15:00Z", [])
    told = shell.works(*words)
    assert "no job waits or runs" in told.out
    assert "--begin recorded" not in told.err


def test_jobs_without_an_end_are_pointed_at(shell, csv, queue):
    rows = ["a,p,0,0,100,100,1", "b,p,50,100,,,1", "c,q,290,,,,1"]
    words = ("predict", "jct", "--trace", csv(*rows, name="recorded.csv", header=RECORDED), *queue[2:])
    assert "2 jobs without an end by then: --begin recorded begins with them, too" in shell.works(*words).err
    told = shell.works(*words, "--begin", "recorded")
    assert "without an end by then" not in told.err
    assert {line.split()[0] for line in told.out.splitlines()[2:]} == {"b", "c"}


def test_a_recorded_queue_is_not_asked_about_beyond_what_the_trace_tells(shell, csv, queue):
    """The last that is known is c's submission at 290 s: at 150, 200 and 250 s b runs, at 300 s nobody knows."""
    rows = ["a,p,0,0,100,100,1", "b,p,50,100,,,1", "c,q,290,,,,1"]
    trace = csv(*rows, name="recorded.csv", header=RECORDED)
    words = ("predict", "jct", "--trace", trace, *queue[2:], "--begin", "recorded", "--no-ledger")
    asked = shell.works(*words, "--job", "b", "--at", "100", "--every", f"{50 / 3600}", "--json", "-")
    assert [one["at"][-6:] for one in json.loads(asked.out)["again"]] == ["02:30Z", "03:20Z", "04:10Z"]
    assert "--every: stops at 1970-01-01T00:04:50Z, the last that the trace tells of" in asked.err
    line = shell.refuses(*words, "--job", "a", "--at", "200")
    assert "job a: has finished at 1970-01-01T00:01:40Z, before 1970-01-01T00:03:20Z; ask earlier" in line


def test_promises_are_judged_by_what_simulate_wrote(shell, queue, ask):
    """Every promise made along the run; the run itself is what happened."""
    for at in range(3000, 9000, 1500):
        ask("--at", str(at))
    made = kept(shell)
    # Asked again, it is no other promise.
    ask("--at", "3000")
    assert {one.kind for one in made} == {"start", "end"}
    shell.works("simulate", *queue[:-2], "--baseline", "none", "--out", "ran.csv")
    told = shell.json("promises", "--trace", "ran.csv")
    assert (told["promises"], told["what_if"], told["without_outcome"]) == (len(made), 0, 0)
    assert told["new_outcomes"] == len({one.event for one in made})
    ran = {row["job_id"]: row for row in pl.read_csv("ran.csv", schema_overrides={"job_id": pl.String}).to_dicts()}
    came_s = [ran[one.job_id][f"{one.kind}_time"] for one in made]
    ends_s = [one.intervals[1] for one in made]
    held = [low_s - 1.0 <= at_s <= high_s + 1.0 for at_s, (_, low_s, high_s) in zip(came_s, ends_s, strict=True)]
    assert sum(row["kept"] for row in told["groups"]) == sum(held)
    assert sum(row["made"] for row in told["groups"]) == len(made)
    for row in told["groups"]:
        assert row["kept"] + row["broken_low"] + row["broken_high"] + row["open"] == row["made"]
    # Again, and then without the trace: the same outcomes, none of them new.
    again = shell.json("promises", "--trace", "ran.csv", "--by", "pool")
    assert again["new_outcomes"] == 0
    assert {row["group"] for row in again["groups"]} == {"p", "q"}
    assert shell.json("promises")["groups"] == told["groups"]
    assert "90 % holds" in shell.works("promises", "--by", "week").out


def test_later_answers_are_calibrated_on_what_was_known_by_then(shell, queue, ask):
    bare = ask("--at", "9500", "--no-ledger")
    assert (bare["calibrated"], kept(shell), "promises" in bare) == ({}, [], False)
    for at in range(1000, 9000, 400):
        ask("--at", str(at))
    shell.works("simulate", *queue[:-2], "--baseline", "none", "--out", "ran.csv")
    shell.works("promises", "--trace", "ran.csv")
    told = ask("--at", "9500")
    assert 50 <= told["calibrated"]["end"]["due"] <= len(kept(shell))
    line = f"calibrated on {told['calibrated']['start']['due']} promises of starts"
    assert line in shell.works("predict", "jct", *queue, "--at", "9500").out
    # By 1200 too few were known, whatever came later.
    assert ask("--at", "1200")["calibrated"] == {}
    # Another policy, and other sizes, have a record of their own.
    assert ask("--at", "9500", "--policy", "ssf")["calibrated"] == {}
    assert ask("--at", "9500", "--sizes", "declared")["calibrated"] == {}
    # What is left out of the ledger goes by it all the same.
    count, left_out = len(kept(shell)), ask("--at", "9500", "--no-ledger")
    assert len(kept(shell)) == count
    assert left_out["jobs"] == ask("--at", "9500")["jobs"] != bare["jobs"]


def test_a_ledger_that_fails_spoils_no_answer(shell, queue, ask):
    shell.home.mkdir()
    (shell.home / "promises").write_text("no folder")
    answer = shell.works("predict", "jct", *queue, "--at", "6000", "--job", "060")
    assert answer.out.startswith("job 060 (")
    assert answer.err.count("not kept in the promise ledger: ") == 1
    (shell.home / "promises").unlink()
    (shell.home / "promises").mkdir()
    (shell.home / "promises" / "ledger.db").write_text("no database, but long enough to look at " * 100)
    told = ask("--at", "6000", "--job", "060")
    assert told["promises"] == 0
    line = shell.refuses("promises")
    assert "cannot be used as promise ledger (file is not a database)" in line


def test_an_empty_ledger(shell, queue):
    assert shell.works("promises").out.startswith("no promises in ")
    assert "records neither starts nor ends (start_time, end_time)" in shell.refuses("promises", *queue[:2])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--job", "060", "--timezone", "Mars/Phobos"), "timezone 'Mars/Phobos' is not known"),
        (("--plot", "p.svg"), "--plot: goes with one job; add --job ID, or --job new"),
        (("--every", "1"), "--every: goes with one job"),
        (("--job", "060", "--limit", "2"), "--limit: goes with all jobs; leave --job out"),
        (("--ask-gpus", "2"), "--ask-gpus: goes with one job"),
        (("--size-s", "2"), "--size-s: every job is in the trace with what it asked for"),
        (("--job", "060", "--ask-gpus", "2"), "--ask-gpus 2: how job 060 scales is not declared; enrich the trace"),
        (("--job", "000"), "job 000: has finished at 1970-01-01T00:01:00Z under fcfs"),
        (("--job", "060", "--plot", "p.pdf"), "--plot p.pdf: end the name in .svg, .html or .png"),
    ],
)
def test_one_line_for_each_mistake(shell, queue, words, told):
    assert told in shell.refuses("predict", "jct", *queue, "--at", "6000", *words)
    assert not (shell.home / "promises").exists()


def test_jobs_that_no_replay_meets(shell, queue, csv):
    rows = [*ROWS[:61], "wide,p,6050,10,8"]
    words = ("--trace", csv(*rows, name="wide.csv"), *queue[2:], "--at", "6060")
    assert "job wide: is not among the jobs that fcfs meets" in shell.refuses("predict", "jct", *words, "--job", "wide")


def test_plots_of_all_formats(shell, queue):
    for name, begins in (("p.svg", b"<svg"), ("p.html", b"<!DOCTYPE html>"), ("p.png", b"\x89PNG")):
        shell.works("predict", "jct", *queue, "--at", "6000", "--job", "060", "--plot", name)
        with open(name, "rb") as file:
            assert file.read().startswith(begins)


@pytest.fixture
def enriched(tmp_path):
    rows = [f"j{at:02},p,u,{60 * at},{300 + 60 * (at % 5)},{(1, 2, 4)[at % 3]}" for at in range(60)]
    return enriched_trace(tmp_path, rows, "nodes: [{count: 2, gpus: 4}]\n", "--facts", "speedups")


def test_other_widths_of_a_whole_job_go_by_declared_speedups(shell, enriched):
    words = ("predict", "jct", *enriched, "--policy", "fcfs", "--forecasts", "oracle", "--sizes", "declared")
    waits = [one for one in shell.json(*words, "--at", "3000")["jobs"] if one["started"] is None and one["gpus"] == 4]
    job = waits[0]["job_id"]
    told = shell.json(*words, "--at", "3000", "--job", job, "--ask-gpus", "2,4,1")
    four, two, one = told["answers"]
    assert [four["gpus"], two["gpus"], one["gpus"]] == [4, 2, 1]
    ran = [answer["point_h"] - answer["start"]["point_h"] if "start" in answer else None for answer in told["answers"]]
    model = pl.read_parquet(enriched[1]).filter(job_id=job)["model"][0]
    speedup = pl.read_csv(enriched[1].parent / "speedups.csv").filter(model=model, gpu_type="v100")
    at = dict(speedup.select("gpus", "speedup").iter_rows())
    assert ran[0] is not None
    for answer, took in zip((two, one), ran[1:], strict=True):
        if took is not None:
            assert took == pytest.approx(ran[0] * at[4] / at[answer["gpus"]])
    assert "; with 2 GPUs instead of 4: ends by" in told["text"].replace("ends at", "ends by")
    promises = [one for one in kept(shell) if one.job_id == job and one.kind == "end" and one.at_s == 3000.0]
    assert [(one.gpus, bool(one.what_if)) for one in promises[-3:]] == [(4, False), (2, True), (1, True)]
    drawn = ("predict", "jct", *enriched, "--policy", "fcfs", "--forecasts", "oracle", "--futures", "20")
    told = shell.json(*drawn, "--at", "3000", "--job", job, "--ask-gpus", "2")
    assert len(told["answers"]) == 2
    running = next(one for one in shell.json(*drawn, "--at", "3000")["jobs"] if one["state"] == "running")
    line = shell.refuses(*drawn, "--at", "3000", "--job", running["job_id"], "--ask-gpus", "3")
    assert "GPUs already, which fcfs does not change; ask about one that waits" in line


def test_how_long_a_job_really_takes_at_another_width_is_not_read(shell, enriched):
    """Its own run time in the trace changes nothing, though at that width it would have started before."""
    words = ("--policy", "fcfs", "--forecasts", "conservative", "--futures", "10", "--at", "3000")
    trace = pl.read_parquet(enriched[1])
    plain = ("predict", "jct", *enriched, *words)
    job = next(one["job_id"] for one in shell.json(*plain)["jobs"] if one["started"] is None and one["gpus"] == 4)
    told = shell.json(*plain, "--job", job, "--ask-gpus", "1")
    longer = pl.when(pl.col("job_id") == job).then(pl.col("duration") * 50).otherwise("duration").alias("duration")
    trace.with_columns(longer).write_parquet(enriched[1])
    assert shell.json(*plain, "--job", job, "--ask-gpus", "1")["answers"] == told["answers"]


def test_starts_are_pulled_towards_a_second_forecast_and_ends_move_along():
    starts_s, runs_s = 1000.0 + np.array([1000.0, 10.0, 100.0]), np.array([5.0, 6.0, 7.0])
    own = Answer(1, 1010.0, 1020.0, starts_s, starts_s + runs_s)
    # Mid-ranks of three futures lie at shares 1/6, 1/2, 5/6.
    second_s = 1000.0 + np.array([1000.0, 10_000.0, 100_000.0])
    both = combined(own, (1 / 6, 0.5, 5 / 6), second_s, 0.5, 1000.0)
    # Geometric means: of 1,000 and 100,000, of 10 and 1,000, of 100 and 10,000.
    assert both.starts_s - 1000.0 == pytest.approx([10_000.0, 100.0, 1000.0])
    assert both.ends_s - both.starts_s == pytest.approx(runs_s)
    assert combined(own, (0.25, 0.75), second_s[:2], 0.0, 1000.0).starts_s == pytest.approx(starts_s)
    # Beyond its outermost quantiles the second forecast stays there.
    assert combined(own, (0.4, 0.6), second_s[:2], 1.0, 1000.0).starts_s[1] == pytest.approx(2000.0)


def test_queue_wait_and_futures_are_combined_by_their_past_errors(shell, queue, tmp_path):
    at, ran = "6000", tmp_path / "ran.csv"
    shell.json("simulate", *queue[:6], "--forecasts", "oracle", "--out", ran)
    asked = ("predict", "jct", "--trace", ran, *queue[2:], "--timezone", "UTC", "--begin", "recorded")
    alone = shell.json(*asked, "--at", at)
    assert "starts_from" not in alone
    shell.json("train", "queue-wait", "--trace", ran, "--until", at)
    both = shell.json(*asked, "--at", at)
    assert both["starts_from"] == {"futures": 0.5, "queue-wait:1": 0.5}
    first, second = ({one["job_id"]: one["answers"][0] for one in told["jobs"]} for told in (alone, both))
    waiting = [job for job, one in first.items() if "start" in one]
    assert waiting
    waits = shell.json("predict", "queue-wait", "--trace", ran, "--at", at)
    for job in waiting:
        apart = sorted([first[job]["start"]["p50_h"] * 3600, waits["jobs"][job]["wait_s"]])
        assert apart[0] * 0.9 <= second[job]["start"]["p50_h"] * 3600 <= apart[1] * 1.1
        assert second[job]["p50_h"] >= second[job]["start"]["p50_h"]
    # Three forecasts of each start are kept: of either, and of both; and what `predict queue-wait` told.
    versions = [one.version for one in kept(shell) if one.kind == "start" and one.at_s == float(at)]
    made = {version.split(" ", 1)[-1]: versions.count(version) / len(waiting) for version in set(versions)}
    plain = jobcast.__version__
    assert made.pop(plain) == made.pop(f"{plain} + queue-wait:1") == made.pop(f"{plain} alone") == 1
    assert made == {"queue-wait:1": 1, "alone": 1}  # what `predict queue-wait` told, and what was combined
    assert waits["promises"] == len(waiting)
    # Once it is known what came the weights follow the errors, of either.
    by_version = shell.json("promises", "--trace", ran, "--by", "version")["groups"]
    assert {one["group"] for one in by_version if one["kind"] == "start"} == set(versions)
    total = next(one for one in shell.json("promises", "--trace", ran)["groups"] if one["kind"] == "start")
    # Futures before a version was there, both together, queue-wait asked by itself.
    assert total["made"] == 3 * len(waiting)
    one = ("--job", waiting[-1], "--at", at, "--every", "0.1", "--no-ledger")
    again = [row for row in shell.json(*asked, *one)["again"] if row.get("state") == "queued"]
    assert again
    for row in again:
        # As if it had been asked then.
        then = shell.json(*asked, "--job", waiting[-1], "--at", row["at"], "--no-ledger")
        assert row["starts_from"] == then["starts_from"]
        assert row["start"] == then["answers"][0]["start"]
    later = shell.json(*asked, "--at", "9000")["starts_from"]
    assert sum(later.values()) == pytest.approx(1.0)
    assert later["futures"] != 0.5
    assert shell.json(*asked, "--at", at)["starts_from"]["futures"] == 0.5


def test_a_damaged_queue_wait_is_left_out_with_a_note(shell, queue, tmp_path):
    ran = tmp_path / "ran.csv"
    shell.json("simulate", *queue[:6], "--forecasts", "oracle", "--out", ran)
    shell.json("train", "queue-wait", "--trace", ran, "--until", "6000")
    for file in shell.home.rglob("hazard.txt"):
        file.write_text("damaged")
    for file in shell.home.rglob("metadata.json"):
        file.write_text("{")
    asked = ("predict", "jct", "--trace", ran, *queue[2:], "--at", "6000", "--begin", "recorded")
    answer = shell(*asked, "--no-ledger")
    assert answer.code == 0
    assert "starts are told by futures alone" in answer.err
    assert not kept(shell)


def test_nobody_needs_to_have_trained_anything(shell, queue):
    """Futures draw from jobs that ended; of the conservative source, which takes run times' place, no point is told."""
    answer = shell("predict", "jct", *queue[:6], "--futures", "20", "--at", "6000", "--json", "-")
    assert answer.code == 0
    assert "no version of job-duration is registered" in answer.err
    asked = json.loads(answer.out)
    assert asked["forecasts"] == "conservative"
    assert all("point" not in one["answers"][0] and one["answers"][0]["p95_h"] > 0 for one in asked["jobs"])
    # Once, however often it is asked again.
    job = asked["jobs"][0]["job_id"]
    again = shell("predict", "jct", *queue[:6], "--futures", "5", "--at", "6000", "--job", job, "--every", "0.02")
    assert again.out.count("\nat 1970") > 1
    assert again.err.count("no version of job-duration") == 1
    # Who names the registry wants its versions.
    line = shell.refuses("predict", "jct", *queue[:6], "--at", "6000", "--forecasts", "registry")
    assert "no model 'job-duration'" in line
