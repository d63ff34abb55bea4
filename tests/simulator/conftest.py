"""Small workloads, in seconds."""

import pytest

from tests.simulator.pool_cases import workload_of


@pytest.fixture(scope="session")
def workload():
    return workload_of
