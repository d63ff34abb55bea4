"""Small predictors that are really fitted, and a store that holds them: made once, copied for each test."""

import json
import pickle
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobcast.features.corpus import build_corpus
from jobcast.models.job_duration import JobDuration
from jobcast.models.new_load import NewLoad
from jobcast.models.registry import ModelCard, Registry, open_registry
from jobcast.models.will_jobs_arrive import WillJobsArrive
from jobcast.traces.history import pool_histories
from jobcast.traces.table import Source, Trace
from tests.scenarios import frame_of
from tests.shared import made_once, shared_folder

DAY_S = 86400.0
FROM_S = 17_000 * DAY_S
UNTIL_S = FROM_S + 3 * DAY_S
HORIZONS_MIN = (5, 60)


@pytest.fixture(scope="session")
def small_trace() -> Trace:
    """Four days of two pools; the first three train."""
    rng = np.random.default_rng(7)
    counts = {"busy": 300, "calm": 60}
    submit_s = np.sort(FROM_S + rng.uniform(0, 4 * DAY_S, sum(counts.values())))
    pools = rng.permutation(np.repeat(list(counts), list(counts.values())))
    lasts_s = 10.0 + rng.exponential(2000.0, len(submit_s)).round()
    frame = frame_of(submit_s, pool=pools, duration=lasts_s, gpus=rng.choice([1, 2, 4, 8], len(submit_s)))
    return Trace.from_frame(frame, name="small", source=Source("small.csv", "5" * 64, len(frame)))


@pytest.fixture(scope="session")
def predictors(small_trace: Trace, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, object]:
    """The three predictors of a scheduler, fitted."""
    folder = shared_folder(tmp_path_factory, "predictors")
    made_once(folder, lambda: (folder / "fitted").write_bytes(pickle.dumps(_fitted(small_trace))))
    found: dict[str, object] = pickle.loads((folder / "fitted").read_bytes())
    return found


def _fitted(trace: Trace) -> dict[str, object]:
    histories = pool_histories(trace)
    corpus = build_corpus(histories, FROM_S, UNTIL_S, HORIZONS_MIN)
    fitted = (
        WillJobsArrive().fit(corpus, UNTIL_S),
        NewLoad("sliding-max").fit(histories, FROM_S, UNTIL_S, HORIZONS_MIN),
        JobDuration(HORIZONS_MIN).fit(trace, UNTIL_S),
    )
    return {predictor.name: predictor for predictor in fitted}


@pytest.fixture(scope="session")
def saved(predictors: Mapping[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Folder of each fitted predictor."""
    root = tmp_path_factory.mktemp("saved")
    for name, predictor in predictors.items():
        predictor.save(root / name)
    return {name: root / name for name in predictors}


@pytest.fixture
def variant(saved: Mapping[str, Path], tmp_path: Path) -> Callable[[str, int], Path]:
    """A fitted predictor's folder with a number in it, so that its files are no other's."""

    def make(name: str, number: int) -> Path:
        folder = shutil.copytree(saved[name], tmp_path / f"variant-{number}" / name, dirs_exist_ok=True)
        file = folder / "metadata.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "note": number}))
        return folder

    return make


@pytest.fixture(scope="session")
def card() -> Callable[..., ModelCard]:
    """Card of a predictor, with changes."""
    plain = ModelCard(
        name="new-load",
        algorithm="sliding-max",
        seed=3,
        trace_name="small",
        trace_sha256="5" * 64,
        trace_rows=360,
        train_from_s=FROM_S,
        train_until_s=UNTIL_S,
        feature_names=("load_1", "load_2"),
        parameters={"coverage": 0.95},
        metrics={"horizons": {"5min": {"coverage": 0.97, "by_pool": {"busy": {"coverage": 0.96}}}}},
    )
    return lambda **changes: replace(plain, **changes)


@pytest.fixture(scope="session")
def template_home(
    saved: Mapping[str, Path], card: Callable[..., ModelCard], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Home with one version of each predictor. Copy it: see `registry`."""
    home = shared_folder(tmp_path_factory, "template") / "home"

    def register() -> None:
        for name, folder in saved.items():
            open_registry(home).register(folder, card(name=name))

    made_once(home.parent, register)
    return home


@pytest.fixture
def registry(template_home: Path, tmp_path: Path) -> Registry:
    """A store of this test's own, with one version of each predictor."""
    shutil.copytree(template_home, tmp_path / "home")
    return open_registry(tmp_path / "home")
