"""YAML files as plain values."""

from typing import Any

import yaml

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
