"""Policies that share GPUs out among jobs of any width, by their papers' names."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from jobcast.schedulers.pollux import RESTART_S, P, Pollux
from jobcast.schedulers.settings import Readers, delay, read_settings, seconds

NO_SETTINGS: Mapping[str, object] = MappingProxyType({})
ROUND_S = 60.0  # Pollux (OSDI 2021): the interval of its scheduler
LEAST_P = -100.0
"""Beyond this the powers of small speedups leave the range of numbers; the worst-off job alone counts long before."""


def exponent(value: object) -> float:
    """A setting that is an exponent of a generalised mean, below 1 and not 0.

    >>> exponent("-1")
    -1.0
    """
    try:
        number = float(str(value))
    except ValueError:
        number = float("nan")
    if not LEAST_P <= number < 1 or number == 0:
        raise ValueError(f"must be a number from {LEAST_P:g} to below 1 and not 0, got {value}")
    return number


def round_length(value: object) -> float:
    """A setting that is the length of a round, at least a second: shorter ones get lost in instants of today.

    >>> round_length("60")
    60.0
    """
    length_s = seconds(value)
    if length_s < 1:
        raise ValueError(f"must be at least 1 second, got {value}")
    return length_s


@dataclass(frozen=True, slots=True)
class GoodputFactory:
    """Makes a policy of goodput from settings; it asks no forecasts.

    Attributes
    ----------
    name : its paper's
    settings : name -> reader of its value: `p`, and of rounds `round_s` and `restart_s`
    """

    name: str
    settings: Readers
    uses_forecasts: bool = False

    def mechanism(self, settings: Mapping[str, object] = NO_SETTINGS) -> dict[str, float]:
        """Seconds of a round and of a restart. Raises ConfigError for a setting that is not known or cannot be read."""
        read = read_settings(self.name, self.settings, settings)
        return {"round_s": read.get("round_s", ROUND_S), "restart_s": read.get("restart_s", RESTART_S)}

    def __call__(self, forecasts: Any = None, settings: Mapping[str, object] = NO_SETTINGS) -> Any:
        """Make one, a `domain.goodput.GoodputPolicy`. Raises ConfigError as `mechanism`."""
        read = read_settings(self.name, self.settings, settings)
        return Pollux(read.get("p", P), self.mechanism(settings)["restart_s"])


_POLLUX = GoodputFactory("pollux", {"p": exponent, "round_s": round_length, "restart_s": delay})
GOODPUT_POLICIES: Mapping[str, GoodputFactory] = MappingProxyType({_POLLUX.name: _POLLUX})
