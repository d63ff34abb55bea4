"""Who waits may start at once, later, or not before somebody does something."""

import gzip
from pathlib import Path

import pytest

from jobcast.domain.jobs import Pool
from jobcast.live.event_log import START, SUBMIT, Event
from jobcast.live.later_jobs import LIMITS, turns_of
from jobcast.live.news import news
from jobcast.live.recorded_jobs import ClusterRecord
from jobcast.live.slurm import Snapshot
from jobcast.traces.files import FileBytes
from jobcast.traces.readers.slurm_queue import queued_jobs

RECORDED = Path(__file__).parent / "recorded" / "mixed"


def records(*jobs):
    """Of (id, facts), or an id that runs."""
    events = []
    for job in jobs:
        name, facts = job if isinstance(job, tuple) else (job, {})
        events.append(Event(1.0, SUBMIT, name, 1.0, {"pool": "p", "gpus": 1, **facts}))
        events += [Event(2.0, START, name, 2.0)] if isinstance(job, str) else []
    return ClusterRecord().take(events).active


def held(reason, **facts):
    return {"held": True, "waits_for": reason, **facts}


def told(turns, there):
    return {one.job.job_id: (one.from_s, one.ends, sorted(one.after)) for one in turns.among(there, set(), 7)}


def test_of_an_array_so_many_run_at_a_time_and_others_as_these_end():
    """Two of five at a time, one of which runs: 7_9 may start, 7_10 at the first end of all, 7_11 at the second."""
    tasks = [(f"7_{task}", held("JobArrayTaskLimit", at_once=2)) for task in (11, 10, 9)]
    turns = turns_of(records("7_8", *tasks, ("6", {})), 5.0)
    assert set(turns.ready) == {"7_8", "7_9", "6"}
    assert not turns.ready["7_9"].held
    array = ["7_10", "7_11", "7_8", "7_9"]
    assert told(turns, {"7_8", "7_9", "6"}) == {"7_10": (5.0, 1, array), "7_11": (5.0, 2, array)}
    assert turns.why["7_11"] == "no more than 2 tasks of its array may run at a time"
    # Whatever reason Slurm gives for the tasks that wait.
    waiting = turns_of(records(*((f"7_{task}", {"at_once": 1}) for task in range(3))), 5.0)
    assert (list(waiting.ready), list(waiting.later)) == (["7_0"], ["7_1", "7_2"])
    assert not turns_of(records(*((f"7_{task}", {"at_once": 0}) for task in range(3))), 5.0).later


@pytest.mark.parametrize(("eligible_s", "from_s"), [(65.0, 65.0), (4.0, 5.0)])
def test_who_was_stopped_or_asked_so_may_from_an_instant_on(eligible_s, from_s):
    turns = turns_of(records(("a", held("BeginTime", eligible_s=eligible_s))), 5.0)
    assert told(turns, set()) == {"a": (from_s, 0, [])}
    assert turns.why["a"].startswith("it may start from 1970-01-01T00:0")


def test_who_waits_for_others_may_when_all_have_ended():
    after = "afterany:1(unfulfilled),afterok:2_*(unfulfilled)"
    there = records("1", "2_0", "2_1", ("3", held("Dependency", after=after)))
    turns = turns_of(there, 5.0)
    assert told(turns, {"1", "2_0", "2_1"}) == {"3": (5.0, 3, ["1", "2_0", "2_1"])}
    # One of them is in no run, and so never ends there.
    assert (told(turns, {"1", "2_0"}), turns.never) == ({}, {"3": f"it waits for others to end ({after})"})


@pytest.mark.parametrize(
    "after",
    ["afterany:9(unfulfilled)", "afternotok:1(unfulfilled)", "after:1+5", "afterok:1?afterok:2", "singleton", ""],
)
def test_what_nobody_knows_of_is_not_waited_for(after):
    turns = turns_of(records("1", "2", ("3", held("Dependency", after=after))), 5.0)
    assert turns.never == {"3": "it is held, and may not start yet (Dependency)"}


def test_who_waits_for_one_that_is_held_is_held():
    chain = [(name, held("Dependency", after=f"afterok:{of}(unfulfilled)")) for name, of in (("3", "2"), ("2", "1"))]
    turns = turns_of(records(("1", held("JobHeldUser")), *chain), 5.0)
    assert told(turns, set()) == {}
    assert set(turns.never) == {"1", "2", "3"}


@pytest.mark.parametrize(
    ("reason", "passes"),
    [
        ("AssocGrpGRES", True), ("QOSMaxGRESPerUser", True), ("QOSMaxJobsPerUserLimit", True),
        ("MaxGRESPerAccount", True),
        ("AssocMaxJobsLimit", True), ("QOSGrpCPURunMinutesLimit", True), ("ReqNodeNotAvail, UnavailableNodes:n3", True),
        ("Licenses", True), ("QOSGrpGRESMinutes", False), ("AssocGrpCPUMinutesLimit", False), ("JobHeldUser", False),
        ("QOSMaxGRESPerJob", False), ("BadConstraints", False), ("DependencyNeverSatisfied", False), ("", False),
    ],
)  # fmt: skip
def test_limits_that_pass_as_others_end(reason, passes):
    assert bool(LIMITS.fullmatch(reason)) is passes
    turns = turns_of(records(("a", held(reason))), 5.0)
    assert (set(turns.ready), set(turns.never)) == (({"a"}, set()) if passes else (set(), {"a"}))


@pytest.mark.parametrize("when", ["early", "late"])
def test_of_a_recorded_queue_all_but_those_that_people_hold_have_their_turn(when):
    """Arrays were submitted with --array=0-5%2 (28) and 1-9:2%1 (64), 1 was requeued, 66 asked to begin later."""
    data = gzip.decompress((RECORDED / f"{when}.squeue.json.gz").read_bytes())
    jobs = [job for job in queued_jobs(FileBytes("squeue --json", data)) if job.gpus]
    at_s = max(job.submit_s for job in jobs)
    pools = [Pool(name, 32) for name in {job.qos for job in jobs}]
    active = ClusterRecord().take(news(Snapshot(at_s, jobs, {}, {}), ClusterRecord(), pools, "qos")).active
    turns = turns_of(active, at_s)
    assert set(turns.never.values()) == {"it is held, and may not start yet (JobHeldUser)"}
    assert set(turns.never) == {job.job_id for job in jobs if job.reason == "JobHeldUser" and job.waits}
    later = turns.among(turns.ready.keys(), set(), 0)
    waits = {"early": {"1", "66"}, "late": {"66"}}[when]
    assert waits == {one.job.job_id for one in later if not one.ends}
    for array, most in (("28", 2), ("64", 1)):
        there = [name for name in active if name.startswith(f"{array}_")]
        assert sum(name in turns.ready for name in there) == min(most, len(there))
        ends = sorted(one.ends for one in later if one.job.job_id.startswith(f"{array}_"))
        assert ends == [*range(1, len(there) - most + 1)]
