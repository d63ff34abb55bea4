"""`jobcast trace fetch` as users type it: what there is, from a folder, without a network."""

from pathlib import Path

import pytest

from jobcast.pipelines.cli.main import main
from jobcast.traces import catalogue
from jobcast.traces.catalogue import PublicFile, PublicTrace


@pytest.fixture
def typed(monkeypatch, tmp_path, capsys):
    """Runs a command line in an empty folder; returns exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JOBCAST_HOME", str(tmp_path))

    def run(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main(["trace", "fetch", *words])
        said = capsys.readouterr()
        return left.value.code or 0, said.out, said.err

    return run


@pytest.fixture
def made(monkeypatch):
    """A public trace whose one file lies where nobody answers."""
    file = PublicFile("jobs.csv", "http://127.0.0.1:9/jobs.csv", about="tiny")
    trace = PublicTrace("made", "made up", "canonical", (file,), "https://example.org", "CC0", "Nobody", ("jobs.csv",))
    monkeypatch.setitem(catalogue.CATALOGUE, "made", trace)
    return trace


def test_without_a_name_all_are_listed_with_size_and_licence(typed):
    code, out, _ = typed()
    assert code == 0
    for shown in ("philly ", "helios ", "pai ", "acme ", "openb ", "swf-", "1.06 GB", "CC BY 4.0", "size unknown"):
        assert shown in out


def test_without_a_network_it_says_what_to_do(typed, made):
    code, out, err = typed("made")
    assert (code, out) == (2, "")
    *about, refusal = err.splitlines()
    assert about[0] == "made: made up"
    assert "  licence: CC0" in about
    assert "  http://127.0.0.1:9/jobs.csv (tiny)" in about
    folder = Path("data", "raw", "made")
    assert refusal.endswith(
        f"download jobs.csv where there is a network, put it into {folder} and run: "
        f"jobcast trace fetch made --from {folder} --out {folder}"
    )


def test_a_file_brought_by_hand_is_taken_and_the_next_command_works(typed, made, tmp_path):
    folder = tmp_path / "data" / "raw" / "made"
    folder.mkdir(parents=True)
    (folder / "jobs.csv").write_text("job_id,pool,submit_time,duration,gpus\n1,a,0,10,1\n2,a,9,10,1\n")
    place = str(Path("data", "raw", "made"))
    code, out, err = typed("made", "--from", place, "--out", place)
    assert code == 0
    assert "no digest is published to compare with" in err
    words = out.split()
    assert words[:4] == ["jobcast", "trace", "convert", "canonical"]
    with pytest.raises(SystemExit) as left:
        main(words[1:])
    assert not left.value.code
    assert Path("made.parquet").is_file()
    assert Path("made_pools.csv").is_file()
