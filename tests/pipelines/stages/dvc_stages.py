"""What dvc.yaml says of each stage, and whether it says the same as the plan of the main job."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

import jobcast

ROOT = Path(jobcast.__file__).parents[2]
DATA = "data/"


@dataclass(frozen=True)
class DvcStage:
    """Paths below data/ lack that prefix; `${key}` stands for the item of a stage that has several."""

    name: str
    items: tuple[str, ...]
    cmd: str
    code: tuple[str, ...]
    deps: tuple[str, ...]
    outs: tuple[str, ...]
    metrics: tuple[str, ...]
    params: tuple[str, ...]

    @classmethod
    def of(cls, name: str, entry: dict[str, Any]) -> "DvcStage":
        told = entry.get("do", entry)
        paths = {part: _paths(told.get(part, ())) for part in ("deps", "outs", "metrics", "params")}
        code = tuple(path for path in paths["deps"] if not path.startswith(DATA))
        data = {part: tuple(path.removeprefix(DATA) for path in of if path not in code) for part, of in paths.items()}
        return cls(name, tuple(entry.get("foreach", ("",))), told["cmd"], code, **data)

    def made_from(self) -> set[str]:
        """Files and folders that the stage reads, of all items; code aside."""
        return {path.replace("${key}", item) for path in self.deps for item in self.items}

    def made(self) -> set[str]:
        """Files and folders of all items, metrics among them."""
        return {path.replace("${key}", item) for path in (*self.outs, *self.metrics) for item in self.items}


def _paths(entries: Iterable[Any]) -> tuple[str, ...]:
    """Paths of a list of outs or metrics, their options aside."""
    return tuple(entry if isinstance(entry, str) else next(iter(entry)) for entry in entries)


ENTRIES: dict[str, Any] = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
DVC = [DvcStage.of(name, entry) for name, entry in ENTRIES.items()]
