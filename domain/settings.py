"""Settings as `--set` gives them: types whose readers take text or values, and the models that hold them."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError

from jobcast.domain.errors import ConfigError
from jobcast.domain.suggestions import did_you_mean, or_list
from jobcast.domain.switches import Switches as SwitchRows

LONGEST_S = 100 * 366 * 86400.0
LONGEST_DELAY_S = 30 * 86400.0  # a start that takes longer is a slip of the pen
FLAGS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
INFINITE = float("inf")


class Settings(BaseModel):
    """Settings by name; a model's fields tell their defaults, and in words what they do."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    def given(self) -> dict[str, Any]:
        """Values of those that were set."""
        return {name: getattr(self, name) for name in self.model_fields_set}


def setting(default: Any, description: str) -> Any:
    """A field of a model: its default, and in words what it does."""
    return Field(default=default, description=description)


class AnySettings(Settings, extra="allow"):
    """Settings of a plug-in that reads them itself."""


Model = TypeVar("Model", bound=Settings)


def read_settings(who: str, model: type[Model], settings: Mapping[str, object]) -> Model:
    """Settings as values. Raises ConfigError for the first that is not known or cannot be read; `who` asks for it."""
    try:
        return model.model_validate(dict(settings))
    # One line for one mistake: the others show when this one is mended.
    except ValidationError as error:
        first = error.errors()[0]
    name = str(first["loc"][0]) if first["loc"] else ""
    if first["type"] == "extra_forbidden":
        raise ConfigError(f"{who}: {unknown_setting(name, model.model_fields)}")
    if first["type"] == "literal_error":
        # Pydantic would put each word in quotes.
        words = get_args(model.model_fields[name].annotation)
        raise ConfigError(f"{who}: setting {name} must be {' or '.join(words)}, got {settings[name]}")
    reason = str(first["ctx"]["error"]) if "error" in first.get("ctx", {}) else first["msg"]
    raise ConfigError(f"{who}: setting {name} {reason}" if name else f"{who}: {reason}")


def unknown_setting(name: str, known: Iterable[str], beside: Iterable[str] = ()) -> str:
    """What to say of a setting that nobody knows; those `beside` are not listed."""
    names = sorted(known)
    return f"setting {name}: not known; {did_you_mean(name, [*names, *beside])}known: {', '.join(names) or 'none'}"


def values_of(annotation: Any, metadata: Iterable[Any] = ()) -> str:
    """What values a setting takes, in words: what its reader says, or the words of a Literal."""
    if get_origin(annotation) is Literal:
        return or_list(get_args(annotation))
    found = [one.what for one in (*metadata, *getattr(annotation, "__metadata__", ())) if isinstance(one, Reads)]
    return next(iter(found), "") or next(filter(None, map(values_of, get_args(annotation))), "")


class Reads(PlainValidator):
    """Reads a value as it was given, text or not; `what` it must be, for the error and for the documentation."""

    what: str

    def __init__(self, read: Callable[[object], Any], what: str) -> None:
        # `PlainValidator` is a frozen dataclass, so that `what` is set around it.
        super().__init__(read)
        object.__setattr__(self, "what", what)


def number(what: str, holds: Callable[[float], bool]) -> Reads:
    """What reads a number that something holds of.

    >>> number("a number > 0", lambda x: x > 0).func("0.001")
    0.001
    """

    def read(value: object) -> float:
        given = _number(value)
        if not holds(given):
            raise ValueError(f"must be {what}, got {value}")
        return given

    return Reads(read, what)


def _number(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        return float("nan")


def _whole(least: int) -> Reads:
    what = f"a whole number >= {least}"

    def read(value: object) -> int:
        text = str(value)
        # `int` alone takes 1_000, blanks and digits of other scripts.
        if not (text.isascii() and text.isdecimal() and int(text) >= least):
            raise ValueError(f"must be {what}, got {value}")
        return int(text)

    return Reads(read, what)


def flag(value: object) -> bool:
    """On or off.

    >>> flag("yes"), flag(False)
    (True, False)
    """
    try:
        return FLAGS[str(value).lower()]
    except KeyError:
        raise ValueError(f"must be true or false, got {value}") from None


def seconds(value: object) -> float:
    """A positive time of at most a century.

    >>> seconds("300")
    300.0
    """
    number_s = _number(value)
    # Also refuses what is no number: nan compares as false.
    if not 0 < number_s <= LONGEST_S:
        bound = f", at most {LONGEST_S:,.0f} (a century)" if number_s > LONGEST_S else ""
        raise ValueError(f"must be a positive number of seconds{bound}, got {value}")
    return number_s


def round_length(value: object) -> float:
    """The length of a round, at least a second: shorter ones get lost in instants of today.

    >>> round_length("60")
    60.0
    """
    if seconds(value) < 1:
        raise ValueError(f"must be at least 1 second, got {value}")
    return seconds(value)


def switches(value: object) -> SwitchRows:
    """Switches of sharing by pool and window; files are read before they come here.

    >>> switches(SwitchRows())
    Switches(rows=())
    """
    if not isinstance(value, SwitchRows):
        raise ValueError(f"must be switches of sharing, got {value}")
    return value


def minutes(value: object) -> tuple[float, ...]:
    """A list of positive numbers of minutes, such as windows; text is split at commas.

    >>> minutes("5,60"), minutes((720,))
    ((5.0, 60.0), (720.0,))
    """
    parts = value if isinstance(value, tuple | list) else str(value).split(",")
    numbers = tuple(_number(part) for part in parts)
    if not numbers or not all(0 < one < INFINITE for one in numbers):
        raise ValueError(f"must be minutes such as 5,60, got {value}")
    return numbers


def several(each: Reads) -> Reads:
    """What reads values between commas.

    >>> several(Reads(str, "a word")).func("k80, v100")
    ('k80', 'v100')
    """
    # Pydantic's type says that it may take more; ours take a value alone.
    read: Callable[[object], Any] = each.func  # type: ignore[assignment]
    return Reads(lambda value: tuple(read(one.strip()) for one in str(value).split(",")), f"{each.what}, or more")


def path(value: object) -> Path:
    """The place of a file.

    >>> path("config.json").name
    'config.json'
    """
    if not str(value):
        raise ValueError("must be the path of a file, got nothing")
    return Path(str(value))


Flag = Annotated[bool, Reads(flag, "true or false")]
Seconds = Annotated[float, Reads(seconds, "seconds, above 0, at most a century")]
RoundLength = Annotated[float, Reads(round_length, "seconds, 1 or more, at most a century")]
Delay = Annotated[
    float,
    number(f"a number of seconds from 0 to {LONGEST_DELAY_S:,.0f} (30 days)", lambda x: 0 <= x <= LONGEST_DELAY_S),
]
Positive = Annotated[float, number("a number > 0", lambda x: 0 < x < INFINITE)]
AtLeastZero = Annotated[float, number("a number >= 0", lambda x: 0 <= x < INFINITE)]
AtLeastOne = Annotated[float, number("a number >= 1", lambda x: 1 <= x < INFINITE)]
From0To1 = Annotated[float, number("a number from 0 to 1", lambda x: 0 <= x <= 1)]
BelowOne = Annotated[float, number("a number from 0 to below 1", lambda x: 0 <= x < 1)]
Chance = Annotated[float, number("a probability from 0 to 1", lambda x: 0 <= x <= 1)]
Belief = Annotated[float, number("a probability from 0.5 to below 1", lambda x: 0.5 <= x < 1)]
Share = Annotated[float, number("a share in (0, 1]", lambda x: 0 < x <= 1)]
# Below -100 the powers of small speedups leave the range of numbers; the worst-off job alone counts long before.
Exponent = Annotated[float, number("a number from -100 to below 1 and not 0", lambda x: -100 <= x < 1 and x != 0)]
_COUNT, _WORD = _whole(1), Reads(str, "a word")
Count = Annotated[int, _COUNT]
Whole = Annotated[int, _whole(0)]
Minutes = Annotated[tuple[float, ...], Reads(minutes, "minutes between commas, such as 5,60")]
File = Annotated[Path, Reads(path, "a file")]
Switches = Annotated[SwitchRows, Reads(switches, "a file of switches")]
Text = Annotated[str, _WORD]
Counts = Annotated[tuple[int, ...], several(_COUNT)]
Words = Annotated[tuple[str, ...], several(_WORD)]
