"""How many faults that are put into the code at random the fast tests find.

Operators, constants and conditions are drawn over the areas where a fault would cost a user most, as many of each; one
at a time is changed in a copy of the checkout, and the tests run that are relevant: the doctests of the file and
those that mirror it, those that import it, those of its folder, the goldens and the contract, then the others of its
room. A mutant is caught by the first that fails, though it passes on an unchanged copy, or by running far longer than
they do or asking for far more memory.

Left alone is what no test of behaviour can tell, by rule (`untouched`): wordings, types, options of decorators and
of compilation, default seeds, how long is waited for what hangs, how much room is kept beyond what is needed, what
sweeping does about files that somebody else sweeps, lengths that arrays find themselves, numbers too large for one
more to be another, and comparisons that a tie leaves as they are.

    JOBCAST_DATA=FOLDER PYTHONPATH=. python benchmarks/mutants.py --seed 1
"""

import argparse
import ast
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

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
WHOLE = (
    "tests/goldens/test_goldens.py",
    "tests/contract/test_contract.py",
    "tests/pipelines/cli/test_reference_pages.py",
)
"""What meets every engine, law and policy, and the page that states the defaults of their settings."""
ROOMS = ("domain", "traces", "features", "models", "simulator", "schedulers", "live", "pipelines", "papers", "src")
COPIED = (*ROOMS, "tests", "benchmarks", "docs", "notebooks", "data", "pyproject.toml", "params.yaml", "dvc.yaml")
PATIENCE_S = 600
"""Of CPU for the tests of a stage, so that a busy machine catches nothing."""
MOST_BYTES = 8 << 30
"""Of data in memory: what grows without end fails, before it takes the machine's."""
NAMED = (ast.Name, ast.Attribute)
TOLERANCES = frozenset({"tolerance", "same_s"})
OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
WAITS = ("PATIENCE", "TIMEOUT", "ROOM")
"""In names of constants that say how long, or how often, is waited for what hangs, or how much more room is kept."""
DRAWS = ("random", "uniform", "draw")
"""In names of functions that draw numbers."""
ASSERTING = ("strict", "ignore_errors")
"""Keywords that assert what holds anyway, as `assert` does, or say what sweeping does where another was faster."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: in a file, the node of that number in `ast.walk`'s order, and what it becomes."""

    area: str
    file: Path
    line: int
    number: int
    change: str


def mutants_of(area: str, file: Path) -> Iterator[Mutant]:
    """All changes of a file that are tried."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    left = {id(part) for node in ast.walk(tree) for one in untouched(node) for part in ast.walk(one)}
    ties = {id(node) for node in ast.walk(tree) if isinstance(node, ast.Compare) and is_blind_to_ties(node)}
    ties |= {id(node.test) for node in ast.walk(tree) if isinstance(node, ast.If | ast.IfExp) and is_extreme(node)}
    for number, node in enumerate(ast.walk(tree)):
        if id(node) not in left | ties and (result := changed(node)):
            yield Mutant(area, file, node.lineno, number, result)  # type: ignore[attr-defined]


def untouched(node: ast.AST) -> Sequence[ast.AST]:
    """Parts of a node that are no behaviour."""
    match node:
        case ast.Raise() | ast.JoinedStr() | ast.Assert():  # wordings, and what only helps a type checker
            return [node]
        case ast.If(test=ast.Name("TYPE_CHECKING")):
            return [node]
        case ast.FunctionDef(returns=returns):
            return [*node.decorator_list, *filter(None, [returns]), *default_seeds(node.args)]
        case ast.ClassDef():
            return node.decorator_list
        case ast.arg(annotation=ast.expr() as annotation) | ast.AnnAssign(annotation=annotation):
            return [annotation]
        case ast.Call(func=ast.Attribute(ast.Name("types"))):  # Array(..., readonly=True)
            return [keyword.value for keyword in node.keywords]
        case ast.Call(args=[ast.Name("njit") | ast.Attribute(attr="njit"), *_]):  # partial(njit, cache=True)
            return [keyword.value for keyword in node.keywords]
        case ast.Call(func=ast.Attribute(attr="reshape"), args=lengths):  # any negative one stands for what is left
            return [length for length in lengths if isinstance(length, ast.UnaryOp)]
        case ast.keyword(arg=name) if name in ASSERTING:
            return [node.value]
        case ast.Assign(targets=[ast.Name(name)]) if any(wait in name for wait in WAITS):
            return [node]
    return []


def default_seeds(args: ast.arguments) -> list[ast.expr]:
    """Defaults of parameters that are seeds: any is as good as another."""
    named = zip(reversed([*args.posonlyargs, *args.args]), reversed(args.defaults), strict=False)
    keywords = zip(args.kwonlyargs, args.kw_defaults, strict=True)
    return [default for one, default in (*named, *keywords) if one.arg == "seed" and default is not None]


def is_blind_to_ties(test: ast.Compare) -> bool:
    """Whether floats are compared within a tolerance, or with a draw: exactly at the limit is nobody."""
    parts = list(ast.walk(test))
    named = [part.id if isinstance(part, ast.Name) else part.attr for part in parts if isinstance(part, NAMED)]
    tolerant = not TOLERANCES.isdisjoint(named)
    called = [ast.unparse(part.func) for part in parts if isinstance(part, ast.Call)]
    drawn = any(word in name for name in called for word in DRAWS)
    return isinstance(test.ops[0], ORDERS) and (tolerant or drawn)


def is_extreme(node: ast.If | ast.IfExp) -> bool:
    """Whether the larger or smaller of two is taken, which are the same where they are equal."""
    match node:
        case ast.IfExp(test=ast.Compare(left=left, comparators=[right]), body=one, orelse=other):
            pass
        case ast.If(test=ast.Compare(left=left, comparators=[right]), body=[ast.Assign([one], other)], orelse=[]):
            pass
        case _:
            return False
    ordered = isinstance(node.test, ast.Compare) and isinstance(node.test.ops[0], ORDERS)
    return ordered and {ast.unparse(left), ast.unparse(right)} == {ast.unparse(one), ast.unparse(other)}


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
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and node.value + 1 != node.value:
        text = f"{node.value} -> {node.value + 1}"
        node.value += 1
        return text
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


def importers(file: Path, among: Iterable[Path]) -> set[Path]:
    """Those files that name a file's module, or import it from its folder."""
    module = ".".join(("jobcast", *file.with_suffix("").parts))
    parent, name = module.rsplit(".", 1)
    named = re.compile(rf"\b{re.escape(module)}\b|from {re.escape(parent)} import [^\n]*\b{name}\b")
    return {path for path in among if named.search(path.read_text(encoding="utf-8"))}


def stages_of(file: Path) -> list[list[str]]:
    """Tests that are relevant for a file, in the order in which they run; each once."""
    folder, tests = ROOT / "tests" / file.parts[0], set((ROOT / "tests").rglob("test_*.py"))
    near, inner = {path for path in tests if folder in path.parents}, file.parts[1:-1]
    mirrored = {path for path in near if file.stem in path.stem}
    beside = {path for path in near for name in inner if name in path.parent.parts or name in path.stem}
    stages, seen = list[list[str]](), set[Path]()
    for stage in (mirrored, importers(file, tests), beside, {ROOT / name for name in WHOLE}, near):
        stages.append([str(path.relative_to(ROOT)) for path in sorted(stage - seen)])
        seen |= stage
    first, *others = filter(None, stages)
    return [[f"src/jobcast/{file}", *first], *others]


def caught_by(mutant: Mutant, unchanged: Path) -> str:
    """The test that fails first, or nothing."""
    with TemporaryDirectory() as scratch:
        copy = Path(scratch) / "mutant"
        shutil.copytree(unchanged, copy, symlinks=True)
        _write(mutant, copy / mutant.file)
        for tests in stages_of(mutant.file):
            if found := _failing(copy, tests):
                named = found.startswith(("FAILED tests/", "ERROR tests/"))  # else a doctest, a crash, or too long
                again = [found.split()[1].split("[")[0]] if named else tests
                sound = Path(scratch) / "unchanged"  # of its own: another process may be copying the first
                shutil.copytree(unchanged, sound, symlinks=True)
                if why := _failing(sound, again):
                    raise SystemExit(f"the checkout itself fails: {why}")
                return found
    return ""


def copy_checkout(folder: Path) -> None:
    """Copy what tests need, with compiled code, which goes by file times; compile what is not."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, symlinks=True)
        else:
            shutil.copy2(source, folder / name)
    _run(folder, "-n", "1", "--collect-only", "tests/features/test_queueing.py")


def _write(mutant: Mutant, file: Path) -> None:
    """Change the copy's file: only the line's node differs once both are parsed and written anew."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for number, node in enumerate(ast.walk(tree)):
        if number == mutant.number:
            changed(node)
    file.write_text(ast.unparse(tree), encoding="utf-8")
    copy = file.parents[len(mutant.file.parts) - 1]
    compiled = {path for room in ROOMS for path in (copy / room).rglob("*.py") if _caches(path)}
    stale, new = set[Path](), {file}
    while new:  # compiled code holds what it calls of other files, and goes by the time of its own alone
        stale |= new
        new = {path for one in new for path in importers(one.relative_to(copy), compiled)} - stale
    for one in stale:
        for cache in _caches(one):
            cache.unlink()


def _caches(file: Path) -> list[Path]:
    return list(file.parent.glob(f"__pycache__/{file.stem}.*.nb[ci]"))


def _failing(copy: Path, tests: Sequence[str]) -> str:
    """First test that fails in a copy; "too long" where they do not end."""
    try:
        done = _run(copy, "-x", "-n", "0", "--hypothesis-profile=mutants", *tests)
    except subprocess.TimeoutExpired:
        return f"too long: {tests[0]} ..."
    if done.returncode == -signal.SIGXCPU:
        return f"too long: {tests[0]} ..."
    if done.returncode in (0, 5):  # 5: nothing was collected
        return ""
    rows = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return rows[0] if rows else f"exit {done.returncode}: {(done.stdout + done.stderr)[-500:]}"


def _run(copy: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": f"{copy / 'src'}{os.pathsep}{copy}", "JOBCAST_HOME": str(copy / "home")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", *words]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (PATIENCE_S, PATIENCE_S + 60))
        resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))

    # The clock ends what waits for ever; it may run far ahead of the CPU.
    options: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 10 * PATIENCE_S}
    return subprocess.run(command, cwd=copy, env=env, preexec_fn=limit, **options)


def main() -> int:
    parser = argparse.ArgumentParser(description="mutants that the fast tests catch")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    mutants, caught = drawn(given.seed, given.count), 0
    with TemporaryDirectory() as scratch:
        copy_checkout(Path(scratch))
        tries = (delayed(caught_by)(one, Path(scratch)) for one in mutants)
        results = Parallel(given.jobs, return_as="generator", batch_size=1)(tries)
        for mutant, found in zip(mutants, results, strict=True):
            caught += bool(found)
            where = f"{mutant.area:<9} {mutant.file}:{mutant.line}  {mutant.change}"
            print(f"{where:<75} {found[:110] or 'NOT CAUGHT'}", flush=True)
    print(f"{caught} of {len(mutants)} caught, seed {given.seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
