"""What tests of the papers' figures share: real traces, and a folder of traces that are not read."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from jobcast.pipelines.report.look import WIDE, painted


def answered(command, *words):
    """What a command of a paper says, which must end well."""
    answer = CliRunner().invoke(command, [str(word) for word in words])
    assert answer.exit_code == 0, answer.output
    return answer.output


@pytest.fixture(scope="session")
def traces():
    if "JOBCAST_DATA" not in os.environ:
        pytest.skip("JOBCAST_DATA is not set: published traces are needed")
    return Path(os.environ["JOBCAST_DATA"])


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Empty folders of the published traces, and a registry's home that nobody has made."""
    folder = tmp_path / "data"
    for name in ("openb", "pcs", "philly", "shockwave"):
        (folder / name).mkdir(parents=True)
    monkeypatch.setenv("JOBCAST_DATA", str(folder))
    monkeypatch.setenv("JOBCAST_HOME", str(tmp_path / "home"))
    return folder


@pytest.fixture
def unsaved(monkeypatch):
    """Plots are painted but neither laid out nor saved, which takes longest: for figures that others save."""

    def draw(title, paint, size=WIDE):
        with painted(title, paint, size):
            return "<svg />"

    monkeypatch.setattr("papers.plotting.draw", draw)
