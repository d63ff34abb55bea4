"""Cluster files: YAML of nodes, GPU types and pools."""

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
