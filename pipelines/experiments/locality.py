"""Locality in simulations: workloads on servers, policies that place jobs in cells. SIA, sections 5.5 and 6.4."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from jobcast.domain.errors import ConfigError
from jobcast.domain.hardware import Cluster
from jobcast.schedulers.cells.quotas import Cells, cells_of, check_jobs, server_size, servers_for
from jobcast.schedulers.policies import LocalitySite
from jobcast.schedulers.registry import local_of
from jobcast.schedulers.settings import read_settings
from jobcast.simulator.workload import Workload

LOCALITY = "locality"
"""The setting that asks for it: `--set locality=true`."""
SERVER_GPUS = 8
"""Of each server where no cluster file tells: SIA, section 6.4."""


def asks_for_locality(settings: Mapping[str, Any]) -> bool:
    """Whether jobs are to be given cells. Raises ConfigError for a value that is neither true nor false."""
    given = {LOCALITY: settings[LOCALITY]} if LOCALITY in settings else {}
    return read_settings("the cluster", LocalitySite, given).locality


def check_locality(policy: str, baseline: str | None = None) -> None:
    """Refuse what cannot place jobs in cells, before anything is replayed. ConfigError for an unknown policy too."""
    # It raises, and says which policies do.
    local_of(policy)
    if baseline is not None:
        try:
            local_of(baseline)
        except ConfigError as error:
            raise ConfigError(f"--baseline: {error}, or none") from None


def on_servers(workload: Workload, place: Cluster) -> tuple[Workload, Cells, str]:
    """A workload on the servers of its cluster, without any on as many of eight as its quotas need.

    Returns
    -------
    the workload, the cells of all pools, those that the cluster tells among them, and what is to be noted

    Raises
    ------
    PoolsError
        The quotas cannot be had on the servers as cells.
    TraceError
        A job fits no cells of its pool's.
    """
    pools = workload.pools
    # A cluster file's nodes are taken as they are; else as many servers as quotas need.
    servers = tuple(place.node_gpus.tolist()) or servers_for(pools, SERVER_GPUS)
    cells = cells_of(pools, servers, place.cells)
    # A job that fits no cells of its pool would wait for ever.
    check_jobs(workload.jobs, cells, server_size(servers))
    note = f"locality: {len(servers)} servers of {server_size(servers)} GPUs"
    return replace(workload, servers=servers), cells, note
