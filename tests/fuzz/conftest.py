"""What all damaged inputs are made from, and where commands run."""

from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.fuzz.test_fuzz_files import originals

    return originals(tmp_path_factory.mktemp("files"))


@pytest.fixture
def at_home(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder and a registry's home of the test's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JOBCAST_HOME", str(tmp_path / "home"))
