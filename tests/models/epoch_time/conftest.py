"""Jobs whose steps are made by a known formula."""

from collections.abc import Callable

import numpy as np
import pytest

from jobcast.traces.profiles import ProfileRow, ProfileTable, profile_table

SAMPLES = 50_000
Make = Callable[..., ProfileTable]


def rows_of(
    model: str, scale_s: float, fixed: float, sync_s: float, slower: dict[str, float], in_all: bool = False
) -> list[ProfileRow]:
    """Additive steps, 5 batch sizes x 4 numbers of GPUs: a step is scale x (fixed + (1 - fixed) b / 64) + sync x
    sqrt(g / 2), b samples a GPU; on other types all times so much longer."""
    rows: list[ProfileRow] = []
    for kind, factor in slower.items():
        for size in (16, 32, 64, 128, 256):
            for gpus in (1, 2, 4, 8):
                step = scale_s * (fixed + (1 - fixed) * size / 64) + (sync_s * np.sqrt(gpus / 2) if gpus > 1 else 0.0)
                seconds = SAMPLES / (size * gpus) * step * factor
                rows.append((model, size * gpus if in_all else size, kind, gpus, float(seconds)))
    return rows


@pytest.fixture(scope="session")
def make() -> Make:
    """Tables of some applications that differ in all parameters."""

    def made(
        count: int = 5, kinds: tuple[str, ...] = ("v100", "k80"), in_all: bool = False, seed: int = 0
    ) -> ProfileTable:
        rng = np.random.default_rng(seed)
        rows: list[ProfileRow] = []
        for index in range(count):
            scale = 10 ** rng.uniform(-2, 0)
            slower = {kind: 4.0**at * np.exp(0.2 * rng.standard_normal()) for at, kind in enumerate(kinds)}
            sync = scale * rng.uniform(0.1, 0.4)
            rows += rows_of(f"app{index}", scale, rng.uniform(0.1, 0.5), sync, slower, in_all)
        return profile_table(rows, "made.csv")

    return made
