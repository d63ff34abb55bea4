"""Switches of sharing: in which pools and windows GPUs may be lent, from which instant on.

SIA, section 5.3: "if the observed prediction accuracy were to dip for some pools or time windows, SIA can selectively
disable sharing on those pools and time windows".
"""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field

from jobcast.domain.clock import MINUTE_S


@dataclass(frozen=True, slots=True, order=True)
class Switch:
    """Sharing of a pool's GPUs in windows of a horizon, on or off from an instant on (seconds from the epoch)."""

    pool: str
    horizon_min: float
    from_s: float
    sharing: bool


@dataclass(frozen=True, slots=True)
class Switches:
    """All switches; a pool and horizon without one, or before its first one, shares.

    Attributes
    ----------
    rows : in any order; of two for the same pool, horizon and instant the one that is off counts

    Examples
    --------
    >>> switches = Switches((Switch("a", 60, 100.0, False), Switch("a", 60, 200.0, True)))
    >>> [switches.shares("a", 3600.0, now_s) for now_s in (99.0, 100.0, 200.0)]
    [True, False, True]
    >>> switches.shares("a", 300.0, 150.0), switches.shares("b", 3600.0, 150.0)
    (True, True)
    """

    rows: tuple[Switch, ...] = ()
    _turns: Mapping[tuple[str, float], tuple[tuple[float, ...], tuple[bool, ...]]] = field(
        init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        by_key: dict[tuple[str, float], list[Switch]] = {}
        # At one instant the one that is off comes last, and so counts.
        for row in sorted(self.rows, key=lambda row: (row.from_s, not row.sharing)):
            by_key.setdefault((row.pool, MINUTE_S * row.horizon_min), []).append(row)
        turns = {
            key: (tuple(row.from_s for row in mine), tuple(row.sharing for row in mine)) for key, mine in by_key.items()
        }
        # The class is frozen; this is made once from its rows.
        object.__setattr__(self, "_turns", turns)

    def shares(self, pool: str, horizon_s: float, now_s: float) -> bool:
        """Whether GPUs of a pool may be lent at an instant to jobs that end within a window of `horizon_s` seconds."""
        turns = self._turns.get((pool, horizon_s))
        if turns is None:
            return True
        # A switch holds from its own instant on.
        last = bisect_right(turns[0], now_s) - 1
        return last < 0 or turns[1][last]


ALL_SHARE = Switches()
"""No pool is switched off."""


@dataclass(frozen=True, slots=True)
class SwitchRule:
    """Sharing of a pool and window is off where the gate missed too much in the last days.

    Attributes
    ----------
    most_missed : share of the windows with arrivals that the gate may have missed in the last `days`
    days : how far back it looks
    least_arrivals : windows with arrivals that it needs; with fewer there is no telling, and sharing is on
    """

    most_missed: float = 0.5
    days: float = 14.0
    least_arrivals: int = 20

    def shares(self, missed: int, arrivals: int) -> bool:
        """What follows from windows with arrivals, and how many of them were missed.

        >>> SwitchRule().shares(19, 19), SwitchRule().shares(10, 20), SwitchRule().shares(11, 20)
        (True, True, False)
        """
        return arrivals < self.least_arrivals or missed <= self.most_missed * arrivals
