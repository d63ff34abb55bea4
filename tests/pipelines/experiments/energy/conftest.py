"""A small campaign on two unlike kinds of nodes: trace, profiles and cluster file, made once."""

from pathlib import Path

import pytest

from tests.scenarios import write_energy_scene


@pytest.fixture(scope="session")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of energy.jobs.parquet, energy.yaml and profiles.csv."""
    at = tmp_path_factory.mktemp("energy")
    write_energy_scene(at, {"nodes": 4, "jobs": 24, "epochs": "5,40"})
    return at
