"""Cluster files as YAML: what they hold, and the numbers in them."""

from pathlib import Path
from typing import Any

import yaml

from jobcast.domain.errors import PoolsError


def read_yaml(path: Path) -> Any:
    """What a YAML file holds. Raises PoolsError when it cannot be read."""
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PoolsError(f"{path}: cannot be read ({error.strerror})") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise PoolsError(f"{path}: not valid YAML ({str(error).splitlines()[0]})") from error


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
