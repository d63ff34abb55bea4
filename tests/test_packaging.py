"""The wheel holds every room."""

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import jobcast

HOUSE = Path(jobcast.__file__).parent
ROOT = HOUSE.parents[1]


def test_every_package_is_listed():
    listed = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])
    found = {"jobcast"} | {
        ".".join(("jobcast", *path.parent.relative_to(HOUSE).parts))
        for room in HOUSE.iterdir()
        if room.is_dir()
        for path in room.rglob("__init__.py")
    }
    assert listed == found


def test_the_wheel_holds_every_module_and_template(tmp_path):
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    held = set(zipfile.ZipFile(wheel).namelist())
    expected = {
        f"jobcast/{room.name}/{path.relative_to(room)}"
        for room in HOUSE.iterdir()
        if room.is_dir() and room.name != "__pycache__"
        for pattern in ("*.py", "*.j2", "*.css", "*.html", "*.js")
        for path in room.rglob(pattern)
    }
    assert expected
    assert expected <= held
    assert "jobcast/py.typed" in held
