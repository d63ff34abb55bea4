"""The versions that answer: champions, looked up again and again, checked before they take over."""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from jobcast.domain.errors import JobcastError, RegistryError
from jobcast.domain.times import iso
from jobcast.models.registry import Registry
from jobcast.models.registry.cards import ModelVersion

ARRIVALS, LOADS, DURATIONS, COMPLETIONS = "will-jobs-arrive", "new-load", "job-duration", "completion-time"
NEEDED, BESIDE = (ARRIVALS, LOADS), (DURATIONS, COMPLETIONS)
"""Predictors without which nobody answers, and those that are asked where there are any."""
POLL_S = 2.0
"""Seconds between two looks at the aliases."""
AGAIN_S = 60.0
"""After which versions that were refused are tried once more."""
ASKING = threading.Lock()
"""Held while a registry is asked: threads that keep the same files at once would sweep each other's away."""
LOG = logging.getLogger(__name__)


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
    """Keeps the versions that an alias names.

    Parameters
    ----------
    registry : where aliases are looked up
    shadow : asks a set of predictors about now, and raises where it cannot answer
    alias : None for the champions
    needed : names without which there is no set

    Attributes
    ----------
    current : those that answer; replaced as a whole
    trouble : why the versions of the registry do not answer, without what an error tells of files; empty where they do
    """

    def __init__(
        self,
        registry: Registry,
        shadow: Callable[[Mapping[str, Any]], None],
        alias: str | None = None,
        needed: tuple[str, ...] = NEEDED,
    ) -> None:
        self._registry, self._shadow, self._alias, self._needed = registry, shadow, alias, needed
        self.current = Champions()
        self.trouble = "no champion has been looked up yet" if needed else ""
        self._refused: tuple[dict[str, int], str, float] | None = None

    def poll(self) -> bool:
        """Look the aliases up; whether other versions answer from now on. The old ones stay where new ones fail."""
        with ASKING:
            return self._look()

    def _look(self) -> bool:
        try:
            found = self._looked_up()
        except Exception as error:  # a registry may be away in any way; what answers stays
            there = type(error) is RegistryError
            self._tell(
                "the registry has no champion that could answer" if there else "the registry cannot be asked", error
            )
            return False
        wanted = {name: version.version for name, version in found.items()}
        if wanted == self.current.versions:
            self.trouble = self._silent()
            return False
        # A version never changes, but a registry may have gone while it was read.
        if self._refused is not None and self._refused[0] == wanted and monotonic() < self._refused[2]:
            self.trouble = self._refused[1]
            return False
        return self._take(found, wanted)

    def _looked_up(self) -> dict[str, ModelVersion]:
        found = {name: self._registry.resolve(name, self._alias) for name in self._needed}
        for name in (*NEEDED, *BESIDE):
            if name not in found:
                try:
                    found[name] = self._registry.resolve(name, self._alias)
                except RegistryError:  # nobody is asked
                    continue
        return found

    def _take(self, found: Mapping[str, ModelVersion], wanted: dict[str, int]) -> bool:
        try:
            predictors = {name: self._registry.load(version) for name, version in found.items()}
            self._shadow(predictors)
        except Exception as error:  # files may be damaged, and predictors wrong, in any way; it is told
            names = ", ".join(f"{name}:{number}" for name, number in wanted.items())
            self._tell(f"refused {names}", error)
            self._refused = (wanted, self.trouble, monotonic() + AGAIN_S)
            return False
        self.current, self.trouble, self._refused = Champions(predictors, wanted), self._silent(), None
        return True

    def _silent(self) -> str:
        """Since when a registry elsewhere has not answered; what was seen of it last stands meanwhile."""
        stale = self._registry.staleness().get("registry")
        return f"the registry has not answered since {iso(stale['seen_s'])}" if stale else ""

    def _tell(self, what: str, error: Exception) -> None:
        # The log has what an error tells, which may name files: whoever asks by HTTP need not know of these.
        told = f"{what} ({type(error).__name__})"
        if told != self.trouble:
            LOG.warning("%s: %s", what, error if isinstance(error, JobcastError) else repr(error))
        self.trouble = told
