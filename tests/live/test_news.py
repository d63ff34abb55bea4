"""What a look at a Slurm tells that was not known."""

from dataclasses import replace
from math import inf, nan

import pytest

from jobcast.domain.jobs import Pool
from jobcast.live.event_log import CHANGE, END, GPUS, LOOK, QUOTA, REQUEUE, START, SUBMIT
from jobcast.live.news import REAL, Clock, news
from jobcast.live.recorded_jobs import ClusterRecord
from tests.live.imagined_slurm import ImaginedSlurm

POOLS = [Pool("a", 16), Pool("b", 16)]


class Watched:
    """A Slurm, and what is known of it."""

    def __init__(self, clock=REAL):
        self.slurm, self.record, self.clock = ImaginedSlurm(), ClusterRecord(), clock

    def submit(self, *names, gpus=8, **more):
        for name in names:
            self.slurm.submit(name, "b", gpus, **more)

    def look(self, after_s=5.0):
        self.slurm.pass_time(after_s)
        found = news(self.slurm.look(self.slurm.now_s), self.record, POOLS, "account", self.clock)
        self.record.take(found)
        return [(one.kind, one.job_id) for one in found if one.kind != LOOK]


@pytest.fixture
def watched():
    one = Watched()
    one.look()
    return one


def test_quotas_and_gpus_are_told_once_and_when_they_change():
    watched = Watched()
    assert watched.look() == [(QUOTA, "a"), (QUOTA, "b"), (GPUS, "")]
    assert watched.look() == []
    watched.slurm.up["n3"] = 0
    assert watched.look() == [(GPUS, "")]
    assert (watched.record.quotas, watched.record.gpus) == ({"a": 16, "b": 16}, 24)


def test_a_job_from_submission_to_end(watched):
    watched.submit("b0", "b1", "b2")
    assert watched.look() == [(SUBMIT, "b0"), (START, "b0"), (SUBMIT, "b1"), (START, "b1"), (SUBMIT, "b2")]
    watched.slurm.end("b0")
    assert watched.look() == [(END, "b0"), (START, "b2")]
    assert watched.look() == []
    jobs = watched.record.recorded()
    assert jobs.duration_s.tolist()[0] == 5.0
    assert jobs.known_s.tolist()[0] == watched.slurm.now_s - 5.0


def test_what_changes_is_told(watched):
    watched.submit("b0", "b1", "b2")
    watched.look()
    watched.slurm.jobs["b2"] = replace(watched.slurm.jobs["b2"], gpus=4, reason="JobHeldUser")
    assert watched.look() == [(CHANGE, "b2")]
    assert (watched.record.jobs["b2"].facts["gpus"], watched.record.jobs["b2"].held) == (4, True)


def test_a_time_limit_that_is_lifted_binds_no_more(watched):
    """scontrol update TimeLimit=UNLIMITED, of a job that runs; a limit may be set again."""
    watched.slurm.submit("b0", "b", 8, limit_s=600.0)
    watched.look()
    for limit_s in (inf, 1200.0):
        watched.slurm.jobs["b0"] = replace(watched.slurm.jobs["b0"], limit_s=limit_s)
        assert watched.look() == [(CHANGE, "b0")]
        assert watched.record.jobs["b0"].limit_s == limit_s
        assert watched.look() == []


def test_why_it_may_not_start_yet_is_told(watched):
    watched.submit("b0", "b1")
    watched.submit("7_1", at_once=3)
    watched.look()
    slurm, at_s = watched.slurm, watched.slurm.now_s
    slurm.jobs["7_1"] = replace(slurm.jobs["7_1"], reason="Dependency", after="afterany:b0")
    assert watched.look() == [(CHANGE, "7_1")]
    facts = watched.record.jobs["7_1"].facts
    assert (facts["waits_for"], facts["after"], facts["at_once"]) == ("Dependency", "afterany:b0", 3)
    slurm.jobs["7_1"] = replace(slurm.jobs["7_1"], reason="BeginTime", eligible_s=at_s + 120.0)
    assert watched.look() == [(CHANGE, "7_1")]
    assert watched.record.jobs["7_1"].facts["eligible_s"] == at_s + 120.0


def test_what_is_suspended_does_not_run(watched):
    """It runs for 5 s, stands still for 20, and runs for 15 more."""
    slurm = watched.slurm
    slurm.submit("b0", "b", 8)
    watched.look()
    slurm.jobs["b0"] = replace(slurm.jobs["b0"], state="SUSPENDED", pause_s=slurm.now_s)
    assert watched.look() == [(CHANGE, "b0")]
    known = watched.record.jobs["b0"]
    assert (known.suspended, known.paused_s(slurm.now_s)) == (True, 5.0)
    slurm.pass_time(15.0)
    slurm.jobs["b0"] = replace(slurm.jobs["b0"], state="RUNNING", pause_s=slurm.now_s, paused_s=20.0)
    assert watched.look() == [(CHANGE, "b0")]
    known = watched.record.jobs["b0"]
    assert (known.suspended, known.paused_s(slurm.now_s)) == (False, 20.0)
    slurm.pass_time(10.0)
    slurm.end("b0")
    watched.look()
    assert watched.record.jobs["b0"].times[2] == 20.0


def test_a_requeue_and_what_was_lost(watched):
    watched.slurm.submit("b0", "b", 8, qos="b")
    watched.look()
    watched.slurm.requeue("b0")
    assert watched.look() == [(CHANGE, "b0"), (REQUEUE, "b0")]
    assert not watched.record.jobs["b0"].runs
    assert watched.record.taken[-2].facts == {"lost_s": 10.0, "lent": False, "gpus": 8}


def test_a_job_that_is_forgotten_has_ended(watched):
    watched.slurm.submit("b0", "b", 8)
    watched.look()
    del watched.slurm.jobs["b0"]
    assert watched.look() == [(END, "b0")]
    assert watched.record.jobs["b0"].over


def test_jobs_without_gpus_are_none_of_ours(watched):
    jobs = watched.slurm.jobs
    watched.submit("x", gpus=1)
    plain = replace(jobs.pop("x"), state="PENDING")
    jobs |= {name: replace(plain, job_id=name, gpus=gpus) for name, gpus in (("cpu", 0), ("untold", None))}
    assert watched.look() == []


def test_a_name_that_is_used_again_is_another_job(watched):
    watched.slurm.submit("7", "b", 8)
    watched.look()
    watched.slurm.end("7")
    watched.look()
    watched.slurm.submit("7", "a", 2)
    assert watched.look() == [(SUBMIT, "7"), (START, "7")]
    assert [job.gpus for job in watched.record.recorded().jobs] == [8, 2]


def test_jobs_of_a_second_keep_the_order_of_their_ids(watched):
    watched.submit("9_10", "11", "9_8", "8", gpus=1)
    watched.look()
    watched.slurm.submit("12", "b", 1)
    watched.look()
    jobs = watched.record.recorded().jobs
    assert [job.job_id for job in jobs] == ["8", "9_8", "9_10", "11", "12"]
    assert [job.submit_s - jobs[0].submit_s for job in jobs] == pytest.approx([0.0, 0.001, 0.002, 0.003, 5.0])


def test_who_starts_or_ends_within_the_second_does_so_after_coming(watched):
    """The second of a second is told to have come a moment later than Slurm's whole second, and ends with it."""
    slurm = watched.slurm
    watched.submit("1", "2", "3", gpus=1)
    slurm.end("2")
    slurm.jobs["3"] = replace(slurm.jobs["3"], state="CANCELLED", start_s=nan, end_s=slurm.now_s)
    watched.look()
    one, two, three = (watched.record.jobs[name] for name in ("1", "2", "3"))
    assert [two.over, three.over, three.start] == [True, True, None]
    assert two.start.at_s == two.end.at_s == two.submit_s == one.submit_s + 0.001
    assert three.end.at_s == three.submit_s == one.submit_s + 0.002


def test_a_clock_that_runs_faster():
    watched = Watched(Clock(scale=60.0, from_s=1_000_000.0, model_s=0.0))
    watched.slurm.submit("b0", "b", 8, limit_s=60.0)
    watched.look()
    watched.slurm.end("b0")
    watched.look()
    jobs = watched.record.recorded()
    assert (jobs.jobs[0].submit_s, jobs.duration_s[0], jobs.known_s[0]) == (0.0, 300.0, 600.0)
    assert jobs.jobs[0].requirements.time_limit_s == 3600.0
    assert watched.clock.real(600.0) == 1_000_010.0
