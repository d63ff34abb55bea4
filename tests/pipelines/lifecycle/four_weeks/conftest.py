"""A small registry: one version of each predictor, trained on two of four weeks of three pools."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from jobcast.models.registry import open_registry
from jobcast.pipelines.lifecycle.recipes.common import TrainSettings
from jobcast.pipelines.lifecycle.training import train_and_register
from jobcast.pipelines.report.formatting import parse_time
from jobcast.traces.generators import generate
from jobcast.traces.pools import write_pools
from jobcast.traces.readers import read_trace
from jobcast.traces.table_files import write_trace

UNTIL = "2024-01-15T00:00:00Z"
SETTINGS = TrainSettings(horizons_min=(5, 60), min_train_jobs=50)
ALGORITHMS = {"will-jobs-arrive": "logistic", "new-load": "sliding-max", "job-duration": "tag-pool-width"}


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """Takes the place of the finished run of the other tests: `trace`, `pools`, `home`, `trained_until`."""
    root: Path = tmp_path_factory.mktemp("lifecycle")
    trace, pools = generate("campus", 0, {"weeks": 4, "pools": 3, "jobs": 2000, "widest": 8})
    made = SimpleNamespace(
        trace=root / "weeks.parquet", pools=root / "pools.csv", home=root / "home", trained_until=UNTIL
    )
    write_trace(trace, made.trace)
    write_pools(pools, made.pools)
    read = read_trace(made.trace)
    for name, algorithm in ALGORITHMS.items():
        train_and_register(name, algorithm, read, None, parse_time(UNTIL), SETTINGS, home=made.home)
    return made


@pytest.fixture
def registry(run):
    """The small registry, for reading."""
    return open_registry(run.home)


@pytest.fixture
def trace(run):
    """The trace that it was trained on."""
    return read_trace(run.trace)
