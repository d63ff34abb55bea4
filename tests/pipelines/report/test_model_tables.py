"""Versions as people read them; a backtest that cannot be kept beside its versions says so and goes on."""

from jobcast.pipelines.report.model_tables import details, log_on_versions

GAIN = {"label": "sia registry", "policy": "sia", "against": "fcfs", "ratio": 2.0, "low": 1.5, "high": 2.5}
TOLD = {"rows": [{"label": "sia registry", "versions": {"new-load": 1}}], "gains": [GAIN], "baselines": {"x": "fcfs"}}


def test_a_backtest_without_versions_has_nothing_to_log(tmp_path):
    rows = [{"label": "fcfs", "versions": {}}]
    assert log_on_versions(tmp_path, {**TOLD, "rows": rows}, "week", "7" * 64, (0.0, 1.0)) == ""


def test_a_registry_that_cannot_be_written_spoils_no_backtest(tmp_path, monkeypatch):
    monkeypatch.setenv("JOBCAST_REGISTRY", "http://127.0.0.1:9")
    said = log_on_versions(tmp_path, TOLD, "week", "7" * 64, (0.0, 1.0))
    assert said.startswith("not logged on the versions: http://127.0.0.1:9: cannot be reached (")


def test_lists_of_figures_are_lines_of_their_own():
    told = {"backtests": [{"trace": "week", "gains": [{"ratio": 2.0}]}], "aliases": ["a", "b"], "none": []}
    assert details(told).splitlines() == [
        "backtests",
        "  trace                    week",
        "  gains",
        "    ratio                    2",
        "aliases                  a, b",
        "none                     ",
    ]
