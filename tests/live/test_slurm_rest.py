"""What is told where slurmrestd refuses."""

import threading
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from jobcast.domain.errors import ClusterError
from jobcast.live.slurm_rest import SlurmRest
from tests.shared import refused, time_zone


class Refuses(BaseHTTPRequestHandler):
    """Slurm 22.05 answers 401 without a token and 500 with a wrong one; a newer one 404, for it has other versions."""

    def do_GET(self):
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *words):
        """Nobody reads it."""


@contextmanager
def asked_once(handler):
    """A server that answers one request, and who asks it."""
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        yield server, SlurmRest(f"http://127.0.0.1:{server.server_port}")
        thread.join()


@pytest.mark.parametrize("status", [401, 404, 500])
def test_who_is_refused_is_told_what_to_look_at(status):
    with asked_once(Refuses) as (server, rest):
        server.status = status
        told = f"slurmrestd: jobs: answers with status {status}; see that slurmctld runs, the token holds .* v0.0.38"
        refused(ClusterError, told, rest.queue)


class InUtc(Refuses):
    """Reads instants as Slurm 22.05 does: local time, here UTC, or `uts` and seconds from the epoch."""

    def do_GET(self):
        (said,) = parse_qs(urlsplit(self.path).query)["start_time"]
        local = said.removeprefix("uts")
        self.server.since_s = (
            float(local) if local != said else datetime.fromisoformat(said).replace(tzinfo=UTC).timestamp()
        )
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"jobs": []}')


def test_a_history_begins_when_it_should_whatever_the_time_zone_of_slurmrestd():
    """Jobs that ended meanwhile were missed where it runs west of who asks."""
    with asked_once(InUtc) as (server, rest), time_zone("Asia/Tokyo"):
        assert rest.history(1_700_000_000.5, "account") is None
        assert server.since_s == 1_700_000_000.0
