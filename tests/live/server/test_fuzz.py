"""Whatever is sent, the server answers, and never by an error of its own; without a token it tells nothing."""

import http.client
import json
import shutil
from urllib.parse import quote

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.fuzz_serve import OPEN, request, sent
from jobcast.models.registry import open_registry
from tests.live.server.site import ACCESS, ADVISE, NOW_S, Site, filled

FEW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
TEXT = st.text(st.characters(blacklist_categories=()), max_size=20)
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
INSTANT = st.floats(0.0, NOW_S) | ANY
EVENT = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["submit", "start", "end", "look"]),
        "job_id": st.sampled_from("abc") | TEXT,
        "at_s": INSTANT,
    },
    optional={
        "pool": st.sampled_from(["busy", "calm"]) | ANY,
        "gpus": st.integers(0, 64) | ANY,
        "time_limit_s": st.floats(1.0, 1e6) | ANY,
        "duration_s": st.floats(0.0, 1e6) | ANY,
        "known_s": INSTANT,
        "dedicated": st.booleans() | ANY,
    },
)
WIDTHS = st.integers(-1, 64) | st.lists(st.integers(0, 64), max_size=3) | ANY
QUESTION = st.fixed_dictionaries(
    {"pool": st.sampled_from(["busy", "calm"]) | ANY, "gpus": WIDTHS}, optional={"time_limit_s": WIDTHS, "user": ANY}
)


@pytest.fixture(scope="module")
def sites(tmp_path_factory, template_home):
    """One without tokens, one with."""
    homes = [shutil.copytree(template_home, tmp_path_factory.mktemp("homes") / name) for name in ("open", "closed")]
    with Site(open_registry(homes[0]), policy="fcfs") as free, Site(open_registry(homes[1]), ACCESS) as guarded:
        filled(free)
        guarded.now_s = NOW_S
        yield free, guarded


@FEW
@given(events=st.lists(EVENT, max_size=6), question=QUESTION, job_id=TEXT)
def test_events_and_questions_of_any_kind(sites, events, question, job_id):
    free, _ = sites
    for path, body in (("/v1/events", {"events": events}), ("/v1/eta", question)):
        status, text = free.ask(path, body)
        assert status in (200, 422), text
        json.loads(text)
    free.service.refresh()
    for name in ("a", "b", "next", job_id):
        status, text = sent_to(free, f"/v1/jobs/{quoted(name)}/eta")
        assert status in (200, 307, 404), text
    for path in ("/v1/overview", "/v1/promises", "/v1/forecasts", "/metrics"):
        assert free.ask(path)[0] == 200


@FEW
@given(seed=st.integers(0, 2**32))
def test_requests_that_nobody_should_send(sites, seed):
    rng = np.random.default_rng(seed)
    for site, token in ((sites[0], None), (sites[1], None), (sites[1], ADVISE)):
        for _ in range(10):
            method, path, headers, body = request(rng, ["busy", "calm"])
            headers |= {"Authorization": f"Bearer {token}"} if token else {}
            connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=30.0)
            status, text = sent(connection, method, path, headers, body)
            connection.close()
            assert status in (200, 307, 400, 401, 403, 404, 405, 422, 503), (status, method, path, text)
            assert b"Traceback" not in text
            if site is sites[1] and token is None and path.split("?")[0] not in OPEN:
                assert status == 401, (method, path)


def quoted(name):
    return quote(name, safe="", errors="surrogatepass")


def sent_to(site, path):
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=30.0)
    try:
        return sent(connection, "GET", path, {}, None)
    finally:
        connection.close()
