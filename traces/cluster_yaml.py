"""Cluster files as YAML: what they hold, and the numbers in them."""

from pathlib import Path
from typing import Any

import yaml

from jobcast.domain.errors import PoolsError

MOST_VALUES = 100_000
"""Values that a file of ours holds at most, each counted as often as it is referred to."""
MOST_GPUS = 1_000_000
"""Of a cluster file: more is a slip of the pen, and would fill the memory with nodes."""


def load_yaml(text: str) -> Any:
    """What YAML holds: plain values, never code. Raises ValueError that says why in one line where it cannot be had."""
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error).splitlines()[0]) from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except (
        ValueError,
        LookupError,
        AttributeError,
        TypeError,
    ) as error:  # of PyYAML, for a tag on what it does not fit
        raise ValueError(
            f"a value that is none of its kind, {str(error).splitlines()[0] if str(error) else error!r}"
        ) from None
    if _is_vast(value):
        raise ValueError(f"more than {MOST_VALUES:,} values, or one that holds itself")
    return value


def _is_vast(value: Any) -> bool:
    """Whether there are too many values: references may make a few lines into more than any memory holds."""
    ahead, count = [value], 0
    while ahead and count <= MOST_VALUES:
        one = ahead.pop()
        held = [*one.keys(), *one.values()] if isinstance(one, dict) else list(one) if isinstance(one, list) else []
        ahead += held
        count += 1
    return bool(ahead)


def read_yaml(path: Path) -> Any:
    """What a cluster file holds. Raises PoolsError when it cannot be read, or has more GPUs than any cluster."""
    try:
        raw = load_yaml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PoolsError(f"{path}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise PoolsError(f"{path}: not valid YAML ({error})") from error
    groups = raw.get("nodes") if isinstance(raw, dict) else None
    sizes = [(group.get("count", 1), group.get("gpus", 1)) for group in _dicts(groups)]
    if sum(count * gpus for count, gpus in sizes if type(count) is int and type(gpus) is int) > MOST_GPUS:
        raise PoolsError(f"{path}: its nodes have more than {MOST_GPUS:,} GPUs together; correct count or gpus")
    return raw


def _dicts(groups: Any) -> list[dict[Any, Any]]:
    return [group for group in groups if isinstance(group, dict)] if isinstance(groups, list) else []


def whole(value: Any, where: str) -> int:
    """A number of nodes or GPUs. Raises PoolsError for anything but a whole number of at least 1."""
    if type(value) is not int or value < 1:
        raise PoolsError(f"{where}: must be a whole number >= 1, got {value!r}; correct it")
    return value


def number(value: Any, where: str, least: float = 0.0) -> float:
    """A finite number. Raises PoolsError for anything else, and for less than `least`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < float("inf"):
        raise PoolsError(f"{where}: must be a number >= {least:g}, got {value!r}; correct it")
    return float(value)


def refuse_unknown(given: Any, known: tuple[str, ...], where: str) -> None:
    """PoolsError for what is no mapping, and for keys that nobody reads."""
    if not isinstance(given, dict):
        raise PoolsError(f"{where}: {', '.join(known)} are expected, got {given!r}; correct it")
    unknown = [str(key) for key in given if key not in known]
    if unknown:
        raise PoolsError(f"{where}: {', '.join(unknown)} is not known; known are {', '.join(known)}")
