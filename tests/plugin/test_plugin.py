"""A package of a policy of each kind: it names few types, keeps to the rules, and runs from the command line."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

from jobcast.domain.law import EPOCHS, RUNTIME, SPEEDUP, TASKS
from jobcast.schedulers import registry
from jobcast.testing import check_policy, registered
from tests.enriching import enriched_trace
from tests.pipelines.conftest import Shell

HERE = Path(__file__).parent
MODULES = sorted(path for path in (HERE / "jobcast_examples").glob("*.py") if path.stem != "__init__")
DOCS = HERE.parents[1] / "docs" / "plugins.md"
MOST_TYPES = 8
PROJECT = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
POLICIES = PROJECT["entry-points"]["jobcast.policies"]
LAWS = {
    "narrowest": (RUNTIME, EPOCHS, TASKS),
    "longest_waiting": (RUNTIME, EPOCHS, TASKS),
    "one_each": (SPEEDUP, EPOCHS),
    "emptiest": (TASKS,),
    "greenest": (EPOCHS,),
}
ROWS = ("1,a,u,0,600,2", "2,a,u,0,900,1", "3,b,u,60,300,4", "4,b,u,120,1200,1", "5,a,u,300,450,2", "6,b,u,300,60,1")
NODES = "nodes:\n  - {count: 2, gpus: 4, gpu_type: v100}\n  - {count: 1, gpus: 2, gpu_type: t4}\npools: {a: 6, b: 4}\n"
FACTS = ("--facts", "speedups,training,goodput,tasks,epochs,due")


@pytest.fixture(autouse=True)
def installed(tmp_path, monkeypatch):
    """The package as pip installs it: its folder on the path, its entry points beside it."""
    info = tmp_path / "site" / f"jobcast_examples-{PROJECT['version']}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {PROJECT['name']}\nVersion: {PROJECT['version']}\n")
    points = [f"{name} = {place}" for name, place in POLICIES.items()]
    (info / "entry_points.txt").write_text("\n".join(["[jobcast.policies]", *points, ""]))
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.syspath_prepend(HERE)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    registry._installed.cache_clear()
    yield
    monkeypatch.undo()
    registry._installed.cache_clear()


@pytest.fixture
def shell(tmp_path, monkeypatch, capsys):
    return Shell(tmp_path / "home", tmp_path, monkeypatch, capsys)


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """Options of a small trace with all facts, and of its nodes."""
    return enriched_trace(tmp_path_factory.mktemp("enriched"), ROWS, NODES, *FACTS)


def types_of(path):
    """What a module imports from jobcast, by name."""
    imports = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom | ast.Import)]
    assert not [one for one in imports if isinstance(one, ast.Import) and one.names[0].name.startswith("jobcast")]
    found = [one for one in imports if isinstance(one, ast.ImportFrom) and one.module.split(".")[0] == "jobcast"]
    return sorted((name.name for one in found for name in one.names), key=str.lower)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_each_kind_names_few_types(path):
    assert 0 < len(types_of(path)) <= MOST_TYPES


def test_the_page_lists_them():
    rows = re.findall(r"^\| \[`(\w+)\.py`\].*\| (`[^|]*`) \|$", DOCS.read_text(), re.MULTILINE)
    assert {kind: types.replace("`", "").split(", ") for kind, types in rows} == {
        path.stem: types_of(path) for path in MODULES
    }


@pytest.mark.parametrize(("name", "law"), [(name, law) for name, living in LAWS.items() for law in living])
def test_it_keeps_to_the_rules(name, law):
    check_policy(registered(name, law), law, range(2))


@pytest.mark.parametrize("name", POLICIES)
def test_it_is_simulated_by_its_name(shell, trace, name):
    assert shell.json("simulate", *trace, "--policy", name, "--forecasts", "oracle", "--baseline", "none")["jobs"] == 6


@pytest.mark.parametrize(
    ("law", "names"),
    [
        (EPOCHS, ("narrowest", "longest_waiting", "one_each", "greenest")),
        (TASKS, ("narrowest", "longest_waiting", "emptiest")),
    ],
)
def test_kinds_are_compared_under_one_law(shell, trace, law, names):
    words = ("--policies", ",".join(names), "--forecasts", "oracle", "--law", law, "--jobs", 1)
    rows = shell.json("backtest", *trace, *words)["rows"]
    assert {row["policy"] for row in rows} == {*names, "fcfs"}
    assert {row["law"] for row in rows} == {law}


@pytest.mark.slow
def test_each_is_backtested_under_its_own_law(shell, trace):
    rows = shell.json("backtest", *trace, "--policies", ",".join(POLICIES), "--forecasts", "oracle", "--jobs", 1)[
        "rows"
    ]
    assert {row["policy"] for row in rows} >= set(POLICIES)
