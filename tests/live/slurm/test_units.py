"""The systemd units: systemd takes every line, and they are shut in."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.live.slurm.conftest import HOOKS

UNITS = sorted(HOOKS.glob("*.service"))
MOST_EXPOSED = 20
"""Of 100: what systemd itself calls OK ends at 4.0 of its 10.0."""
needs_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")


def analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["systemd-analyze", *map(str, arguments)], capture_output=True, text=True, timeout=60)


def here(unit: Path, folder: Path) -> Path:
    """A unit whose program and users are there."""
    words = {"/opt/jobcast/bin/jobcast": "/bin/true", "User=jobcast-advise": "User=mail", "User=jobcast": "User=mail"}
    text = unit.read_text()
    for word, other in {**words, "Group=jobcast": "Group=mail"}.items():
        text = text.replace(word, other)
    (folder / unit.name).write_text(text)
    return folder / unit.name


@needs_systemd
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_systemd_takes_a_unit(tmp_path, unit):
    done = analyze("verify", "--man=no", here(unit, tmp_path))
    assert (done.returncode, [line for line in done.stderr.splitlines() if unit.name in line]) == (0, [])


@needs_systemd
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_is_shut_in(unit):
    done = analyze("security", "--no-pager", "--offline=true", f"--threshold={MOST_EXPOSED}", unit)
    assert done.returncode == 0, done.stdout[-300:]


@needs_systemd
def test_a_unit_that_is_wrong_is_found(tmp_path):
    unit = here(UNITS[0], tmp_path)
    unit.write_text(unit.read_text().replace("ProtectHome=yes", "ProtectHome=perhaps"))
    assert unit.name in analyze("verify", "--man=no", unit).stderr
