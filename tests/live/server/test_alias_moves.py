"""The alias moves while ten thousand requests are under way: each is answered, by the old version or the new one."""

import asyncio
import json
import threading
import time

import pytest

from tests.live.server.site import Site

CONNECTIONS, EACH, MOVES = 100, 100, 6
"""All requests of a connection are sent at once, so that all of all connections are under way from the start."""
WITHIN_S = 5.0
"""From when an alias moves until its version answers."""
REQUEST = b"GET /v1/forecasts?pools=busy HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


async def answers(port: int, seen: list[tuple[float, int, bytes]]) -> None:
    """Instant, status and body of each answer on one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(REQUEST * EACH)
    for _ in range(EACH):
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
        seen.append((time.monotonic(), int(head.split()[1]), await reader.readexactly(length)))
    writer.close()


async def all_answers(port: int, seen: list[tuple[float, int, bytes]]) -> None:
    await asyncio.gather(*(answers(port, seen) for _ in range(CONNECTIONS)))


@pytest.mark.slow
def test_the_alias_moves_under_ten_thousand_requests(registry, variant, card):
    """The versions are alike but for their loads, which tell who answered."""
    registry.register(variant("new-load", 2), card(name="new-load"))
    with Site(registry) as site:
        site.now_s = 1000.0
        site.post(("look", "", 1000.0, {}))
        plain = registry.load
        registry.load = lambda version: _More(plain(version)) if version.version == 2 else plain(version)
        told = {}
        for number in (1, 2):
            registry.set_alias("new-load", "champion", number)
            site.service.watch.poll()
            told[number] = site.forecasts("?pools=busy")["pools"]
        assert told[1] != told[2]
        seen: list[tuple[float, int, bytes]] = []
        asking = threading.Thread(target=asyncio.run, args=(all_answers(site.port, seen),))
        asking.start()
        for move in range(MOVES):
            time.sleep(0.5)
            registry.set_alias("new-load", "champion", 1 + move % 2)
            site.service.watch.poll()
        asking.join()
        moved_s = time.monotonic()
        registry.set_alias("new-load", "champion", 1 + MOVES % 2)
        # By the server's own looks at the aliases.
        while site.forecasts()["versions"]["new-load"] != 1 + MOVES % 2:
            assert time.monotonic() < moved_s + WITHIN_S
            time.sleep(0.05)
        within_s = time.monotonic() - moved_s
    assert len(seen) == CONNECTIONS * EACH
    assert {status for _, status, _ in seen} == {200}
    bodies = [json.loads(body) for _, _, body in seen]
    assert all(one["pools"] == told[one["versions"]["new-load"]] for one in bodies)
    by = [one["versions"]["new-load"] for one in bodies]
    assert min(by.count(1), by.count(2)) > 0
    print(f"{len(seen)} answers: {by.count(1)} by the old, {by.count(2)} by the new; answered after {within_s:.1f} s")


class _More:
    """A predictor of loads that tells a GPU more than another."""

    def __init__(self, predictor):
        self._predictor = predictor

    def __getattr__(self, name):
        return getattr(self._predictor, name)

    def lend_rows(self, rows):
        return 1.0 + self._predictor.lend_rows(rows)
