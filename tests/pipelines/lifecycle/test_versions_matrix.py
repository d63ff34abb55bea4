"""Versions of every predictor that a policy asks, trained on a trace's first days, worth what on its later ones."""

import json
from pathlib import Path

import pytest

from jobcast.pipelines.experiments.backtest_results import read_results
from jobcast.pipelines.experiments.forecast_specs import parse_forecasts
from jobcast.pipelines.experiments.policy_runs import lacking_source, pinned
from jobcast.pipelines.lifecycle.drift_verdict import VERDICTS
from jobcast.pipelines.report.backtest_tables import matrix_table, summaries
from jobcast.schedulers.registry import POLICIES, find_policy
from tests.enriching import enriched_trace
from tests.pipelines.conftest import typed

pytestmark = pytest.mark.xdist_group("matrix")  # what they share is made once
HOUR_S = 3600
JOBS = 48
ROWS = [
    f"j{at:02d},{'ab'[at % 2]},u{at % 3},{3 * HOUR_S * at},{(2, 5, 9)[at % 3] * 2000 + 7 * at},{(1, 2)[at % 2]}"
    for at in range(JOBS)
]
"""Six days of eight jobs each."""
DUMP = Path(__file__).parents[2] / "traces" / "fixtures" / "sacct" / "partitions"
"""What accounting holds: steps, an array, jobs that run, wait or were cancelled."""
NODES = "nodes: [{count: 1, gpus: 2, gpu_type: v100}, {count: 1, gpus: 2, gpu_type: t4}]\npools: {a: 2, b: 2}\n"
ROW = {"future": False, "scope": "pool", "preempts": False, "window": 0, "seed": 0, "versions": {}}
DAY = "1970-01-0{}"
TRAINED = {"regime": (3, 4), "accuracy-curve": (3, 4), "epoch-time": (2, 4)}
"""Predictor -> the days before which its versions were trained."""
POLICIES_OF = {"regime": ("srpt", "ossp"), "accuracy-curve": ("mlf_c", "mlfs"), "epoch-time": ("edf", "andreas")}
SHORT = [f"{name}=2" for name in ("iterations", "runs", "shown", "compared")]
SHORT += ["workloads=1", "checks=1", "imitation_steps=20", "gpus=4"]
LEARNED = tuple(word for setting in SHORT for word in ("--set", setting))
FEW = ("--min-jobs", 5)
OTHERS = {
    "job-duration": ("--algorithm", "last-n", *FEW),
    "will-jobs-arrive": ("--algorithm", "logistic", *FEW),
    "new-load": ("--algorithm", "sliding-max", *FEW),
    "mlf-policy": LEARNED,
    "device-rl": LEARNED,
}
"""More predictors, with what makes their training short."""
ASKING = {"job-duration": ("ssf", "sjf", "gssf"), "mlf-policy": ("mlf_rl",), "device-rl": ("device_rl",)}
PINS = "registry:regime=1,accuracy-curve=1,epoch-time=1,registry:regime=2,accuracy-curve=2,epoch-time=2"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("versions")


@pytest.fixture
def shell_home(folder):
    """A registry that the module shares."""
    return folder / "home"


@pytest.fixture(scope="module")
def enriched(folder):
    """An enriched trace and its nodes."""
    facts = ("--facts", "speedups,training,goodput,tasks,epochs,due,limits", "--set", "gpu_types=v100,t4")
    return enriched_trace(folder, ROWS, NODES, *facts)


@pytest.fixture(scope="module")
def words_of_training(folder, enriched):
    """Two versions of each, from the trace and the tables beside it alone."""
    for name, days in TRAINED.items():
        for day in days:
            typed("train", name, *enriched[:2], "--until", DAY.format(day), home=folder / "home")
    return enriched


@pytest.fixture(scope="module")
def others(folder, words_of_training):
    """Two versions of the other predictors too."""
    for name, words in OTHERS.items():
        for day in (3, 4):
            typed("train", name, *words_of_training[:2], "--until", DAY.format(day), *words, home=folder / "home")
    return words_of_training


@pytest.fixture(scope="module")
def matrix(folder, words_of_training):
    named = ",".join(["fcfs", *(one for policies in POLICIES_OF.values() for one in policies)])
    words = ("--policies", named, "--forecasts", PINS, "--from", DAY.format(4), "--jobs", 1)
    told = folder / "matrix.json"
    typed("backtest", *words_of_training, *words, "--out", folder / "out", "--json", told, home=folder / "home")
    return json.loads(told.read_text())


@pytest.mark.slow
@pytest.mark.parametrize("predictor", POLICIES_OF)
def test_each_policy_has_a_row_a_version_named_by_what_it_asks_alone(matrix, predictor):
    for policy in POLICIES_OF[predictor]:
        rows = [row for row in matrix["rows"] if row["policy"] == policy]
        assert [row["forecasts"] for row in rows] == [f"registry:{predictor}={version}" for version in (1, 2)]
        assert [row["versions"] for row in rows] == [{predictor: 1}, {predictor: 2}]


@pytest.mark.slow
@pytest.mark.parametrize("predictor", POLICIES_OF)
def test_versions_of_a_policy_are_paired_and_both_with_the_baseline_of_its_law(matrix, predictor):
    for policy in POLICIES_OF[predictor]:
        first, second = (f"{policy} registry:{predictor}={version}" for version in (1, 2))
        against = {gain["label"]: set() for gain in matrix["gains"]}
        for gain in matrix["gains"]:
            against[gain["label"]].add(gain["against"])
            if gain["label"] in (first, second):
                assert 0.0 < gain["low"] <= gain["ratio"] <= gain["high"]
                assert gain["days"] == 3
        assert second in against[first]
        (base,) = against[second]
        assert base in against[first]


@pytest.mark.slow
def test_who_asks_nothing_has_one_row_and_nothing_is_skipped(matrix):
    assert [row["label"] for row in matrix["rows"] if row["policy"] == "fcfs"] == ["fcfs"]
    assert matrix["skipped"] == []


@pytest.mark.slow
@pytest.mark.parametrize("predictor", ASKING)
def test_versions_of_durations_and_of_learned_schedulers_are_rows_too(shell, others, predictor):
    pins = ",".join(f"registry:{predictor}={version}" for version in (1, 2))
    words = ("--policies", ",".join(ASKING[predictor]), "--forecasts", pins, "--from", DAY.format(4), "--jobs", 1)
    told = shell.json("backtest", *others, *words)
    assert told["skipped"] == []
    for policy in ASKING[predictor]:
        rows = [row for row in told["rows"] if row["policy"] == policy]
        assert [row["versions"][predictor] for row in rows] == [1, 2]
    assert {gain["label"] for gain in told["gains"]} >= {row["label"] for row in told["rows"] if row["forecasts"]}


JUDGED = {"job-duration": {"sia", "ssf"}, "regime": {"shockwave"}, "accuracy-curve": {"mlfs"}}
JUDGED |= {"epoch-time": {"andreas"}, "mlf-policy": {"mlf_rl"}, "device-rl": {"device_rl"}}


@pytest.mark.slow
@pytest.mark.parametrize("predictor", JUDGED)
def test_each_predictor_is_gated_by_the_policies_that_ask_for_it(shell, others, predictor):
    words = ("models", "promote", f"{predictor}:2", *others, "--from", DAY.format(4))
    told = json.loads(shell("--quiet", *words, "--json", "-").out)
    assert set(told["backtests"]) == JUDGED[predictor]
    for policy, backtest in told["backtests"].items():
        assert backtest["policy"] == policy
        assert backtest["gains"]["ratio"] > 0
        for side in ("candidate", "champion"):
            assert set(backtest["bounds"]) <= set(backtest[side])
    block = next(iter(told["figures"]["blocks"].values()))
    assert block["candidate"]["n"] == block["champion"]["n"] > 0
    assert told["figures"]["difference"] is not None
    assert (told["promoted"], told["compared"]) == (not told["reasons"], True)
    shell("models", "promote", f"{predictor}:1")


@pytest.mark.slow
@pytest.mark.parametrize("predictor", JUDGED)
def test_each_predictor_is_watched_for_drift(shell, folder, others, predictor):
    page = folder / f"{predictor}.html"
    told = shell.json("drift", f"{predictor}:2", *others, "--from", DAY.format(4), "--html", page)
    (week,) = told["weeks"]
    assert told["verdict"] == week["verdict"] in VERDICTS
    assert week["jobs"] > 0
    assert all(block["n"] > 0 for block in week["blocks"].values())
    assert f"Drift of {predictor} version 2" in page.read_text()


RUNNING_S, NONE_RUNS_S = 26 * 3 * HOUR_S + 1000, 25 * 3 * HOUR_S - 1000
"""Job 26 runs for five hours from its submission on; job 24 ends long before job 25 comes."""


@pytest.mark.slow
def test_regimes_of_running_jobs_are_told_at_an_instant(shell, folder, words_of_training):
    words = ("predict", "regime:1", "--trace", words_of_training[1], "--at")
    told = {at: shell.json(*words, at)["jobs"] for at in (RUNNING_S, NONE_RUNS_S)}
    assert told[RUNNING_S]
    assert told[NONE_RUNS_S] == {}
    for job in told[RUNNING_S].values():
        assert 0 <= job["epochs_done"] < job["epochs"]
        assert job["regimes"][0]["batch_size"] == job["batch_size"]
        assert sum(one["epochs"] for one in job["regimes"]) == pytest.approx(job["epochs"] - job["epochs_done"])
        assert all(0 <= one["low"] <= one["epochs"] <= one["high"] for one in job["regimes"])
        assert 0 < job["remaining_low_s"] <= job["remaining_s"] <= job["remaining_high_s"]
    assert "left (" in shell.works(*words, RUNNING_S).out


@pytest.mark.slow
def test_results_and_report_hold_the_matrix(folder, matrix):
    assert read_results(folder / "out")["gains"] == matrix["gains"]
    page = (folder / "out" / "report.html").read_text()
    table = page[page.index("Versions and sources by policy") :].partition("</table>")[0]
    for predictor, policies in POLICIES_OF.items():
        assert all(f"registry:{predictor}={version}" in table for version in (1, 2))
        assert all(policy in table for policy in policies)


@pytest.mark.slow
def test_a_version_that_saw_the_window_costs_its_own_row_alone(shell, words_of_training):
    words = ("--policies", "fcfs,srpt,mlf_c,edf", "--forecasts", PINS, "--from", DAY.format(3), "--jobs", 1)
    told = shell.json("backtest", *words_of_training, *words)
    assert [row["label"] for row in told["rows"] if row["policy"] in ("srpt", "mlf_c", "edf")] == [
        "srpt registry:regime=1", "mlf_c registry:accuracy-curve=1", "edf registry:epoch-time=1"
    ]  # fmt: skip
    assert [one["policy"] for one in told["skipped"]] == ["srpt", "mlf_c", "edf"]
    for one in told["skipped"]:
        assert "version 2 was trained on data until 1970-01-04" in one["lacks"]
        assert "--allow-overlap" in one["lacks"]
    assert [one["forecasts"] for one in told["skipped"]] == [
        "registry:regime=2", "registry:accuracy-curve=2", "registry:epoch-time=2"
    ]  # fmt: skip


def test_a_policy_without_a_version_is_skipped_with_what_to_type(shell, enriched, tmp_path):
    shell.home = tmp_path / "empty"
    words = ("--policies", "fcfs,sia,mlf_rl,sia_vc", "--forecasts", "registry", "--from", DAY.format(4), "--jobs", 1)
    told = shell.json("backtest", *enriched, *words)
    lacks = {one["policy"]: one["lacks"] for one in told["skipped"]}
    assert "jobcast train will-jobs-arrive" in lacks["sia"]
    assert "jobcast train accuracy-curve" in lacks["mlf_rl"]
    assert lacks["sia_vc"] == "asks every job's future, which registry does not tell; add oracle to --forecasts"


def test_who_asks_nothing_needs_no_version(shell, enriched):
    told = shell.json("backtest", *enriched, "--policies", "las,mlf_h", "--forecasts", "registry", "--jobs", 1)
    versions = {row["label"]: row["versions"] for row in told["rows"]}
    assert versions == {label: {} for label in ("fcfs", "gandiva", "las", "mlf_h")}
    assert told["skipped"] == []


def test_tables_of_jobs_are_named_by_set_where_none_lie_beside(shell, folder, enriched):
    plain = ("--trace", folder / "plain.csv", "--until", DAY.format(3))
    line = shell.refuses("train", "epoch-time", *plain)
    assert "--until: does not go with the predictor epoch-time (profiles have no" in line
    assert "curves have no calendar" in shell.refuses("train", "accuracy-curve", *plain)
    assert "--set curve: only curves=FILE" in shell.refuses("train", "accuracy-curve", *plain, "--set", "curve=x")


def test_the_matrix_holds_policies_with_several_versions_against_the_baseline_of_their_law():
    def row(policy, forecasts, law="runtime"):
        label = f"{policy} {forecasts}" if forecasts else policy
        figures = {"mean_jct_s": 1.0}
        return {"label": label, "policy": policy, "forecasts": forecasts, "law": law, "figures": figures} | ROW

    one, two = "registry:regime=1", "registry:regime=2"
    known = summaries([row("fcfs", None), row("srpt", one), row("srpt", two), row("ossp", one), row("edf", two)])
    gains = [gain("srpt " + one, "fcfs", 2.0), gain("srpt " + two, "fcfs", 3.0)]
    gains += [gain("srpt " + one, "srpt " + two, 0.7), gain("ossp " + one, "fcfs", 4.0)]
    table = matrix_table(known, gains)
    assert tuple(table.head) == ("policy", one, two)
    assert [tuple(row) for row in table.rows] == [("srpt", "2.00 (1.00 to 3.00)", "3.00 (2.00 to 4.00)")]
    assert matrix_table(known, gains[:1]) is None


def gain(label, against, ratio):
    return {"label": label, "against": against, "ratio": ratio, "low": ratio - 1.0, "high": ratio + 1.0}


@pytest.mark.parametrize("policy", [name for name in POLICIES if find_policy(name).asks])
def test_what_is_lacking_names_a_source_that_answers(policy):
    rule, spec = find_policy(policy), parse_forecasts("registry:new-load=1")
    assert lacking_source(rule, [spec]).startswith(f"asks {rule.asks[0]}")
    assert "add " in lacking_source(rule, [spec])
    assert pinned(spec, rule).label in ("registry", "registry:new-load=1")


def test_a_messy_dump_meets_policies_of_every_kind_with_no_file_by_hand_but_the_cluster(shell, tmp_path):
    (tmp_path / "nodes.yaml").write_text("nodes: [{count: 2, gpus: 8, gpu_type: v100}]\n")
    shell.works("trace", "convert", "sacct", *sorted(DUMP.iterdir()), "--out", tmp_path / "jobs.parquet")
    facts = ("--facts", "speedups,training,goodput,tasks,epochs,limits,due")
    shell.works("trace", "enrich", tmp_path / "jobs.parquet", *facts, "--out", tmp_path / "enriched")
    where = ("--trace", tmp_path / "enriched" / "jobs.parquet", "--cluster", tmp_path / "nodes.yaml", "--jobs", 1)
    named = "fcfs,sia,srpt,srsf,tiresias,edf,pollux"
    told = shell.json("backtest", *where, "--policies", named, "--forecasts", "oracle")
    assert told["skipped"] == []
    assert {row["policy"] for row in told["rows"]} >= set(named.split(","))
    assert {row["figures"]["jobs"] for row in told["rows"]} == {7}
