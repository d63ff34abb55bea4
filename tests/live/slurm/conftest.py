"""The Slurm that tests of this folder share."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.slurm.slurm_cluster import SlurmCluster, available

HOOKS = Path(__file__).parents[3] / "integrations" / "slurm"
ROLES = {"news": "Operator", "backup": "Admin"}


@pytest.fixture(scope="session")
def slurm_home() -> Iterator[Path]:
    """A folder that users of jobs may enter, which pytest's own are not."""
    home = Path(tempfile.mkdtemp(prefix="slurm-"))
    home.chmod(0o755)
    yield home
    shutil.rmtree(home)


@pytest.fixture(scope="session")
def slurm(slurm_home: Path) -> Iterator[SlurmCluster]:
    """Two pools of 16 GPUs on four nodes, and the hooks, which are silent unless told whom to ask.

    A test leaves no job, no limit changed and no daemon down.
    """
    reason = available()
    if reason:
        pytest.skip(reason)
    cluster = SlurmCluster(slurm_home / "shared", hooks=HOOKS, roles=ROLES)
    cluster.start()
    yield cluster
    cluster.stop()
