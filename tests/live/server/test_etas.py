"""Starts and ends of jobs over HTTP: of those that wait, run, ended, are not submitted, and of others."""

from dataclasses import replace
from datetime import datetime

import pytest

from jobcast.domain.errors import ConfigError
from jobcast.live.advice import lease_figures
from jobcast.live.event_log import CHANGE, GPUS, Event, EventLog
from jobcast.live.leases import leases_of
from jobcast.live.server import etas
from jobcast.live.server.access import Access, Asker, Role
from jobcast.live.server.service import Service
from jobcast.live.state import LogReader
from tests.live.imagined_slurm import ImaginedSlurm
from tests.live.server.site import NOW_S, POOLS, Site, begun, filled, past, queue

TOKENS = {"ada": "a" * 20, "bob": "b" * 20, "root": "c" * 20}
ACCESS = Access(
    tuple((t.encode(), Asker(Role.ADVISE if user == "root" else Role.READ, user)) for user, t in TOKENS.items())
)


def seconds(text):
    return datetime.fromisoformat(text).timestamp() - NOW_S


def test_who_waits_is_told_when_it_starts_and_ends(site):
    """Jobs take about 100 s: the one that runs has some 60 s left, and the next follows."""
    told = site.told("/v1/jobs/next/eta")
    assert (told["state"], told["policy"]) == ("pending", "fcfs")
    assert told["why"] == "16 of 16 GPUs of pool calm are held; jobs that wait before it: 0"
    start, end = ({name: seconds(at) for name, at in told[kind].items()} for kind in ("start", "end"))
    assert list(start) == ["p5", "p25", "p50", "p75", "p95"]
    assert 20.0 < start["p50"] < 110.0
    assert start["p5"] <= start["p25"] <= start["p75"] <= start["p95"]
    assert 90.0 < end["p50"] < 260.0
    assert (told["age_s"], told["futures_age_s"]) == (0.0, 0.0)
    last = site.told("/v1/jobs/last/eta")
    assert last["why"].endswith("jobs that wait before it: 1")
    # Its limit ends it after a minute.
    assert seconds(last["end"]["p50"]) - seconds(last["start"]["p50"]) <= 60.0 + 1e-3


def test_who_runs_and_who_ended(site):
    told = site.told("/v1/jobs/runs/eta")
    assert (told["state"], told["start"], told["why"]) == ("running", None, "")
    assert 20.0 < seconds(told["end"]["p50"]) < 110.0
    over = site.told("/v1/jobs/old00/eta")
    assert (over["state"], over["start"], over["end"]) == ("ended", None, None)
    assert seconds(over["ended"]) == 1100.0 - NOW_S
    assert site.ask("/v1/jobs/none/eta")[0] == 404


def test_who_can_never_run_is_told_why_and_keeps_nobody_else_from_an_answer(site):
    told = site.told("/v1/jobs/wide/eta")
    assert (told["start"], told["end"]) == (None, None)
    assert told["why"] == "it asks for 99 GPUs, and pool calm has 16"
    assert told["degraded"] == [] or "champion" in told["degraded"][0]


def test_who_came_since_is_answered_at_once(site):
    site.now_s += 5.0
    site.post(("submit", "new", NOW_S + 5.0, {"pool": "busy", "gpus": 1}))
    told = site.told("/v1/jobs/new/eta")
    assert told["futures_age_s"] == 0.0
    assert seconds(told["start"]["p95"]) <= 10.0


def test_a_job_that_is_not_submitted_with_several_widths_and_limits(site):
    body = {"pool": "calm", "gpus": [8, 16, 17], "time_limit_s": [60.0, 7200.0]}
    answers = site.told("/v1/eta", body)["answers"]
    assert [(one["gpus"], one["time_limit_s"]) for one in answers] == [
        (gpus, limit_s) for gpus in (8, 16, 17) for limit_s in (60.0, 7200.0)
    ]
    # It comes last, behind two that hold the pool for some 60 + 100 + 60 s.
    assert all(100.0 < seconds(one["start"]["p50"]) < 500.0 for one in answers[:4])
    assert answers[4]["why"] == "it asks for 17 GPUs, and pool calm has 16"
    short, long = (seconds(one["end"]["p50"]) - seconds(one["start"]["p50"]) for one in answers[:2])
    assert short <= 60.0 + 1e-3 < long
    assert site.told("/v1/eta", body)["answers"] == answers
    # Nobody queues in the other pool.
    (free,) = site.told("/v1/eta", {"pool": "busy", "gpus": 1})["answers"]
    assert seconds(free["start"]["p95"]) <= 5.0
    many = {"gpus": [1] * 8, "time_limit_s": [1.0] * 3}
    wrongs = ({"pool": "none"}, {"gpus": []}, {"gpus": [1] * 9}, {"gpus": -1}, {"time_limit_s": 0}, {"more": 1}, many)
    for wrong in wrongs:
        assert site.ask("/v1/eta", {**body, **wrong})[0] == 422


def test_a_line_for_people(site):
    line = site.ask("/v1/jobs/next/eta?format=text")[1].decode()
    assert line.startswith("job next: expected to start ")
    assert "(90 %: " in line
    assert line.count("\n") == 1
    lines = site.ask("/v1/eta?format=text", {"pool": "calm", "gpus": [8, 17], "time_limit_s": 3600})[1].decode()
    first, second = lines.splitlines()
    assert first.startswith("8 GPUs for at most 1 h: expected to start ")
    assert second.endswith("nothing can be said of when it starts (it asks for 17 GPUs, and pool calm has 16)")
    assert site.ask("/v1/jobs/next/eta?format=html")[0] == 422
    site.now_s += 100.0
    line = site.ask("/v1/jobs/next/eta?format=text")[1].decode()
    assert "nothing was heard of the cluster for more than 60 s" in line
    assert line.count("\n") == 1


def test_a_line_moves_no_cursor(site):
    site.post(("submit", "\x1b[2J\n", NOW_S, {"pool": "busy"}))
    assert site.ask("/v1/jobs/%1B%5B2J%0A/eta?format=text")[1].decode().startswith("job ?[2J?: expected to start ")


def test_who_asks_for_an_array_is_told_its_tasks(registry):
    with Site(registry, ACCESS, policy="fcfs", private=True) as site:
        tasks = [f"7_{task}" for task in range(6)]
        rows = [{"kind": "submit", "job_id": name, "at_s": NOW_S, "pool": "busy", "user": "ada"} for name in tasks]
        site.now_s = NOW_S
        site.told("/v1/events", {"events": rows}, TOKENS["root"])
        answers = {user: site.ask("/v1/jobs/7/eta", token=TOKENS[user]) for user in TOKENS}
        wanted = b'{"detail":"a job of parts; ask for one of 7_0, 7_1, 7_2, 7_3 and 2 more"}'
        assert answers == {"ada": (404, wanted), "bob": (404, b'{"detail":"unknown job"}'), "root": (404, wanted)}


def test_of_others_jobs_as_private_allows(registry):
    with Site(registry, ACCESS, policy="fcfs", private=True) as site:
        filled_by_root(site)
        path = "/v1/jobs/next/eta"
        assert [site.ask(path, token=TOKENS[user])[0] for user in ("ada", "bob", "root")] == [404, 200, 200]
        assert site.ask(path)[0] == 401
        seen = {user: {one["job_id"] for one in last(site, user)} for user in TOKENS}
        assert seen == {"ada": set(), "bob": {"next"}, "root": {"next"}}


def filled_by_root(site):
    site.now_s = NOW_S
    rows = [{"kind": k, "job_id": name, "at_s": at_s, **more} for k, name, at_s, more in (*past(), *queue())]
    site.told("/v1/events", {"events": rows}, TOKENS["root"])
    site.service.refresh()


def last(site, user):
    return site.told("/v1/promises", token=TOKENS[user])["last"]


def test_nothing_is_said_where_nothing_ended_yet(registry):
    with begun(registry, *queue()) as site:
        told = site.told("/v1/jobs/next/eta")
        assert told["start"] is None
        assert "no job has ended yet" in told["why"]
        assert any("no job has ended yet" in line for line in told["degraded"])
        # It ends: what was said of futures until then is nothing to it.
        site.post(("end", "runs", NOW_S - 5.0, {}))
        assert "no job has ended yet" not in site.ask("/v1/jobs/runs/eta?format=text")[1].decode()


def test_a_job_that_is_not_submitted_before_futures_were_played(registry):
    with begun(registry) as site:
        site.service.refresh()
        site.post(*past(), *queue())
        (told,) = site.told("/v1/eta", {"pool": "calm", "gpus": 8})["answers"]
        assert told["start"] is not None
        assert told["futures_age_s"] is None


def test_an_end_that_was_not_heard_is_told_and_stops_no_answer(site):
    for name in ("x", "y", "z"):
        site.post(("submit", name, NOW_S, {"pool": "calm", "gpus": 16}), ("start", name, NOW_S, {}))
    site.service.refresh()
    told = site.told("/v1/jobs/next/eta")
    assert (told["start"] is not None, told["futures_age_s"]) == (True, 0.0)
    quota = sum(pool.quota for pool in POOLS)
    doubt = f"jobs hold 64 GPUs of {quota}: an end was not heard, or a quota is too small"
    assert doubt in told["degraded"]
    site.post(*(("end", name, NOW_S, {}) for name in ("x", "y", "z")))
    site.service.refresh()
    assert doubt not in site.told("/v1/jobs/next/eta")["degraded"]


def test_loans_stop_no_answer_where_nobody_forecasts(site):
    """Of calm, whose GPUs others hold: what comes free is its own again."""
    site.post(("end", "runs", NOW_S, {}), *lent())
    site.service.refresh()
    told = site.told("/v1/jobs/next/eta")
    assert (told["policy"], told["start"] is not None, told["futures_age_s"]) == ("fcfs", True, 0.0)


def test_who_is_wider_than_what_is_up_is_told_so_and_stops_no_answer(site):
    """Two thirds of the GPUs are up, and of calm's quota, too."""
    up = sum(pool.quota for pool in POOLS) * 2 // 3
    site.post(("end", "runs", NOW_S, {}), ("submit", "narrow", NOW_S, {"pool": "calm", "gpus": 8}))
    # Of one of them nobody heard the submission.
    site.post(("start", "unknown", NOW_S, {}))
    site.service.take([Event(NOW_S, GPUS, "", NOW_S, {"gpus": up})])
    site.service.refresh()
    why = "it asks for 16 GPUs, and of pool calm's quota 10 are up"
    for name in ("next", "last"):
        told = site.told(f"/v1/jobs/{name}/eta")
        assert (told["start"], told["why"], told["degraded"]) == (None, why, [])
    assert site.told("/v1/jobs/narrow/eta")["start"] is not None
    answers = [site.told("/v1/eta", {"pool": "calm", "gpus": gpus})["answers"][0] for gpus in (16, 8)]
    assert [(one["start"] is None, one["why"]) for one in answers] == [(True, why), (False, "")]


def test_who_would_wait_too_long_is_told_so(site, monkeypatch):
    monkeypatch.setattr(etas, "PATIENCE_S", 0.05)
    service = site.service
    with service.etas._asking:
        assert site.ask("/v1/eta", {"pool": "calm", "gpus": 1})[0] == 503
    assert site.ask("/v1/eta", {"pool": "calm", "gpus": 1})[0] == 200
    for _ in range(etas.MOST_WAITING):
        service.etas._turns.acquire()
    assert site.ask("/v1/eta", {"pool": "calm", "gpus": 2})[0] == 503
    # One that is not among the last futures keeps nobody waiting either.
    site.post(("submit", "new", NOW_S, {"pool": "busy", "gpus": 1}))
    assert site.told("/v1/jobs/new/eta")["start"] is None
    for _ in range(etas.MOST_WAITING):
        service.etas._turns.release()
    assert site.told("/v1/jobs/new/eta")["start"] is not None


def lent():
    """A job of pool busy on GPUs of calm's: on lease."""
    yield "submit", "lent", NOW_S - 35.0, {"pool": "busy", "gpus": 16}
    yield "start", "lent", NOW_S - 34.0, {"dedicated": False}


def test_fcfs_where_nobody_lends_though_there_are_champions(site, registry):
    service = Service(LogReader(EventLog(registry.home)), POOLS, registry, lambda: NOW_S)
    service.watch.poll()
    service.refresh()
    assert service.eta("next", Asker(Role.READ)).basis.policy == "fcfs"


def test_sia_with_champions_lends_and_tells_its_versions(site, registry):
    site.post(*lent())
    service = Service(LogReader(EventLog(registry.home)), POOLS, registry, lambda: NOW_S)
    service.watch.poll()
    service.refresh()
    eta = service.eta("next", Asker(Role.READ))
    assert eta.basis.policy == "sia"
    assert set(eta.basis.versions) == {"will-jobs-arrive", "new-load", "job-duration"}
    assert eta.basis.sizes == "job-duration:1"
    assert eta.answer.start is not None


def test_beside_a_slurm_who_fits_the_quota_overtakes_who_does_not(registry):
    """Calm's 16 GPUs: 12 are held, one job waits for 16, and behind it one for 2."""
    told = {}
    rows = (
        ("submit", "runs", NOW_S - 50.0, {"pool": "calm", "gpus": 12}),
        ("start", "runs", NOW_S - 40.0, {}),
        ("submit", "wide", NOW_S - 30.0, {"pool": "calm", "gpus": 16}),
        ("submit", "narrow", NOW_S - 20.0, {"pool": "calm", "gpus": 2}),
    )
    for backfill in (False, True):
        with begun(registry, *past(), *rows, backfill=backfill) as site:
            site.service.refresh()
            told[backfill] = seconds(site.told("/v1/jobs/narrow/eta")["start"]["p50"])
    assert told[True] <= 5.0
    assert told[False] > 60.0


def test_quotas_whose_gpus_are_on_lease_keep_nobody_from_an_answer(registry):
    """Jobs of busy hold all GPUs, and calm's own wait for them, whatever their quota."""
    full = [(kind, "full", NOW_S - 40.0, {"pool": "busy", "gpus": 32}) for kind in ("submit", "start")]
    owner = ("submit", "owner", NOW_S - 30.0, {"pool": "calm", "gpus": 16})
    with begun(registry, *past(), *full, *lent(), owner, backfill=True) as site:
        site.service.refresh()
        assert site.service.etas.trouble == ""
        assert 20.0 < seconds(site.told("/v1/jobs/owner/eta")["start"]["p50"]) < 110.0


@pytest.mark.parametrize(("other_s", "alike"), [(86_400.0, False), (3_600.0, True)])
def test_a_limit_that_all_jobs_have_says_nothing_of_their_run_times(registry, other_s, alike):
    """Jobs of calm run for 100 s, those of busy for 2,000 s; all that were submitted lately have a limit."""
    # Of busy's jobs the last have ended under the limit that a job of calm has.
    ends = [("end", f"long{at}", 3_000.0 + at, {}) for at in range(60)]
    narrow = {"pool": "busy", "gpus": 1}
    asks = {"time_limit_s": 86_400.0}
    ran = [(kind, f"long{at}", 1_000.0 + at, narrow | asks) for at in range(60) for kind in ("submit", "start")]
    asked = ("submit", "asked", NOW_S, {"gpus": 16, "pool": "calm"} | asks)
    other = ("submit", "other", NOW_S, narrow | {"time_limit_s": other_s})
    with begun(registry, *past(), *ran, *ends, asked, other) as site:
        site.service.refresh()
        end_s = seconds(site.told("/v1/jobs/asked/eta")["end"]["p50"])
        assert (end_s > 1_000.0) is alike


def test_how_old_news_may_be_is_told(registry):
    with begun(registry, *past(), *queue(), stale_s=600.0) as site:
        site.service.refresh()
        site.now_s += 590.0
        assert not any("nothing was heard" in one for one in site.told("/v1/jobs/next/eta")["degraded"])
        site.now_s += 20.0
        assert "nothing was heard of the cluster for more than 600 s" in site.told("/v1/jobs/next/eta")["degraded"]


def test_a_policy_that_needs_the_future_is_refused(registry):
    with pytest.raises(ConfigError, match="--policy milp"):
        Service(LogReader(EventLog(registry.home)), POOLS, registry, lambda: NOW_S, policy="milp")


@pytest.mark.parametrize("host", ["evil.example:80", "127.0.0.1.evil.example", "[::2]:1", ""])
def test_requests_to_another_host_are_refused_without_tokens(site, registry, host):
    if host:
        assert site.ask("/v1/forecasts", host=host)[0] == 421
    assert site.ask("/v1/forecasts", host="localhost:1")[0] == 200


def test_nobody_advises(site):
    for path in ("/v1/advice", "/v1/leases"):
        status, answer = site.ask(path)
        assert status == 404
        assert b"nobody advises here" in answer


class Lender:
    def hear(self):
        pass

    def advice(self):
        return {"decisions": []}

    def leases(self):
        slurm = ImaginedSlurm()
        for name, gpus, until_s in (("next", 8, NOW_S + 900.0), ("runs", 16, NOW_S - 60.0)):
            mark = f"jobcast lease=42fbd16409ac until={until_s:.0f} from=a v=x:1"
            slurm.submit(name, "a", gpus, qos="lent_a", user="u", mark=mark)
        slurm.jobs["runs"] = replace(slurm.jobs["runs"], state="RUNNING")
        return [lease_figures(one, NOW_S) for one in leases_of(slurm.look(NOW_S), "account")]

    def waits_for(self, job_id):
        return "no room, says Slurm" if job_id == "next" else ""


def test_who_nobody_has_heard_of_is_looked_for_unless_a_hook_asks(registry):
    class Finder(Lender):
        """Finds a job on the cluster."""

        def hear(self):
            site.post(("submit", "found", NOW_S, {"pool": "busy", "gpus": 1}))

    with Site(registry, policy="fcfs", advisor=Finder()) as site:
        filled(site)
        assert site.ask("/v1/jobs/found/eta?format=hook")[0] == 404
        assert site.told("/v1/jobs/found/eta")["start"] is not None


def test_who_waits_for_nodes_and_not_for_its_quota_is_told_so(registry):
    with Site(registry, policy="fcfs", advisor=Lender()) as site:
        filled(site)
        quota = "16 of 16 GPUs of pool calm are held; jobs that wait before it: "
        assert site.told("/v1/jobs/next/eta")["why"] == f"no room, says Slurm; {quota}0"
        assert site.told("/v1/jobs/last/eta")["why"] == f"{quota}1"


def test_leases_of_an_advisor(registry):
    with Site(registry, ACCESS, private=True, advisor=Lender()) as site:
        filled_by_root(site)
        assert site.told("/v1/advice", token=TOKENS["root"]) == {"decisions": []}
        assert site.ask("/v1/advice", token=TOKENS["ada"])[0] == 403
        told = site.told("/v1/leases", token=TOKENS["bob"])["leases"]
        assert [one["job_id"] for one in told] == ["next"]


def of_array(task, **facts):
    return Event(NOW_S, CHANGE, f"7_{task}", NOW_S, {"held": True, "waits_for": "JobArrayTaskLimit", **facts})


def test_tasks_beyond_the_bound_of_their_array_start_as_others_end(registry):
    """Jobs take 100 s. Of four tasks one may run at a time; the first has run for 40 s, and calm's GPUs are idle."""
    tasks = [("submit", f"7_{task}", NOW_S - 50.0, {"pool": "calm", "gpus": 1}) for task in range(4)]
    with begun(registry, *past(), *tasks, ("start", "7_0", NOW_S - 40.0, {}), backfill=True) as site:
        site.service.take([of_array(task, at_once=1) for task in (1, 2, 3)])
        site.service.refresh()
        told = [site.told(f"/v1/jobs/7_{task}/eta") for task in range(4)]
        starts, ends = ([seconds(one[kind]["p50"]) for one in told[1:]] for kind in ("start", "end"))
        # Medians of 40 draws each, which vary more and more.
        assert starts == pytest.approx([60.0, 160.0, 260.0], rel=0.3)
        assert ends == pytest.approx([160.0, 260.0, 360.0], rel=0.3)
        assert seconds(told[0]["end"]["p50"]) == pytest.approx(60.0, rel=0.2)
        assert told[3]["why"] == "no more than 1 tasks of its array may run at a time"
        assert site.service.etas.trouble == ""


def test_who_was_requeued_starts_from_when_it_may_and_who_is_held_by_hand_never(registry):
    facts = {
        "again": {"waits_for": "BeginTime", "eligible_s": NOW_S + 120.0},
        "held": {"waits_for": "JobHeldUser"},
        "chained": {"waits_for": "Dependency", "after": "afterany:again(unfulfilled)"},
        "limited": {"waits_for": "QOSMaxGRESPerUser"},
    }
    rows = (("submit", name, NOW_S - 50.0, {"pool": "calm", "gpus": 4}) for name in facts)
    with begun(registry, *past(), *rows, backfill=True) as site:
        site.service.take([Event(NOW_S, CHANGE, name, NOW_S, {"held": True, **own}) for name, own in facts.items()])
        site.service.refresh()
        told = {name: site.told(f"/v1/jobs/{name}/eta") for name in facts}
        assert seconds(told["again"]["start"]["p50"]) == pytest.approx(120.0, abs=2.0)
        assert (told["held"]["start"], told["chained"]["start"]) == (None, None)
        assert told["held"]["why"] == "it is held, and may not start yet (JobHeldUser)"
        assert seconds(told["limited"]["start"]["p50"]) <= 5.0
        assert told["limited"]["why"].startswith("Slurm says QOSMaxGRESPerUser: that is not reckoned with here")


def test_of_who_is_suspended_no_end_is_told_and_it_goes_on_from_where_it_stopped(registry):
    """Jobs take 100 s, and it had run for 40 s when it was suspended 1,000 s ago."""
    first = [(kind, "a", NOW_S - 1_040.0, {"pool": "calm", "gpus": 16}) for kind in ("submit", "start")]
    with begun(registry, *past(), *first, ("submit", "b", NOW_S - 30.0, {"pool": "calm", "gpus": 16})) as site:
        facts = {"paused_s": 0.0, "suspended_s": NOW_S - 1_000.0}
        site.service.take([Event(NOW_S, CHANGE, "a", NOW_S, facts)])
        site.service.refresh()
        told, behind = (site.told(f"/v1/jobs/{name}/eta") for name in "ab")
        assert (told["state"], told["end"]) == ("running", None)
        assert told["why"] == "it is suspended, and ends some time after it is resumed"
        assert behind["why"].endswith("; job a is suspended, and taken to go on now")
        assert seconds(behind["start"]["p50"]) == pytest.approx(60.0, rel=0.2)
        # Resumed after 10 s more it has 60 s left still, and that is told at once.
        site.now_s += 10.0
        resumed = {"paused_s": 1_010.0, "suspended_s": None}
        site.service.take([Event(site.now_s, CHANGE, "a", site.now_s, resumed)])
        told = site.told("/v1/jobs/a/eta")
        assert (told["why"], seconds(told["end"]["p50"])) == ("", pytest.approx(70.0, rel=0.2))


def test_who_ran_when_futures_were_played_and_waits_again_is_told_when_it_starts(site, monkeypatch):
    """Slurm requeues the job that runs; it is asked about before the next round, by whom another round is under way."""
    site.now_s += 10.0
    site.post(("requeue", "runs", NOW_S + 10.0, {}))
    monkeypatch.setattr(etas, "PATIENCE_S", 0.01)
    with site.service.etas._playing:
        status, line = site.ask("/v1/jobs/runs/eta?format=text")
    assert (status, line.startswith(b"job runs: nothing can be said of when it starts")) == (200, True)
    monkeypatch.undo()
    told = site.told("/v1/jobs/runs/eta")
    assert (told["state"], told["futures_age_s"]) == ("pending", 0.0)
    assert seconds(told["start"]["p50"]) <= seconds(told["end"]["p50"])
