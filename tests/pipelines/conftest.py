"""A command line to type into, and a small finished run with its registry: made once, copied where it is changed."""

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobcast.models.registry import Registry, open_registry
from jobcast.pipelines.cli.main import main
from jobcast.pipelines.experiments.forecast_specs import PREDICTORS
from jobcast.pipelines.experiments.rigid_jobs import RigidScenario
from jobcast.pipelines.stages.config import Learn, Schedule
from jobcast.traces.generators import generate
from jobcast.traces.owners import Owner
from jobcast.traces.pools import read_pools, write_pools
from jobcast.traces.readers import read_trace
from jobcast.traces.table_files import write_trace
from tests.scenarios import pool_scenario
from tests.shared import made_once, shared_folder

HEADER = "job_id,pool,submit_time,duration,gpus"
TRAINING = f"{HEADER},model,batch_size,epochs,adaptation"
RATES = "gpu_type,model,batch_size,gpus,steps_per_second"
COURSE = "job_id,epoch,batch_size"
# Steps a second that make an epoch of LM's 59,675 samples 60 s long at batch size 10, and 40 s at 20.
FAST, FASTER = 59_675 / 10 / 60.0, 59_675 / 20 / 40.0
PARAMS = {
    "prepare": {"min_pool_jobs": 50},
    "featurize": {"horizons_min": [5, 60], "step_s": 1800.0, "min_train_jobs": 50},
    "train": {
        "will_jobs_arrive": {"algorithms": ["lightgbm"]},
        "new_load": {"algorithms": ["sliding-max"]},
        "job_duration": {"algorithms": ["tag-pool-width"]},
    },
    "learn": {name: {"algorithms": []} for name in Learn.model_fields},
    "schedule": {name: {"algorithms": []} for name in Schedule.model_fields},
    "backtest": {
        "cells": [{"policy": "fcfs"}, {"policy": "sia", "forecasts": ["oracle", "registry"]}],
        "seeds": 1,
        "draws": 100,
    },
}
"""A run of seconds: two horizons, one algorithm of three predictors, three simulations."""


@dataclass(frozen=True)
class Run:
    """A finished run: what went in, the registry's home, what came out, and when training ended."""

    trace: Path
    pools: Path
    params: Path
    home: Path
    out: Path
    trained_until: str

    @property
    def words(self) -> list[str]:
        """The options of `jobcast run` that it came from."""
        return ["--trace", str(self.trace), "--pools", str(self.pools), "--params", str(self.params)]


@dataclass(frozen=True)
class Answer:
    """What a command left behind in the terminal."""

    code: int
    out: str
    err: str


class Shell:
    """Types commands into jobcast, in this process. `home` may be set to another registry's."""

    def __init__(self, home: Path, folder: Path, patch: pytest.MonkeyPatch, screen: pytest.CaptureFixture[str]) -> None:
        self.home = home
        self._folder, self._patch, self._screen = folder, patch, screen

    def __call__(self, *words: object) -> Answer:
        self._patch.setenv("JOBCAST_HOME", str(self.home))
        self._screen.readouterr()
        with pytest.raises(SystemExit) as left:
            main([str(word) for word in words])
        out, err = self._screen.readouterr()
        return Answer(left.value.code, out, err)

    def works(self, *words: object) -> Answer:
        """Run a command that must end well."""
        answer = self(*words)
        assert answer.code == 0, answer.err
        return answer

    def json(self, *words: object) -> dict[str, Any]:
        """The figures of a command that must end well."""
        figures: dict[str, Any] = json.loads(self.works(*words, "--json", "-").out)
        return figures

    def refuses(self, *words: object, code: int = 2) -> str:
        """The one line of a command that must be refused, and that must leave everything as it was."""
        before = self.files()
        answer = self(*words)
        assert answer.code == code, answer
        assert answer.out == ""
        assert answer.err.startswith("jobcast: ")
        assert answer.err.endswith("\n")
        assert answer.err.count("\n") == 1, answer.err
        assert self.files() == before
        return answer.err.removeprefix("jobcast: ").rstrip("\n")

    def files(self) -> dict[str, tuple[int, int] | None]:
        """Size and time of every file of the test and of the registry; None for folders."""
        found = [path for root in (self._folder, self.home) if root.is_dir() for path in sorted(root.rglob("*"))]
        # The shared registry's lock comes and goes with what other workers do, as does their scratch beside its store.
        found = [path for path in found if path.name != ".lock" and not _of_others(path)]
        return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) if path.is_file() else None for path in found}


def _of_others(path: Path) -> bool:
    """Whether another process works there on what it will put in the registry's place."""
    return any(one.startswith(".mlruns.") and f".{Owner.here()}." not in one for one in path.parts)


def typed(*words: object, home: Path | None = None) -> None:
    """Type a command that must end well, in fixtures that outlive a test; `home` is its registry's."""
    with pytest.MonkeyPatch.context() as patch:
        if home is not None:
            patch.setenv("JOBCAST_HOME", str(home))
        with pytest.raises(SystemExit) as left:
            main(["--quiet", *map(str, words)])
    assert left.value.code == 0


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A finished `jobcast run` on a week of three pools, too short to pass the gate; promoted by hand all the same.

    Its home is for reading: see `store`.
    """
    # One for all workers, and for other folders' tests that import this fixture.
    root = shared_folder(tmp_path_factory, "run")
    names = ("week.parquet", "pools.csv", "params.yaml", "home", "out")
    made = Run(*(root / name for name in names), "2024-01-05T00:00:00Z")
    made_once(root, lambda: _make(made))
    database = made.home / "mlruns/mlflow.db"
    written_ns = database.stat().st_mtime_ns
    yield made
    # Tests of other workers compare what lies in this home: who keeps promises or logs backtests has one of its own.
    assert not (made.home / "promises").exists()
    assert database.stat().st_mtime_ns == written_ns, "a test wrote to the registry that is for reading: see `store`"


def _make(made: Run) -> None:
    trace, pools = generate("campus", 0, {"weeks": 1, "pools": 3, "jobs": 1200, "widest": 8})
    write_trace(trace, made.trace)
    write_pools(pools, made.pools)
    made.params.write_text(yaml.safe_dump(PARAMS))
    typed("run", *made.words, "--out", made.out, home=made.home)
    for name in PREDICTORS:
        open_registry(made.home).promote(name, 1)


@pytest.fixture
def untrained() -> None:
    """For `usefixtures`: `shell` has an empty registry of its own, and no run is made for it."""


@pytest.fixture
def shell_home(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Where the command line's registry is; a module with another one overrides it."""
    return tmp_path / "home" if "untrained" in request.fixturenames else request.getfixturevalue("run").home


@pytest.fixture
def shell(
    shell_home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Shell:
    """A command line in an empty folder, with the finished run's registry (for reading alone)."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.chdir(tmp_path)
    return Shell(shell_home, tmp_path, monkeypatch, capsys)


@pytest.fixture
def store(run: Run, shell: Shell, tmp_path: Path) -> Registry:
    """The registry of the finished run, copied, that the command line now reads and writes."""
    shell.home = tmp_path / "home"
    shutil.copytree(run.home, shell.home)
    return open_registry(shell.home)


@pytest.fixture
def csv(tmp_path: Path) -> Callable[..., Path]:
    """Write a trace by its rows (or another file by name, header and rows)."""

    def write(*rows: str, name: str = "jobs.csv", header: str = HEADER) -> Path:
        path = tmp_path / name
        path.write_text("".join(f"{line}\n" for line in (header, *rows)), encoding="utf-8")
        return path

    return write


@pytest.fixture
def training(csv: Callable[..., Path]) -> tuple[object, ...]:
    """Two jobs on one GPU: the first doubles its batch size after two of six epochs (280 s), the second takes 120 s."""
    trace = csv("01,a,0,1000,1,LM,10,6,gns", "02,a,10,1000,1,LM,10,2,static", header=TRAINING)
    rates = csv(f"v100,LM,10,1,{FAST!r}", f"v100,LM,20,1,{FASTER!r}", name="rates.csv", header=RATES)
    truth = csv("1,0,10", "1,2,20", name="truth.csv", header=COURSE)
    return ("simulate", "--trace", trace, "--gpus", "1", "--set", f"throughputs={rates}", "--set", f"regimes={truth}")


@pytest.fixture
def scenario(run: Run) -> RigidScenario:
    """The part of the finished run's trace that came after training, with its quotas."""
    trace = read_trace(run.trace)
    return pool_scenario(trace, read_pools(run.pools).at(0.0), from_s=1704412800.0)
