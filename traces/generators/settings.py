"""Settings of a generator: `key=value` pairs become one frozen, validated configuration, once, at the edge."""

import math
from collections.abc import Callable, Mapping
from dataclasses import Field, field, fields
from datetime import UTC, datetime
from typing import Any, TypeVar, get_type_hints

from jobcast.domain import tolerance
from jobcast.domain.errors import ConfigError
from jobcast.domain.times import has_an_offset_of_earth
from jobcast.traces.column_types import FLAGS

Setting = str | int | float
FIRST_INSTANT = datetime(2024, 1, 1, tzinfo=UTC)
"""When a generated trace begins unless `start` says otherwise: midnight of a Monday."""
ConfigT = TypeVar("ConfigT")


def setting(default: Any, meaning: str, low: float = -math.inf, high: float = math.inf) -> Any:
    """Dataclass field with a default, its meaning, and the closed range that its number or numbers lie in."""
    return field(default=default, metadata={"meaning": meaning, "low": low, "high": high})


def parse_settings(config_type: type[ConfigT], settings: Mapping[str, Setting], kind: str) -> ConfigT:
    """Build a configuration from settings whose values may still be text.

    Parameters
    ----------
    config_type : frozen dataclass whose fields were made by `setting`
    settings : name -> value; text is read by the type of the field, sequences as numbers between commas
    kind : name of the generator, for messages

    Raises
    ------
    ConfigError
        On an unknown name, or a value that does not read as the field's type or is out of range; lists all names.
    """
    known = {f.name: f for f in fields(config_type)}  # type: ignore[arg-type]
    types = get_type_hints(config_type)
    parsed = {}
    for name, value in settings.items():
        if name not in known:
            raise ConfigError(f"{kind}: there is no setting {name!r}; {_known(known)}")
        try:
            # by the declared type, so that a new setting needs no parser of its own
            parsed[name] = _PARSERS[types[name]](value)
            check_range(known[name], parsed[name])
        except ValueError as error:
            raise ConfigError(f"{kind}: {name} {error}, got {value!r}; {_known(known)}") from error
    try:
        # __post_init__ checks what hangs on several settings at once
        return config_type(**parsed)
    except ValueError as error:
        raise ConfigError(f"{kind}: {error}; {_known(known)}") from error


def check_ranges(config: Any) -> None:
    """Check each field of a configuration against its declared range; for `__post_init__`. Raises ValueError."""
    for declared in fields(config):
        try:
            check_range(declared, getattr(config, declared.name))
        except ValueError as error:
            raise ValueError(f"{declared.name} {error}, got {getattr(config, declared.name)!r}") from error


def check_pairs(config: Any, *names: str) -> None:
    """Check settings that are the ends of a range each. Raises ValueError."""
    for name in names:
        pair = getattr(config, name)
        if len(pair) != 2 or pair[0] > pair[1]:
            raise ValueError(f"{name} must be two ascending numbers, got {pair}")


def check_ascending(config: Any, *pairs: tuple[str, str]) -> None:
    """Check pairs of settings, the first of which must not be more than the second. Raises ValueError."""
    for low, high in pairs:
        if getattr(config, low) > getattr(config, high):
            raise ValueError(f"{low} must not exceed {high}, got {getattr(config, low):g} > {getattr(config, high):g}")


def check_widths(config: Any, most: str) -> None:
    """Check `widths` and `width_shares`, and that no width is more than the setting `most`. Raises ValueError."""
    if len(config.widths) != len(config.width_shares):
        raise ValueError(f"{len(config.widths)} widths need as many width_shares, got {len(config.width_shares)}")
    if abs(sum(config.width_shares) - 1) > tolerance.SHARES:
        raise ValueError(f"width_shares must add up to 1, got {sum(config.width_shares):g}")
    if max(config.widths) > getattr(config, most):
        raise ValueError(f"widths must fit {most}, got {max(config.widths)} > {getattr(config, most)}; set both")


def check_range(declared: Field[Any], value: Any) -> None:
    """Check one value, or each item of a tuple, against the range of its field. Raises ValueError."""
    low, high = declared.metadata["low"], declared.metadata["high"]
    items = value if isinstance(value, tuple) else (value,)
    # texts and instants have no range
    if any(isinstance(item, int | float) and not low <= item <= high for item in items):
        raise ValueError(f"must lie in [{low:g}, {high:g}]")


def known_settings(config_type: type[Any]) -> dict[str, tuple[Any, str]]:
    """Name -> (default, meaning) of each setting, in order of declaration."""
    return {f.name: (f.default, f.metadata["meaning"]) for f in fields(config_type)}


def _known(known: Mapping[str, object]) -> str:
    return f"known settings are {', '.join(known)}"


def _text(value: object) -> str:
    return str(value).strip()


def _number(value: object) -> float:
    try:
        number = float(_text(value))
    except ValueError as error:
        raise ValueError("must be a number") from error
    # float(True) is 1.0, which nobody means
    if isinstance(value, bool) or not math.isfinite(number):
        raise ValueError("must be a finite number")
    return number


def _whole(value: object) -> int:
    try:
        number = _number(value)
    except ValueError as error:
        raise ValueError("must be a whole number") from error
    if number != int(number):
        raise ValueError("must be a whole number")
    return int(number)


def _flag(value: object) -> bool:
    word = _text(value).lower()
    if word not in FLAGS:
        raise ValueError("must be true or false")
    return FLAGS[word]


def _list(value: object, parse: Callable[[object], Any]) -> tuple[Any, ...]:
    items = value if isinstance(value, tuple | list) else _text(value).split(",")
    try:
        return tuple(parse(item) for item in items)
    except ValueError as error:
        raise ValueError(f"must be a list between commas, in which each item {error}") from error


def _instant(value: object) -> datetime:
    try:
        instant = value if isinstance(value, datetime) else datetime.fromisoformat(_text(value))
    except ValueError as error:
        raise ValueError("must be a date or time in ISO-8601") from error
    # Python takes offsets up to a day, which overflow at the ends of the calendar
    if not has_an_offset_of_earth(instant):
        raise ValueError("must have an offset of at most 14 hours")
    # a date alone is midnight UTC
    return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)


_PARSERS: dict[Any, Callable[[object], Any]] = {
    str: _text,
    float: _number,
    int: _whole,
    bool: _flag,
    tuple[float, ...]: lambda value: _list(value, _number),
    tuple[int, ...]: lambda value: _list(value, _whole),
    datetime: _instant,
}
