"""Settings of policies: types whose readers take text or values, and the models that hold them."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, PlainValidator, ValidationError

from jobcast.domain.errors import ConfigError
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


class AnySettings(Settings, extra="allow"):
    """Settings of a plug-in that reads them itself."""


Model = TypeVar("Model", bound=Settings)


def read_settings(who: str, model: type[Model], settings: Mapping[str, object]) -> Model:
    """Settings as values. Raises ConfigError for the first that is not known or cannot be read; `who` asks for it."""
    try:
        return model.model_validate(dict(settings))
    except ValidationError as error:
        first = error.errors()[0]
    name = str(first["loc"][0]) if first["loc"] else ""
    if first["type"] == "extra_forbidden":
        raise ConfigError(f"{who}: {unknown_setting(name, model.model_fields)}")
    if first["type"] == "literal_error":
        words = get_args(model.model_fields[name].annotation)
        raise ConfigError(f"{who}: setting {name} must be {' or '.join(words)}, got {settings[name]}")
    told = str(first["ctx"]["error"]) if "error" in first.get("ctx", {}) else first["msg"]
    raise ConfigError(f"{who}: setting {name} {told}" if name else f"{who}: {told}")


def unknown_setting(name: str, known: Iterable[str], beside: Iterable[str] = ()) -> str:
    """What to say of a setting that nobody knows; those `beside` are not listed."""
    names = sorted(known)
    return f"setting {name}: not known; {did_you_mean(name, [*names, *beside])}known: {', '.join(names) or 'none'}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A question about the names next to a word, capital letters aside; nothing where none is near.

    >>> did_you_mean("slak", ["slack", "order"]), did_you_mean("zzz", ["slack"])
    ('did you mean slack? ', '')
    """
    names = {name.lower(): name for name in known}
    near = [names[one] for one in get_close_matches(word.lower(), names, cutoff=0.65)]
    return f"did you mean {or_list(near)}? " if near else ""


def or_list(names: Iterable[str]) -> str:
    """Names as a sentence lists them.

    >>> or_list(["a"]), or_list(["a", "b", "c"])
    ('a', 'a, b or c')
    """
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


def values_of(annotation: Any) -> str:
    """What values a setting takes, in words: what stands beside the reader in its type, or the words of a Literal."""
    if get_origin(annotation) is Literal:
        return or_list(get_args(annotation))
    texts = [text for text in getattr(annotation, "__metadata__", ()) if isinstance(text, str)]
    return next(iter(texts), "") or next(filter(None, map(values_of, get_args(annotation))), "")


def _number(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        return float("nan")


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
    number = _number(value)
    if not 0 < number <= LONGEST_S:
        bound = f", at most {LONGEST_S:,.0f} (a century)" if number > LONGEST_S else ""
        raise ValueError(f"must be a positive number of seconds{bound}, got {value}")
    return number


def round_length(value: object) -> float:
    """The length of a round, at least a second: shorter ones get lost in instants of today.

    >>> round_length("60")
    60.0
    """
    if seconds(value) < 1:
        raise ValueError(f"must be at least 1 second, got {value}")
    return seconds(value)


def delay(value: object) -> float:
    """A time which jobs lose at a start, bounded so that replays end some day.

    >>> delay("62")
    62.0
    """
    number = _number(value)
    if not 0 <= number <= LONGEST_DELAY_S:
        raise ValueError(f"must be a number of seconds from 0 to {LONGEST_DELAY_S:,.0f} (30 days), got {value}")
    return number


def positive(value: object) -> float:
    """A number above 0.

    >>> positive("3250")
    3250.0
    """
    number = _number(value)
    if not 0 < number < INFINITE:
        raise ValueError(f"must be a number > 0, got {value}")
    return number


def at_least_zero(value: object) -> float:
    """A number, 0 or more.

    >>> at_least_zero("0.001")
    0.001
    """
    return _at_least(0, value)


def at_least_one(value: object) -> float:
    """A factor of 1 or more.

    >>> at_least_one("2")
    2.0
    """
    return _at_least(1, value)


def _at_least(least: int, value: object) -> float:
    number = _number(value)
    if not least <= number < INFINITE:
        raise ValueError(f"must be a number >= {least}, got {value}")
    return number


def from_0_to_1(value: object, what: str = "number") -> float:
    """From 0 to 1, both included; `what` it is, for the error.

    >>> from_0_to_1("0.3")
    0.3
    """
    number = _number(value)
    if not 0 <= number <= 1:
        raise ValueError(f"must be a {what} from 0 to 1, got {value}")
    return number


def chance(value: object) -> float:
    """A probability from 0 to 1."""
    return from_0_to_1(value, "probability")


def belief(value: object) -> float:
    """A probability at which something is believed.

    >>> belief("0.95")
    0.95
    """
    number = from_0_to_1(value)
    if not 0.5 <= number < 1.0:
        raise ValueError(f"must be a probability from 0.5 to below 1, got {value}")
    return number


def share(value: object) -> float:
    """A share, above 0 and at most 1.

    >>> share("0.2")
    0.2
    """
    number = _number(value)
    if not 0 < number <= 1:
        raise ValueError(f"must be a share in (0, 1], got {value}")
    return number


def exponent(value: object) -> float:
    """An exponent of a generalised mean, below 1 and not 0.

    Below -100 the powers of small speedups leave the range of numbers; the worst-off job alone counts long before.

    >>> exponent("-1")
    -1.0
    """
    number = _number(value)
    if not -100 <= number < 1 or number == 0:
        raise ValueError(f"must be a number from -100 to below 1 and not 0, got {value}")
    return number


def count(value: object) -> int:
    """A whole number, 1 or more.

    >>> count("20")
    20
    """
    return _whole(1, value)


def whole(value: object) -> int:
    """A whole number, 0 or more.

    >>> whole("0")
    0
    """
    return _whole(0, value)


def _whole(least: int, value: object) -> int:
    text = str(value)
    if not (text.isascii() and text.isdecimal() and int(text) >= least):
        raise ValueError(f"must be a whole number >= {least}, got {value}")
    return int(text)


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
    if not numbers or not all(0 < number < INFINITE for number in numbers):
        raise ValueError(f"must be minutes such as 5,60, got {value}")
    return numbers


def path(value: object) -> Path:
    """The place of a file.

    >>> path("config.json").name
    'config.json'
    """
    if not str(value):
        raise ValueError("must be the path of a file, got nothing")
    return Path(str(value))


Flag = Annotated[bool, PlainValidator(flag), "true or false"]
Seconds = Annotated[float, PlainValidator(seconds), "seconds, above 0, at most a century"]
RoundLength = Annotated[float, PlainValidator(round_length), "seconds, 1 or more, at most a century"]
Delay = Annotated[float, PlainValidator(delay), "seconds, from 0 to 30 days"]
Positive = Annotated[float, PlainValidator(positive), "a number above 0"]
AtLeastZero = Annotated[float, PlainValidator(at_least_zero), "a number, 0 or more"]
AtLeastOne = Annotated[float, PlainValidator(at_least_one), "a number, 1 or more"]
From0To1 = Annotated[float, PlainValidator(from_0_to_1), "a number from 0 to 1"]
Chance = Annotated[float, PlainValidator(chance), "a probability from 0 to 1"]
Belief = Annotated[float, PlainValidator(belief), "a probability from 0.5 to below 1"]
Share = Annotated[float, PlainValidator(share), "a share above 0, at most 1"]
Exponent = Annotated[float, PlainValidator(exponent), "a number from -100 to below 1, not 0"]
Count = Annotated[int, PlainValidator(count), "a whole number, 1 or more"]
Whole = Annotated[int, PlainValidator(whole), "a whole number, 0 or more"]
Minutes = Annotated[tuple[float, ...], PlainValidator(minutes), "minutes between commas, such as 5,60"]
File = Annotated[Path, PlainValidator(path), "a file"]
Switches = Annotated[SwitchRows, PlainValidator(switches), "a file of switches"]
Text = Annotated[str, PlainValidator(str), "a word"]
