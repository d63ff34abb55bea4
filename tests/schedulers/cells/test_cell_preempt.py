"""Spare jobs that may be stopped, on servers: nobody ends later than in private cells, and by hand."""

from dataclasses import replace
from random import Random as Draws

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobcast.schedulers.registry import make_policy
from jobcast.simulator.engine import replay
from jobcast.simulator.forecast_sources import Oracle, Random

HORIZONS_MIN = (4.0, 15.0)
MINUTE_S = 60.0
SEEDS = st.integers(0, 10**6)


def stoppable(made, share, seed):
    draws = Draws(seed)
    return replace(made, jobs=[replace(job, preemptible=draws.random() < share) for job in made.jobs])


def log_of(made, name, source, **settings):
    return replay(made, make_policy(name, source, settings, cells={}), source)


@given(seed=SEEDS, share=st.sampled_from((0.2, 0.5, 1.0)), apart=st.sampled_from(("cell", "buddy", "none")))
def test_with_exact_forecasts_and_free_resuming_nobody_ends_later(drawn, seed, share, apart):
    made = stoppable(drawn(seed), share, seed)
    log = log_of(made, "sia_preempt", Oracle(made, HORIZONS_MIN), apart=apart)
    assert (log.end_s <= log_of(made, "fcfs", None).end_s + 1e-6).all()


@given(seed=SEEDS, follow=st.booleans(), resume_s=st.sampled_from((0.0, 30.0)))
def test_wrong_forecasts_and_odd_widths_end_all_jobs(drawn, seed, follow, resume_s):
    """The engine refuses cells that are taken, and to stop a job that does not allow it."""
    made = replace(stoppable(drawn(seed, widths=(1, 2, 3, 5, 8, 12, 16)), 0.5, seed), resume_s=resume_s)
    source = Random(made, seed, horizons_min=HORIZONS_MIN)
    log = log_of(made, "sia_preempt", source, follow=follow, resume_s=resume_s)
    assert (log.end_s - log.start_s + 1e-6 >= log.duration_s).all()


@given(seed=SEEDS)
@settings(max_examples=30)
def test_without_jobs_that_may_be_stopped_it_is_sia(drawn, seed):
    made = drawn(seed)
    ours = log_of(made, "sia_preempt", Oracle(made, HORIZONS_MIN))
    assert ours.start_s.tolist() == log_of(made, "sia", Oracle(made, HORIZONS_MIN)).start_s.tolist()


def minutes(made, names=(), name="sia_preempt"):
    made = replace(made, jobs=[replace(job, preemptible=job.job_id in names) for job in made.jobs])
    log = log_of(made, name, Oracle(made, HORIZONS_MIN))
    rows = zip(log.start_s / MINUTE_S, log.end_s / MINUTE_S, log.preemptions, strict=True)
    return {job.job_id: tuple(map(int, row)) for job, row in zip(made.jobs, rows, strict=True)}


@pytest.mark.parametrize(("names", "a"), [((), (60, 90, 0)), (("a",), (1, 41, 1))])
def test_a_job_that_may_be_stopped_gives_reserved_cells_back(on_servers, names, a):
    # q's server is needed at 4; a, 30 minutes long, borrows it at 1 only if it can be stopped
    rows = [("x", "p", 0, 60, 8), ("a", "p", 1, 30, 8), ("b", "q", 4, 10, 8)]
    assert minutes(on_servers(rows, {"p": 8, "q": 8}), names) == {"x": (0, 60, 0), "a": a, "b": (4, 14, 0)}


def test_a_job_stopped_after_its_turn_goes_on_in_its_place(on_servers):
    # a's turn comes at 10, while it runs on q's server, and y's beside it; b stops it at 12, and it moves next to y
    rows = [("x", "p", 0, 10, 8), ("a", "p", 1, 30, 4), ("y", "p", 2, 500, 4), ("b", "q", 12, 50, 8)]
    found = minutes(on_servers(rows, {"p": 8, "q": 8}), ("a",))
    assert (found["a"], found["y"][0], found["b"][0]) == ((1, 31, 1), 10, 12)


@pytest.mark.parametrize("name", ["sia", "sia_preempt"])
def test_turns_are_taken_as_of_then_where_no_job_was_left(on_servers, name):
    # a runs early from 4 to 5, v until 10: no job is left then, nobody is asked, and z's turn is at 11 all the same
    rows = [
        ("x", "p", 0, 10, 4), ("v", "p", 0, 10, 4), ("a", "p", 4, 1, 8), ("z", "p", 11, 30, 8), ("q", "q", 200, 1, 8),
    ]  # fmt: skip
    found = minutes(on_servers(rows, {"p": 8, "q": 8}), name=name)
    assert (found["a"], found["z"]) == ((4, 5, 0), (11, 41, 0))
