"""The versions that answer: champions, looked up again and again, checked before they take over."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jobcast.domain.errors import JobcastError
from jobcast.models.registry import Registry
from jobcast.models.registry.cards import ModelVersion

ARRIVALS, LOADS, DURATIONS = "will-jobs-arrive", "new-load", "job-duration"
POLL_S = 2.0
"""Seconds between two looks at the aliases."""


@dataclass(frozen=True, slots=True)
class Champions:
    """Fitted predictors with their versions; never changed, so that an answer rests on one set of them.

    Attributes
    ----------
    predictors : by name; empty before any was found
    versions : numbers by name
    """

    predictors: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, int] = field(default_factory=dict)


class ChampionWatch:
    """Keeps the champions that answer.

    Parameters
    ----------
    registry : where aliases are looked up
    shadow : asks a set of predictors about now, and raises where it cannot answer
    names : of the predictors

    Attributes
    ----------
    current : those that answer; replaced as a whole
    trouble : why the champions of the registry do not answer; empty where they do
    """

    def __init__(
        self,
        registry: Registry,
        shadow: Callable[[Mapping[str, Any]], None],
        names: Sequence[str] = (ARRIVALS, LOADS),
    ) -> None:
        self._registry, self._shadow, self._names = registry, shadow, tuple(names)
        self.current = Champions()
        self.trouble = "no champion has been looked up yet"
        self._refused: tuple[dict[str, int], str] | None = None

    def poll(self) -> bool:
        """Look the aliases up; whether other versions answer from now on. The old ones stay where new ones fail."""
        try:
            found = {name: self._registry.resolve(name) for name in self._names}
        except Exception as error:  # a registry may be away in any way; what answers stays
            self.trouble = _told("the registry cannot be asked", error)
            return False
        wanted = {name: version.version for name, version in found.items()}
        if wanted == self.current.versions:
            self.trouble = ""
            return False
        # A version never changes: one that was refused is not loaded every two seconds.
        if self._refused is not None and self._refused[0] == wanted:
            self.trouble = self._refused[1]
            return False
        return self._take(found, wanted)

    def _take(self, found: Mapping[str, ModelVersion], wanted: dict[str, int]) -> bool:
        try:
            predictors = {name: self._registry.load(version) for name, version in found.items()}
            self._shadow(predictors)
        except Exception as error:  # files may be damaged, and predictors wrong, in any way; it is told
            names = ", ".join(f"{name}:{number}" for name, number in wanted.items())
            self.trouble = _told(f"refused {names}", error)
            self._refused = (wanted, self.trouble)
            return False
        self.current, self.trouble, self._refused = Champions(predictors, wanted), "", None
        return True


def _told(what: str, error: Exception) -> str:
    return f"{what}: {error}" if isinstance(error, JobcastError) else f"{what}: {type(error).__name__}"
