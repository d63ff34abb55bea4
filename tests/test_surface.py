"""What `import jobcast` offers: the names, what they return, what they refuse, and that the import costs nothing."""

import doctest
import inspect
import json
import subprocess
import sys
from datetime import UTC, datetime

import matplotlib
import numpy as np
import pandas as pd
import polars as pl
import pytest

import jobcast as jc
from jobcast.pipelines import surface
from jobcast.schedulers.registry import DECLARED
from jobcast.traces.generators import generate_nodes, generate_profiles
from jobcast.traces.pools import write_pools
from jobcast.traces.table_files import write_trace
from tests.shared import refused

HEAVY = ("pandas", "polars", "numpy", "mlflow", "lightgbm", "matplotlib", "numba", "sklearn", "pydantic", "click")
UNTIL, AT = "2024-01-15", "2024-01-20T09:00:00Z"
SIX_LINES = """
import jobcast as jc
trace = jc.read_trace("jobs.parquet")
version = jc.train("new-load", trace, until="2024-01-15", algorithm="sliding-max")
forecast = jc.forecast(version, trace, at="2024-01-20T09:00:00Z")
axes = forecast.plot()
"""


@pytest.fixture(scope="module", autouse=True)
def _without_a_screen():
    before = matplotlib.get_backend()
    matplotlib.use("agg")
    yield
    from matplotlib import pyplot

    pyplot.close("all")
    matplotlib.use(before)


@pytest.fixture(scope="module")
def traced():
    return jc.example_trace()


@pytest.fixture(scope="module")
def home(tmp_path_factory, traced):
    """A registry with two versions of one predictor and one of another."""
    folder = tmp_path_factory.mktemp("home")
    trace, _ = traced
    jc.train("new-load", trace, until=UNTIL, algorithm="sliding-max", home=folder)
    jc.train("new-load", trace, until="2024-01-14", algorithm="sliding-max", home=folder)
    jc.train("job-duration", trace, until=UNTIL, algorithm="tag-pool-width", home=folder)
    return folder


def test_import_brings_nothing_heavy():
    code = "import json, sys, jobcast; print(json.dumps([dir(jobcast), list(sys.modules)]))"
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    names, modules = json.loads(told)
    assert set(jc.__all__) <= set(names)
    assert not set(modules) & set(HEAVY)
    assert not [name for name in modules if name.startswith("jobcast.")]


def test_every_name_is_there_and_some_thirty_are():
    assert 30 <= len(jc.__all__) <= 40
    assert sorted(jc.__all__) == sorted({*jc._HOMES, "__version__"})
    for name in jc.__all__:
        assert getattr(jc, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = jc.nothing


def test_checkers_see_the_names_that_users_do():
    source = inspect.getsource(jc)
    seen = {}
    for line in source[source.index("if TYPE_CHECKING") : source.index("__version__ =")].replace("(", "").splitlines():
        words = line.replace(",", " ").replace(")", " ").split()
        if words[:1] == ["from"]:
            place, words = words[1].removeprefix("jobcast."), words[3:]
        seen |= {name: place for name in words if not line.startswith("if")}
    assert seen == jc._HOMES


def test_every_function_of_the_surface_is_typed_and_has_an_example():
    functions = [getattr(jc, name) for name in jc._SURFACE.split()]
    assert {one.__module__ for one in functions} == {surface.__name__}
    for one in functions:
        assert ">>> " in (one.__doc__ or ""), one.__name__
        signature = inspect.signature(one)
        assert signature.return_annotation is not inspect.Signature.empty
        assert all(one.annotation is not inspect.Parameter.empty for one in signature.parameters.values())


def test_the_module_shows_a_simulation_that_runs():
    found = doctest.testmod(jc)
    assert (found.failed, found.attempted) == (0, 5)


def test_a_trace_is_loaded_trained_on_forecast_and_drawn_in_six_lines(tmp_path, monkeypatch, traced):
    write_trace(traced[0], tmp_path / "jobs.parquet")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JOBCAST_HOME", str(tmp_path / "home"))
    lines = SIX_LINES.strip().splitlines()
    assert len(lines) <= 6
    names = {}
    exec(SIX_LINES, names)
    forecast, axes = names["forecast"], names["axes"]
    assert isinstance(forecast, pd.DataFrame)
    assert list(forecast.columns) == ["unique_id", "cutoff", "ds", "horizon_min", "y_pred"]
    assert set(forecast["cutoff"]) == {pd.Timestamp(AT)}
    np.testing.assert_array_equal(
        (forecast["ds"] - forecast["cutoff"]).dt.total_seconds() / 60, forecast["horizon_min"]
    )
    assert axes.get_title() == "new-load 1"
    assert len(axes.get_lines()) == forecast["unique_id"].nunique() == 2
    assert forecast.attrs["overlap"] is False


def test_forecasts_at_several_instants_and_of_jobs(home, traced):
    trace, _ = traced
    several = jc.forecast("new-load:1", trace, at=[AT, datetime(2024, 1, 20, 10, tzinfo=UTC)], home=home)
    assert several["cutoff"].nunique() == 2
    assert len(several.plot().get_lines()) == 6  # two pools, three horizons
    np.testing.assert_array_equal(several.iloc[:6], jc.forecast("new-load:1", trace, at=AT, home=home))
    assert type(several.head(2)) is type(several)
    jobs = jc.forecast("job-duration", trace, at=AT, home=home)
    assert jobs.columns[0] == "unique_id"
    assert "ds" not in jobs
    assert len(jobs.plot().patches) == 4 * min(len(jobs), 30)
    assert jc.forecast("new-load", trace, at="2024-01-10", home=home).attrs["overlap"] is True


def test_a_part_of_a_trace_is_not_taken_for_the_whole_file_that_it_was_read_from(tmp_path, traced):
    path = tmp_path / "jobs.parquet"
    ran = jc.simulate(traced[0], "fcfs", traced[1]).jobs.select("job_id", "start_time")
    starts = pl.from_epoch((pl.col("start_time") * 1e6).cast(pl.Int64), "us").dt.replace_time_zone("UTC")
    write_trace(jc.Trace.from_frame(traced[0].jobs.join(ran.with_columns(starts), on="job_id"), name="ran"), path)
    whole = jc.read_trace(path)
    version = jc.train("queue-wait", whole, until="2024-01-05", home=tmp_path)
    assert jc.train("queue-wait", path, until="2024-01-05", home=tmp_path).version == version.version
    part = whole.between(None, float(whole.submit_s[300]))
    for ask in (jc.train, lambda name, trace, home: jc.forecast(name, trace, at=AT, home=home)):
        with pytest.raises(jc.UserError, match=r"holds other jobs than the trace in memory.* start and until"):
            ask("queue-wait", part, home=tmp_path)


def test_scores_are_a_row_a_horizon_and_model(home, traced):
    scores = jc.evaluate("new-load:1", traced[0], draws=0, home=home)
    assert scores["horizon"].unique().tolist() == ["5min", "60min", "720min"]
    assert scores.groupby("horizon")["model"].first().unique().tolist() == ["new-load:1"]
    assert scores.attrs["result"]["version"] == 1


def test_a_version_is_exported_to_a_folder_by_its_name(home, tmp_path):
    there = jc.registry(home)
    assert there.export(there.resolve("new-load", 1), str(tmp_path / "out")) == (tmp_path / "out").absolute()


def test_versions_are_listed_promoted_rolled_back_and_loaded(home, traced):
    table = jc.versions(home)
    assert sorted(zip(table["name"], table["version"], strict=True)) == [
        ("job-duration", 1),
        ("new-load", 1),
        ("new-load", 2),
    ]
    assert jc.registry(home).resolve("new-load").version == 1
    told = jc.promote("new-load:2", home=home)
    assert (told["promoted"], told["compared"]) == (True, False)
    assert jc.registry(home).resolve("new-load").version == 2
    assert jc.rollback("new-load", home).version == 1
    assert jc.load("new-load", home).name == "new-load"
    compared = jc.promote("new-load:2", traced[0], traced[1], force=True, home=home)
    assert compared["compared"]
    jc.rollback("new-load", home)


@pytest.mark.parametrize("unit", ["D", "s", "us", "ns"])
def test_an_instant_of_numpy_is_the_one_that_it_says(home, traced, unit):
    stamp = np.datetime64("2024-01-20", unit)
    found = jc.forecast("new-load:1", traced[0], at=stamp, home=home)
    pd.testing.assert_frame_equal(found, jc.forecast("new-load:1", traced[0], at="2024-01-20", home=home))


def test_simulations_by_cluster_in_python_and_by_file_are_the_same(tmp_path, traced):
    trace, pools = traced
    write_trace(trace, tmp_path / "jobs.parquet")
    write_pools(pools, tmp_path / "pools.csv")
    here = jc.simulate(trace, "sia", pools, forecasts="oracle", limit=150, home=tmp_path)
    there = jc.simulate(tmp_path / "jobs.parquet", "sia", tmp_path / "pools.csv", forecasts="oracle", limit=150)
    timeless = {"wall_s", "cpu_s", "inputs", "decision_ms_mean", "decision_ms_max"}
    assert {k: v for k, v in here.result.items() if k not in timeless} == {
        k: v for k, v in there.result.items() if k not in timeless
    }
    assert here.jobs.equals(there.jobs)
    assert here.jobs.height == 150
    here.write(str(tmp_path / "log.csv"))
    job = here.jobs["job_id"][20]
    assert jc.explain(tmp_path / "log.csv", job).text == str(jc.explain(here, job))
    # A number is the job of that id, here of none.
    refused(jc.UserError, "--job 4711: no such job among the 150 of the run; ", jc.explain, here, 4711)


def test_a_run_in_python_writes_the_segments_that_a_setting_asks_for(tmp_path):
    trace, _ = jc.generate("armida")
    generate_profiles("armida").write_csv(tmp_path / "profiles.csv")
    files = {"profiles": tmp_path / "profiles.csv", "segments": tmp_path / "segments.csv"}
    run = jc.simulate(trace, "edf", generate_nodes("armida"), forecasts="oracle", baseline="none", set=files)
    written = pd.read_csv(tmp_path / "segments.csv")
    assert set(written["job_id"]) == set(run.jobs["job_id"])


def test_numbers_of_numpy_and_whole_ones_with_a_point_are_numbers(traced, tmp_path):
    trace, _ = traced
    told = jc.simulate(trace, "fcfs", np.int64(64), limit=30.0, seed=np.int64(3)).result
    plain = jc.simulate(trace, "fcfs", 64, limit=30, seed=3).result
    assert json.dumps(told["configuration"]) == json.dumps(plain["configuration"])
    assert (told["mean_jct_s"], repr(told["seed"])) == (plain["mean_jct_s"], "3")
    version = jc.train(
        "new-load", trace, until=UNTIL, algorithm="sliding-max", horizons_min=np.array([5, 60]), home=tmp_path
    )
    assert jc.load(version, home=tmp_path).horizons_min_ == (5, 60)


def test_any_command_takes_what_is_in_memory_and_tells_its_json(traced, capsys):
    trace, pools = traced
    told = jc.command("choose", trace=trace, pools=pools, policies="mmfs", windows=2, until="2024-01-06")
    assert [one["label"] for one in told["candidates"]] == ["fcfs", "mmfs"]
    assert told["inputs"]["trace"]["rows"] == len(trace)
    assert jc.command("trace", "describe", trace)["total"]["jobs"] == len(trace)
    assert capsys.readouterr().out == ""


def test_a_command_of_files_tells_the_line_that_makes_it_again(tmp_path, traced):
    trace, pools = traced
    write_trace(trace, tmp_path / "jobs.csv")
    write_pools(pools, tmp_path / "pools.csv")
    told = jc.command("simulate", trace=tmp_path / "jobs.csv", pools=tmp_path / "pools.csv", policy="mmfs")
    assert told["command"][:3] == ["simulate", "--trace", str(tmp_path / "jobs.csv")]
    assert jc.command("simulate", trace=trace, pools=pools, policy="mmfs")["command"] == []
    assert jc.command("trace", "describe", tmp_path / "jobs.csv")["total"]["jobs"] == len(trace)


def test_backtests_tell_rows_and_gains(tmp_path, traced):
    trace, pools = traced
    found = jc.backtest(trace, "mmfs", pools, until="2024-01-06", jobs=1, home=tmp_path, out=tmp_path / "out")
    assert found.rows["policy"].tolist() == ["fcfs", "mmfs"]
    assert {"label", "against", "ratio"} <= set(found.gains.columns)
    assert (tmp_path / "out" / "results.json").is_file()
    assert any(note.startswith("report: ") for note in found.notes)
    # Nobody typed a command that could make it.
    assert json.loads((tmp_path / "out" / "inputs.json").read_text())["command"] is None
    assert "pytest" not in (tmp_path / "out" / "report.html").read_text()


def test_a_declared_policy_is_one_like_ours(tmp_path, traced):
    trace, pools = traced

    @jc.policy("narrowest_here")
    class Narrowest:
        """The narrowest job of each pool first."""

        name = "narrowest_here"

        def key(self, job: jc.Job) -> float:
            return float(job.gpus)

        def decide(self, view: jc.View) -> jc.Decision:
            starts: dict[int, jc.Grant] = {}
            for pool in view.pools.values():
                free = pool.quota - pool.allocated
                while (job := pool.pending.head(starts.keys())) is not None and job.gpus <= free:
                    starts[job.seq] = jc.Grant(job.gpus)
                    free -= job.gpus
            return jc.Decision(starts)

    try:
        row = jc.policies().set_index("name").loc["narrowest_here"]
        assert (row["kind"], row["summary"]) == ("pools", "The narrowest job of each pool first.")
        jc.check_policy(lambda forecasts: Narrowest(), seeds=range(2))
        run = jc.simulate(trace, "narrowest_here", pools, limit=60)
        assert run.result["policy"] == "narrowest_here"
        table = jc.backtest(trace, ["narrowest_here"], pools, until="2024-01-03", jobs=2, home=tmp_path).rows
        assert "narrowest_here" in set(table["policy"])
        stepped = jc.Simulation(jc.workload(trace, pools, until="2024-01-03"), jc.make_policy("narrowest_here"))
        assert stepped.run().over
        with pytest.raises(jc.UserError, match="narrowest_here: setting slack"):
            jc.simulate(trace, "narrowest_here", pools, set={"slack": 1})
    finally:
        DECLARED.clear()
    refused(jc.UserError, "there is one of that name", jc.policy, "fcfs")
    refused(jc.UserError, "no kind 'fast'", jc.policy, "fastest", kind="fast")


def test_a_backtest_replaces_nothing_of_the_users(traced, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    for mine in (tmp_path, tmp_path / "notes.txt"):
        with pytest.raises(jc.UserError, match=r"^--out .*: holds something else than a backtest; name a new folder$"):
            jc.backtest(traced[0], "fcfs", out=mine)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda trace, home: jc.read_trace(home / "none.csv"), "none.csv"),
        (lambda trace, home: jc.command("invoice", colour="red"), "--colour"),
        (lambda trace, home: jc.command("nothing"), "nothing"),
        (lambda trace, home: jc.command("trace", "describe", str(home / "none.csv")), "none.csv"),
        (lambda trace, home: jc.train("new-load", trace, colour="red", home=home), "'colour'"),
        (lambda trace, home: jc.train("new-load", trace, coverage=2.0, home=home), "coverage"),
        (lambda trace, home: jc.train("accuracy-curve", trace, home=home), "name the trace's file"),
        (lambda trace, home: jc.forecast("new-load:7", trace, home=home), "no version 7"),
        (lambda trace, home: jc.forecast("new-load", trace, at=[], home=home), "at least one instant"),
        (lambda trace, home: jc.forecast("new-load", trace, at=object(), home=home), "no instant"),
        (lambda trace, home: jc.evaluate("new-load:1", trace, start="2024-01-10", home=home), "trained"),
        (lambda trace, home: jc.simulate(trace, "fcsf"), "fcfs"),
        (lambda trace, home: jc.simulate(trace, "fcfs", cluster=0), "at least 1"),
        (lambda trace, home: jc.simulate(trace, "fcfs", trace.jobs), "^cluster: give .* file, not DataFrame$"),
        (lambda trace, home: jc.simulate(trace, "fcfs", [jc.Pool("a", 4), jc.Pool("a", 8)]), "pool a is given twice"),
        (lambda trace, home: jc.simulate(trace, "fcfs", [jc.Pool("a", 8.5)]), "a whole number of GPUs, got 8.5"),
        (lambda trace, home: jc.simulate(trace, "fcfs", [jc.Pool("a", "8")]), "a whole number of GPUs, got '8'"),
        (lambda trace, home: jc.simulate(trace, jc.Policy), "^policy: give a name of .*, not Policy; @jc.policy"),
        (lambda trace, home: jc.backtest(trace, [jc.Policy]), "^policy: give a name of policies.., not Policy;"),
        (lambda trace, home: jc.explain(trace, "007"), "^run: give what simulate returned, .*, not Trace$"),
        (lambda trace, home: jc.backtest(trace, ["fcfs"], forecasts=["stars"], home=home), "stars"),
        (lambda trace, home: jc.backtest(trace, "fcfs", windows=0, home=home), "windows: .*at least 1"),
        (lambda trace, home: jc.train("new-load", None, home=home), "give a Trace"),
        (
            lambda trace, home: jc.describe(trace.jobs),
            "^trace: give a Trace or the file of one, not DataFrame; Trace",
        ),
        (
            lambda trace, home: jc.read_trace(trace.jobs),
            "^DataFrame is no path of a file; Trace.from_frame",
        ),
        (lambda trace, home: jc.Trace.from_frame(trace.jobs.to_pandas(), name="mine"), "^mine: .*polars.from_pandas"),
        (lambda trace, home: jc.train("new-load", trace, horizons_min="5,60", home=home), "horizons_min: minutes"),
        (lambda trace, home: jc.train("new-load", trace, horizons_min=["a", 60], home=home), "horizons_min: minutes"),
        (lambda trace, home: jc.simulate(trace, "fcfs", limit=3.5), "limit: must be a whole number"),
        (lambda trace, home: jc.simulate(trace, "sia", settings={"slack": 1}), "there is no 'settings'"),
        (lambda trace, home: jc.backtest(trace, "sia", settings={"slack": 1}), "there is no 'settings'"),
        (
            lambda trace, home: jc.simulate(trace, "sia", forecast="oracle"),
            "^simulate: there is no 'forecast'; did you mean forecasts[?] choose from trace, .*, law, .*, warmup",
        ),
        (
            lambda trace, home: jc.evaluate("new-load", trace, untill=0),
            "^evaluate: there is no 'untill'; did you mean until[?] choose from version, trace, start, .*, without, ",
        ),
        (
            lambda trace, home: jc.train("new-load", trace, horizons=[5]),
            "^train: there is no 'horizons'; did you mean horizons_min[?] choose from predictor, trace, start, ",
        ),
    ],
)
def test_mistakes_are_told_as_the_users(call, words, home, traced):
    refused(jc.UserError, words, call, traced[0], home)
