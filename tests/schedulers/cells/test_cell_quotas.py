import pytest

from jobcast.domain.errors import PoolsError, TraceError
from jobcast.domain.jobs import Job, Pool
from jobcast.schedulers.cells.quotas import cells_of, check_jobs, default_cells, servers_for
from tests.shared import refused


def test_quotas_are_whole_servers_and_powers_of_two():
    assert [default_cells(quota, 8) for quota in (1, 7, 8, 12, 21)] == [(1,), (4, 2, 1), (8,), (8, 4), (8, 8, 4, 1)]
    assert default_cells(7, 4) == (4, 2, 1)
    pools = [Pool("a", 12), Pool("b", 4), Pool("c", 4)]
    cells = {"a": (4, 4, 4), "b": (4,), "c": (2, 1, 1)}
    assert cells_of(pools, (8, 8, 8), {"a": (4, 4, 4), "c": (1, 2, 1)}) == cells
    assert servers_for([Pool("a", 12), Pool("b", 5)]) == (8, 8, 8)


@pytest.mark.parametrize(
    ("servers", "given", "message"),
    [
        ((8,), {}, "the pools' cells have 12 GPUs, 1 servers of 8 have 8"),
        ((8, 8), {"a": (8, 8)}, "pool a: its cells have 16 GPUs, its quota is 12"),
        ((8, 8), {"a": (12,)}, "pool a: servers of 8 GPUs have no cells of 12"),
        ((8, 8), {"a": (8, 4, 0)}, "pool a: servers of 8 GPUs have no cells of 0"),
        ((4, 4, 4), {"a": (8, 4)}, "pool a: servers of 4 GPUs have no cells of 8"),
        ((8, 4), {}, "locality needs servers of one size, a power of two; these have 4, 8 GPUs"),
        ((6, 6), {}, "locality needs servers of one size, a power of two; these have 6 GPUs"),
        ((), {}, "locality needs servers"),
    ],
)
def test_quotas_that_cannot_be_met_are_refused(servers, given, message):
    refused(PoolsError, message, cells_of, [Pool("a", 12)], servers, given)


@pytest.mark.parametrize(
    ("gpus", "cells", "message"),
    [
        (8, (4, 4), "job x: its 8 GPUs need 8 together, its pool a has 4\\+4 \\(1 such jobs\\)"),
        (3, (2, 1), "job x: its 3 GPUs need 4 together, its pool a has 2\\+1"),
        (12, (8, 4), "job x: its 12 GPUs need 8 \\+ 8 together, its pool a has 8\\+4"),
    ],
)
def test_a_job_that_never_fits_is_named(gpus, cells, message):
    fits = Job(0, "fits", "a", 0.0, 1)
    with pytest.raises(TraceError, match=message):
        check_jobs([fits, Job(1, "x", "a", 0.0, gpus)], {"a": cells}, 8)
    check_jobs([fits], {"a": cells}, 8)
