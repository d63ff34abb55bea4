"""What was told is kept, judged by what came, and counted by version; versions on trial are scored."""

import numpy as np
import pytest

from jobcast.live.event_log import EventLog
from jobcast.live.server.service import Service
from jobcast.live.state import LogReader
from jobcast.models.promise_ledger import PromiseLedger
from tests.live.server.site import NOW_S, POOLS, Site


def test_what_is_told_is_kept_once_a_round_and_five_minutes(site, registry):
    for _ in range(3):
        site.told("/v1/jobs/next/eta")
    site.told("/v1/jobs/runs/eta")
    site.told("/v1/jobs/old00/eta")
    site.told("/v1/eta", {"pool": "calm", "gpus": 1})
    made = PromiseLedger(registry.home).promises()
    assert [(one.job_id, one.kind) for one in made] == [("next", "start"), ("next", "end"), ("runs", "end")]
    assert not any(one.simulated or one.what_if for one in made)
    assert {one.at_s for one in made} == {NOW_S}
    for passed_s, count in ((0.0, 3), (299.0, 3), (300.0, 5), (310.0, 5)):
        site.now_s = NOW_S + passed_s
        site.service.refresh()
        site.told("/v1/jobs/next/eta")
        assert len(PromiseLedger(registry.home).promises()) == count


def test_outcomes_are_kept_and_coverage_is_counted_by_version(site, registry):
    told = site.told("/v1/jobs/next/eta")
    site.told("/v1/jobs/last/eta")
    site.now_s = NOW_S + 100.0
    site.post(("end", "runs", NOW_S + 60.0, {}), ("start", "next", NOW_S + 61.0, {}), ("end", "last", NOW_S + 70.0, {}))
    site.now_s = NOW_S + 7200.0
    site.post(("end", "next", NOW_S + 7000.0, {}))
    site.service.refresh()
    outcomes = PromiseLedger(registry.home).outcomes()
    came_s = {event[0::2]: one.event_s for event, one in outcomes.items()}
    assert came_s == {("next", "start"): NOW_S + 61.0, ("next", "end"): NOW_S + 7000.0}
    found = site.told("/v1/promises")
    # Within, and far beyond the upper end; who was cancelled while it waited breaks no promise.
    counted = {row["kind"]: (row["due_90"], row["kept"], row["broken_high"]) for row in found["versions"]}
    assert counted == {"start": (1, 1, 0), "end": (1, 0, 1)}
    assert found["without_outcome"] == 2
    newest = found["last"][-1]
    assert (newest["job_id"], newest["kind"], newest["came_s"]) == ("next", "start", NOW_S + 61.0)
    assert newest["at_s"] == NOW_S
    assert told["start"]["p5"] is not None
    version = found["versions"][0]["group"]
    metrics = site.ask("/metrics")[1].decode()
    assert f'jobcast_promise_coverage{{kind="start",version="{version}"}} 1.0\n' in metrics
    assert f'jobcast_promise_coverage{{kind="end",version="{version}"}} 0.0\n' in metrics


def test_promises_outlive_the_server_and_are_counted_for_seven_days(site, registry):
    site.told("/v1/jobs/next/eta")
    again = Service(LogReader(EventLog(registry.home)), POOLS, registry, lambda: NOW_S)
    again.promises.look(again.state, NOW_S)
    assert again.promises.figures["promises"] == 2
    later = Service(LogReader(EventLog(registry.home)), POOLS, registry, lambda: NOW_S + 8 * 86_400.0)
    later.promises.look(later.state, NOW_S + 8 * 86_400.0)
    assert later.promises.figures["promises"] == 0


def test_a_ledger_that_cannot_be_used_keeps_nobody_from_an_answer(site, registry, caplog):
    PromiseLedger(registry.home).file.parent.mkdir(exist_ok=True)
    PromiseLedger(registry.home).file.write_bytes(b"no database at all, but long enough to be looked at" * 20)
    assert site.told("/v1/jobs/next/eta")["start"] is not None
    assert "not kept in the promise ledger" in caplog.text


def test_versions_on_trial_are_scored_by_what_came(registry, variant, card):
    """One job arrives 100 s into the first five minutes, nothing else happens."""
    registry.register(variant("new-load", 2), card(name="new-load"))
    now = [NOW_S]
    service = Service(LogReader(EventLog(registry.home)), POOLS, registry, lambda: now[0])
    with Site(registry) as site:
        site.now_s = NOW_S
        site.post(("look", "", NOW_S, {}))
        service.look()
        said = {(one.name, one.version, one.horizon_s): one.answer for one in service.shadow._said}
        at_s = NOW_S - NOW_S % 300.0
        site.now_s = at_s + 600.0
        site.post(("submit", "a", at_s + 100.0, {"pool": "busy", "gpus": 4}), ("look", "", at_s + 600.0, {}))
    now[0] = at_s + 600.0
    service.look()
    found = {(one["name"], one["version"]): one for one in service.shadow.figures() if one["horizon"] == "5min"}
    assert set(found) == {("will-jobs-arrive", 1), ("new-load", 1), ("new-load", 2)}
    assert all(one["n"] == 1 for one in found.values())
    busy, calm = said["will-jobs-arrive", 1, 300.0]
    assert found["will-jobs-arrive", 1]["mean"] == pytest.approx(((busy - 1.0) ** 2 + calm**2) / 2)
    loads = said["new-load", 2, 300.0]
    losses = [
        np.mean([max(q * (came - at), (q - 1) * (came - at)) for q, at in zip((0.5, 0.9, 0.95), row, strict=True)])
        for came, row in zip((4.0, 0.0), loads, strict=True)
    ]
    assert found["new-load", 2]["mean"] == pytest.approx(np.mean(losses))
    # A server that comes after has them from the log; for 7 days.
    again = Service(LogReader(EventLog(registry.home)), POOLS, registry, lambda: now[0])
    assert again.shadow.figures() == service.shadow.figures()
    now[0] += 7 * 86_400.0
    assert Service(LogReader(EventLog(registry.home)), POOLS, registry, lambda: now[0]).shadow.figures() == []
