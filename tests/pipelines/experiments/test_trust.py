"""From the command line: what cannot be trusted lends nothing, and everybody is told."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from jobcast.models.job_duration import JobDuration
from jobcast.models.new_load import NewLoad
from jobcast.models.will_jobs_arrive import WillJobsArrive
from jobcast.pipelines.experiments import forecast_specs
from jobcast.pipelines.experiments.sources import loaded_version
from jobcast.schedulers import registry

FIGURES = ("mean_jct_s", "p99_jct_s", "mean_wait_s", "makespan_s", "slowed_pct")


@pytest.fixture
def simulate(run):
    """The words of a simulation of what came after training."""

    def words(policy, forecasts, *more):
        window = ("--trace", run.trace, "--pools", run.pools, "--from", run.trained_until)
        return ("simulate", *window, "--policy", policy, "--forecasts", forecasts, *more)

    return words


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Installs a package of one module with entry points, as pip would."""

    def install(group, code, **points):
        folder = tmp_path / "site"
        info = folder / "theirs-1.0.dist-info"
        info.mkdir(parents=True)
        (folder / "theirs_jobcast.py").write_text(code)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
        rows = [f"{name} = theirs_jobcast:{value}" for name, value in points.items()]
        (info / "entry_points.txt").write_text("\n".join([f"[{group}]", *rows, ""]))
        monkeypatch.syspath_prepend(folder)
        monkeypatch.setattr(
            sys, "dont_write_bytecode", True
        )  # what an import leaves behind is none of a command's files
        forget()

    def forget():
        forecast_specs._installed.cache_clear()
        registry._installed.cache_clear()
        sys.modules.pop("theirs_jobcast", None)

    yield install
    monkeypatch.undo()
    forget()


def broken(answer, bad):
    """A method of a predictor whose answer is replaced, or that raises."""

    def method(self, rows, *others):
        if isinstance(bad, Exception):
            raise bad
        told = np.asarray(answer(self, rows, *others), dtype=np.float64)
        return np.full(told.shape, bad)

    return method


OF_ARRIVALS = [(np.nan, "not finite"), (-1.0, "out of range"), (RuntimeError("torn\nfile"), "raised")]


@pytest.mark.parametrize(
    ("kind", "predictor", "answers"),
    [
        ("arrivals", WillJobsArrive, [("horizon_proba", *one) for one in OF_ARRIVALS]),
        ("loads", NewLoad, [("lend_rows", -1000.0, "out of range")]),
        ("durations", JobDuration, [("choose", -1.0, "out of range"), ("predict_proba", np.nan, "not finite")]),
    ],
)
def test_a_broken_predictor_is_told_and_is_the_run_with_that_part_conservative(
    shell, simulate, monkeypatch, kind, predictor, answers
):
    parts = (f"{part}={'conservative' if part == kind else 'registry'}" for part in ("arrivals", "loads", "durations"))
    expected = shell.json(*simulate("sia", f"mixed:{','.join(parts)}"))
    for question, bad, reason in answers:
        with monkeypatch.context() as patch:
            patch.setattr(predictor, question, broken(getattr(predictor, question), bad))
            answer = shell.works(*simulate("sia", "registry", "--json", "-"))
        told = json.loads(answer.out)
        assert [told[figure] for figure in FIGURES] == [expected[figure] for figure in FIGURES]
        assert list(told["bad_forecasts"]) == [kind]
        figures = told["bad_forecasts"][kind]
        assert figures["bad"] == figures["checked"] > 0
        assert set(figures["reasons"]) <= {reason, "breaker open"}
        assert f"bad forecasts, {kind}: {figures['bad']:,} of {figures['checked']:,} answers were bad" in answer.err


def test_explain_says_what_rested_on_a_replaced_answer(shell, simulate, monkeypatch, tmp_path):
    monkeypatch.setattr(NewLoad, "lend_rows", broken(NewLoad.lend_rows, np.nan))
    monkeypatch.setattr(JobDuration, "choose", _too_long_for_odd_jobs(JobDuration.choose))
    shell.works(*simulate("sia", "registry", "--out", "log.csv"))
    replaced = pl.read_parquet(tmp_path / "log.csv.run" / "replaced.parquet")
    bad = set(replaced["job_id"].drop_nulls())
    log = pl.read_csv(tmp_path / "log.csv", infer_schema_length=None, schema_overrides={"job_id": pl.String})
    waited = log.filter(pl.col("start_time") > pl.col("submit_time") + 60)
    asked = set(replaced.filter(pl.col("reason") == "out of range")["job_id"])
    job = next(job_id for job_id in waited["job_id"] if job_id in asked)
    answer = shell.works("explain", "--out", "log.csv", "--job", job)
    assert "which stands in place of a bad answer (out of range: 7 is no value of a duration bin)" in answer.out
    assert "bad forecasts, durations: " in answer.err
    reserved = [job_id for job_id in waited["job_id"] if job_id not in bad][:40]
    texts = (shell.works("explain", "--out", "log.csv", "--job", job_id).out for job_id in reserved)
    assert any("a bad forecast replaced by the conservative one (loads not finite: nan)" in text for text in texts)


def _too_long_for_odd_jobs(choose):
    """Bins of which every other one is none."""
    asked = []

    def wrong(self, rows, *lenders_gpus):
        asked.append(rows)
        return np.array([7]) if len(asked) % 2 else choose(self, rows, *lenders_gpus)

    return wrong


def test_features_far_beyond_training_are_named_and_not_refused(shell, simulate, monkeypatch):
    real = WillJobsArrive.load.__func__

    def load(cls, folder):
        model = real(cls, folder)
        model.feature_spans_ = {**model.feature_spans_, "arrivals_last_100k": (0.0, 0.01)}
        return model

    monkeypatch.setattr(WillJobsArrive, "load", classmethod(load))
    loaded_version.cache_clear()
    answer = shell.works(*simulate("sia", "registry", "--json", "-"))
    loaded_version.cache_clear()
    told = json.loads(answer.out)["features_beyond_training"]["will-jobs-arrive"]["arrivals_last_100k"]
    assert told["trained"] == [0.0, 0.01]
    assert told["seen"] > 1
    assert told["rows"] > 0
    assert "features far beyond training, will-jobs-arrive: " in answer.err


def damage_models(home):
    for path in home.rglob("metadata.json"):
        path.write_text("{")


def damage_database(home):
    (home / "mlruns" / "mlflow.db").write_bytes(b"no database")


def test_a_registry_that_cannot_answer_is_refused_or_degrades(shell, store, simulate):
    expected = shell.json(*simulate("sia", "conservative"))
    for damage in (damage_models, damage_database, shutil.rmtree):
        damage(shell.home)
        line = shell.refuses(*simulate("sia", "registry"))
        assert line.endswith("; or pass --degrade to go on with conservative answers")
        answer = shell.works(*simulate("sia", "registry", "--degrade", "--json", "-"))
        told = json.loads(answer.out)
        assert [told[figure] for figure in FIGURES] == [expected[figure] for figure in FIGURES]
        assert len(told["degraded"]) == 1
        assert f"degraded: {told['degraded'][0]}" in answer.err
        assert {reason for one in told["bad_forecasts"].values() for reason in one["reasons"]} == {"degraded"}


def test_pools_never_seen_in_training_are_answered_conservatively_with_degrade(shell, run, simulate, tmp_path):
    trace = pl.read_parquet(run.trace)
    first = trace["pool"].value_counts(sort=True)["pool"][-1]
    renamed = trace.with_columns(pl.col("pool").cast(pl.String).replace(first, "newcomers"))
    renamed.write_parquet(tmp_path / "t.parquet")
    (tmp_path / "p.csv").write_text(run.pools.read_text().replace(f"{first},", "newcomers,"))
    words = ("simulate", "--trace", "t.parquet", "--pools", "p.csv", "--from", run.trained_until, "--policy", "sia")
    assert shell.json(*words, "--forecasts", "registry")["bad_forecasts"] == {}
    told = shell.json(*words, "--forecasts", "registry", "--degrade")
    assert told["bad_forecasts"]["arrivals"]["reasons"].keys() == {"degraded"}
    assert "will-jobs-arrive has not learnt from pools newcomers" in told["degraded"]


BACKTEST = ("--policies", "fcfs,sia", "--forecasts", "registry,conservative", "--jobs", "1")


@pytest.mark.usefixtures("store")
def test_a_backtest_tells_it_by_row_and_its_page_leads_with_it(shell, run, monkeypatch, tmp_path):
    window = ("--trace", run.trace, "--pools", run.pools, "--from", run.trained_until)
    assert "cannot be trusted" not in _page(shell, tmp_path / "good", window)
    monkeypatch.setattr(WillJobsArrive, "horizon_proba", broken(WillJobsArrive.horizon_proba, np.nan))
    page = _page(shell, tmp_path / "bad", window)
    assert "cannot be trusted" in page
    assert page.index("cannot be trusted") < page.index("What was replayed")
    rows = {row["label"]: row for row in json.loads((tmp_path / "bad" / "results.json").read_text())["rows"]}
    assert rows["sia registry"]["figures"]["bad_forecasts"]["arrivals"]["bad"] > 0
    assert "bad_forecasts" not in rows["sia conservative"]["figures"]


def _page(shell, out, window):
    shell.works("backtest", *window, *BACKTEST, "--out", out)
    return (out / "report.html").read_text()


THEIRS = '''
from jobcast.simulator.forecast_sources import Conservative, Oracle

class Hopeful(Oracle):
    """Says that nobody comes to one pool, and breaks about all others."""
    def __init__(self, workload, history, seed):
        super().__init__(workload)
        self.pool = workload.pools[0].name
    def will_jobs_arrive(self, pool, horizon_s):
        return False if pool == self.pool else float("nan")

def exact(workload, history, seed):
    assert history.pools
    return Oracle(workload)

def nothing(workload, history, seed):
    return None

def torn(workload, history, seed):
    raise OSError("no file")
'''


def test_an_installed_source_answers_and_is_guarded(shell, simulate, package):
    package("jobcast.forecasts", THEIRS, theirs="exact", hopeful="Hopeful")
    told, expected = shell.json(*simulate("sia", "theirs")), shell.json(*simulate("sia", "oracle"))
    assert [told[figure] for figure in FIGURES] == [expected[figure] for figure in FIGURES]
    assert (told["forecasts"], told["bad_forecasts"]) == ("theirs", {})
    hopeful = shell.json(*simulate("sia", "hopeful"))
    assert "not finite" in hopeful["bad_forecasts"]["arrivals"]["reasons"]


def test_the_source_of_the_documentation_works(shell, simulate, package):
    page = (Path(__file__).parents[3] / "docs" / "forecasts.md").read_text()
    code = page.partition("## Your own source")[2].partition("```python\n")[2].partition("```")[0]
    package("jobcast.forecasts", code, yesterday="Yesterday")
    assert shell.json(*simulate("sia", "yesterday"))["bad_forecasts"] == {}


@pytest.mark.parametrize(
    ("value", "why"), [("nothing", "makes nothing"), ("torn", "OSError: no file"), ("gone", "AttributeError")]
)
def test_an_installed_source_that_cannot_be_used_is_named_or_degrades(shell, simulate, package, value, why):
    package("jobcast.forecasts", THEIRS, theirs=value)
    line = shell.refuses(*simulate("sia", "theirs"))
    assert f"--forecasts theirs: the plug-in theirs_jobcast:{value} cannot be used" in line
    assert why in line
    assert "--degrade" in line
    assert shell.json(*simulate("sia", "theirs", "--degrade"))["degraded"]


THEIR_POLICIES = """
from jobcast.schedulers.pool_rules import Fcfs
from jobcast.schedulers.policies import PolicyFactory

nothing = None

def empty(forecasts, settings):
    return object()

def torn(forecasts, settings):
    raise KeyError("quota")

class Raising(Fcfs):
    name = "raising"
    def decide(self, view):
        return 1 / 0

raising = PolicyFactory(Raising, uses_forecasts=False)
"""


@pytest.mark.parametrize(
    ("value", "why", "code"),
    [
        ("nothing", "is None and makes no policy", 2),
        ("gone", "does not load (AttributeError", 2),
        ("empty", "makes object, which has no decide", 2),
        ("torn", "cannot be made (KeyError: 'quota')", 2),
        ("raising", "raised ZeroDivisionError: division by zero", 1),
    ],
)
def test_an_installed_policy_that_fails_is_named(shell, simulate, package, value, why, code):
    package("jobcast.policies", THEIR_POLICIES, theirs=value)
    line = shell.refuses(*simulate("theirs", "oracle"), code=code)
    assert line.startswith(f"policy theirs: the plug-in theirs_jobcast:{value} {why}")
