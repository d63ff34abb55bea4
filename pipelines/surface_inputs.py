"""What callers of the surface may write for a trace, a cluster, an instant, a version; and scores as a frame."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from inspect import Parameter, signature
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pandas as pd

from jobcast.domain.errors import ConfigError
from jobcast.domain.hardware import Cluster, pools_cluster
from jobcast.domain.jobs import Pool
from jobcast.domain.suggestions import did_you_mean
from jobcast.models.predictor import Known
from jobcast.models.registry import ModelVersion, find_home, parse_reference
from jobcast.models.registry.references import Ref
from jobcast.pipelines.experiments.clusters import cluster_of
from jobcast.pipelines.lifecycle.predictors import find_predictor
from jobcast.pipelines.lifecycle.predictors.life import Asked, Life
from jobcast.pipelines.lifecycle.recipes.common import TrainSettings
from jobcast.pipelines.report.formatting import parse_time
from jobcast.traces.readers import OF_FRAMES, read_trace
from jobcast.traces.table import Trace

PathName: TypeAlias = str | PathLike[str]
Traced: TypeAlias = Trace | PathName
"""A trace, or the file of one."""
Place: TypeAlias = Cluster | Sequence[Pool] | int | PathName | None
"""A cluster, its pools, its number of GPUs, a file of quotas (CSV) or of nodes (YAML); None: as the trace needs it."""
Instant: TypeAlias = float | str | datetime | None
"""Seconds from the epoch, ISO-8601, a datetime (numpy's and pandas' too); UTC where no zone is told."""
Version: TypeAlias = ModelVersion | str
"""A version, or NAME, NAME@ALIAS, NAME:VERSION; NAME alone is the champion."""
Settings: TypeAlias = Mapping[str, object] | None
"""As `--set` on the command line."""
UNASKED = ("at_s", "seed", "prefix", "points", "epochs", "target", "out", "algorithm", "horizons")
"""Options of commands that a life may look at, None where nobody said anything."""
SHARES = ("coverage", "lending_coverage", "miss_share", "prefix")
"""Keywords that lie between 0 and 1."""
LEAST: Mapping[str, float] = {
    **dict.fromkeys(("windows", "seeds", "jobs", "limit", "points", "min_train_jobs"), 1),
    **dict.fromkeys(("seed", "draws", "tune", "warmup_days", "under_cost", "step_s"), 0),
}
"""Others that are numbers, and the least that they may be."""
PARTS = ("warmup_days", "under_cost", "step_s")
"""Those of them that need not be whole."""
T = TypeVar("T")


def trace_of(trace: Traced) -> Trace:
    """A trace as it is, or read from its file. Raises ConfigError for what is neither, TraceError as `read_trace`."""
    if isinstance(trace, Trace):
        return trace
    if not isinstance(trace, str | PathLike):
        raise ConfigError(f"trace: give a Trace or the file of one, not {type(trace).__name__}; {OF_FRAMES}")
    return read_trace(trace)


def home_of(home: PathName | None) -> Path:
    """A folder, by default that of the command line."""
    return find_home() if home is None else Path(home).absolute()


def named(cluster: Place) -> dict[str, Path | int | None]:
    """A cluster that is named by a file or a number, as the command line names it; {} for others.

    >>> named("quotas.csv"), named(8), named(None)
    ({'pools': PosixPath('quotas.csv')}, {'gpus': 8}, {})
    """
    # Before text: a number of GPUs is the shortest cluster.
    if isinstance(cluster, Integral):
        return {"gpus": int(cluster)}
    if isinstance(cluster, str | PathLike):
        path = Path(cluster)
        return {"cluster" if path.suffix.lower() in (".yaml", ".yml") else "pools": path}
    return {}


def cluster_meant(cluster: Place, trace: Trace, from_s: float | None = None) -> Cluster | None:
    """The cluster, None where none was named. Raises ConfigError and PoolsError for what cannot be used."""
    if cluster is None or isinstance(cluster, Cluster):
        return cluster
    if by_name := named(cluster):
        how: dict[str, Any] = {**by_name, "from_s": from_s}
        return cluster_of(trace, **how)
    # A single pool is taken for a list of one.
    pools: Sequence[Any] = cluster if isinstance(cluster, Sequence) else [cluster]
    if not pools or not all(isinstance(pool, Pool) for pool in pools):
        raise ConfigError(f"cluster: give a Cluster, pools, a number of GPUs or a file, not {type(cluster).__name__}")
    for pool in pools:
        if sum(other.name == pool.name for other in pools) > 1:
            raise ConfigError(f"cluster: pool {pool.name} is given twice; keep one of it")
        if not isinstance(pool.quota, Real) or pool.quota < 0 or pool.quota % 1:
            raise ConfigError(f"cluster: pool {pool.name} must have a whole number of GPUs, got {pool.quota!r}")
    return pools_cluster(pools)


def seconds(instant: Any, name: str) -> float | None:
    """Seconds from the epoch, None for None. Raises ConfigError for what is no instant.

    >>> seconds("1970-01-02", "start"), seconds(datetime(1970, 1, 1, 1), "start"), seconds(None, "until")
    (86400.0, 3600.0, None)
    """
    if instant is None:
        return None
    if isinstance(instant, str):
        return parse_time(instant, name)
    try:
        if isinstance(instant, Real):
            found = float(instant)
        else:
            stamp = pd.Timestamp(instant)
            found = (stamp if stamp.tzinfo else stamp.tz_localize(UTC)).timestamp()
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{name}: {instant!r} is no instant; write 2024-02-05T09:00:00Z") from error
    if not math.isfinite(found):
        raise ConfigError(f"{name}: {instant!r} is no instant; write 2024-02-05T09:00:00Z")
    return found


def instants(at: Any, trace: Traced) -> list[float | None]:
    """One instant or several, by default the last submission of a trace; of a file None, for its reader knows."""
    if at is None:
        return [float(trace.submit_s[-1])] if isinstance(trace, Trace) and len(trace) else [None]
    several = [at] if isinstance(at, str) or not hasattr(at, "__iter__") else list(at)
    found = [seconds(one, "at") for one in several]
    if not found or None in found:
        raise ConfigError("at: name at least one instant, or leave it out for the end of the trace")
    return list(found)


def reference_of(version: Version) -> tuple[str, Ref]:
    """Name, and alias or number. Raises ConfigError for no text, RegistryError for text that names no version."""
    if isinstance(version, ModelVersion):
        return version.name, version.version
    if not isinstance(version, str):
        raise ConfigError(f"version: give one, or NAME, NAME@ALIAS, NAME:VERSION, not {version!r}")
    return parse_reference(version)


def texts(given: Settings) -> dict[str, str]:
    """Settings as the command line has them.

    >>> texts({"locality": True, "slack": 0.1})
    {'locality': 'true', 'slack': '0.1'}
    """
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in (given or {}).items()
    }


def several(names: str | Sequence[str]) -> tuple[str, ...]:
    """Names of policies of a sequence, or between commas as on the command line; see `policy_named`.

    >>> several("mmfs, sia"), several(["mmfs"])
    (('mmfs', 'sia'), ('mmfs',))
    """
    return tuple(policy_named(name).strip() for name in (names.split(",") if isinstance(names, str) else names))


def policy_named(policy: str) -> str:
    """The name of a policy as it is. Raises ConfigError for what is no text: the policy itself, say."""
    if not isinstance(policy, str):
        given = getattr(policy, "__name__", type(policy).__name__)
        raise ConfigError(f"policy: give a name of policies(), not {given}; @jc.policy(NAME) declares one of yours")
    return policy


def made(kind: type[T], asked: Callable[..., Any], filled: Mapping[str, Any], keywords: Mapping[str, Any]) -> T:
    """A dataclass of what a function fills itself and of a caller's keywords for the rest.

    Raises ConfigError for a keyword that is none of the rest nor of the function's own, or a number that cannot be.
    """
    rest = [one.name for one in fields(kind) if one.name not in filled]  # type: ignore[arg-type]
    own = [one.name for one in signature(asked).parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
    for name in keywords:
        if name not in rest:
            known = tuple(dict.fromkeys((*own, *rest)))
            near = did_you_mean(name, known)
            raise ConfigError(f"{asked.__name__}: there is no {name!r}; {near}choose from {', '.join(known)}")
    return kind(**{name: number(name, value) for name, value in {**filled, **keywords}.items()})


def number(name: str, value: Any) -> Any:
    """A number by its keyword, whole ones as Python's; None stands for a default. Raises ConfigError if it cannot be.

    >>> number("limit", 30.0)
    30
    >>> number("limit", 0)
    Traceback (most recent call last):
    jobcast.domain.errors.ConfigError: limit: must be a whole number of at least 1, got 0
    """
    if value is None or (name not in SHARES and name not in LEAST):
        return value
    # True is a number to Python.
    real = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    if name in SHARES:
        if not real or not 0.0 < value < 1.0:
            raise ConfigError(f"{name}: must lie between 0 and 1, got {value!r}")
        return float(value)
    # 1.0 is as whole as 1.
    least, whole = LEAST[name], "number" if name in PARTS else "whole number"
    if not real or value < least or (name not in PARTS and value != int(value)):
        raise ConfigError(f"{name}: must be a {whole} of at least {least:g}, got {value!r}")
    return float(value) if name in PARTS else int(value)


def untrained(
    predictor: str,
    algorithm: str | None,
    given: Mapping[str, str],
    asked: Callable[..., Any],
    keywords: Mapping[str, Any],
) -> Life[Any]:
    """A predictor to be trained, as a function was asked for. Raises ConfigError for settings that cannot be."""
    settings = made(TrainSettings, asked, {"given": given}, keywords)
    # Numpy's numbers as Python's, which metadata can hold.
    horizons = np.atleast_1d(np.asarray(settings.horizons_min)).tolist()
    settings = replace(settings, horizons_min=tuple(horizons))
    real = all(isinstance(one, Real) for one in horizons)
    if not horizons or not real or horizons != sorted({*horizons}) or horizons[0] <= 0:
        raise ConfigError(f"horizons_min: minutes above 0, ascending, are needed, got {horizons}")
    one = find_predictor(predictor, algorithm, settings)
    one.check_tune()
    return one


def learns_from_jobs(life: type[Life[Any]]) -> bool:
    """Whether a trace of jobs is all that a predictor reads; those of tables tell `needs` of an instance alone."""
    return life.needs == ("trace",)


def known_of(
    life: type[Life[Any]], command: str, trace: Traced, home: Path, given: Mapping[str, str], **asked: Any
) -> Known:
    """What a predictor is trained on, scored on or asked from.

    A trace goes as it is to who learns from a trace alone; for others, which read tables too, its file is read again.
    Raises ConfigError where it holds other jobs than that file: a part of it would be taken for the whole.
    """
    if learns_from_jobs(life):
        return Known(trace_of(trace), {}, asked.get("from_s"), asked.get("until_s"))
    # Tables lie beside the file: a trace in memory must name it.
    path = Path(trace.source.path if isinstance(trace, Trace) else trace)
    if not path.exists():
        raise ConfigError(
            f"{path}: no such file; {life.__name__} reads tables beside a trace, so name the trace's file"
        )
    pairs = tuple(f"{name}={value}" for name, value in given.items())
    whole = {**dict.fromkeys(UNASKED), **asked, "at_s": asked.get("until_s"), "trace_path": path, "pairs": pairs}
    known = life.known(command, Asked(whole, home))
    if isinstance(trace, Trace) and known.trace is not None and not known.trace.jobs.equals(trace.jobs):
        raise ConfigError(
            f"{path}: holds other jobs than the trace in memory, and {life.__name__} reads the file; "
            f"give start and until for a part of it, or write_trace what is meant and name that file"
        )
    return known


def scores(result: Mapping[str, Any]) -> pd.DataFrame:
    """Figures of an evaluation: a row a horizon and model, the version first, then the rules to beat.

    Of regimes a row a group of jobs and rule; what has other shapes is in `attrs["result"]` alone.

    >>> told = {"predictor": "new-load", "version": 2, "mae": 1.5, "baselines": {"zero": {"mae": 4.0}}}
    >>> scores(told)[["model", "mae"]].to_dict("list")
    {'model': ['new-load:2', 'zero'], 'mae': [1.5, 4.0]}
    """
    frame = pd.DataFrame([{**one, **_numbers(figures)} for one, figures in _blocks(result)])
    frame.attrs["result"] = dict(result)
    return frame


def _blocks(result: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], Mapping[str, Any]]]:
    name = f"{result['predictor']}:{result['version']}"
    if "regimes" in result:
        for group, block in result["regimes"].items():
            yield from (({"group": group, "model": rule}, described) for rule, described in block["rules"].items())
        return
    # Predictors without horizons have their figures at the top.
    by_horizon: Mapping[str, Any] = result.get("horizons") or {"": result}
    for horizon, figures in by_horizon.items():
        key = {"horizon": horizon} if horizon else {}
        yield {**key, "model": name}, figures
        for rule, of_rule in (figures.get("baselines") or {}).items():
            yield {**key, "model": rule}, of_rule


def _numbers(figures: Mapping[str, Any]) -> dict[str, float]:
    kinds = (int, float)
    skipped = ("version",)
    return {
        name: value
        for name, value in figures.items()
        if isinstance(value, kinds) and not isinstance(value, bool) and name not in skipped
    }
