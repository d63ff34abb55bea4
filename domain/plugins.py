"""What installed packages bring through entry points, beside what is ours."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from jobcast.domain.errors import ConfigError

T = TypeVar("T")
Points = Callable[[], Mapping[str, EntryPoint]]
"""Entry points by name."""


def points_of(group: str) -> Any:
    """The entry points of a group, looked for when first asked and then known; a `functools.cache` of no arguments."""

    @cache
    def found() -> dict[str, EntryPoint]:
        return {point.name: point for point in entry_points(group=group)}

    return found


def load_point(kind: str, point: EntryPoint) -> Any:
    """What an entry point names. Raises ConfigError where it does not load; `kind`: what it is to be, in words."""
    try:
        return point.load()
    # Says nothing of the plug-in, and must end the run.
    except MemoryError:
        raise
    except Exception as error:  # another package's code may fail in any way
        raise broken(kind, point, f"does not load ({type(error).__name__}: {error})") from error


def broken(kind: str, point: EntryPoint, why: str) -> ConfigError:
    """What to say of an entry point that cannot be used."""
    return ConfigError(f"{kind} {point.name}: the plug-in {point.value} {why}; mend it or take another {kind}")


class WithInstalled(Mapping[str, T]):
    """Ours by name, then what is installed, which is loaded when first used and cannot replace ours.

    Parameters
    ----------
    ours : names -> anything
    own : makes one of ours
    points : what is installed
    theirs : makes one of them
    """

    def __init__(
        self, ours: Mapping[str, Any], own: Callable[[str], T], points: Points, theirs: Callable[[EntryPoint], T]
    ) -> None:
        self._ours, self._own, self._points, self._theirs = ours, own, points, theirs

    def __getitem__(self, name: str) -> T:
        # Ours first: what is installed cannot stand in for it by taking its name.
        return self._own(name) if name in self._ours else self._theirs(self._points()[name])

    def __contains__(self, name: object) -> bool:
        return name in self._ours or name in self._points()

    def __iter__(self) -> Iterator[str]:
        yield from self._ours
        yield from (name for name in sorted(self._points()) if name not in self._ours)

    def __len__(self) -> int:
        return len(list(iter(self)))
