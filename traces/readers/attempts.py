"""Jobs that ran several times: when they first started and last ended, and how long they ran in all."""

from dataclasses import dataclass

import polars as pl

from jobcast.traces.check import Place
from jobcast.traces.times import Clock, read_times

MICROSECONDS = 1e6


@dataclass(frozen=True, slots=True)
class Runs:
    """Attempts, by job and in order: the job's index, start and end (wall-clock timestamps, or text) of each."""

    job: pl.Series
    start: pl.Series
    end: pl.Series


@dataclass(frozen=True, slots=True)
class RunTimes:
    """What the attempts amount to.

    Attributes
    ----------
    jobs : one row a job: submit_time, start_time, end_time (UTC), duration (seconds over all attempts), attempts,
        and three flags: `running` (the last attempt has no end), `untimed` (another start or end is missing),
        `backwards` (an attempt ends before it starts)
    notes : what was decided about the times
    """

    jobs: pl.DataFrame
    notes: tuple[str, ...]


def run_times(submit: pl.Series, runs: Runs, place: Place, clock: Clock) -> RunTimes:
    """Bring the times of jobs and their attempts to UTC, and sum up the attempts of each job.

    A wall-clock time that occurs twice is the earlier instant, unless that lies before the one that precedes it in
    the life of its job (submission, start, end, next start ...): then it is the later.

    Parameters
    ----------
    submit : one a job
    runs : attempts; those of a job follow one another
    place : where jobs stand, for errors
    clock : how to read times without an offset

    Raises
    ------
    TraceError
        A value is no time; the line names its job.
    """
    at_job = Place(place.path, lambda index: place.row(int(runs.job[index])), place.columns)
    columns = {"submit_time": (submit, place), "start_time": (runs.start, at_job), "end_time": (runs.end, at_job)}
    read = {name: read_times(values.alias(name), where, clock) for name, (values, where) in columns.items()}
    notes = [note for _, said in read.values() for note in said]
    instants = {name: times for name, (times, _) in read.items()}
    later = {name: _later(values, instants[name], clock) for name, (values, _) in columns.items()}
    moved = _in_order_of_life(instants, later, runs.job)
    if moved:
        notes.append(f"{', '.join(instants)}: {moved} of those read as the later instant, as the job's own order tells")
    return RunTimes(_summed(instants, runs.job), tuple(notes))


def _later(values: pl.Series, earlier: pl.Series, clock: Clock) -> pl.Series:
    """The later instant of each time that occurs twice; null elsewhere."""
    nothing = pl.Series(earlier.name, [None], dtype=earlier.dtype).new_from_index(0, len(earlier))
    if clock.timezone is None or values.dtype != pl.Datetime("us"):
        return nothing
    last = values.dt.replace_time_zone(clock.timezone, ambiguous="latest", non_existent="null")
    last = last.dt.convert_time_zone("UTC")
    return last.set((last == earlier).fill_null(True), None).alias(earlier.name)


def _in_order_of_life(instants: dict[str, pl.Series], later: dict[str, pl.Series], job: pl.Series) -> int:
    """Change to the later instant where the earlier one precedes what came before; how many were changed."""
    at_job = (later["start_time"].is_not_null() | later["end_time"].is_not_null()).arg_true()
    unsure = set(job.gather(at_job).to_list())
    if not unsure:
        return 0
    changed: dict[str, list[int]] = {"start_time": [], "end_time": []}
    lives = {number: instants["submit_time"][number] for number in unsure}
    for row in job.is_in(list(unsure)).arg_true().to_list():
        for name, rows in changed.items():
            now, other, before = instants[name][row], later[name][row], lives[job[row]]
            if now is not None and other is not None and before is not None and now < before:
                rows.append(row)
                now = other
            lives[job[row]] = now if now is not None else before
    for name, rows in changed.items():
        if rows:
            instants[name] = instants[name].scatter(rows, later[name].gather(rows))
    return sum(len(rows) for rows in changed.values())


def _summed(instants: dict[str, pl.Series], job: pl.Series) -> pl.DataFrame:
    start, end = pl.col("start_time"), pl.col("end_time")
    runs = pl.DataFrame({"job": job, "start_time": instants["start_time"], "end_time": instants["end_time"]})
    summed = runs.group_by("job", maintain_order=True).agg(
        start.min(),
        end.max(),
        ((end - start).dt.total_microseconds().sum() / MICROSECONDS).alias("duration"),
        pl.len().cast(pl.Int64).alias("attempts"),
        (end.last().is_null() & start.last().is_not_null()).alias("running"),
        (start.is_null() | end.is_null()).any().alias("untimed"),
        (end < start).any().alias("backwards"),
    )
    jobs = pl.DataFrame({"submit_time": instants["submit_time"]}).with_row_index("job")
    return (
        jobs.with_columns(pl.col("job").cast(pl.Int64))
        .join(summed, on="job", how="left", maintain_order="left")
        .with_columns(pl.col("attempts").fill_null(0))
        .drop("job")
    )
