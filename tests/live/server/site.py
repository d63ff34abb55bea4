"""A server that listens, with a clock that is set."""

import json
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

import uvicorn

from jobcast.domain.jobs import Pool
from jobcast.live.event_log import EventLog
from jobcast.live.server.access import Access, Asker, Role
from jobcast.live.server.app import make_app
from jobcast.live.server.service import Service
from jobcast.live.state import LogReader

POOLS = (Pool("busy", 32), Pool("calm", 16))
READ, ADVISE = "r" * 20, "a" * 20
ACCESS = Access(((READ.encode(), Asker(Role.READ)), (ADVISE.encode(), Asker(Role.ADVISE))))
ACCESS_OF_ALL = Access()
NOW_S = 20_000.0


class Site:
    """A server that listens, with a clock that is set."""

    def __init__(self, registry, access=ACCESS_OF_ALL, **options):
        self.now_s = 0.0
        self.service = Service(LogReader(EventLog(registry.home)), POOLS, registry, lambda: self.now_s, **options)
        config = uvicorn.Config(make_app(self.service, access), port=0, log_level="critical")
        self.server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self.server.run)

    def __enter__(self):
        self._thread.start()
        while not self.server.started:
            time.sleep(0.01)
        self.port = self.server.servers[0].sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_):
        self.server.should_exit = True
        self._thread.join()

    def ask(self, path, body=None, token=None, host=None):
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
        headers |= {"Host": host} if host else {}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, headers)
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def told(self, path, body=None, token=None):
        status, answer = self.ask(path, body, token)
        assert status == 200, answer
        return json.loads(answer)

    def post(self, *events):
        """Events as (kind, job id, instant, facts)."""
        rows = [{"kind": kind, "job_id": job_id, "at_s": at_s, **more} for kind, job_id, at_s, more in events]
        return self.told("/v1/events", {"events": rows})

    def forecasts(self, query=""):
        return json.loads(self.ask(f"/v1/forecasts{query}")[1])


def past(count=60, run_s=100.0):
    """Jobs of 16 GPUs in pool calm that came one after the other, and each ran as long."""
    for number in range(count):
        at_s, name = 1000.0 + 200.0 * number, f"old{number:02}"
        yield "submit", name, at_s, {"pool": "calm", "gpus": 16}
        yield "start", name, at_s, {}
        yield "end", name, at_s + run_s, {}


def queue():
    """Of calm's 16 GPUs all are held by a job of Ada's, two of Bob's wait; one of 99 GPUs never can run."""
    yield "submit", "runs", NOW_S - 50.0, {"pool": "calm", "gpus": 16, "user": "ada"}
    yield "start", "runs", NOW_S - 40.0, {}
    yield "submit", "next", NOW_S - 30.0, {"pool": "calm", "gpus": 16, "user": "bob"}
    yield "submit", "last", NOW_S - 20.0, {"pool": "calm", "gpus": 16, "user": "bob", "time_limit_s": 60.0}
    yield "submit", "wide", NOW_S - 10.0, {"pool": "calm", "gpus": 99}


@contextmanager
def begun(registry, *events, access=ACCESS_OF_ALL, **options):
    """A server that plays first come, first served, and has heard of these events by NOW_S."""
    with Site(registry, access, policy="fcfs", **options) as site:
        site.now_s = NOW_S
        site.post(*events)
        yield site


def filled(site):
    site.now_s = NOW_S
    site.post(*past(), *queue())
    site.service.watch.poll()
    site.service.refresh()
    return site
