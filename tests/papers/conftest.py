"""What tests of the papers' figures share: real traces."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def traces():
    if "JOBCAST_DATA" not in os.environ:
        pytest.skip("JOBCAST_DATA is not set: published traces are needed")
    return Path(os.environ["JOBCAST_DATA"])
