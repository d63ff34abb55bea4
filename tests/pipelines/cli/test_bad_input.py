"""What users bring that cannot be used: one line that names the place, exit code 2, and nothing written."""

import os
import re
import shutil
import threading
from pathlib import Path

import pytest

from jobcast.features import arrivals
from jobcast.pipelines.experiments import sources


def readers(trace) -> dict[str, tuple[object, ...]]:
    """Every command that reads a trace, each asked for all that it can write."""
    window = ("--trace", trace, "--json", "figures.json")
    return {
        "simulate": ("simulate", *window, "--policy", "fcfs", "--gpus", 8, "--out", "out.csv"),
        "backtest": ("backtest", *window, "--policies", "fcfs", "--out", "out"),
        "train": ("train", "new-load", *window),
        "evaluate": ("evaluate", "new-load", *window),
        "predict": ("predict", "new-load", *window, "--at", "2024-01-02"),
        "describe": ("trace", "describe", trace, "--json", "figures.json", "--html", "page.html"),
        "convert": ("trace", "convert", "canonical", trace, "--out", "out.parquet", "--pools-out", "pools.csv"),
        "run": ("run", "--trace", trace, "--out", "out"),
    }


@pytest.mark.parametrize("command", readers("jobs.csv"))
def test_every_command_refuses_a_bad_trace_and_leaves_nothing(shell, csv, command):
    csv("1,a,2024-01-01,60,1", "2,a,2024-01-02,-60,1")
    line = shell.refuses(*readers("jobs.csv")[command])
    assert line == "jobs.csv, row 3, column duration: must be > 0, got -60.0; correct it or drop the row"


def test_a_time_zone_that_is_missing_is_told_and_strict_makes_it_an_error(shell, csv):
    naive = csv("1,a,2024-01-01T00:00:00,60,1")
    told = "submit_time: times without an offset read as UTC"
    for command in ("simulate", "describe", "convert"):
        answer = shell.works(*readers(naive)[command])
        assert told in (answer.out if command == "describe" else answer.err)  # a description shows it itself
    line = shell.refuses("trace", "convert", "canonical", naive, "--out", "strict.csv", "--strict")
    assert "row 2, column submit_time: has no offset" in line
    shell.works("trace", "convert", "canonical", naive, "--out", "strict.csv", "--strict", "--timezone", "Asia/Tokyo")
    assert "2023-12-31T15:00:00.000000Z" in Path("strict.csv").read_text()
    line = shell.refuses("trace", "convert", "canonical", naive, "--out", "x.csv", "--timezone", "Mars/Base")
    assert "timezone 'Mars/Base' is not known" in line


def test_a_job_that_is_wider_than_its_pool_and_an_unknown_pool(shell, csv):
    trace = csv("1,a,0,60,1", "2,a,0,60,4", "3,b,0,60,1")
    narrow = csv("a,2", "b,1", name="pools.csv", header="pool,gpus")
    simulate = ("simulate", "--trace", trace, "--policy", "fcfs", "--out", "out.csv", "--json", "figures.json")
    backtest = ("backtest", "--trace", trace, "--policies", "fcfs", "--out", "out", "--json", "figures.json")
    for words in (simulate, backtest):
        line = shell.refuses(*words, "--pools", narrow)
        assert line.startswith(f"{trace}: job 2 asks for 4 GPUs, its pool a has 2")
    one = csv("a,4", name="one.csv", header="pool,gpus")
    for words in (simulate, backtest):
        assert shell.refuses(*words, "--pools", one).startswith(f"{trace}: pool b has no GPUs but 1 job")
    late = csv("a,4,2030-01-01", "b,1,", name="late.csv", header="pool,gpus,from")
    assert "pool a has no GPUs" in shell.refuses(*simulate, "--pools", late)
    answer = shell.works(*simulate, "--pools", narrow, "--drop-too-wide")
    assert "dropped 1: wider than their pool" in answer.err
    answer = shell.works(*backtest, "--pools", one, "--pools-only")
    assert "dropped 1: of pools without capacity" in answer.err


@pytest.mark.parametrize("predictor", ["will-jobs-arrive", "new-load", "job-duration"])
def test_a_trace_that_is_too_short_to_train_on(shell, run, csv, predictor):
    train = ("train", predictor, "--json", "figures.json", "--trace")
    short = csv("1,a,2024-01-01T00:00:00Z,60,1", "2,a,2024-01-01T05:00:00Z,60,1")
    assert "jobs: 5.0 h to train on" in shell.refuses(*train, short)
    assert "no jobs to train on" in shell.refuses(*train, run.trace, "--until", "2023-01-01")
    assert "no jobs to train on" in shell.refuses(*train, run.trace, "--from", "2024-01-05", "--until", "2024-01-03")
    line = shell.refuses(*train, run.trace, "--min-jobs", 5000)
    assert line.startswith(f"{run.trace}: too short to train on: no pool has 5000 jobs")


def test_a_registry_without_the_model_asked_for(shell, run, tmp_path):
    simulate = ("simulate", "--trace", run.trace, "--pools", run.pools, "--policy", "sia", "--from", run.trained_until)
    files = ("--out", "out.csv", "--json", "figures.json")
    for words, message in (
        (("evaluate", "regime", "--trace", run.trace), "no model 'regime' in .*, there is: job-duration, new-load"),
        (("evaluate", "new-load:9", "--trace", run.trace), "new-load has no version 9, it has: 1"),
        (("evaluate", "new-load@best", "--trace", run.trace), "new-load has no alias 'best', it has: challenger"),
        (("predict", "new-load@", "--trace", run.trace, "--at", "0"), "'new-load@' names no model"),
        ((*simulate, "--forecasts", "registry:best", "--out", "o.csv"), "will-jobs-arrive has no alias 'best'"),
        ((*simulate, "--forecasts", "registry:new-load=9", "--out", "o.csv"), "new-load has no version 9"),
        (
            ("backtest", *simulate[1:5], "--policies", "fcfs,sia", "--forecasts", "random,registry:new-load=9"),
            "new-load has no version 9, it has: 1",
        ),
        (("models", "show", "regime"), "no model 'regime'"),
        (("models", "promote", "new-load:9"), "new-load has no version 9"),
        (("models", "promote", "new-load"), "new-load: name a version, as in new-load:2"),
        (("models", "promote", "new-load:1", "--alias", "my alias"), "^alias 'my alias': write letters, digits"),
        (("models", "rollback", "new-load"), "new-load: no earlier champion to go back to"),
        (("models", "export", "new-load:9", "exported"), "new-load has no version 9"),
    ):
        assert re.search(message, shell.refuses(*words))
    shell.home = tmp_path / "nothing here"
    line = shell.refuses(*simulate, "--forecasts", "registry", *files)
    assert "no model 'will-jobs-arrive' in" in line
    assert "there is: none yet; run `jobcast train will-jobs-arrive" in line
    assert not shell.home.exists()


def test_a_model_whose_features_do_not_match(shell, run, monkeypatch):
    monkeypatch.setattr(arrivals, "feature_names", lambda: ("load_1", "load_2"))
    sources.loaded_version.cache_clear()  # a process loads a version once
    for words in (
        ("evaluate", "will-jobs-arrive", "--trace", run.trace, "--json", "figures.json"),
        ("predict", "will-jobs-arrive", "--trace", run.trace, "--at", "2024-01-06", "--json", "figures.json"),
        ("simulate", "--trace", run.trace, "--pools", run.pools, "--policy", "sia", "--forecasts", "registry",
         "--from", run.trained_until, "--out", "out.csv"),
    ):  # fmt: skip
        assert "will-jobs-arrive" in (line := shell.refuses(*words))
        assert "feature" in line


def test_a_model_whose_files_were_changed_or_lost(shell, run, store):
    version = store.resolve("will-jobs-arrive")
    words = ("evaluate", "will-jobs-arrive", "--trace", run.trace, "--json", "figures.json")
    metadata = store.folder(version) / "data/will-jobs-arrive/metadata.json"
    metadata.write_text(metadata.read_text() + " ")
    assert "differs from what was registered" in shell.refuses(*words)
    shutil.rmtree(store.folder(version))
    assert "will-jobs-arrive:1: its files are missing" in shell.refuses(*words)
    assert "its files are missing" in shell.refuses("models", "export", "will-jobs-arrive", "exported")
    told = shell.json("models", "show", "will-jobs-arrive")
    assert "its files are missing" in told["missing"]
    assert told["metrics"] == store.run_metrics(version) != {}


@pytest.mark.parametrize("content", [b"no database" * 1000, None], ids=["garbage", "half"])
def test_a_damaged_store_is_one_line_and_stays_as_it_is(shell, run, store, content):
    database = shell.home / "mlruns/mlflow.db"
    database.write_bytes(content or database.read_bytes()[:20000])
    for words in (
        ("models", "list", "--json", "figures.json"),
        ("models", "rollback", "new-load"),
        ("predict", "new-load", "--trace", run.trace, "--at", "2024-01-06", "--json", "figures.json"),
        ("train", "new-load", "--trace", run.trace, "--until", run.trained_until, "--min-jobs", 50, "--json", "f.json"),
    ):
        assert "cannot be read as jobcast's model store" in shell.refuses(*words)


def test_predictors_of_different_horizons_do_not_go_together(shell, run, store):
    words = ("train", "new-load", "--trace", run.trace, "--until", run.trained_until, "--min-jobs", 50)
    shell.works(*words, "--horizons", "5,60,120")
    simulate = ("simulate", "--trace", run.trace, "--pools", run.pools, "--policy", "sia", "--from", run.trained_until)
    for forecasts in ("registry:challenger", "registry:new-load=2"):
        line = shell.refuses(*simulate, "--forecasts", forecasts, "--out", "out.csv", "--json", "figures.json")
        assert line.startswith("the predictors were trained for different horizons (will-jobs-arrive: 5min, 60min; ")


def test_training_data_that_reach_into_the_window_are_refused_unless_allowed_and_then_shown(shell, store, run):
    registry = ("--policy", "sia", "--forecasts", "registry", "--pools", run.pools, "--baseline", "none")
    overlapping = "2024-01-04T12:00:00Z"
    commands = (
        ("simulate", "--trace", run.trace, "--from", overlapping, "--limit", 20, *registry),
        ("evaluate", "new-load", "--trace", run.trace, "--from", overlapping),
        ("backtest", "--trace", run.trace, "--from", overlapping, "--pools", run.pools, "--policies", "sia",
         "--forecasts", "registry", "--jobs", 1),
    )  # fmt: skip
    for words in commands:
        line = shell.refuses(*words, "--json", "figures.json")
        assert "version 1 was trained on data until 2024-01-05T00:00:00Z, which reaches into the window" in line
        assert shell.json(*words, "--allow-overlap")["overlap_allowed"] is True
    assert "--allow-overlap" in shell.works(*commands[0], "--allow-overlap").out
    assert "--allow-overlap" in shell.works(*commands[1], "--allow-overlap").out
    after = ("--from", run.trained_until, "--limit", 20)
    assert shell.json("simulate", "--trace", run.trace, *after, *registry)["overlap_allowed"] is False


RIGHT = {
    "simulate": "--trace {trace} --policy fcfs --pools {pools} --out out.csv --json figures.json",
    "backtest": "--trace {trace} --policies fcfs --pools {pools} --jobs 1 --out out --json figures.json",
    "train": "--trace {trace} --until 2024-01-05 --json figures.json",
}
WRONG = {
    ("simulate", "--policy", "lottery"): "unknown policy lottery; known policies: fcfs",
    ("simulate", "--forecasts", "stars"): "--forecasts stars: unknown source",
    ("simulate", "--baseline", "lottery"): "--baseline lottery: unknown policy",
    ("simulate", "--set", "pace"): "--set pace: write --set key=value",
    ("simulate", "--set", "pace=slow"): "policy fcfs: setting pace: not known",
    ("simulate", "--from", "2024-01-05", "--until", "2024-01-02"): "--from must lie before --until",
    ("simulate", "--from", "2030-01-01"): "no job was submitted in [2030-01-01T00:00:00Z, the end)",
    ("simulate", "--until", "tomorrow"): "--until: 'tomorrow' is no instant",
    ("simulate", "--limit", "0"): "Invalid value for '--limit'",
    ("simulate", "--seed", "-1"): "Invalid value for '--seed'",
    ("simulate", "--warmup", "nan"): "nan is no finite number",
    ("simulate", "--warmup", "8"): "--warmup 8: leaves no job to count",
    ("simulate", "--gpus", "64"): "--pools and --gpus exclude each other",
    ("simulate", "--pools", "nosuch.csv"): "nosuch.csv: no such file",
    ("simulate", "--out", "jobs.xlsx"): "--out jobs.xlsx: end the name in .csv or .parquet",
    ("simulate", "--json", ""): "--json: names nothing",
    ("backtest", "--policies", "lottery"): "unknown policy lottery",
    ("backtest", "--forecasts", "oracle,stars"): "--forecasts stars: unknown source",
    ("backtest", "--windows", "0"): "Invalid value for '--windows'",
    ("backtest", "--windows", "100000"): "--windows 100000: no job was submitted in [",
    ("backtest", "--engine", "cloud"): "Invalid value for '--engine'",
    ("backtest", "--warmup", "4", "--windows", "2"): "--warmup 4: leaves no job to count",
    ("train", "regimes"): "'regimes' is no predictor; did you mean regime? known: will-jobs-arrive, new-load,",
    ("train", "new-load", "--algorithm", "guess"): "--algorithm guess: new-load knows auto, quantile, sliding-max",
    ("train", "new-load", "--horizons", "60,5"): "--horizons 60,5: write ascending minutes",
    ("train", "new-load", "--horizons", "0.00001"): "the largest of 1,007,999,999 windows of 1e-05min before each of",
    ("train", "new-load", "--horizons", "90000"): "no window of 90000min in the training time",
    ("train", "new-load", "--coverage", "nan"): "Invalid value for '--coverage'",
    ("train", "new-load", "--min-jobs", "0"): "Invalid value for '--min-jobs'",
}
"""Words -> what is said of them, after a line of the command that is right."""


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_a_wrong_option_is_refused_and_nothing_is_written_or_registered(shell, run, words):
    command, *wrong = words
    right = RIGHT[command].format(trace=run.trace, pools=run.pools).split()
    assert WRONG[words] in shell.refuses(command, *right, *wrong)


def test_links_that_lead_in_a_circle_are_told(shell, csv, tmp_path):
    circle = tmp_path / "circle.csv"
    circle.symlink_to(circle)
    assert "cannot be read (Too many levels of symbolic links)" in shell.refuses("trace", "describe", circle)


def test_a_file_of_results_needs_its_folder(shell, csv):
    words = ("simulate", "--trace", csv("1,a,0,10,1"), "--policy", "mmfs", "--gpus", "1", "--out")
    assert "there is no folder nowhere; make it, or correct the path" in shell.refuses(*words, "nowhere/log.csv")


def test_an_evaluation_or_a_prediction_without_data_is_refused(shell, run, csv):
    early = csv("1,a,2023-01-01T00:00:00Z,60,1")
    line = shell.refuses("evaluate", "new-load", "--trace", early)
    assert line.startswith(f"{early}: nothing to score from 2024-01-05T00:00:00Z")
    evaluate = ("evaluate", "will-jobs-arrive", "--trace", run.trace)
    assert "nothing to score" in shell.refuses(*evaluate, "--from", "2024-02-05")
    assert "no jobs to test on" in shell.refuses(*evaluate, "--until", "2024-01-05T00:00:01Z")
    line = shell.refuses("predict", "new-load", "--trace", run.trace, "--at", "2023-01-01")
    assert "no job was submitted by 2023-01-01T00:00:00Z" in line


SIMULATE = "simulate --trace {trace} --policy fcfs --pools {pools}"
PLACES = (
    f"{SIMULATE} --json figures.json --out",
    f"{SIMULATE} --out out.csv --json",
    "backtest --trace {trace} --policies fcfs --jobs 1 --out out --json",
    "train new-load --trace {trace} --until 2024-01-05 --min-jobs 50 --json",
    "evaluate new-load --trace {trace} --json",
    "predict new-load --trace {trace} --at 2024-01-06 --json",
    "models list --json",
    "models show new-load --json",
    "trace describe {trace} --json figures.json --html",
    "trace describe {trace} --html page.html --json",
    "trace generate sia --pools-out pools.csv --out",
    "trace generate sia --out out.csv --pools-out",
    "trace convert canonical {trace} --out",
    "trace convert canonical {trace} --out out.csv --pools-out",
)
"""Commands that write, up to the place that the last option takes."""


@pytest.mark.parametrize("line", PLACES)
def test_a_place_that_cannot_be_written_to_is_refused_before_the_work(shell, run, csv, tmp_path, line):
    file, words = csv("1,a,0,1,1", name="file.csv"), line.format(trace=run.trace, pools=run.pools).split()
    (tmp_path / "folder.csv").mkdir()
    option = words[-1]
    assert shell.refuses(*words, file / "x.csv").startswith(f"{option} {file / 'x.csv'}: cannot be written (Not a dir")
    assert shell.refuses(*words, "folder.csv") == f"{option} folder.csv: is a folder; name a file"
    assert f"{option} {'x' * 300}.csv: cannot be written" in shell.refuses(*words, "x" * 300 + ".csv")


def test_a_folder_that_cannot_be_written_to_is_refused_before_the_work(shell, run, csv):
    file = csv("1,a,0,1,1", name="file.csv")
    for words in (
        ("backtest", "--trace", run.trace, "--policies", "fcfs", "--json", "figures.json", "--out"),
        ("run", *run.words, "--out"),
        ("stage", "prepare", "--out"),
        ("models", "export", "new-load"),
    ):
        assert "cannot be written (Not a directory)" in shell.refuses(*words, file / "out")
    assert "cannot be written (Not a directory)" in shell.refuses("run", *run.words, "--out", file)
    assert "exists already" in shell.refuses("models", "export", "new-load", file.parent)
    shell.home = file
    for words in (
        ("train", "new-load", "--trace", run.trace, "--until", run.trained_until),
        ("run", *run.words, "--out", file.parent / "out"),
    ):
        assert f"the store {file / 'mlruns'}: cannot be written" in shell.refuses(*words)


def test_results_do_not_overwrite_each_other_or_what_was_read(shell, csv):
    trace, pools = csv("1,a,0,10,1"), csv("a,4", name="pools.csv", header="pool,gpus")
    simulate = ("simulate", "--trace", trace, "--policy", "fcfs", "--pools", pools)
    assert "is --out too" in shell.refuses(*simulate, "--out", "x.csv", "--json", "./x.csv")
    assert "is an input too" in shell.refuses(*simulate, "--out", "jobs.csv")
    assert "is an input too" in shell.refuses(*simulate, "--json", pools)
    assert "is --out too" in shell.refuses("trace", "generate", "sia", "--out", "x.csv", "--pools-out", "x.csv")


def test_json_goes_into_a_pipe_or_a_device_and_does_not_replace_it(shell, csv, tmp_path):
    fifo, got = tmp_path / "pipe", []
    os.mkfifo(fifo)
    reader = threading.Thread(target=lambda: got.append(fifo.read_text()))
    reader.start()
    words = ("simulate", "--trace", csv("1,a,0,10,1"), "--policy", "fcfs", "--gpus", 1, "--json")
    shell.works(*words, fifo)
    reader.join(10)
    assert '"policy": "fcfs"' in got[0]
    assert fifo.is_fifo()
    shell.works(*words, "/dev/null")
    assert not os.path.isfile("/dev/null")


WRONG_PARAMS = {
    "backtest: {cells: [{policy: lottery}]}": "unknown policy lottery",
    "backtest: {cells: [{policy: sia, forecasts: [stars]}]}": "--forecasts stars: unknown source",
    "backtest: {cells: []}": "backtest.cells: nothing to replay",
    "backtest: {warmup_days: 9}": "--warmup 9: leaves no job to count",
    "backtest: {seeds: many}": "backtest.seeds: ",
    "train: {will_jobs_arrive: {algorithms: [guess]}}": "--algorithm guess: will-jobs-arrive knows auto, lightgbm, ",
    "train: {new_load: {algorithms: []}}": "train.new_load",
    "featurize: {min_train_jobs: 9999}": "too short to train on: no pool has 9999 jobs",
    "brew: {}": "brew: no such parameter; there are prepare, featurize, care, train, ",
}


@pytest.mark.parametrize("text", WRONG_PARAMS)
def test_a_run_that_cannot_end_does_not_begin(shell, run, tmp_path, text):
    params = tmp_path / "params.yaml"
    params.write_text(text)
    words = ("--trace", run.trace, "--pools", run.pools, "--out", "out", "--params", params)
    assert WRONG_PARAMS[text] in shell.refuses("run", *words)


def test_a_run_on_quotas_that_do_not_fit_or_a_name_that_is_none_does_not_begin(shell, run, csv, monkeypatch):
    monkeypatch.delenv("JOBCAST_DATA", raising=False)
    narrow = csv("production-1,1", "research-1,1", "wide-1,1", name="pools.csv", header="pool,gpus")
    out = ("--out", "out", "--params", run.params)
    assert "its pool" in shell.refuses("run", "--trace", run.trace, "--pools", narrow, *out)
    known = "no trace of that name (known: andreas, armida, automl, campus, gavel, "
    assert known in shell.refuses("run", "--trace", "nosuch", *out)
    assert "JOBCAST_DATA is not set" in shell.refuses("run", "--trace", "philly", *out)
    assert "is a folder" in shell.refuses("run", "--trace", "", *out)
    assert "no such file" in shell.refuses("run", "--trace", run.trace, "--pools", "nosuch.csv", *out)


def test_an_unfinished_folder_has_no_report_and_no_later_stage(shell, tmp_path):
    assert "holds no finished run or backtest" in shell.refuses("report", tmp_path)
    assert "holds no finished run or backtest" in shell.refuses("report", "nosuch")
    assert "no such file" in shell.refuses("stage", "featurize", "--out", tmp_path / "out")
    assert "run the stage that writes it first" in shell.refuses("stage", "evaluate", "--out", tmp_path / "out")
    assert "stage brew: unknown" in shell.refuses("stage", "brew")
    assert "stage train: takes will-jobs-arrive or new-load or job-duration" in shell.refuses("stage", "train", "x")


@pytest.mark.parametrize("policy", ["sia_vc", "milp"])
@pytest.mark.parametrize("kind", ["registry", "random", "mixed:arrivals=oracle"])
def test_who_needs_every_single_job_is_given_the_oracle_alone_and_loads_no_model(shell, csv, policy, kind):
    trace = csv("a1,a,0,60,1", "a2,a,0,60,1")
    words = ("--trace", trace, "--forecasts", kind)
    needs = f"policy {policy} needs every single job's future, which --forecasts {kind} does not tell; pass"
    assert shell.refuses("simulate", "--policy", policy, *words) == f"{needs} --forecasts oracle"
    lacks = f"asks every job's future, which {kind} does not tell; add oracle to --forecasts"
    assert lacks in shell.refuses("backtest", "--policies", policy, *words)
    told = shell.json("backtest", "--policies", f"fcfs,{policy}", *words, "--jobs", 1)
    assert [row["label"] for row in told["rows"]] == ["fcfs"]
    assert told["skipped"] == [{"policy": policy, "lacks": lacks}]
