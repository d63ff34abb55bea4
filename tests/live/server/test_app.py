"""The server over HTTP: forecasts equal those of a replay, champions change, tokens, bounds."""

import json
import math
import threading
import time

import numpy as np
import pytest

from jobcast.domain.errors import LedgerError, PoolsError
from jobcast.domain.jobs import Pool
from jobcast.live.server.service import Service
from jobcast.live.server.shadow import LEVELS
from jobcast.models.forecasts import RegistryForecasts
from jobcast.simulator.history import EarlierJobs, RunHistory
from tests.live.server.site import ACCESS, ADVISE, POOLS, READ, Site


@pytest.fixture
def site(registry):
    with Site(registry) as site:
        yield site


def events_of(trace, until_s):
    """What had happened in a trace by an instant, as it is posted."""
    jobs, duration_s = trace.to_jobs()
    for job, start_s, known_s, run_s in zip(jobs, trace.start_s, trace.known_s, duration_s, strict=True):
        about = {"pool": job.pool, "gpus": job.gpus}
        if job.submit_s <= until_s:
            yield {"kind": "submit", "job_id": job.job_id, "at_s": job.submit_s, "known_s": job.submit_s, **about}
        if start_s <= until_s:
            yield {"kind": "start", "job_id": job.job_id, "at_s": float(start_s), "known_s": float(start_s)}
        if known_s <= until_s:
            times = {"at_s": float(known_s), "known_s": float(known_s), "duration_s": float(run_s)}
            yield {"kind": "end", "job_id": job.job_id, **times}


def test_a_change_may_lift_a_time_limit(site):
    about = {"job_id": "j", "at_s": site.now_s}
    site.ask("/v1/events", {"events": [{"kind": "submit", "pool": "busy", "time_limit_s": 60, **about}]})
    assert site.service.state.active["j"].limit_s == 60.0
    site.ask("/v1/events", {"events": [{"kind": "change", "time_limit_s": None, **about}]})
    assert site.service.state.active["j"].limit_s == math.inf


def test_the_first_futures_are_played_once_champions_are_looked_for(registry, monkeypatch):
    done, played = [], threading.Event()

    def slow_look(service):
        time.sleep(0.3)
        done.append("champions")

    def refresh(service):
        done.append("futures")
        played.set()
        return 0.0

    monkeypatch.setattr(Service, "look", slow_look)
    monkeypatch.setattr(Service, "refresh", refresh)
    with Site(registry):
        assert played.wait(30.0)
    assert done[:2] == ["champions", "futures"]


def test_live_equals_offline_bit_by_bit(site, small_trace, predictors):
    jobs, duration_s = small_trace.to_jobs()
    last_s = float(small_trace.submit_s.max())
    for now_s in np.linspace(last_s - 86_400.0, last_s, 4).tolist():
        site.now_s = now_s
        look = {"kind": "look", "at_s": now_s}
        status, answer = site.ask("/v1/events", {"events": [*events_of(small_trace, now_s), look]})
        assert status == 200, answer
        site.service.watch.poll()
        history = RunHistory(["busy", "calm"], EarlierJobs(jobs, small_trace.start_s, small_trace.known_s, duration_s))
        offline = RegistryForecasts(history, predictors["will-jobs-arrive"], predictors["new-load"], None, POOLS)
        history.advance(now_s)
        offline.advance(now_s)
        told = site.forecasts()
        assert told["degraded"] == []
        assert abs(told["age_s"]) < 0.001  # kept to the millisecond
        assert told["versions"] == {"will-jobs-arrive": 1, "new-load": 1, "job-duration": 1}
        for pool in ("busy", "calm"):
            for label, horizon_s in (("5min", 300.0), ("60min", 3600.0)):
                one = told["pools"][pool][label]
                assert one["probability"] == offline.arrival_probability(pool, horizon_s)
                assert one["arrives"] == offline.will_jobs_arrive(pool, horizon_s)
                assert one["load_gpus"] == offline.new_load(pool, horizon_s)
                assert tuple(one["load_quantiles_gpus"].values()) == offline.load_quantiles(pool, horizon_s, LEVELS)


def test_what_is_old_is_answered_conservatively_and_told(site):
    site.now_s = 1000.0
    told = site.forecasts("?pools=calm")
    assert told["age_s"] is None
    assert "nothing was heard" in told["degraded"][0]
    assert [one["load_gpus"] for one in told["pools"]["calm"].values()] == [16.0] * 3
    assert all(one["arrives"] for one in told["pools"]["calm"].values())
    assert site.ask("/readyz")[0] == 503
    assert site.ask("/healthz")[0] == 200


def test_a_new_champion_answers_and_a_bad_one_is_refused_and_told(site, registry, variant, card):
    site.now_s = 1000.0
    site.ask("/v1/events", {"events": [{"kind": "look", "at_s": 1000.0}]})
    site.service.watch.poll()
    registry.register(variant("new-load", 2), card(name="new-load"))
    registry.set_alias("new-load", "champion", 2)
    assert site.service.watch.poll() or site.forecasts()["versions"]["new-load"] == 2
    assert site.forecasts()["versions"]["new-load"] == 2
    third = registry.register(variant("new-load", 3), card(name="new-load"))
    for file in registry.folder(third).rglob("*.json"):
        file.write_text("{}")
    registry.set_alias("new-load", "champion", 3)
    site.service.watch.poll()
    told = site.forecasts()
    assert told["versions"]["new-load"] == 2
    assert any("refused" in line and "new-load:3" in line for line in told["degraded"])


def test_tokens_and_roles(registry):
    with Site(registry, ACCESS) as site:
        for path in ("/v1/forecasts", "/metrics", "/docs"):
            assert site.ask(path)[0] == 401
            assert site.ask(path, token="x" * 20)[0] == 401
            assert site.ask(path, token=READ)[0] == 200
        for body in ({"events": []}, {}, b"{", b"\xff"):
            assert site.ask("/v1/events", body)[0] == 401
        assert site.ask("/openapi.json")[0] == 401
        assert site.ask("/v1/events", {"events": []}, READ)[0] == 403
        assert site.ask("/v1/events", {"events": []}, ADVISE)[0] == 200
        assert site.ask("/healthz")[0] == 200


def test_quotas_are_looked_up_again_and_again(registry):
    quotas = list(POOLS)

    def read():
        if not quotas:
            raise PoolsError("pools.csv: is empty")
        return quotas

    with Site(registry, quotas=read) as site:
        site.now_s = 1000.0
        question = {"pool": "calm", "gpus": 20}
        (told,) = site.told("/v1/eta", question)["answers"]
        assert told["why"] == "it asks for 20 GPUs, and pool calm has 16"
        quotas[1:] = [Pool("calm", 24), Pool("new", 8)]
        site.service.look()
        pools = site.told("/v1/overview")["pools"]
        assert {name: one["quota"] for name, one in pools.items()} == {"busy": 32, "calm": 24, "new": 8}
        (told,) = site.told("/v1/eta", question)["answers"]
        assert "asks for 20" not in told["why"]
        site.post(("submit", "b", 950.0, {"pool": "new", "gpus": 1}))
        quotas.clear()
        site.service.look()
        told = site.told("/v1/overview")
        assert list(told["pools"]) == ["busy", "calm", "new"]
        assert "quotas cannot be read, and stay as they were; the server's log tells more" in told["degraded"]


def test_what_cannot_be_is_refused(site):
    site.now_s = 1000.0
    submit = {"kind": "submit", "job_id": "a", "at_s": 900.0, "pool": "busy"}
    assert site.ask("/v1/events", {"events": [submit]})[0] == 200
    for change in (
        {"at_s": 2000.0}, {"pool": "other"}, {"job_id": ""}, {"known_s": 800.0}, {"gpus": -1}, {"kind": "x"},
        {"job_id": "x" * 201}, {"more": 1}, {"at_s": float("nan")},
    ):  # fmt: skip
        assert site.ask("/v1/events", {"events": [{**submit, **change}]})[0] == 422, change
    told = json.loads(site.ask("/v1/events", {"events": [submit, {**submit, "pool": "other"}]})[1])
    assert told == {"detail": "events[1]: a submission to a pool that has no quota here"}
    assert site.ask("/v1/events", b"{")[0] == 422
    assert site.ask("/v1/events", b" " * 8_000_001)[0] == 413
    assert site.ask("/v1/forecasts?pools=%3Cscript%3E")[0] == 404


def test_names_are_text_and_events_outlive_the_server(registry):
    name = "$(x)\n<script>"
    with Site(registry) as site:
        site.now_s = 1000.0
        one = {"job_id": name, "at_s": 900.0}
        posted = [{**one, "kind": "submit", "pool": "busy"}, {**one, "kind": "start", "at_s": 930.0}]
        assert json.loads(site.ask("/v1/events", {"events": posted})[1])["new"] == 2
        assert json.loads(site.ask("/v1/events", {"events": posted})[1])["new"] == 0
    with Site(registry) as site:
        site.now_s = 1000.0
        assert list(site.service.state.jobs) == [name]
        metrics = site.ask("/metrics")[1].decode()
        assert 'jobcast_wait_seconds{quantile="0.5"} 30.0\n' in metrics
        assert "jobcast_wait_seconds_count 1\n" in metrics
        assert "<script" not in site.ask("/docs")[1].decode()


@pytest.mark.parametrize("past_s", [0.0, 0.0004, 0.0006])
def test_what_is_told_now_is_known_now(site, past_s):
    site.now_s = 1000.0 + past_s
    site.post(("submit", "a", site.now_s, {"pool": "busy"}))
    assert site.told("/v1/forecasts")["age_s"] == 0.0
    site.now_s += 0.0004
    site.post(("look", "", 900.0, {}))
    assert 0.0 <= site.told("/v1/forecasts")["age_s"] < 0.001


def test_a_sender_whose_clock_is_ahead_is_heard(site):
    site.now_s = 1000.0
    site.post(("submit", "a", 1000.2, {"pool": "busy"}), ("start", "a", 1030.0, {}))
    assert site.told("/v1/jobs/a/eta")["started"] == "1970-01-01T00:17:10Z"
    site.now_s = 1040.0
    assert site.told("/v1/overview")["pools"]["busy"]["held"] == 1


def test_gpus_of_pools(site):
    """Of 32 GPUs 8 are held, 4 more beyond the quota; conservative forecasts keep all that are idle."""
    site.now_s = 1000.0
    for name, gpus, facts in (("a", 8, {}), ("b", 4, {"dedicated": False})):
        site.post(("submit", name, 900.0, {"pool": "busy", "gpus": gpus}), ("start", name, 910.0, facts))
    site.post(("submit", "c", 920.0, {"pool": "busy", "gpus": 2}))
    site.now_s = 2000.0
    told = site.told("/v1/overview")
    pool = {name: one for name, one in told["pools"]["busy"].items() if name != "forecasts"}
    assert pool == {"quota": 32, "held": 12, "lent": 4, "pending": 2, "idle": 24, "reserved": 24}
    assert list(told["pools"]["busy"]["forecasts"]) == ["5min", "60min", "720min"]
    assert told["leases"] is None
    assert "nothing was heard" in told["degraded"][0]


def test_what_cannot_be_kept_is_told_in_a_line_of_the_log(site, monkeypatch, caplog):
    def full(events):
        raise LedgerError("live.sqlite: no space left on the device")

    monkeypatch.setattr(site.service.known, "keep", full)
    submit = {"kind": "submit", "job_id": "a", "at_s": 0.0, "pool": "busy"}
    status, answer = site.ask("/v1/events", {"events": [submit]})
    assert (status, json.loads(answer)) == (503, {"detail": "nothing can be kept now; the server's log tells why"})
    assert "live.sqlite: no space left on the device" in caplog.messages
