"""The plan of the house, held by a test: arrows between rooms run one way only."""

import ast
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import jobcast

ROOMS = {
    "domain": set(),
    "traces": {"domain"},
    "features": {"traces", "domain"},
    "models": {"features", "traces", "domain"},
    "simulator": {"domain"},
    "schedulers": {"domain"},
    "live": {"domain", "traces", "features", "models", "simulator", "schedulers"},
    "pipelines": {"domain", "traces", "features", "models", "simulator", "schedulers", "live"},
}
FLOORS = ("report", "experiments", "lifecycle", "stages", "cli")
"""Rooms inside `pipelines`, from the lowest: each may import those before it, and none of those after it."""
ML_LIBRARIES = {"sklearn", "lightgbm", "xgboost", "optuna", "pymc"}
HOUSE = Path(jobcast.__file__).parent


@cache
def _imports(path: Path) -> list[tuple[str, bool]]:
    """Full names of all modules that a file imports, and whether for type checkers alone."""
    found: list[tuple[str, bool]] = []
    ahead: list[tuple[ast.AST, bool]] = [(ast.parse(path.read_text(encoding="utf-8")), False)]
    while ahead:
        node, checked = ahead.pop()
        if isinstance(node, ast.Import):
            found += [(alias.name, checked) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the direction; write jobcast.<room>"
            found += [(f"{node.module}.{alias.name}", checked) for alias in node.names]
        elif not isinstance(node, ast.expr):  # no expression holds an import
            guards = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
            ahead += [(part, checked or guards) for part in ast.iter_child_nodes(node)]
    return found


def imports_of(path: Path, typing: bool = True) -> list[str]:
    """Full names of all modules that a file imports, inside functions too, and for type checkers alone if wanted."""
    return [name for name, checked in _imports(path) if typing or not checked]


def files_of(room: str) -> list[Path]:
    return sorted((HOUSE / room).rglob("*.py"))


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_what_the_plan_allows(room):
    """And none the papers; machine learning is the models' alone, and MLflow the registry's."""
    files = files_of(room)
    assert files
    for path in files:
        for name in imports_of(path):
            parts = name.split(".")
            assert parts[0] not in ROOMS, f"{path}: import jobcast.{name}, not the bare room"
            assert parts[0] != "papers", path
            assert parts[0] not in ML_LIBRARIES or room == "models", f"{path} imports {name}"
            assert parts[0] != "mlflow" or path.is_relative_to(HOUSE / "models" / "registry"), f"{path} imports mlflow"
            if parts[0] == "jobcast" and len(parts) > 1 and parts[1] in ROOMS:
                assert parts[1] == room or parts[1] in ROOMS[room], f"{path} imports {name}"


def test_no_circle_of_modules():
    """Imports inside functions count, those for type checkers alone do not; CycleError names a circle."""
    modules = {path: ".".join(("jobcast", *path.relative_to(HOUSE).with_suffix("").parts)) for room in ROOMS
               for path in files_of(room)}  # fmt: skip
    known = {name.removesuffix(".__init__") for name in modules.values()}
    graph = {}
    for path, name in modules.items():
        reached = {one if one in known else one.rpartition(".")[0] for one in imports_of(path, typing=False)}
        graph[name.removesuffix(".__init__")] = (reached & known) - {name.removesuffix(".__init__")}
    TopologicalSorter(graph).prepare()


def test_temporary_folders_are_made_by_their_owner_only():
    """A folder that names its process is swept by the next command when that was killed; others would stay for ever."""
    asks = {
        path
        for room in ROOMS
        for path in files_of(room)
        if "tempfile" in {name.split(".")[0] for name in imports_of(path)}
    }
    assert asks == {
        HOUSE / "traces" / "owners.py",
        HOUSE / "models" / "registry" / "mlflow_door.py",
    }  # tells MLflow where


def test_the_walk_finds_forbidden_arrows(tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text("def f():\n    from jobcast.simulator import engine\n    import mlflow.pyfunc\n")
    assert sorted(imports_of(bad)) == ["jobcast.simulator.engine", "mlflow.pyfunc"]


@pytest.mark.parametrize("floor", FLOORS)
def test_arrows_inside_pipelines_run_down(floor):
    """What notebooks import, beside the floors, may import them all. Imports for type checkers alone do not count."""
    above = {*FLOORS[FLOORS.index(floor) + 1 :], "surface", "surface_inputs", "forecast_frame"}
    files = files_of(f"pipelines/{floor}")
    assert files
    for path in files:
        imported = imports_of(path, typing=False)
        reached = {name.split(".")[2] for name in imported if name.startswith("jobcast.pipelines.")}
        assert not reached & above, f"{path} imports {reached & above}"


def test_pipelines_has_no_room_beside_its_floors():
    assert {path.name for path in (HOUSE / "pipelines").iterdir() if (path / "__init__.py").exists()} == set(FLOORS)
