"""Latency of `GET /v1/forecasts` over HTTP, one request after another on one connection.

python benchmarks/bench_serve.py http://127.0.0.1:8765 --requests 2000
"""

import argparse
import http.client
import time
from urllib.parse import urlsplit

import numpy as np


def latencies_ms(url: str, requests: int, path: str) -> np.ndarray:
    """Milliseconds of each request on one connection, (requests,)."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    result = np.empty(requests)
    for number in range(requests):
        begun_s = time.perf_counter()
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            raise SystemExit(f"{url}{path}: status {answer.status}")
        result[number] = 1e3 * (time.perf_counter() - begun_s)
    return result


def main() -> None:
    """Print quantiles and the rate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--path", default="/v1/forecasts")
    asked = parser.parse_args()
    found = latencies_ms(asked.url, asked.requests, asked.path)
    p50, p99 = np.quantile(found, [0.5, 0.99])
    print(f"{asked.requests} requests: p50 {p50:.2f} ms, p99 {p99:.2f} ms, {1e3 / found.mean():.0f} a second")


if __name__ == "__main__":
    main()
