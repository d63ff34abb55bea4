"""A server whose pool calm has a queue."""

import pytest

from tests.live.server.site import Site, filled


@pytest.fixture
def site(registry):
    with Site(registry, policy="fcfs") as site:
        yield filled(site)
