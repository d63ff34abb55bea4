"""A small campaign on two unlike kinds of nodes: trace, profiles and cluster file, made once."""

from pathlib import Path

import pytest

from jobcast.traces.cluster_file import write_cluster
from jobcast.traces.generators import generate, generate_nodes, generate_profiles
from jobcast.traces.profiles import write_profiles
from jobcast.traces.table_files import write_trace

SETTINGS = {"nodes": 4, "jobs": 24, "epochs": "5,40"}


@pytest.fixture(scope="session")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of jobs.parquet, profiles.csv and cluster.yaml."""
    at = tmp_path_factory.mktemp("energy")
    write_trace(generate("andreas", 3, SETTINGS)[0], at / "jobs.parquet")
    write_profiles(generate_profiles("andreas", SETTINGS), at / "profiles.csv")
    write_cluster(generate_nodes("andreas", SETTINGS), at / "cluster.yaml")
    return at
