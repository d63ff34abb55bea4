"""The command that makes ANDREAS's figures anew, on campaigns of a few nodes."""

import json
from functools import partial

import pytest

from jobcast.domain.errors import ConfigError
from papers.andreas import campaign, effects, openb
from papers.andreas.__main__ import DEFAULT_NODES, main, read_nodes
from papers.andreas.bench import BASELINES, EQUATION_1, Row, Workload, read_workload, run_unit, scenario
from papers.bench import RUNS, Unit
from tests.papers.conftest import answered
from tests.shared import refused

FEW = (("epochs", "2,5"), ("jobs", 6))
QUICK = (
    Row("ANDREAS", settings={"max_iterations": "5"}),
    Row(EQUATION_1.title, settings={"objective": "equation_1", "max_iterations": "5"}),
    *BASELINES,
)
OPENB = "sn,cpu_milli,memory_mib,gpu,model\na,1,1,2,T4\nb,1,1,1,A10\nc,1,1,8,G2\nd,1,1,2,T4\n"


@pytest.fixture
def few(monkeypatch):
    """Six short jobs, few schedules a call."""
    monkeypatch.delenv("JOBCAST_DATA", raising=False)
    for module in (campaign, effects):
        monkeypatch.setattr(module, "scenario", lambda number, nodes: scenario(number, nodes, *FEW))
    monkeypatch.setattr(campaign, "ROWS", QUICK)


run = partial(answered, main)


def test_nodes():
    assert read_nodes(DEFAULT_NODES) == (10, 20, 30, 50, 75, 100)
    for wrong in ("", "ten", "1,10", "10;20"):
        refused(ConfigError, r"--nodes .*: whole numbers of at least 2 are expected, such as 10,20", read_nodes, wrong)


def test_scenarios_by_gpus_a_node(tmp_path):
    # ANDREAS, section V.B
    for number, (v100, t4) in {1: (2, 1), 2: (4, 2)}.items():
        workload = read_workload(scenario(number, 4), 0, tmp_path)
        cluster = workload.facts.cluster
        held = [(workload.facts.gpu_types[kind], int(cluster.kind_gpus[kind])) for kind in cluster.kind_of]
        assert held == [("v100", v100)] * 2 + [("t4", t4)] * 2
        assert len(workload) == 40


def test_policies_see_the_same_draw_and_noise_changes_belief_alone(tmp_path):
    few_jobs = scenario(1, 2, *FEW)
    plain, off = Row("EDF", "edf"), Row("off", "edf", noise=0.5)
    [(key, sharp)] = run_unit(Unit(few_jobs, 1, plain), tmp_path)
    [(other, blurred)] = run_unit(Unit(few_jobs, 1, off), tmp_path)
    assert key != other
    assert sharp.figures["jobs"] == blurred.figures["jobs"] == 6
    first, again = (read_workload(few_jobs, 1, tmp_path).workload.jobs for _ in range(2))
    assert [job.submit_s for job in first] == [job.submit_s for job in again]
    assert sharp.figures["total_eur"] != blurred.figures["total_eur"]


def test_a_figure_goes_on_where_it_stopped(few, tmp_path):
    out = tmp_path / "out"
    words = ("figure3", "--out", out, "--seeds", 2, "--nodes", "2,4", "--jobs", 1)
    run(*words)
    page = (out / "results.md").read_text()
    assert page.startswith(
        "# ANDREAS: what came out\n\nWritten by `make reproduce-andreas`.\n\n## Figure 3: nodes of two"
    )
    assert "| total cost reduced on average by | 62 % |" in page
    assert len((out / "figure3" / "figure3.csv").read_text().splitlines()) == 1 + 2 * 5 * 2
    assert (out / "figure3" / "figure3.svg").read_text().startswith("<svg ")
    kept = (out / RUNS).read_text().splitlines(keepends=True)
    assert len({json.loads(line)["key"] for line in kept}) == 20
    (out / RUNS).write_text("".join(kept[:19]) + kept[19][:40])  # a line that was cut
    table = (out / "figure3" / "figure3.csv").read_text()
    assert "  1/1 4, seed 1, PS" in run(*words, "--resume")
    assert (out / "figure3" / "figure3.csv").read_text() == table


def test_effects(few, tmp_path, monkeypatch):
    groups = {"Iterations": (Row("MaxIt 1", settings={"max_iterations": "1"}),), "Others": BASELINES[:1]}
    monkeypatch.setattr(effects, "GROUPS", groups)
    monkeypatch.setattr(effects, "WHOLE", Row("as it is", settings={"max_iterations": "20"}))
    monkeypatch.setattr(effects, "NODES", 2)
    run("effects", "--out", tmp_path, "--seeds", 9, "--jobs", 1)
    page = (tmp_path / "effects" / "effects.md").read_text()
    assert "5 draws" in page
    assert page.count("| as it is |") == 2
    assert "## Others" in page


def test_openb_with_and_without_rare_nodes(data, few, tmp_path, monkeypatch):
    (data / "openb" / "openb_node_list_gpu_node.csv").write_text(OPENB)
    monkeypatch.setenv("JOBCAST_DATA", str(data))
    for name, least, types in (("WHOLE", 1, ("T4", "A10", "G2")), ("LARGEST", 2, ("T4",))):
        case = Workload(getattr(openb, name).name, FEW, openb=True, least=least)
        monkeypatch.setattr(openb, name, case)
        assert read_workload(case, 0, data).facts.gpu_types == types
    run("openb", "--out", tmp_path / "out", "--seeds", 1, "--jobs", 1)
    page = (tmp_path / "out" / "openb" / "openb.md").read_text()
    assert "## What ANDREAS saves, large groups" in page
    assert "one draw" in page


def test_the_eight_jobs_pages(few, tmp_path):
    run("table3", "figure4", "--out", tmp_path, "--seeds", 1)
    page = (tmp_path / "results.md").read_text()
    assert "| deviation (s = 0.1, restart 60 s) | 12.29 % |" in page
    assert "| due dates missed | none |" in page
    assert "](figure4/figure5.svg)" in page
    chart = (tmp_path / "figure4" / "figure4.svg").read_text()
    assert all(name in chart for name in ("armida-05", "armida-06, GPU 2", "armida-07"))
    assert (tmp_path / "figure4" / "figure4.csv").read_text().startswith("job,node,gpus,from_s,until_s\nJ6,")
