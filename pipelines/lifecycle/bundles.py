"""A result with all that made it, in one file: another machine runs it again and compares figure by figure."""

import json
import math
import os
import platform
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from pathlib import Path
from typing import Any

from jobcast import __version__
from jobcast.domain.errors import ConfigError
from jobcast.domain.settings import values_of
from jobcast.models.registry import open_registry
from jobcast.models.registry.home import HOME_VARIABLE, database_file, find_home, store_folder
from jobcast.models.registry.references import CHAMPION
from jobcast.pipelines.experiments.backtest import NOT_REPEATABLE
from jobcast.pipelines.report.files import COMMAND, OUTPUTS, read_json, to_json
from jobcast.schedulers.registry import BUILT_IN
from jobcast.traces.facts import ASSUMPTIONS, assumptions_beside, facts_beside
from jobcast.traces.files import replacing, sha256_of
from jobcast.traces.owners import scratch_room

MANIFEST, STORE, INPUTS = "manifest.json", "store", "inputs"
FIGURES = ("figures.json", "processed/metrics/*.json", "processed/promotion.json")
"""Of a folder of results."""
SMALL = 1_000_000
"""Bytes up to which an input other than the trace is packed."""
SMALL_MODELS = 20_000_000
"""Bytes up to which models are packed unasked."""
TOLERANCE = 1e-6
"""Of figures that are not whole, as a share: other processors add up in other orders."""
LIBRARIES = ("numpy", "scipy", "polars", "numba", "lightgbm", "xgboost-cpu", "scikit-learn", "highspy", "mlflow")
"""Whose versions can move a figure."""
NOT_COMPARED = frozenset(
    {
        *(*NOT_REPEATABLE, "baseline_cpu_s", "baseline_wall_s", "home", "path", "root", "run_id"),
        *("command", "jobcast", "registered", "created_s", "cluster", "pools_file", "stale", "written_with", "lacks"),
    }
)
"""Times and places of a run, and sentences that name them, which are no figures."""
INPUT_OPTIONS, SET = ("--trace", "--pools", "--cluster", "--params"), "--set"
"""Options of those commands whose values name inputs, or do so behind a `=`."""
RUN_AGAIN = ("simulate", "backtest", "evaluate", "run")
"""Commands that a bundle may hold: those that read inputs and give figures."""


@dataclass(frozen=True, slots=True)
class Line:
    """What became of a figure or an input: `equal`, `within`, `different`, `missing`; `note` of what is only told."""

    says: str
    name: str
    text: str

    def __str__(self) -> str:
        return f"{self.says:<10}{self.name}  {self.text}"


def make_bundle(
    result: Path, out: Path, *, with_trace: bool = False, with_models: bool | None = None
) -> dict[str, Any]:
    """Write a bundle of a file or folder of results; its manifest.

    Parameters
    ----------
    with_trace : whether the trace itself is packed; its hash always is
    with_models : whether registered versions are packed; None: where they are small

    Raises
    ------
    ConfigError
        It is no result, was made by a version that did not note its command, or an input has gone or changed since.
    """
    figures, words = _read(result)
    made_from = [*_told_inputs(figures), *_prepared(result)]
    named = _named_inputs(words, [told["path"] for told in made_from])
    inputs = {name: _input(name, number) for number, name in enumerate(named)}
    for told, (name, one) in product(made_from, inputs.items()):
        # as paths: a command may write ./jobs.csv where its result tells jobs.csv
        if Path(name) == Path(told["path"]) and one["sha256"] != told["sha256"]:
            raise ConfigError(
                f"{name}: is another file (SHA-256) than {result} was made from; bring that one back, or run "
                "the command again"
            )
    traced = next(filter(None, _file_names(words, ("--trace",))), None)
    # Facts are found beside the trace, wherever that lies.
    if traced in inputs and assumptions_beside(traced):
        for file in (*facts_beside(traced).values(), Path(traced).with_name(ASSUMPTIONS)):
            inputs[str(file)] = _input(str(file), list(named).index(traced)) | {"beside": True}
    for name, one in inputs.items():
        one["packed"] = with_trace if name == traced or "beside" in one else one["bytes"] <= SMALL
    models = _models(figures)
    files = {one["member"]: Path(name) for name, one in inputs.items() if one["packed"]}
    home = find_home()
    store = _store_files(home, models) if models and with_models is not False else {}
    if with_models or sum(file.stat().st_size for file in store.values()) <= SMALL_MODELS:
        files |= store
    manifest = {
        "bundle": 1,
        "command": words,
        "inputs": inputs,
        "trace": traced,
        "models": models,
        "versions": installed(),
        "lock_sha256": _lock_sha256(),
        "seeds": sorted({value for path, value in leaves(figures) if path[-1] in ("seed", "seeds")}, key=str),
        "figures": figures,
    }
    with replacing(out) as draft, zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(MANIFEST, to_json(manifest))
        for member, file in files.items():
            packed.write(file, member)
    return manifest


def verify_bundle(bundle: Path, trace: Path | None = None) -> list[Line]:
    """Run what a bundle holds again and compare; a line for each thing that was compared.

    Parameters
    ----------
    trace : in place of one that is not packed; None: where it was

    Raises
    ------
    ConfigError
        It is no bundle, there is no trace, or its command no longer runs.
    """
    with scratch_room("verify") as room:
        manifest = _unpacked(bundle, room)
        lines, places = _versions(manifest), dict[str, str]()
        for name, one in manifest["inputs"].items():
            place = room / one["member"]
            if trace is not None and (name == manifest["trace"] or "beside" in one):
                place = trace.with_name(place.name) if "beside" in one else trace
            if not place.is_file():
                place = Path(name)
            if not place.is_file():
                where = "name it by --trace FILE" if name == manifest["trace"] else "put it there, or bundle it again"
                raise ConfigError(f"{bundle}: {name} is not packed and not there; {where}")
            places[name] = str(place)
            if sha256_of(place) != one["sha256"]:
                # What is unpacked goes with the scratch folder.
                whose = "the packed one" if place.is_relative_to(room) else place
                lines.append(
                    Line("different", name, f"{whose} is another file (SHA-256) than the result was made from")
                )
        home = room / STORE
        if not home.is_dir():
            home = find_home() if manifest["models"] else room
        lines += _missing_models(manifest["models"], home)
        # What another trace or model gives is no comparison.
        if any(line.says in ("different", "missing") for line in lines):
            return lines
        again = _run(manifest, places, home, room)
        return [*lines, *compared(_neutral(manifest["figures"], {}), _neutral(again, places))]


def compared(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[Line]:
    """Every figure of two results; text counts, times and places do not.

    >>> [line.says for line in compared({"a": 1.0, "b": 2, "wall_s": 3}, {"a": 1.0 + 1e-9, "b": 3, "wall_s": 4})]
    ['within', 'different']
    """
    ours, theirs = ({".".join(path): value for path, value in leaves(one)} for one in (before, now))
    lines = []
    for name in dict.fromkeys((*ours, *theirs)):
        if name not in ours or name not in theirs:
            lines.append(Line("missing", name, "only in the " + ("bundle" if name in ours else "new run")))
        elif ours[name] == theirs[name]:
            lines.append(Line("equal", name, str(ours[name])))
        else:
            says = "within" if _near(ours[name], theirs[name]) else "different"
            lines.append(Line(says, name, f"{ours[name]} in the bundle, {theirs[name]} here"))
    return lines


def agrees(lines: Sequence[Line]) -> bool:
    """Whether nothing is different or missing."""
    return all(line.says not in ("different", "missing") for line in lines)


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Values of a nested result by their paths, without what is not compared."""
    items = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else None
    if items is None:
        yield path, value
        return
    for key, one in items:
        if str(key) not in NOT_COMPARED:
            yield from leaves(one, (*path, str(key)))


def installed() -> dict[str, str]:
    """Versions of what figures come from."""
    found = {"jobcast": __version__, "python": platform.python_version(), "machine": platform.machine()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _near(a: Any, b: Any) -> bool:
    return isinstance(a, float) and isinstance(b, int | float) and math.isclose(a, b, rel_tol=TOLERANCE)


def _read(result: Path) -> tuple[dict[str, Any], list[str]]:
    """Figures of a result, and the command that made it."""
    if result.is_dir():
        figures = _figures(result)
        told = read_json(result / COMMAND) if figures and (result / COMMAND).is_file() else {}
    else:
        told = read_json(result)
        figures = {"result": told}
    if not told.get("command") or told["command"][0] not in RUN_AGAIN:
        raise ConfigError(
            f"{result}: does not say by which command it was made; give a file of `simulate`, `backtest` or `evaluate "
            f"--json`, or a folder of `backtest` or `run --out`, made by jobcast {__version__} or later"
        )
    return figures, list(told["command"])


def _figures(folder: Path) -> dict[str, Any]:
    """What the files of figures in a folder of results hold, by their names in it."""
    files = sorted({file for pattern in FIGURES for file in folder.glob(pattern)})
    return {file.relative_to(folder).as_posix(): read_json(file) for file in files}


def _named_inputs(words: Sequence[str], made_from: Collection[str]) -> list[str]:
    """Files that a command was given, among them those that results tell.

    Raises ConfigError for one that has gone: nobody could run the command again.
    """
    names = dict.fromkeys(filter(None, _file_names(words)))
    # What --set tells may be no file, and `run` knows traces by name.
    files = {Path(name) for name in (*made_from, *_file_names(words, INPUT_OPTIONS[1:]))}
    for name in names:
        if Path(name) in files and not Path(name).exists():
            raise ConfigError(f"{name}: is not there; say it in the folder that the command ran in, or bring it back")
    return [name for name in names if Path(name).is_file()]


def _file_names(words: Sequence[str], options: Sequence[str] = (*INPUT_OPTIONS, SET)) -> list[str]:
    """Of each word of a command what may name an input, empty where it tells something else, whatever files there are.

    >>> _file_names(["simulate", "--trace", "fcfs", "--pools=p.csv", "--policy", "fcfs", "--set", "tasks=t.csv"])
    ['', '', 'fcfs', 'p.csv', '', '', '', 't.csv']
    """
    names = []
    for before, word in zip(["", *words], words, strict=False):
        option, value = (before, word) if before in options else word.partition("=")[::2]
        if option == SET:
            setting, _, value = value.partition("=")
            value = value if _may_be_a_file(setting) else ""
        names.append(value if option in options else "")
    return names


def _may_be_a_file(setting: str) -> bool:
    """Whether a value of it may name a file: of our settings those that say so, of a package's any, which it reads."""
    models = [model for spec in BUILT_IN.values() for model in spec.parts(local=True).values()]
    fields = [model.model_fields[setting] for model in models if setting in model.model_fields]
    return all(values_of(field.annotation, field.metadata).startswith("a file") for field in fields)


def _input(name: str, number: int) -> dict[str, Any]:
    file = Path(name)
    member = f"{INPUTS}/{number}/{file.name}"
    return {"member": member, "sha256": sha256_of(file), "bytes": file.stat().st_size}


def _told_inputs(told: Any) -> Iterator[Mapping[str, Any]]:
    """Path and SHA-256 of the inputs that results tell, at whatever depth."""
    if isinstance(told, Mapping) and {"path", "sha256"} <= told.keys():
        yield told
    elif isinstance(told, Mapping | list):
        for one in told.values() if isinstance(told, Mapping) else told:
            yield from _told_inputs(one)


def _prepared(result: Path) -> Iterator[Mapping[str, Any]]:
    """Path and SHA-256 of the trace that a folder of `run` was made from, of which its figures tell nothing."""
    receipt, split = result / "processed/receipts/prepare.json", result / "interim/split.json"
    if receipt.is_file() and split.is_file():
        yield {"path": read_json(receipt)["source"], "sha256": read_json(split)["source"]["sha256"]}


def _models(figures: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Versions that a result names, with the hashes of their contents."""
    asked: set[tuple[str, int]] = set()
    for one in figures.values():
        asked |= set((one.get("models") or {}).items()) if isinstance(one.get("models"), Mapping) else set()
        asked |= {pair for row in one.get("rows", ()) for pair in (row.get("versions") or {}).items()}
        if "predictor" in one and "version" in one:
            asked.add((one["predictor"], one["version"]))
    if not asked:
        return []
    registry = open_registry(find_home())
    found = [registry.resolve(*each) for each in sorted(asked)]
    return [{"name": one.name, "version": one.version, "sha256": one.content_sha256} for one in found]


def _store_files(home: Path, models: Sequence[Mapping[str, Any]]) -> dict[str, Path]:
    """The store's database, and files and code of some versions and all champions, by their names in a bundle."""
    registry, root = open_registry(home), store_folder(home)
    asked = {(one["name"], one["version"]) for one in models}
    # A version may ask another predictor's champion without a word: loads are scored beside arrivals.
    for name in registry.store.names():
        asked |= {(name, number) for alias, number in registry.show(name).aliases.items() if alias == CHAMPION}
    folders = [registry.folder(registry.resolve(*each)) for each in sorted(asked)]
    files = [database_file(home), *(root / "artifacts/code").glob("*.zip")]
    files += [file for folder in folders for file in sorted(folder.rglob("*")) if file.is_file()]
    return {f"{STORE}/{file.relative_to(home).as_posix()}": file for file in files if file.is_file()}


def _unpacked(bundle: Path, room: Path) -> dict[str, Any]:
    """What a bundle says, its files in a folder."""
    try:
        with zipfile.ZipFile(bundle) as packed:
            manifest: dict[str, Any] = json.loads(packed.read(MANIFEST))
            packed.extractall(room)
        if manifest["bundle"] != 1:
            raise ConfigError(f"{bundle}: a bundle of form {manifest['bundle']}; this jobcast reads form 1")
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise ConfigError(
            f"{bundle}: is no bundle ({error}); `jobcast bundle RESULT --out FILE.zip` makes one"
        ) from None
    return manifest


def _versions(manifest: Mapping[str, Any]) -> list[Line]:
    """What is installed in other versions; told, since it may explain what differs."""
    told, here = (
        {**one, "lock": lock}
        for one, lock in ((manifest["versions"], manifest["lock_sha256"]), (installed(), _lock_sha256()))
    )
    return [
        Line("note", name, f"{told[name]} in the bundle, {here.get(name, 'not installed')} here")
        for name in told
        if here.get(name) != told[name]
    ]


def _lock_sha256() -> str | None:
    """Of the project's lock of all libraries, where there is one."""
    lock = find_home() / "requirements.lock"
    return sha256_of(lock) if lock.is_file() else None


def _missing_models(models: Sequence[Mapping[str, Any]], home: Path) -> list[Line]:
    if not models:
        return []
    registry, lines = open_registry(home), []
    for one in models:
        model = registry.store.model(one["name"])
        found = next((each for each in model.versions if each.version == one["version"]), None) if model else None
        if found is None:
            lines.append(Line("missing", f"{one['name']}:{one['version']}", f"no such version at {home}; pack it"))
        elif found.content_sha256 != one["sha256"]:
            lines.append(Line("different", f"{one['name']}:{one['version']}", f"another model at {home}"))
    return lines


def _run(manifest: Mapping[str, Any], places: Mapping[str, str], home: Path, room: Path) -> dict[str, Any]:
    """What the bundle's command gives now."""
    asked = manifest["command"]
    words = [_at(word, name, places) for word, name in zip(asked, _file_names(asked), strict=True)]
    # A bundle comes from elsewhere: nothing is run that could do more than read and give figures.
    if words[0] not in RUN_AGAIN:
        raise ConfigError(f"the bundle's command is {words[0]!r}; only {', '.join(RUN_AGAIN)} are run again")
    if writes := [word for word in words if word.removeprefix("--set=").startswith((*OUTPUTS, "segments="))]:
        raise ConfigError(f"the bundle's command writes a file of its own ({writes[0]}); it is not run")
    to_file = set(manifest["figures"]) == {"result"}
    place = room / ("again.json" if to_file else "again")
    words += ["--json" if to_file else "--out", str(place)]
    where = {**os.environ, HOME_VARIABLE: str(home)}
    done = subprocess.run(
        [sys.executable, "-m", "jobcast", *words], env=where, capture_output=True, text=True, check=False
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no word"])[-1]
        raise ConfigError(f"the bundle's command ended with {done.returncode}: {last}")
    if to_file:
        return {"result": read_json(place)}
    # all that are there now, not those of the bundle alone: what only one side has is told as missing
    again = _figures(place)
    shutil.rmtree(place)
    return again


def _at(word: str, name: str, places: Mapping[str, str]) -> str:
    return word[: len(word) - len(name)] + places[name] if name in places else word


def _neutral(figures: Any, places: Mapping[str, str]) -> Any:
    """Figures in which files are called as in the bundle's command."""
    if isinstance(figures, Mapping):
        return {key: _neutral(one, places) for key, one in figures.items()}
    if isinstance(figures, list):
        return [_neutral(one, places) for one in figures]
    if isinstance(figures, str):
        for name, place in places.items():
            figures = figures.replace(place, name)
    return figures
