"""`jobcast choose` and `jobcast worth` from the command line: what they tell, and what they refuse."""

import html
import json
import re
import shlex
from pathlib import Path

import polars as pl
import pytest


@pytest.fixture
def trial(run):
    """The example run, from where training ended."""
    return ("--trace", run.trace, "--pools", run.pools, "--from", run.trained_until, "--jobs", 1)


@pytest.fixture
def words(trial):
    return ("choose", *trial, "--windows", 2)


def test_a_choice_is_told_with_its_reasons(shell, words):
    found = shell.json(*words, "--policies", "mmfs,sia,easy", "--forecasts", "registry,oracle")
    labels = {one["label"]: one for one in found["candidates"]}
    assert set(labels) == {"fcfs", "mmfs", "sia registry", "sia oracle"}
    assert labels["sia oracle"]["why"] == "reads the future, which cannot be had"
    assert found["choice"]["label"] in {"fcfs", "mmfs", "sia registry"}
    assert [one["policy"] for one in found["skipped"]] == ["easy"]
    assert len(found["windows"]) == 2
    assert found["windows"][0]["used"] == "fcfs"
    told = shell.works(*words, "--policies", "mmfs", "--slowed", "0")
    assert "stay with fcfs" in told.out or "run mmfs" in told.out
    assert told.err.count("quotas: pools file") == 1


def test_who_starves_a_few_for_days_is_not_run_and_settings_are_told_apart(shell, csv):
    """Each day a job of both GPUs, overtaken by one of 20 h and 110 of a second: most end sooner, people wait more."""
    rows = []
    for day in range(4):
        at = 86400 * day
        rows += [f"j{day},p,{at}.0,60,1", f"w{day},p,{at + 1}.0,10,2", f"l{day},p,{at + 1.5},72000,1"]
        rows += [f"t{day}-{one},p,{at + 2}.0,1,1" for one in range(110)]
    csv(*rows)
    words = ("--trace", "jobs.csv", "--gpus", 2, "--policies", "fcfs", "--set", "backfill=true", "--windows", 2)
    found = shell.json("choose", *words)
    assert (found["choice"]["label"], found["best_in_hindsight"]) == ("fcfs", "fcfs")
    other = found["candidates"][1]
    assert (other["label"], other["forecasts"], other["settings"]) == (
        "fcfs, backfill=true", None, {"backfill": "true"}
    )  # fmt: skip
    assert other["low"] > 1.0
    assert other["slowed_pct"] < 1.0
    assert other["saved_h_week"] < 0.0
    assert other["why"].startswith("people wait longer in all: ")
    told = [(row["forecasts"], row.get("settings")) for row in shell.json("backtest", *words[:-2])["rows"]]
    assert told == [(None, None), (None, {"backfill": "true"})]


def test_what_is_too_short_to_learn_from_compares_those_that_need_no_forecasts(shell, run, tmp_path):
    """It says what is not trained, and no longer to add the option that was given."""
    shell.home = tmp_path / "home"
    words = ("choose", "--trace", run.trace, "--pools", run.pools, "--from", "2024-01-01T04:00:00Z", "--jobs", 1)
    done = shell.works(*words, "--windows", 2, "--policies", "mmfs,sia", "--train")
    for told in ("job-duration is not trained", "bring a longer trace"):
        assert told in done.err
    assert "mmfs" in done.out
    for untold, where in (("sia", done.out), ("--train", done.err)):
        assert untold not in where


def test_who_is_there_already_is_named_and_not_trained_anew(shell, words, run):
    told = shell.works(*words, "--policies", "mmfs", "--train").err
    until = run.trained_until[:16].replace("T", " ")
    assert f"new-load is not trained anew: its champion learnt from {run.trace.stem} until {until} UTC" in told


def test_what_cannot_be_chosen_from_is_refused(shell, words):
    assert "unknown policy siaa; did you mean sia" in shell.refuses(*words, "--policies", "siaa")
    assert "unknown policy nobody" in shell.refuses(*words, "--now", "nobody")
    assert "--slowed" in shell.refuses(*words, "--slowed", "-1")
    assert "timezone 'Mars/Base' is not known" in shell.refuses(*words, "--timezone", "Mars/Base")


def test_a_job_that_fits_nowhere_is_told_in_a_line(shell, csv):
    """No row ran, of which it made a table: an error of ours."""
    rows = [f"{row},p,{3600 * row},60,{9 if row in (0, 29) else 1}" for row in range(30)]
    told = shell.refuses("choose", "--trace", csv(*rows), "--gpus", 4, "--policies", "mmfs", "--windows", 2)
    assert "asks for 9 GPUs, its pool all has 4 (1 such jobs); raise the quota or pass --drop-too-wide" in told


def test_jobs_that_end_as_they_come_by_the_clock_of_floats_are_compared(shell, csv):
    """End - submission is 0 of them, by which no ratio is told: ours was an unexpected error."""
    at_s = 1_700_000_000
    words = ("--trace", csv(*(f"{job},p,{at_s + job},1e-9,1" for job in range(8))), "--gpus", 1)
    how = ("--policies", "ssf", "--forecasts", "oracle")
    (_, ours) = shell.json("choose", *words, *how, "--windows", 2)["candidates"]
    assert (ours["speedup"], ours["slowed_pct"]) == (1.0, 0.0)
    (gain,) = shell.json("backtest", *words, *how)["gains"]
    assert gain["ratio"] == 1.0
    assert shell.json("simulate", *words, "--policy", "mmfs")["speedup_mean"] == 1.0


def test_what_is_in_use_has_settings_of_its_own_and_must_run(shell, csv, words):
    """`mmfs` knows no depth of a backfill, `easy` does; without time limits `easy` cannot be what is in use."""
    rows = [f"{row},p,{1000.0 * row},900,1,1200" for row in range(40)]
    csv(*rows, header="job_id,pool,submit_time,duration,gpus,time_limit_s")
    limited = ("choose", "--trace", "jobs.csv", "--gpus", 2, "--windows", 2, "--policies", "mmfs", "--now", "easy")
    found = shell.json(*limited, "--set", "bf_max_job_test=1")
    assert [one["label"] for one in found["candidates"]] == ["mmfs", "easy", "easy, bf_max_job_test=1"]
    assert "no policy of mmfs knows it" in shell.refuses(*limited, "--set", "backfill=true")
    assert shell.refuses(*words, "--policies", "mmfs", "--now", "easy").startswith(
        "--now easy: policy easy needs time limits"
    )


def test_what_ten_minutes_bring_a_week_is_told_as_that_and_notes_are_on_the_clock_that_is_asked_for(shell, csv):
    rows = [f"{row},{'other' if row == 29 else 'p'},{1.7e9 + 20 * row},90,1" for row in range(30)]
    Path("pools.csv").write_text("pool,gpus\np,2\n", encoding="utf-8")
    words = ("choose", "--trace", csv(*rows), "--pools", "pools.csv", "--pools-only", "--windows", 2)
    told = shell.works(*words, "--policies", "mmfs", "--html", "page.html", "--timezone", "Asia/Tokyo").err
    page = Path("page.html").read_text(encoding="utf-8")
    for text in (told, html.unescape(page)):
        assert "hours a week are those of 9.68 min of jobs, told as of a week" in text
        assert "(window from 2023-11-15T07:18:10+09:00)" in text
        assert not re.search(r"window from [^)]*Z", text)
    assert shell.json(*words, "--policies", "mmfs")["days"] == pytest.approx(581 / 86400)


def test_worth_of_forecasts(shell, trial, run):
    words = ("worth", *trial, "--seeds", 1)
    shown = shell.works(*words, "--policies", "ssf", "--price", "2", "--json", "figures.json").out
    assert "EUR" in shown
    result = json.loads(Path("figures.json").read_text())
    gpus = sum(int(line.split(",")[1]) for line in Path(trial[3]).read_text().splitlines()[1:])
    assert result["cluster_eur_week"] == gpus * 7 * 24 * 2
    found = result["policies"]["ssf"]
    assert [one["part"] for one in found["parts"]] == ["durations"]
    only = found["parts"][0]
    figure = "saved_gpu_h_week"
    assert only["worth"] == pytest.approx(found["now"][figure] - found["none"][figure])
    assert only["headroom"] == pytest.approx(found["exact"][figure] - found["now"][figure])
    told = shell.works(*words, "--policies", "ssf", "--price", "2")
    assert f"{gpus} GPUs all week for" in told.out
    assert told.err.count("quotas: pools file") == 1
    assert "--policies: nothing named" in shell.refuses(*words, "--policies", ",")
    hours = ("--forecasts", "random", "--policies", "ssf", "--until", f"{run.trained_until[:10]}T20:00")
    assert "too few to tell hours a week" in shell.refuses(*words, *hours)


def test_where_exact_forecasts_gain_nothing_none_is_named_to_improve(shell, run):
    """One pool lends to nobody."""
    words = ("worth", "--trace", run.trace, "--gpus", 40, "--from", run.trained_until, "--jobs", 1, "--seeds", 1)
    told = shell.works(*words, "--policies", "sia").out
    assert "no forecast is worth improving" in told
    assert "first" not in told


@pytest.mark.slow
def test_worth_goes_by_settings_that_are_given(shell, trial):
    """A slack of 1 keeps all back: nothing that is forecast brings anything, which without the setting it does."""
    words = ("worth", *trial, "--seeds", 1, "--policies", "sia")
    plain, kept = (shell.json(*more)["policies"]["sia"] for more in (words, (*words, "--set", "slack=1")))
    assert plain["exact"]["saved_gpu_h_week"] != kept["exact"]["saved_gpu_h_week"]
    settings = ("simulate", *trial[:6], "--policy", "sia", "--forecasts", "oracle", "--set", "slack=1")
    assert kept["exact"]["slowed_pct"] == shell.json(*settings)["slowed_pct"]


def test_times_under_other_laws_are_not_compared(shell, words):
    found = shell.json(*words, "--policies", "mmfs,srsf", "--forecasts", "oracle")
    why = {one["label"]: one["why"] for one in found["candidates"]}
    assert all("another law (speedup)" in why[label] for label in ("elastic_fifo", "srsf oracle"))
    assert found["choice"]["label"] in {"fcfs", "mmfs"}


@pytest.mark.usefixtures("store")
def test_forecasts_of_another_cluster_are_told(shell, run, trial, tmp_path):
    """On pools of other names the registry answers all the same, of what it never saw."""
    pl.read_parquet(run.trace).with_columns(pool=pl.lit("elsewhere")).write_parquet("other.parquet")
    Path("other.csv").write_text("pool,gpus\nelsewhere,40\n", encoding="utf-8")
    other = ("--trace", "other.parquet", "--pools", "other.csv", *trial[4:])
    doubt = f"new-load 1 was trained on another cluster ({run.trace.stem})"
    page = tmp_path / "choice.html"
    sia = (*other, "--policies", "sia")
    told = shell.works("choose", *sia, "--forecasts", "registry", "--windows", 2, "--html", page).err
    assert told.count(doubt) == 1
    assert doubt in page.read_text(encoding="utf-8")
    assert shell.works("worth", *sia, "--seeds", 1).err.count(doubt) == 1
    shell.works("backtest", *sia, "--forecasts", "registry", "--out", tmp_path / "out")
    assert doubt in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_the_command_of_the_page_replays_the_windows_that_it_tells_of(shell, run, trial, tmp_path):
    """What was trained before them is refused of earlier jobs."""
    page = tmp_path / "choice.html"
    shell.works("choose", *trial, "--windows", 2, "--policies", "sia", "--forecasts", "registry", "--html", page)
    text = html.unescape(page.read_text(encoding="utf-8"))
    told = re.search(r'"(jobcast simulate [^"]* --policy sia[^"]*)"', text)[1]
    assert shell.json(*shlex.split(told)[1:])["inputs"]["window"]["from"] == run.trained_until


@pytest.mark.slow
def test_the_page_recommends_what_the_line_does(shell, words, tmp_path):
    page = tmp_path / "choice.html"
    asked = ("--policies", "mmfs,sia,easy", "--forecasts", "registry", "--html", page, "--timezone", "Europe/Berlin")
    found = shell.json(*words, *asked)
    text = page.read_text(encoding="utf-8")
    verb = f"Run {found['choice']['policy']}" if found["switch"] else f"Stay with {found['now']}"
    for told in (verb, "Gain against risk", "Europe/Berlin", "Policies that cannot run here", "quotas: pools file"):
        assert told in text, told
