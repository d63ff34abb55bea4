"""Requests that nobody should send, to a server that runs: none may be answered by an error of the server's own.

    jobcast serve --pools pools.csv &
    python benchmarks/fuzz_serve.py http://127.0.0.1:8765 --requests 100000 [--token TOKEN]

A request is a sound one with pieces changed: method, path, query, headers, and a body whose values are replaced by
others of any kind and size, cut short, or no JSON at all. With --token half of the requests are sent without it, and
must be answered by 401 wherever something is told. Prints how many requests got which status, and what was wrong.
"""

import argparse
import http.client
import json
import math
import time
from collections import Counter
from urllib.parse import quote, urlsplit

import numpy as np

OPEN = ("/healthz", "/readyz", "/", "/page.js", "/page.css")
PATHS = (
    *OPEN, "/v1/forecasts", "/v1/events", "/v1/eta", "/v1/promises", "/v1/advice", "/v1/leases", "/v1/overview",
    "/v1/jobs/1/eta", "/metrics", "/docs", "/openapi.json",
)  # fmt: skip
METHODS = ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH")
POSTED = ("/v1/events", "/v1/eta")
TEXTS = (
    "", "a", "'; DROP TABLE events; --", "$(reboot)", "<script>", "../../etc/passwd", "\n\r\t", "\0", "é", "\u202e",
    "\ud800", "x" * 300, "%s%n", "NaN", "1", "true", "vision", "{{7*7}}",
)  # fmt: skip
VALUES = (
    None, True, False, 0, 1, -1, 8, 1e300, -1e300, 10**400, math.nan, math.inf, 0.5, [], {}, [1, 2], [[]], {"a": 1},
    1e11, 2**63,
)  # fmt: skip
EVENT = {"kind": "submit", "job_id": "1", "at_s": 0.0, "pool": "vision", "gpus": 1, "user": "ada"}
ETA = {"pool": "vision", "gpus": [1, 8], "time_limit_s": 3600.0}
KINDS = ("submit", "start", "end", "look", "other")


def request(rng, pools):
    """Method, path with its query, headers and body of one request; pools are names that the server knows."""

    def one_of(values):
        return values[int(rng.integers(len(values)))]

    def value():
        return one_of(TEXTS) if rng.random() < 0.5 else one_of(VALUES)

    def changed(body):
        return {**{name: value() if rng.random() < 0.15 else one for name, one in body.items()}, **more()}

    def more():
        return {one_of(TEXTS): value()} if rng.random() < 0.1 else {}

    def event():
        sound = {"kind": one_of(KINDS), "job_id": str(rng.integers(50)), "pool": one_of(pools)}
        return changed({**EVENT, **sound, "at_s": time.time() - float(rng.integers(10_000))})

    path = one_of(PATHS if rng.random() < 0.5 else POSTED)
    if path == "/v1/jobs/1/eta":
        path = f"/v1/jobs/{quote(one_of(TEXTS), safe='', errors='surrogatepass')}/eta"
    if rng.random() < 0.3:
        names = ("pools", "horizons", "format", "other")
        path += f"?{one_of(names)}={quote(one_of((*TEXTS, *pools)), safe='', errors='surrogatepass')}"
    events = {"events": [event() for _ in range(rng.integers(4))]}
    sound = events if path.startswith("/v1/events") != (rng.random() < 0.1) else {**ETA, "pool": one_of(pools)}
    body = json.dumps(value() if rng.random() < 0.1 else changed(sound)).encode()
    if rng.random() < 0.1:
        body = body[: int(rng.integers(len(body) + 1))]
    if rng.random() < 0.05:
        body = rng.bytes(40)
    headers = {"Content-Type": one_of(("application/json", "application/json", "application/json", "text/plain", ""))}
    if rng.random() < 0.1:
        headers[one_of(("Accept", "Cookie", "X-Other", "Origin"))] = "x" * int(rng.integers(200))
    method = one_of(METHODS) if rng.random() < 0.1 else "POST" if path.split("?")[0] in POSTED else "GET"
    return method, path, headers, body if method != "GET" else None


def sent(connection, method, path, headers, body):
    """Status and text of the answer, on one connection that is opened anew where the server closed it."""
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (http.client.HTTPException, ConnectionError):
        connection.close()
        return 0, b""


def main():
    """Send them, count statuses, and fail where the server failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url")
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pools", default="vision", help="names that the server knows, with commas")
    parser.add_argument("--token")
    asked = parser.parse_args()
    rng, seen, wrong = np.random.default_rng(asked.seed), Counter(), []
    connection = http.client.HTTPConnection(urlsplit(asked.url).netloc, timeout=60.0)
    for _ in range(asked.requests):
        method, path, headers, body = request(rng, asked.pools.split(","))
        known = asked.token is not None and rng.random() < 0.5
        headers |= {"Authorization": f"Bearer {asked.token}"} if known else {}
        status, text = sent(connection, method, path, headers, body)
        seen[status] += 1
        leaks = b"Traceback" in text or b"/home" in text or b".sqlite" in text or b".py" in text
        unasked = asked.token is not None and not known and path.split("?")[0] not in OPEN and status != 401
        # 503: not ready, or others are being answered; both are meant.
        if status == 0 or (status >= 500 and status != 503) or leaks or unasked:
            wrong.append((status, method, path, body, text[:200]))
    print(", ".join(f"{status}: {number:,}" for status, number in sorted(seen.items())))
    for one in wrong[:10]:
        print(*one)
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
