"""YAML files as plain values, and what a value of one may be."""

import re
import sys
from datetime import date
from typing import Any

import yaml

from jobcast.domain.errors import PoolsError
from jobcast.domain.suggestions import did_you_mean

MOST_VALUES = 100_000
"""Values that a file of ours holds at most, each counted as often as it is referred to."""


def load_yaml(text: str) -> Any:
    """What YAML holds: plain values, never code. Raises ValueError that says why in one line where it cannot be had."""
    try:
        # the safe loader builds no objects of Python
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error).splitlines()[0]) from None
    # PyYAML calls itself once a level
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
    # a stack, not recursion: a value may hold itself
    ahead, count = [value], 0
    while ahead and count <= MOST_VALUES:
        one = ahead.pop()
        held = [*one.keys(), *one.values()] if isinstance(one, dict) else list(one) if isinstance(one, list) else []
        ahead += held
        count += 1
    return bool(ahead)


def whole(value: Any, where: str) -> int:
    """A number of nodes or GPUs. Raises PoolsError for anything but a whole number of at least 1."""
    # bool is an int to isinstance: `gpus: yes` is no number
    if type(value) is not int or value < 1:
        raise PoolsError(f"{where}: must be a whole number >= 1, got {value!r}; correct it")
    return value


def number(value: Any, where: str, least: float = 0.0, above: float | None = None) -> float:
    """A finite number of at least `least`, or greater than `above`. Raises PoolsError for anything else."""
    # the upper bound refuses inf, and NaN fails both
    sound = isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= sys.float_info.max
    if not sound or value == above:
        bound = f">= {least:g}" if above is None else f"> {above:g}"
        # YAML 1.1 takes 1e3 for a text, as names of pools may be.
        remedy = "write it with a point and a sign, as in 1.0e+3" if _is_power(value) else "correct it"
        raise PoolsError(f"{where}: must be a number {bound}, got {value!r}; {remedy}")
    return float(value)


def _is_power(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+", value) is not None


def text(value: Any, where: str) -> str:
    """A name or an instant, empty where there is none; YAML makes numbers and dates of some."""
    if value is None:
        return ""
    # YAML makes dates and numbers of what people meant as names
    if isinstance(value, bool) or not isinstance(value, str | int | float | date) or value == "":
        raise PoolsError(f"{where}: a text is expected, got {value!r}; correct it")
    return str(value)


def refuse_unknown(given: Any, known: tuple[str, ...], where: str) -> None:
    """PoolsError for what is no mapping, and for keys that nobody reads."""
    if not isinstance(given, dict):
        raise PoolsError(f"{where}: {', '.join(known)} are expected, got {given!r}; correct it")
    unknown = [str(key) for key in given if key not in known]
    if unknown:
        # most unknown keys are slips of the pen
        meant = did_you_mean(unknown[0], known)
        raise PoolsError(f"{where}: {', '.join(unknown)} is not known; {meant}known are {', '.join(known)}")
