"""Readers of policies' settings: each takes the value as it was given, text or not, and raises ValueError."""

from collections.abc import Callable, Mapping
from typing import Any

from jobcast.domain.errors import ConfigError
from jobcast.domain.switches import Switches

LONGEST_S = 100 * 366 * 86400.0
LONGEST_DELAY_S = 30 * 86400.0  # a start that takes longer is a slip of the pen
FLAGS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}

Readers = Mapping[str, Callable[[object], Any]]


def read_settings(policy: str, readers: Readers, settings: Mapping[str, object]) -> dict[str, Any]:
    """Values of settings by name. Raises ConfigError for one that the policy does not know or cannot read."""
    known = ", ".join(sorted(readers)) or "none"
    read: dict[str, Any] = {}
    for setting, value in settings.items():
        if setting not in readers:
            raise ConfigError(f"policy {policy}: unknown setting {setting}; known settings: {known}")
        try:
            read[setting] = readers[setting](value)
        except ValueError as error:
            raise ConfigError(f"policy {policy}: setting {setting} {error}") from None
    return read


def flag(value: object) -> bool:
    """A setting that is on or off.

    >>> flag("yes"), flag(False)
    (True, False)
    """
    try:
        return FLAGS[str(value).lower()]
    except KeyError:
        raise ValueError(f"must be true or false, got {value}") from None


def seconds(value: object) -> float:
    """A setting that is a positive time of at most a century.

    >>> seconds("300")
    300.0
    """
    number = _number(value)
    if not 0 < number <= LONGEST_S:
        bound = f", at most {LONGEST_S:,.0f} (a century)" if number > LONGEST_S else ""
        raise ValueError(f"must be a positive number of seconds{bound}, got {value}")
    return number


def positive(value: object) -> float:
    """A setting that is a number above 0.

    >>> positive("3250")
    3250.0
    """
    number = _number(value)
    if not 0 < number < float("inf"):
        raise ValueError(f"must be a number > 0, got {value}")
    return number


def delay(value: object) -> float:
    """A setting that is a time which jobs lose at a start, from 0 to `LONGEST_DELAY_S`, so that replays end some day.

    >>> delay("62")
    62.0
    """
    number = _number(value)
    if not 0 <= number <= LONGEST_DELAY_S:
        raise ValueError(f"must be a number of seconds from 0 to {LONGEST_DELAY_S:,.0f} (30 days), got {value}")
    return number


def at_least_zero(value: object) -> float:
    """A setting that is a number, 0 or more.

    >>> at_least_zero("0.001")
    0.001
    """
    number = _number(value)
    if not 0 <= number < float("inf"):
        raise ValueError(f"must be a number >= 0, got {value}")
    return number


def at_least_one(value: object) -> float:
    """A setting that is a factor of 1 or more.

    >>> at_least_one("2")
    2.0
    """
    number = _number(value)
    if not 1 <= number < float("inf"):
        raise ValueError(f"must be a number >= 1, got {value}")
    return number


def from_0_to_1(value: object, what: str = "number") -> float:
    """A setting from 0 to 1, both included; `what` it is, for the error.

    >>> from_0_to_1("0.3")
    0.3
    """
    number = _number(value)
    if not 0 <= number <= 1:
        raise ValueError(f"must be a {what} from 0 to 1, got {value}")
    return number


def share(value: object) -> float:
    """A setting that is a share, above 0 and at most 1.

    >>> share("0.2")
    0.2
    """
    number = _number(value)
    if not 0 < number <= 1:
        raise ValueError(f"must be a share in (0, 1], got {value}")
    return number


def count(value: object) -> int:
    """A setting that is a whole number, 1 or more.

    >>> count("20")
    20
    """
    text = str(value)
    if not (text.isascii() and text.isdecimal() and int(text) >= 1):
        raise ValueError(f"must be a whole number >= 1, got {value}")
    return int(text)


def whole(value: object) -> int:
    """A setting that is a whole number, 0 or more.

    >>> whole("0")
    0
    """
    text = str(value)
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(f"must be a whole number >= 0, got {value}")
    return int(text)


def one_of(*known: str) -> "OneOf":
    """A setting that is one of some words.

    >>> one_of("lazy", "reactive")("lazy")
    'lazy'
    """
    return OneOf(known)


class OneOf:
    """Reads one of some words."""

    def __init__(self, known: tuple[str, ...]) -> None:
        self._known = known

    def __call__(self, value: object) -> str:
        """The word; ValueError lists those that are known."""
        if str(value) not in self._known:
            raise ValueError(f"must be {' or '.join(self._known)}, got {value}")
        return str(value)


def switches(value: object) -> Switches:
    """A setting that turns sharing on and off by pool and window; files are read before they come here.

    >>> switches(Switches())
    Switches(rows=())
    """
    if not isinstance(value, Switches):
        raise ValueError(f"must be switches of sharing, got {value}")
    return value


def minutes(value: object) -> tuple[float, ...]:
    """A setting that is a list of positive numbers of minutes, such as windows; text is split at commas.

    >>> minutes("5,60"), minutes((720,))
    ((5.0, 60.0), (720.0,))
    """
    parts = value if isinstance(value, tuple | list) else str(value).split(",")
    numbers = tuple(_number(part) for part in parts)
    if not numbers or not all(0 < number < float("inf") for number in numbers):
        raise ValueError(f"must be minutes such as 5,60, got {value}")
    return numbers


def _number(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        return float("nan")
