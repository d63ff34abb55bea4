"""Stage code: which files each stage computes with, and their hashes: what the other stages depend on in place of code.

A stage's code is what its module imports, and what that imports, inside functions too; places named in a text
(`module:Name`) and in entry points of this package count as imports.
"""

import ast
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

import jobcast
from jobcast.pipelines.report.files import write_json
from jobcast.pipelines.stages.context import Context
from jobcast.traces.files import sha256_of

PACKAGE = "jobcast"
HOUSE = Path(jobcast.__file__).parent
STAGES = "jobcast.pipelines.stages"
FOLDER = "interim/code"
PLUMBING = (
    "jobcast.models.registry",
    "jobcast.pipelines.cli",
    "jobcast.pipelines.stages.config",
    "jobcast.pipelines.report.console",
)
"""What carries and keeps results and computes none of them; parameters are dependencies by their values."""


TABLES = ("jobcast.models.predictors", "jobcast.pipelines.lifecycle.predictors")
"""Modules that name those of all predictors: of these a stage of one predictor computes with its own alone."""


def work(context: Context, named: Sequence[tuple[str, str]]) -> None:
    """Write a file a stage, of one that runs once a predictor a file each: the hash of each file of its code."""
    for stage, predictor in named:
        write_json(context.root / FOLDER / f"{file_of(stage, predictor)}.json", code_of(stage, predictor))
    context.console.note(f"code: {len(named)} stages")


def file_of(stage: str, predictor: str = "") -> str:
    """The file of a stage's code below the folder, without its ending.

    >>> file_of("report"), file_of("train", "new-load")
    ('report', 'train/new-load')
    """
    return f"{stage}/{predictor}" if predictor else stage


def code_of(stage: str, predictor: str = "") -> dict[str, str]:
    """Hash by file, below the package, of all that a stage computes with."""
    # By file, not by module: a package brings data as well.
    files = sorted({file for module in closure(f"{STAGES}.{stage}", predictor) for file in _files_of(module)})
    return {file.relative_to(HOUSE).as_posix(): sha256_of(file) for file in files}


def closure(module: str, predictor: str = "") -> set[str]:
    """Modules of this package that a module imports, and those that they import; plumbing aside.

    With a predictor, those of others are left out that only `TABLES` name.
    """
    found: set[str] = set()
    ahead = [module]
    while ahead:
        name = ahead.pop()
        if name not in found:
            found.add(name)
            # Only tables are read without their texts: these name the modules of all predictors.
            narrowed = bool(predictor) and name in TABLES
            ahead += imports_of(name, texts=False) | own_modules(name, predictor) if narrowed else imports_of(name)
    return found


def own_modules(table: str, predictor: str) -> frozenset[str]:
    """Modules that one of `TABLES` names of a predictor, and of those that its judges ask, too."""
    from jobcast.models.predictors import OURS, answers_of
    from jobcast.pipelines.lifecycle.predictors import LIVES
    from jobcast.pipelines.lifecycle.standards import judged

    # Judges replay policies that ask others, too.
    names = {predictor, *(name for judge in judged(predictor).judges for name in judge.needs)}
    models = {place for name in names for place in (OURS[name].model, OURS[name].served)}
    lives = {f"{table}.{LIVES[answers_of(name)]}" for name in names}
    return frozenset(place.partition(":")[0] for place in (models if table == TABLES[0] else lives))


@cache
def imports_of(module: str, texts: bool = True) -> frozenset[str]:
    """Modules of this package that a module imports or names, the packages that they lie in among them.

    `texts`: whether those count that are named in a text.
    """
    # Parsed, not imported: imports inside functions count, and nothing is executed.
    tree = ast.parse(_file_of(module).read_text(encoding="utf-8"))
    packages = [".".join(parts[:number]) for parts in [module.split(".")] for number in range(1, len(parts))]
    named = {place for name in (*packages, *_names(tree, module, texts)) for place in _modules(name)}
    return frozenset(one for one in named if not f"{one}.".startswith(tuple(f"{place}." for place in PLUMBING)))


def _names(tree: ast.AST, module: str, texts: bool) -> Iterator[str]:
    """Full names of what may be modules."""
    package = module if _file_of(module).name == "__init__.py" else module.rpartition(".")[0]
    for node in _executed(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            # What is imported from a package may be a module of it.
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        # Text of the form module:Name is how modules are named that are imported when used.
        elif texts and isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
            place, colon, name = text.partition(":")
            if colon and name.isidentifier() and all(part.isidentifier() for part in place.split(".")):
                yield from (place, f"{package}.{place}")
            elif text.startswith(f"{PACKAGE}.") and text.replace(".", "").isidentifier():
                yield text
                # A text that is a group of entry points stands for all modules that they name.
                yield from (point.module for point in entry_points(group=text))


def _executed(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but for those that only a type checker reads."""
    ahead = [tree]
    while ahead:
        node = ahead.pop()
        # Types are erased: they change no result.
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        yield node
        ahead += ast.iter_child_nodes(node)


@cache
def _modules(name: str) -> tuple[str, ...]:
    """The module of a name of this package, if there is one, and the packages above it."""
    parts = name.split(".")
    # Most names are functions and classes, which have no file.
    is_module = parts[0] == PACKAGE and _file_of(name).is_file()
    return tuple(".".join(parts[: number + 1]) for number in range(len(parts))) if is_module else ()


@cache
def _file_of(module: str) -> Path:
    place = HOUSE.joinpath(*module.split(".")[1:])
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


def _files_of(module: str) -> Iterator[Path]:
    """A module's file, and the data of a package."""
    file = _file_of(module)
    yield file
    if file.name == "__init__.py" and file.parent != HOUSE:
        yield from (path for path in _data(file.parent) if "__pycache__" not in path.parts)


def _data(package: Path) -> Iterator[Path]:
    """Files of a package, and of folders in it that are none, which are no code."""
    for path in package.iterdir():
        if path.is_dir() and not (path / "__init__.py").is_file():
            yield from (one for one in path.rglob("*") if one.is_file())
        elif path.is_file() and path.suffix != ".py":
            yield path
