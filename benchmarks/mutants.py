"""How many faults that are put into the code at random the fast tests find.

Operators, constants and conditions are drawn over the areas where a fault would cost a user most, as many of each; one
at a time is changed in a copy of the checkout, and the tests run that are relevant: those that mirror the file, those
that import it, the doctests of it, then the goldens and the contract of its room. A mutant is caught by the first that
fails, though it passes on an unchanged copy, or by running far longer than they do.

    JOBCAST_DATA=FOLDER PYTHONPATH=. python benchmarks/mutants.py --seed 1
"""

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory

from joblib import Parallel, delayed

ROOT = Path(__file__).resolve().parents[1]
AREAS = {
    "engine": ("simulator/*.py",),
    "laws": ("simulator/laws/*.py",),
    "features": ("features/*.py",),
    "kernels": ("simulator/elastic/*.py", "features/*kernels.py", "models/*kernels.py", "schedulers/tasks/*.py"),
    "metrics": ("simulator/metrics.py", "models/scores.py", "models/evaluation/*.py"),
    "policies": ("schedulers/*.py", "schedulers/*/*.py"),
    "registry": ("models/registry/*.py",),
}
WHOLE = ("tests/goldens/test_goldens.py", "tests/contract/test_contract.py")
"""What meets every engine, law and policy; last, since it takes longest."""
ROOMS = ("domain", "traces", "features", "models", "simulator", "schedulers", "pipelines", "papers", "src")
COPIED = (*ROOMS, "tests", "benchmarks", "docs", "notebooks", "data", "pyproject.toml", "params.yaml", "dvc.yaml")
PATIENCE_S = 600.0
OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
UNTOUCHED = (ast.Raise, ast.JoinedStr, ast.AnnAssign, ast.Assert)
"""Wordings, types, and what only helps a type checker."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: in a file, the node of that number in `ast.walk`'s order, and what it becomes."""

    area: str
    file: Path
    line: int
    number: int
    told: str


def mutants_of(area: str, file: Path) -> Iterator[Mutant]:
    """All changes of a file that are tried."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    untouched = {id(part) for node in ast.walk(tree) if isinstance(node, UNTOUCHED) for part in ast.walk(node)}
    for node in ast.walk(tree):  # a decorator's options and a signature's types are no behaviour
        if isinstance(node, ast.FunctionDef):
            parts = [*node.decorator_list, *filter(None, [node.returns]), *(a.annotation for a in node.args.args)]
            untouched |= {id(part) for one in parts if one is not None for part in ast.walk(one)}
    for number, node in enumerate(ast.walk(tree)):
        if id(node) not in untouched and (told := changed(node)):
            yield Mutant(area, file, node.lineno, number, told)  # type: ignore[attr-defined]


def changed(node: ast.AST) -> str:
    """Change a node in place and tell how; nothing where it is of no kind that is changed."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in OPERATORS:
        before, node.ops[0] = node.ops[0], OPERATORS[type(node.ops[0])]()  # type: ignore[call-overload]
        return f"{type(before).__name__} -> {type(node.ops[0]).__name__}"
    if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in OPERATORS:
        before, node.op = node.op, OPERATORS[type(node.op)]()  # type: ignore[assignment]
        return f"{type(before).__name__} -> {type(node.op).__name__}"
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        node.value = not node.value
        return f"-> {node.value}"
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        told = f"{node.value} -> {node.value + 1}"
        node.value += 1
        return told
    return ""


def drawn(seed: int, count: int) -> list[Mutant]:
    """As many of each area, in an order of chance."""
    rng = random.Random(seed)
    by_area = []
    for area, patterns in AREAS.items():
        files = sorted({file.relative_to(ROOT) for pattern in patterns for file in ROOT.glob(pattern)})
        found = [one for file in files for one in mutants_of(area, file)]
        by_area.append(rng.sample(found, min(len(found), count)))
    mixed = [one for row in zip_longest(*by_area) for one in row if one is not None]
    return mixed[:count]


def tests_of(file: Path) -> list[list[str]]:
    """Tests that are relevant for a file, in the order in which they run."""
    module = ".".join(("jobcast", *file.with_suffix("").parts))
    name, room = file.stem, file.parts[0]
    tests = list((ROOT / "tests").rglob("test_*.py"))
    mirrored = [path for path in tests if name in path.stem and room in path.parts]
    importing = [path for path in tests if path not in mirrored and module in path.read_text(encoding="utf-8")]
    stages = [[f"src/jobcast/{file}", *map(str, sorted(mirrored))], [str(path) for path in sorted(importing)]]
    near = sorted(path for path in tests if room in path.parts and "goldens" not in path.parts)
    return [stage for stage in (*stages, list(WHOLE), [str(path) for path in near]) if stage]


def caught_by(mutant: Mutant) -> str:
    """The test that fails first, or nothing."""
    with TemporaryDirectory() as scratch, TemporaryDirectory() as unchanged:
        for folder in (scratch, unchanged):
            _copy(Path(folder))
        _write(mutant, Path(scratch) / mutant.file)
        for stage in tests_of(mutant.file):
            tests = [os.path.relpath(test, ROOT) if os.path.isabs(test) else test for test in stage]
            if found := _failing(Path(scratch), tests):
                test = found.split()[1].split("[")[0]
                if not found.startswith("too long") and (why := _failing(Path(unchanged), [test])):
                    raise SystemExit(f"the checkout itself fails: {why}")
                return found
    return ""


def _copy(folder: Path) -> None:
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, symlinks=True)
        else:
            shutil.copy2(source, folder / name)


def _write(mutant: Mutant, file: Path) -> None:
    """Change the copy's file: only the line's node differs once both are parsed and written anew."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for number, node in enumerate(ast.walk(tree)):
        if number == mutant.number:
            changed(node)
    file.write_text(ast.unparse(tree), encoding="utf-8")


def _failing(copy: Path, tests: Sequence[str]) -> str:
    """First test that fails in a copy; "too long" where they do not end."""
    env = {**os.environ, "PYTHONPATH": f"{copy / 'src'}{os.pathsep}{copy}", "JOBCAST_HOME": str(copy / "home")}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not slow", *tests]
    try:
        done = subprocess.run(command, cwd=copy, env=env, capture_output=True, text=True, timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        return f"too long: {tests[0]} ..."
    if done.returncode in (0, 5):  # 5: nothing was collected
        return ""
    told = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return told[0] if told else f"exit {done.returncode}: {done.stdout[-200:]}"


def main() -> int:
    parser = argparse.ArgumentParser(description="mutants that the fast tests catch")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    mutants = drawn(given.seed, given.count)
    results = Parallel(given.jobs, return_as="generator", batch_size=1)(delayed(caught_by)(one) for one in mutants)
    caught = 0
    for mutant, found in zip(mutants, results, strict=True):
        caught += bool(found)
        where = f"{mutant.area:<9} {mutant.file}:{mutant.line}  {mutant.told}"
        print(f"{where:<75} {found[:110] or 'NOT CAUGHT'}", flush=True)
    print(f"{caught} of {len(mutants)} caught, seed {given.seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
