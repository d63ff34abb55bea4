"""`jobcast trace fetch` as users type it: what there is, from a folder, without a network."""

from functools import partial
from pathlib import Path

import pytest

from jobcast.traces import catalogue
from jobcast.traces.catalogue import PublicFile, PublicTrace

pytestmark = pytest.mark.usefixtures("untrained")


@pytest.fixture
def fetch(shell, tmp_path):
    """Types a line of fetching in a home's own folder."""
    shell.home = tmp_path
    return partial(shell, "trace", "fetch")


@pytest.fixture
def made(monkeypatch):
    """A public trace whose one file lies where nobody answers."""
    file = PublicFile("jobs.csv", "http://127.0.0.1:9/jobs.csv", about="tiny")
    trace = PublicTrace("made", "made up", "canonical", (file,), "https://example.org", "CC0", "Nobody", ("jobs.csv",))
    monkeypatch.setitem(catalogue.CATALOGUE, "made", trace)
    return trace


def test_without_a_name_all_are_listed_with_size_and_licence(fetch):
    answer = fetch()
    assert answer.code == 0
    for shown in ("philly ", "helios ", "pai ", "acme ", "openb ", "swf-", "1.06 GB", "CC BY 4.0", "size unknown"):
        assert shown in answer.out


def test_without_a_network_it_says_what_to_do(fetch, made):
    answer = fetch("made")
    assert (answer.code, answer.out) == (2, "")
    *about, refusal = answer.err.splitlines()
    assert about[0] == "made: made up"
    assert "  licence: CC0" in about
    assert "  http://127.0.0.1:9/jobs.csv (tiny)" in about
    folder = Path("data", "raw", "made")
    assert refusal.endswith(
        f"download jobs.csv where there is a network, put it into {folder} and run: "
        f"jobcast trace fetch made --from {folder} --out {folder}"
    )


def test_a_file_brought_by_hand_is_taken_and_the_next_command_works(shell, fetch, made):
    place = Path("data", "raw", "made")
    place.mkdir(parents=True)
    (place / "jobs.csv").write_text("job_id,pool,submit_time,duration,gpus\n1,a,0,10,1\n2,a,9,10,1\n")
    answer = fetch("made", "--from", place, "--out", place)
    assert answer.code == 0
    assert "no digest is published to compare with" in answer.err
    words = answer.out.split()
    assert words[:4] == ["jobcast", "trace", "convert", "canonical"]
    shell.works(*words[1:])
    assert Path("made.parquet").is_file()
    assert Path("made_pools.csv").is_file()
