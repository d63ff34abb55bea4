"""Locality in simulations: scenes on servers, policies that place jobs in cells. SIA, sections 5.5 and 6.4."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from jobcast.domain.errors import ConfigError
from jobcast.pipelines.scenes import Scene
from jobcast.schedulers.cells.quotas import NO_CELLS, Cells, cells_of, check_jobs, server_size, servers_for
from jobcast.schedulers.policies import LocalitySite
from jobcast.schedulers.registry import find_policy, local_policies
from jobcast.schedulers.settings import read_settings

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
    known = ", ".join(local_policies())
    if find_policy(policy).local is None:
        raise ConfigError(f"policy {policy} knows no locality; choose from {known}")
    if baseline is not None and find_policy(baseline).local is None:
        raise ConfigError(f"--baseline {baseline} knows no locality; choose from {known}, none")


def placed(scene: Scene, given: Cells = NO_CELLS) -> Scene:
    """A scene on the servers of its cluster file, without one on as many servers of eight as its quotas need.

    Parameters
    ----------
    scene : its `nodes` are the servers
    given : cells of pools that the pools file tells; the scene that comes back has those of all pools

    Raises
    ------
    PoolsError
        The quotas cannot be had on the servers as cells.
    TraceError
        A job fits no cells of its pool's.
    """
    pools = scene.workload.pools
    servers = tuple(gpus for count, gpus in scene.nodes for _ in range(count)) or servers_for(pools, SERVER_GPUS)
    cells = cells_of(pools, servers, given)
    check_jobs(scene.workload.jobs, cells, server_size(servers))
    note = f"locality: {len(servers)} servers of {server_size(servers)} GPUs"
    workload = replace(scene.workload, servers=servers)
    return replace(scene, workload=workload, notes=(*scene.notes, note), cells=cells)
