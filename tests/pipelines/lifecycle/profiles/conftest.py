"""A registry with a version of epoch-time, trained once on throughputs by a hand-made formula."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.pipelines.conftest import typed

SIZES, WIDTHS = (16, 64, 256), (1, 2, 4)


@dataclass(frozen=True)
class ProfileRun:
    """What the version was trained on, a table of another application, few points of it, and the registry's home."""

    throughputs: Path
    profiles: Path
    later: Path
    few: Path
    home: Path


def throughputs(apps: dict[str, tuple[float, float]]) -> str:
    """Rows of applications (seconds of a middle step, of synchronisation) on two types."""
    lines = ["gpu_type,model,batch_size,gpus,steps_per_second"]
    for model, (scale, sync) in apps.items():
        for kind, slower in (("v100", 1.0), ("k80", 4.0)):
            for size in SIZES:
                for gpus in WIDTHS:
                    step = slower * (scale * (0.3 + 0.7 * size / 64) + (sync * np.sqrt(gpus / 2) if gpus > 1 else 0.0))
                    lines.append(f"{kind},{model},{size},{gpus},{float(gpus / step)!r}")
    return "\n".join([*lines, "k80,A3C,,1,3.5", "v100,LM,5,1,0", ""])


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> ProfileRun:
    """In place of a run of the main job: `shell` and `store` work on this home."""
    root = tmp_path_factory.mktemp("profiles")
    made = ProfileRun(*(root / name for name in ("t.csv", "p.sqlite", "later.csv", "few.csv", "home")))
    made.throughputs.write_text(throughputs({"ResNet-18": (0.1, 0.02), "LM": (0.02, 0.01), "Transformer": (0.4, 0.1)}))
    later = root / "u.csv"
    later.write_text(throughputs({"new": (0.2, 0.05)}))
    typed("profiles", "import", made.throughputs, "--out", made.profiles)
    typed("profiles", "import", later, "--out", made.later, "--samples", "new=1000")
    typed("train", "epoch-time", "--trace", made.profiles, home=made.home)
    head, *rows = made.later.read_text().splitlines()
    kept = [row for row in rows if row.split(",")[1:4:2] in (["16", "1"], ["64", "4"], ["256", "1"])]
    made.few.write_text("\n".join([head, *kept, ""]))
    return made
