"""Sources of forecasts that installed packages bring through the entry point group `jobcast.forecasts`."""

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import cast

from jobcast.domain.errors import ConfigError
from jobcast.domain.forecasts import ForecastSource
from jobcast.simulator.history import RunHistory
from jobcast.simulator.workload import Workload

ENTRY_POINTS = "jobcast.forecasts"
"""An entry point names a class, or any callable of (workload, history, seed), that makes a `ForecastSource`."""


def plugin_names() -> list[str]:
    """Names of the installed sources, ascending."""
    return sorted(_installed())


def make_plugin(name: str, workload: Workload, history: RunHistory, seed: int) -> ForecastSource:
    """A source by name, for one run.

    Parameters
    ----------
    workload : what is replayed
    history : the run's past, growing with it; reaches to the instant that the source is moved to
    seed : of its draws

    Raises
    ------
    ConfigError
        The package does not load, or makes nothing.
    """
    entry = _installed()[name]
    try:
        source = entry.load()(workload, history, seed)
    except MemoryError:
        raise
    except Exception as error:  # another package's code may fail in any way
        why = f"{type(error).__name__}: {error}"
    else:
        if source is not None:
            return cast(ForecastSource, source)
        why = "makes nothing"
    raise ConfigError(f"--forecasts {name}: the plug-in {entry.value} cannot be used ({why}); mend it or take another")


@cache
def _installed() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}
