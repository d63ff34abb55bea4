"""Policies with locality by name: what `fcfs`, `sia` and `hived` are on servers. SIA, sections 5.5 and 6.4."""

from collections.abc import Callable, Mapping
from typing import Any

from jobcast.domain.cluster import Policy
from jobcast.domain.errors import ConfigError
from jobcast.domain.forecasts import Forecasts
from jobcast.schedulers.cells.fcfs import CellFcfs
from jobcast.schedulers.cells.hived import CellHived
from jobcast.schedulers.cells.quotas import NO_CELLS, Cells
from jobcast.schedulers.cells.sia import CellSia
from jobcast.schedulers.cells.window import APART
from jobcast.schedulers.settings import Readers, flag, one_of, read_settings, seconds, switches

CELL_SETTINGS: Mapping[str, Readers] = {
    "fcfs": {},
    "sia": {"tick_s": seconds, "switches": switches, "apart": one_of(*APART), "follow": flag},
    "hived": {},
}
"""Policy with locality -> readers of its settings."""
_WITHOUT_FORECASTS: Mapping[str, Callable[..., Policy]] = {"fcfs": CellFcfs, "hived": CellHived}


def make_cell_policy(
    name: str, forecasts: Forecasts | None, settings: Mapping[str, Any], cells: Cells = NO_CELLS
) -> Policy:
    """A policy with locality by name, for a workload with servers; it is made for one run.

    Parameters
    ----------
    name : one of `CELL_SETTINGS`
    forecasts : what it may ask; `fcfs` and `hived` ask nothing
    settings : its own, as they were given
    cells : the quotas as cells; pools that are not told are split as `quotas.default_cells` does

    Raises
    ------
    ConfigError
        There is no such policy or setting, or `sia` is given no forecasts.
    """
    if name not in CELL_SETTINGS:
        raise ConfigError(f"policy {name} knows no locality; choose from {', '.join(CELL_SETTINGS)}")
    read = read_settings(f"{name} with locality", CELL_SETTINGS[name], settings)
    if name in _WITHOUT_FORECASTS:
        return _WITHOUT_FORECASTS[name](cells=cells, **read)
    if forecasts is None:
        raise ConfigError(f"policy {name} needs forecasts; pass --forecasts, such as oracle")
    return CellSia(forecasts, cells=cells, **read)
