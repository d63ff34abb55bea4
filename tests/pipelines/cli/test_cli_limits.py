"""Rows of other decades and limits of memory, typed into every command that reads a trace."""

import importlib

import click
import polars as pl
import pytest

from jobcast.pipelines.cli.main import COMMANDS
from jobcast.pipelines.report import trace_page
from jobcast.traces.readers import read_trace

LATER = ("--until", "2024-01-05")


@pytest.fixture
def odd(run, tmp_path):
    """The week of the finished run with a row of 1970."""
    jobs = read_trace(run.trace).jobs
    epoch = pl.lit(0).cast(jobs.schema["submit_time"])
    row = jobs.head(1).with_columns(epoch.alias("submit_time"), pl.lit("odd").alias("job_id"))
    path = tmp_path / "odd.parquet"
    pl.concat([jobs, row]).write_parquet(path)
    return path


def commands():
    found = {name: importlib.import_module(f"jobcast.pipelines.cli.{name}").command for name in COMMANDS}
    groups = {name: one for name, one in found.items() if isinstance(one, click.Group)}
    below = {f"{name} {sub}": one for name, group in groups.items() for sub, one in group.commands.items()}
    return {name: one for name, one in (found | below).items() if name not in groups}


def test_every_command_that_reads_a_trace_takes_both_options():
    reads = {"trace convert", "trace describe", "trace generate", "stage"}
    for name, one in commands().items():
        if name == "verify":  # which hands its trace on to the command that it runs again
            continue
        options = {option for param in one.params for option in param.opts}
        if name in reads or "--trace" in options:
            assert {"--drop-outliers", "--memory"} <= options, name


def test_the_row_is_refused_and_dropped_the_same_everywhere(shell, store, run, odd):
    commands = {
        "describe": ("trace", "describe", odd),
        "convert": ("trace", "convert", "auto", odd, "--out", "kept.parquet"),
        "simulate": ("simulate", "--trace", odd, "--policy", "fcfs", "--pools", run.pools),
        "train": ("train", "new-load", "--trace", odd, *LATER, "--min-jobs", 50, "--algorithm", "sliding-max"),
        "evaluate": ("evaluate", "new-load", "--trace", odd, "--from", run.trained_until),
        "predict": ("predict", "new-load", "--trace", odd, "--at", run.trained_until),
    }
    for words in commands.values():
        line = shell.refuses(*words)
        assert "column submit_time: lies 54 years from all others (2024-01-01 to 2024-01-07), got 1970-01-01" in line
        assert line.endswith("correct the rows, or leave them out with --drop-outliers")
        answer = shell.works(*words, "--drop-outliers")
        (told,) = (text for text in (answer.out + answer.err).splitlines() if "time far from all others" in text)
        assert "1" in told
    kept = read_trace("kept.parquet")
    assert kept.jobs.equals(read_trace(run.trace).jobs)
    told = shell.json("simulate", "--trace", odd, "--policy", "fcfs", "--pools", run.pools, "--drop-outliers")
    assert told["jobs"] == len(kept)
    assert "lies 54 years" in shell.refuses(*commands["describe"])  # the option is the command's, not the process's


def test_dropped_rows_stand_in_the_figures(shell, store, odd):
    described = shell.json("trace", "describe", odd, "--drop-outliers")
    assert described["dropped"] == {"time far from all others": 1}
    assert described["total"]["jobs"] + 1 == described["source"]["rows"]
    words = ("train", "new-load", "--trace", odd, *LATER, "--min-jobs", 50, "--algorithm", "sliding-max")
    assert shell.json(*words, "--drop-outliers")["dropped"] == {"time far from all others": 1}


def test_what_needs_more_memory_is_refused_before_it_is_asked_for(shell, store, run, monkeypatch):
    trace = ("--trace", run.trace)
    scored = ("--from", run.trained_until, "--until", "2024-01-07")
    asked = {
        "features of ": ("train", "will-jobs-arrive", *trace, *LATER, "--min-jobs", 50),
        "windows of 5min before each of ": ("train", "new-load", *trace, *LATER, "--min-jobs", 50),
        " pools at ": ("evaluate", "new-load", *trace, *scored),
        "7 days of 3 pools": ("trace", "describe", run.trace, "--pools", run.pools),
    }
    for what, words in asked.items():
        limit = "9" if "days" in what else "50"
        line = shell.refuses(*words, "--memory", f"{limit}KB")
        assert what in line
        assert f"of memory, the limit is {limit}.0 KB; " in line
        assert "or allow more with --memory" in line
    monkeypatch.setenv("JOBCAST_MEMORY", "9KB")
    assert "the limit is 9.0 KB" in shell.refuses(*asked["7 days of 3 pools"])
    shell.works(*asked["7 days of 3 pools"], "--memory", "4GB")
    line = shell.refuses("trace", "describe", run.trace, "--memory", "lots")
    assert "memory 'lots': write a size such as 4GB" in line


@pytest.mark.parametrize(
    ("said", "shown"),
    [((), "memory ran out; "), (("Unable to allocate 17.1 GiB",), "memory ran out (Unable to allocate 17.1 GiB); ")],
)
def test_memory_that_runs_out_is_one_line(shell, run, monkeypatch, said, shown):
    def fails(*words):
        raise MemoryError(*said)

    monkeypatch.setattr(trace_page, "description_table", fails)
    line = shell.refuses("trace", "describe", run.trace)
    assert line == f"{shown}narrow the window with --from and --until, or free some memory"
