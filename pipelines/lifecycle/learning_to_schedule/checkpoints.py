"""Where a training stands, on disk after every iteration: an interrupt loses one iteration at most."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from jobcast.domain.errors import ConfigError
from jobcast.domain.tasks import Floats
from jobcast.models.scheduling.learner import Learner

STATE, WEIGHTS = "state.json", "learner.pt"


@dataclass(slots=True)
class Standing:
    """Where a training stands.

    Attributes
    ----------
    iteration : policy gradient iterations done
    betas : weights of the reward
    imitation : how well MLF-H is imitated, by head
    history : by iteration, what was earned
    checks : by check, the iteration and the reward on workloads kept apart
    best : weights of the best check
    start : weights after imitation
    tried : what the search for weights of the reward tried
    """

    iteration: int = 0
    betas: tuple[float, ...] = ()
    imitation: dict[str, float] = field(default_factory=dict)
    history: list[dict[str, float]] = field(default_factory=list)
    checks: list[tuple[int, float]] = field(default_factory=list)
    best: dict[str, list[Any]] = field(default_factory=dict)
    start: dict[str, list[Any]] = field(default_factory=dict)
    tried: list[dict[str, Any]] = field(default_factory=list)


def listed(arrays: Mapping[str, Floats]) -> dict[str, list[Any]]:
    """Weights as JSON takes them."""
    return {name: values.tolist() for name, values in arrays.items()}


def arrays_in(lists: Mapping[str, list[Any]]) -> dict[str, Floats]:
    """Weights from JSON."""
    return {name: np.array(values, dtype=np.float64) for name, values in lists.items()}


def keep(folder: Path, asked: Mapping[str, Any], standing: Standing, learner: Learner) -> None:
    """Write all of it; each file in place of the old one at once, the state last."""
    folder.mkdir(parents=True, exist_ok=True)
    fresh = folder / f"{WEIGHTS}.{standing.iteration}"
    learner.save(fresh)
    text = json.dumps({"asked": dict(asked), "weights": fresh.name, **asdict(standing)})
    part = folder / f"{STATE}.part"
    part.write_text(text, encoding="utf-8")
    os.replace(part, folder / STATE)
    for old in folder.glob(f"{WEIGHTS}.*"):
        if old != fresh:
            old.unlink()


def resume(folder: Path, asked: Mapping[str, Any], learner: Learner) -> Standing | None:
    """What `keep` wrote, the learner brought there; None where there is nothing.

    Raises
    ------
    ConfigError
        The folder holds a training that was asked for otherwise.
    """
    path = folder / STATE
    if not path.is_file():
        return None
    told = json.loads(path.read_text(encoding="utf-8"))
    if told.pop("asked") != json.loads(json.dumps(dict(asked))):
        raise ConfigError(f"{path}: a training with other settings or jobs; give another folder, or remove this one")
    learner.restore(folder / told.pop("weights"))
    told["betas"] = tuple(told["betas"])
    told["checks"] = [tuple(check) for check in told["checks"]]
    return Standing(**told)
