"""The documentation as a site: it builds strictly, asks no network for anything, and is searched without a server."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("material", reason="the site needs jobcast's extra `docs`")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("site")]

ROOT = Path(__file__).resolve().parents[1]
FETCHED = re.compile(r"<(?:script|link|img|iframe)[^>]*?(?:src|href)=[\"']?(?:https?:)?//[^>]*>")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("site")
    line = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(out)]
    told = subprocess.run(
        line, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True
    )
    # Links, places on pages and pages that the navigation leaves out: each is an error.
    assert told.returncode == 0, told.stderr
    return out


def test_no_page_fetches_anything(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 50
    assert not [(page.name, found) for page in pages for found in FETCHED.findall(page.read_text(encoding="utf-8"))]


def test_the_reference_is_that_of_the_code(site):
    import jobcast as jc
    from jobcast.pipelines.cli.main import COMMANDS

    commands = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    names = (site / "reference" / "python.html").read_text(encoding="utf-8")
    assert not [one for one in COMMANDS if f'id="jobcast-{one}"' not in commands]
    assert 'id="jobcast-trace-convert"' in commands
    assert not [one for one in jc.__all__ if one != "__version__" and f'id="{one.lower()}"' not in names]


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium")
def test_pages_opened_from_a_file_are_searched(site, tmp_path):
    line = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}"]
    address = f"{(site / 'pcs' / 'results.html').as_uri()}?q=drift"
    told = subprocess.run(
        [*line, "--virtual-time-budget=8000", "--dump-dom", address], capture_output=True, text=True, timeout=120
    )
    assert re.search(r"[1-9]\d* matching documents", told.stdout)
