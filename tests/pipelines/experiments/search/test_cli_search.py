"""`jobcast search`: a front as files, a pick from it, and whether it still fits."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace

import click
import polars as pl
import pytest

from jobcast.domain.errors import ConfigError
from jobcast.pipelines.cli.main import cli
from jobcast.pipelines.experiments.search.evaluation import journal_beside
from jobcast.pipelines.experiments.search.front import read_front, write_front
from jobcast.schedulers.elastic.config import read_config
from tests.pipelines.conftest import typed
from tests.pipelines.experiments.search.search_cases import NEEDS_PYMOO
from tests.shared import refused

pytest.importorskip("pymoo", reason=NEEDS_PYMOO)
HEADER = "job_id,pool,submit_time,duration,gpus,min_gpus,model"
WORDS = ("--gpus", "2", "--evaluations", "24", "--samples", "2", "--test-samples", "1", "--sample-jobs", "60")


def lines(count, every_s=100):
    """A large job after every nine small ones."""
    sizes = [2000 if at % 10 == 9 else 20 + at % 7 for at in range(count)]
    return [f"{at},vc,{every_s * at},{size},{at % 2 + 1},0,a" for at, size in enumerate(sizes)]


@pytest.fixture
def ask(tmp_path, capsys):
    """Type a command of `jobcast search`; what it printed."""

    def asked(*words):
        cli.main(["--quiet", "search", *map(str, words)], "jobcast", standalone_mode=False)
        return capsys.readouterr().out

    return asked


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("traces")

    def written(count=80, name="jobs.csv", **options):
        path = folder / name
        path.write_text("\n".join([HEADER, *lines(count, **options)]) + "\n")
        return path

    return written


@pytest.fixture(scope="module")
def front(trace, tmp_path_factory):
    """Searched once, for reading."""
    out = tmp_path_factory.mktemp("front") / "front.parquet"
    words = ("--trace", trace(), *WORDS, "--jobs", "1", "--objectives", "jct:mean,error:p90", "--out", out)
    typed("search", "pcs", *words)
    return out


def test_from_a_trace_to_a_configuration(ask, front, tmp_path):
    table = pl.read_parquet(front)
    assert {"pick", "pareto", "jct:mean test", "error:p90 train", "T", "queues", "config"} <= set(table.columns)
    pick = table.filter("pareto")["pick"][0]
    told = ask("apply", front, "--pick", pick, "--out", tmp_path / "config.json")
    assert json.loads(told) == json.loads(table["config"][pick]) == json.loads((tmp_path / "config.json").read_text())
    assert read_config(tmp_path / "config.json") == read_front(front).pick(pick).config


def test_plots_name_every_configuration(front):
    svg = front.with_suffix(".svg").read_text()
    labels = " ".join(one.get("aria-label", "") for one in ET.fromstring(svg).iter())
    names = [*(f"pick {row.pick}" for row in read_front(front).rows), "FIFO, the default", "SRSF (Tiresias)"]
    assert not [name for name in names if name not in labels]
    page = front.with_suffix(".html").read_text()
    assert not [name for name in names if name not in page]


def test_a_check_says_what_changed_and_searches_anew(ask, front, trace, tmp_path):
    same = json.loads(ask("check", front, "--trace", trace(), "--json", "-"))
    assert same["search_due"] is False
    newer, out = trace(160, name="newer.csv", every_s=40), tmp_path / "anew.parquet"
    told = json.loads(ask("check", front, "--trace", newer, "--no-start", "--json", "-"))
    assert told["search_due"] is True
    assert told["started"] is False
    assert told["rate"]["ratio"] == pytest.approx(2.5)
    assert not out.exists()
    told = json.loads(ask("check", front, "--trace", newer, "--jobs", "1", "--out", out, "--json", "-"))
    assert told["front"]["search"]["objectives"] == ["jct:mean", "error:p90"]
    assert told["started"] is True
    assert read_front(out).about["workload"]["jobs"] == 160


def test_a_check_in_place_keeps_the_old_front_and_goes_on(ask, front, trace, tmp_path):
    """Interrupted after some simulations, the same command takes these up; the old front lies beside the new one."""
    own = tmp_path / "own.parquet"
    own.write_bytes(front.read_bytes())
    newer, old = trace(160, name="newer.csv", every_s=40), read_front(front)
    words = ("check", own, "--trace", newer, "--jobs", "1")
    told = json.loads(ask(*words, "--json", "-"))
    assert read_front(tmp_path / "own-before.parquet").rows == old.rows
    found = read_front(own)
    assert found.about["workload"]["jobs"] == 160
    # As if the command had been stopped before the front was written, half of the journal.
    own.write_bytes(front.read_bytes())
    journal = journal_beside(own)
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[: len(lines) // 2]))
    again = json.loads(ask(*words, "--json", "-"))
    assert again["front"]["rows"] == told["front"]["rows"]
    assert read_front(own).rows == found.rows
    assert json.loads(ask("check", own, "--trace", newer, "--json", "-"))["started"] is False


@pytest.mark.parametrize("beaten", [False, True])
def test_a_pick_that_another_beats_is_told(front, tmp_path, capsys, beaten):
    found = read_front(front)
    rows = tuple(replace(row, pareto=not beaten) for row in found.rows)
    write_front(replace(found, rows=rows), tmp_path / "own.parquet")
    cli.main(["search", "apply", str(tmp_path / "own.parquet"), "--pick", "0"], "jobcast", standalone_mode=False)
    assert ("pick 0 is not in the front's table" in capsys.readouterr().err) == beaten


@pytest.mark.parametrize("pick", [-1, 999])
def test_a_wrong_pick(ask, front, pick):
    with pytest.raises(ConfigError, match=rf"--pick {pick}: the front has 0 to \d+; choose one of them"):
        ask("apply", front, "--pick", pick)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--algorithm", "annealing"), "--algorithm annealing: is unknown; choose from spea2, nsga2, optuna-nsga2"),
        (("--space", "free"), "--space free: is unknown; choose from parameters, raw"),
        (("--gaps", "even"), "--gaps even: is unknown; choose from exponential, resampled"),
        (("--set", "config=c.json"), "--set config: is what a search looks for"),
        (("--set", "speed=3"), "speed"),
    ],
)
def test_mistakes_are_told_in_one_line(ask, trace, tmp_path, words, told):
    kinds = (ConfigError, click.ClickException)
    line = refused(kinds, told, ask, "pcs", "--trace", trace(), *WORDS, *words, "--out", tmp_path / "f.parquet")
    assert "\n" not in line
    assert not (tmp_path / "f.parquet").exists()


def test_files_that_are_no_front(ask, front, trace, tmp_path):
    with pytest.raises(ConfigError, match=r"let the name end in \.parquet"):
        ask("pcs", "--trace", trace(), *WORDS, "--out", tmp_path / "front.csv")
    with pytest.raises(ConfigError, match="no such file; write it with jobcast search pcs"):
        ask("apply", tmp_path / "none.parquet", "--pick", 0)
    other, empty = (tmp_path / f"{name}.parquet" for name in ("other", "empty"))
    pl.DataFrame({"a": [1]}).write_parquet(other)
    write_front(replace(read_front(front), rows=()), empty)
    for path in (other, empty):
        for words in (("apply", path, "--pick", 0), ("check", path, "--trace", trace())):
            refused(ConfigError, "is no front: it holds no configuration", ask, *words)
    refused(ConfigError, "cannot be read as a front", ask, "apply", trace(), "--pick", 0)
