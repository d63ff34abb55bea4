"""`jobcast bundle` and `verify`: what is packed, what is found when it is run again, one line each."""

import hashlib
import json
import zipfile

import pytest

from jobcast.pipelines.cli.options import asked_words
from jobcast.pipelines.lifecycle.bundles import MANIFEST, agrees, compared

pytestmark = pytest.mark.usefixtures("untrained")
ROWS = [f"{at:03},{'pq'[at % 2]},{100 * at},{60 + at % 9 * 40},{1 + at % 2}" for at in range(60)]


@pytest.fixture
def bundle(shell, csv):
    """A packed simulation, whose trace is gone from where it was."""
    csv(*ROWS)
    csv("p,1", "q,2", name="pools.csv", header="pool,gpus")
    words = ("--trace", "jobs.csv", "--pools", "pools.csv", "--policy", "ssf", "--forecasts", "oracle")
    shell("simulate", *words, "--json", "r.json")
    shell("bundle", "r.json", "--out", "r.zip", "--with-trace")
    return shell


def edited(path, change, more=None):
    """The bundle with its manifest changed, and with other files in place of its own."""
    with zipfile.ZipFile(path) as packed:
        files = {name: packed.read(name) for name in packed.namelist()} | (more or {})
    manifest = json.loads(files[MANIFEST])
    change(manifest)
    files[MANIFEST] = json.dumps(manifest).encode()
    with zipfile.ZipFile("other.zip", "w") as packed:
        for name, content in files.items():
            packed.writestr(name, content)
    return "other.zip"


def test_a_result_is_not_packed_beside_a_trace_that_has_changed_since(bundle, csv):
    csv(*ROWS[:-1])
    told = bundle.refuses("bundle", "r.json", "--out", "again.zip")
    assert "jobs.csv: is another file (SHA-256) than r.json was made from" in told


@pytest.mark.parametrize("name", ["jobs.csv", "pools.csv"])
def test_a_result_is_not_packed_without_an_input_that_has_gone(bundle, tmp_path, name):
    (tmp_path / name).unlink()
    told = bundle.refuses("bundle", "r.json", "--out", "again.zip")
    assert f"{name}: is not there; say it in the folder that the command ran in, or bring it back" in told
    assert not (tmp_path / "again.zip").exists()


def test_a_trace_is_the_same_however_its_path_is_written(shell, csv, tmp_path):
    csv(*ROWS)
    shell("simulate", "--trace", "./jobs.csv", "--policy", "fcfs", "--baseline", "none", "--json", "r.json")
    csv(*ROWS[:-1])
    told = shell.refuses("bundle", "r.json", "--out", "r.zip")
    assert "./jobs.csv: is another file (SHA-256) than r.json was made from" in told
    (tmp_path / "jobs.csv").unlink()
    assert "./jobs.csv: is not there" in shell.refuses("bundle", "r.json", "--out", "r.zip")


def test_a_folder_of_run_is_packed_beside_the_trace_that_it_was_prepared_from_alone(shell, csv, tmp_path):
    """Its figures tell nothing of the trace: the receipt names it, the split has its hash."""
    csv(*ROWS)
    sha256 = hashlib.sha256((tmp_path / "jobs.csv").read_bytes()).hexdigest()
    for name, content in {
        "command.json": {"command": ["run", "--trace", "jobs.csv"]},
        "processed/metrics/evaluate.json": {"new-load": {"least_coverage": 0.95}},
        "processed/receipts/prepare.json": {"stage": "prepare", "source": "jobs.csv"},
        "interim/split.json": {"source": {"sha256": sha256, "rows": len(ROWS)}},
    }.items():
        (tmp_path / "out" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "out" / name).write_text(json.dumps(content))
    shell("bundle", "out", "--out", "out.zip")
    with zipfile.ZipFile("out.zip") as packed:
        assert json.loads(packed.read(MANIFEST))["inputs"]["jobs.csv"]["sha256"] == sha256
    csv(*ROWS[:-1])
    told = shell.refuses("bundle", "out", "--out", "again.zip")
    assert "jobs.csv: is another file (SHA-256) than out was made from" in told
    (tmp_path / "jobs.csv").unlink()
    told = shell.refuses("bundle", "out", "--out", "again.zip")
    assert "jobs.csv: is not there; say it in the folder that the command ran in, or bring it back" in told


def test_words_of_the_command_are_no_inputs_though_files_are_called_so(shell, csv, tmp_path):
    csv(*ROWS)
    for word in ("simulate", "2", "mmfs", "true"):
        (tmp_path / word).write_text("not an input")
    words = ("--gpus", "2", "--policy", "mmfs", "--set", "strict=true", "--trace=jobs.csv", "--baseline", "none")
    shell("simulate", *words, "--json", "r.json")
    shell("bundle", "r.json", "--out", "r.zip")
    with zipfile.ZipFile("r.zip") as packed:
        assert list(json.loads(packed.read(MANIFEST))["inputs"]) == ["jobs.csv"]


def test_a_file_that_is_no_json_is_refused_by_a_remedy_that_holds_for_any_command(shell, tmp_path):
    (tmp_path / "r.json").write_text("hi")
    assert "write it again with the command that made it" in shell.refuses("bundle", "r.json", "--out", "r.zip")


@pytest.mark.slow
def test_a_tampered_figure_is_the_only_one_that_differs(bundle, csv, tmp_path):
    """The inputs have gone: what is run again comes from the bundle."""
    (tmp_path / "jobs.csv").unlink()
    (tmp_path / "pools.csv").unlink()

    def tamper(manifest):
        manifest["figures"]["result"]["mean_jct_s"] += 1.0
        manifest["versions"]["numpy"] = "0.1"

    answer = bundle("verify", edited("r.zip", tamper), "--json", "-")
    assert answer.code == 1
    told = json.loads(answer.out)
    odd = [line for line in told["lines"] if line["says"] != "equal"]
    assert [(line["says"], line["name"]) for line in odd] == [("note", "numpy"), ("different", "result.mean_jct_s")]
    assert told["equal"] > 30
    assert not told["agrees"]


def test_a_folder_of_a_backtest_is_verified_whoever_was_skipped(shell, csv, tmp_path):
    """Why a policy was left out names a registry's folder, which is another one where it is run again."""
    csv(*ROWS)
    shell.works("backtest", "--trace", "jobs.csv", "--policies", "fcfs,ssf,sia", "--jobs", 1, "--out", "kept")
    assert json.loads((tmp_path / "kept/figures.json").read_text())["skipped"]
    shell.works("bundle", "kept", "--out", "kept.zip", "--with-trace")
    assert ": agrees: " in shell.works("verify", "kept.zip").out.splitlines()[-1]
    more = {"processed/metrics/regime.json": {"crps": 0.5}}
    answer = shell("verify", edited("kept.zip", lambda one: one["figures"].update(more)))
    assert answer.code == 1
    missing = [line for line in answer.out.splitlines() if line.startswith("missing")]
    assert missing == ["missing   processed/metrics/regime.json.crps  only in the bundle"]


def test_what_was_assumed_is_packed_with_the_trace(shell, csv, tmp_path):
    """Without the tables beside it jobs would have no tasks; how long decisions take is another time each run."""
    csv(*ROWS)
    shell.works("trace", "enrich", "jobs.csv", "--facts", "tasks", "--out", "rich")
    words = ("--trace", "rich/jobs.parquet", "--gpus", 4, "--policy", "srtf", "--limit", 9)
    shell.works("simulate", *words, "--json", "r.json")
    shell.works("bundle", "r.json", "--out", "r.zip", "--with-trace")
    (tmp_path / "rich").rename(tmp_path / "gone")
    assert ": agrees: " in shell.works("verify", "r.zip").out.splitlines()[-1]


def test_another_trace_and_a_missing_model_are_told_in_a_line_each_before_anything_is_run(bundle, csv):
    other = csv(*ROWS[:-1], name="other.csv")
    missing = [{"name": "new-load", "version": 3, "sha256": "0"}]
    told = bundle("verify", edited("r.zip", lambda one: one.update(models=missing)), "--trace", other)
    assert told.code == 1
    lines = [line.split()[0:2] for line in told.out.splitlines()[:-1]]
    assert lines == [["different", "jobs.csv"], ["missing", "new-load:3"]]
    assert "does not agree" in told.out.splitlines()[-1]


def test_a_packed_file_that_was_altered_is_told_without_the_place_it_was_unpacked_to(bundle):
    altered = edited("r.zip", lambda one: None, {"inputs/1/pools.csv": b"pool,gpus\np,1\nq,3\n"})
    told = bundle("verify", altered)
    words = "different pools.csv  the packed one is another file (SHA-256) than the result was made from"
    assert (told.code, told.out.splitlines()[0]) == (1, words)


def test_what_is_no_result_or_bundle_or_would_do_more_than_read_is_refused(bundle, tmp_path):
    (tmp_path / "x.json").write_text("{}")
    assert "does not say by which command" in bundle.refuses("bundle", "x.json", "--out", "x.zip")
    assert "is no bundle" in bundle.refuses("verify", "x.json")
    serves = edited("r.zip", lambda one: one.update(command=["serve", "--trace", "jobs.csv"]))
    assert "only simulate, backtest, evaluate, run are run again" in bundle.refuses("verify", serves)
    bundle("bundle", "r.json", "--out", "bare.zip")
    (tmp_path / "jobs.csv").unlink()
    assert "name it by --trace FILE" in bundle.refuses("verify", "bare.zip")


def test_times_and_places_are_not_compared_and_rounding_is_within():
    before = {"rows": [{"figures": {"a": 1.0, "n": 3, "wall_s": 1.0}, "name": "x"}], "path": "/a"}
    now = {"rows": [{"figures": {"a": 1.0 + 1e-9, "n": 3, "wall_s": 9.0}, "name": "x"}], "path": "/b"}
    lines = compared(before, now)
    assert [(line.says, line.name) for line in lines] == [
        ("within", "rows.0.figures.a"),
        ("equal", "rows.0.figures.n"),
        ("equal", "rows.0.name"),
    ]
    assert agrees(lines)
    assert not agrees(compared(before, {**now, "more": 1}))


def test_a_command_is_kept_without_where_its_results_go():
    words = ["--quiet", "backtest", "--trace", "a", "--out", "b", "--json=-", "--set", "x=1"]
    assert asked_words(words) == ["backtest", "--trace", "a", "--set", "x=1"]
