"""A registry with a version of accuracy-curve, trained once on small curves by hand-made formulas."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.pipelines.conftest import typed

HEADER = "app,batch_size,epoch,metric"
EPOCHS = 30


@dataclass(frozen=True)
class CurveRun:
    """What the version was trained on, other curves of the same kind, and the registry's home."""

    curves: Path
    later: Path
    home: Path


def runs(seed: int, sizes: Iterable[int]) -> list[str]:
    """Rows of three applications: an accuracy, an error that falls, an accuracy on a scale of 100 that jumps."""
    rng = np.random.default_rng(seed)
    epoch = np.arange(1, EPOCHS + 1)
    rows = []
    for size in sizes:
        speed, noise = 0.6 + 0.2 * rng.random(), 0.004 * rng.standard_normal((3, EPOCHS))
        metrics = {
            "vision": 0.9 - 0.5 * epoch**-speed + noise[0],
            "speech": 0.2 + 0.7 * epoch ** -(speed + 0.2) + noise[1],
            "boxes": 100 * (0.7 - 0.4 * epoch**-speed + 0.1 * (epoch > EPOCHS // 2) + noise[2]),
        }
        for app, metric in metrics.items():
            steps = EPOCHS // 2 if app == "boxes" else ""
            rows += [f"{app},{size},{one},{value:.6f},{steps}" for one, value in zip(epoch, metric, strict=True)]
    return rows


def write(path: Path, rows: Iterable[str]) -> Path:
    path.write_text("".join(f"{row}\n" for row in (f"{HEADER},lr_milestones", *rows)), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> CurveRun:
    """In place of a run of the main job: `shell` and `store` work on this home."""
    root = tmp_path_factory.mktemp("curves")
    made = CurveRun(
        write(root / "curves.csv", runs(0, (16, 32, 64))), write(root / "later.csv", runs(1, (48, 96))), root / "home"
    )
    typed("train", "accuracy-curve", "--trace", made.curves, home=made.home)
    return made


@pytest.fixture
def seen(run: CurveRun, tmp_path: Path) -> Callable[..., Path]:
    """Write the first epochs of the later curves, as running jobs have them, with what is appended to each row."""

    def cut(epochs: int, column: str = "", value: str = "") -> Path:
        head, *rows = run.later.read_text(encoding="utf-8").splitlines()
        kept = [row + value for row in rows if int(row.split(",")[2]) <= epochs]
        path = tmp_path / "running.csv"
        path.write_text("".join(f"{row}\n" for row in (head + column, *kept)), encoding="utf-8")
        return path

    return cut
