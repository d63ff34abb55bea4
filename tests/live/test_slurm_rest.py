"""What is told where slurmrestd refuses."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from jobcast.domain.errors import ClusterError
from jobcast.live.slurm_rest import SlurmRest


class Refuses(BaseHTTPRequestHandler):
    """Slurm 22.05 answers 401 without a token and 500 with a wrong one; a newer one 404, for it has other versions."""

    def do_GET(self):
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *words):
        """Nobody reads it."""


@pytest.mark.parametrize("status", [401, 404, 500])
def test_who_is_refused_is_told_what_to_look_at(status):
    with HTTPServer(("127.0.0.1", 0), Refuses) as server:
        server.status = status
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        told = f"slurmrestd: jobs: answers with status {status}; see that slurmctld runs, the token holds .* v0.0.38"
        with pytest.raises(ClusterError, match=told):
            SlurmRest(f"http://127.0.0.1:{server.server_port}").queue()
        thread.join()
