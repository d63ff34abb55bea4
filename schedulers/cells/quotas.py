"""Quotas as cells: which cells a pool owns, whether they fit the servers, and which jobs fit them."""

from collections.abc import Iterable, Mapping, Sequence

from jobcast.domain.errors import PoolsError, TraceError
from jobcast.domain.jobs import Job, Pool
from jobcast.domain.policy import PoolView
from jobcast.schedulers.cells.buddy import sizes_of

# Pool -> GPUs of each of its cells, the largest first.
Cells = Mapping[str, tuple[int, ...]]
NO_CELLS: Cells = {}


def default_cells(quota: int, server_gpus: int) -> tuple[int, ...]:
    """A quota as cells: as many whole servers as it holds, the rest as powers of two.

    >>> default_cells(21, 8)
    (8, 8, 4, 1)
    """
    whole, rest = divmod(quota, server_gpus)
    # The binary digits of the rest, the largest first.
    powers = (1 << bit for bit in reversed(range(server_gpus.bit_length())))
    return (server_gpus,) * whole + tuple(power for power in powers if rest & power)


def server_size(servers: Sequence[int]) -> int:
    """GPUs of every server. Raises PoolsError unless they all have the same power of two."""
    if not servers:
        raise PoolsError("locality needs servers; pass --cluster FILE with nodes: [{count: 10, gpus: 8}]")
    sizes = sorted(set(servers))
    if len(sizes) > 1 or sizes[0] & (sizes[0] - 1):
        shown = ", ".join(str(size) for size in sizes)
        raise PoolsError(f"locality needs servers of one size, a power of two; these have {shown} GPUs; change nodes")
    return sizes[0]


def cells_of(
    pools: Iterable[Pool | PoolView], servers: Sequence[int], given: Cells = NO_CELLS
) -> dict[str, tuple[int, ...]]:
    """The cells of each pool, the largest first.

    Cells of powers of two, none larger than a server, fit on servers of one size just if their GPUs do.

    Parameters
    ----------
    pools : with their quotas in GPUs
    servers : GPUs of each
    given : cells of pools whose quota is not to be split as `default_cells` does

    Raises
    ------
    PoolsError
        The cells cannot all be had on the servers at once, or `given` does not agree with the quotas.
    """
    size = server_size(servers)
    cells = {}
    for pool in pools:
        mine = tuple(sorted(given.get(pool.name) or default_cells(pool.quota, size), reverse=True))
        bad = [gpus for gpus in mine if not 0 < gpus <= size or gpus & (gpus - 1)]
        if bad:
            raise PoolsError(
                f"pool {pool.name}: servers of {size} GPUs have no cells of {bad[0]}; use powers of two up to {size}"
            )
        if sum(mine) != pool.quota:
            raise PoolsError(
                f"pool {pool.name}: its cells have {sum(mine)} GPUs, its quota is {pool.quota}; make them agree"
            )
        cells[pool.name] = mine
    # Powers of two on servers of one power of two always pack: the sum decides.
    asked, there = sum(map(sum, cells.values())), sum(servers)
    if asked > there:
        raise PoolsError(
            f"the pools' cells have {asked} GPUs, {len(servers)} servers of {size} have {there}; "
            "add servers or lower the quotas"
        )
    return cells


def servers_for(pools: Iterable[Pool | PoolView], server_gpus: int = 8) -> tuple[int, ...]:
    """The fewest servers that hold the quotas of pools as cells: GPUs of each. SIA, section 6.4: eight.

    >>> from jobcast.domain.jobs import Pool
    >>> servers_for([Pool("a", 12), Pool("b", 7)])
    (8, 8, 8)
    """
    return (server_gpus,) * -(-sum(pool.quota for pool in pools) // server_gpus)


def check_jobs(jobs: Iterable[Job], cells: Cells, server_gpus: int) -> None:
    """Refuse jobs that could never run in their pool's cells. Raises TraceError that names the first one."""
    never = [job for job in jobs if not _fits(job, cells.get(job.pool, ()), server_gpus)]
    if never:
        job = never[0]
        shown = "+".join(str(gpus) for gpus in cells.get(job.pool, ())) or "no"
        needs = " + ".join(str(gpus) for gpus in sizes_of(job.gpus, server_gpus))
        raise TraceError(
            f"job {job.job_id}: its {job.gpus} GPUs need {needs} together, its pool {job.pool} has {shown} "
            f"({len(never)} such jobs); give the pool larger cells or drop them"
        )


def _fits(job: Job, mine: Sequence[int], server_gpus: int) -> bool:
    sizes = sizes_of(job.gpus, server_gpus)
    return sum(gpus >= sizes[0] for gpus in mine) >= len(sizes)
