"""The ideal virtual host, by hand. MLFS, section 3.3.2."""

import numpy as np
import pytest

from jobcast.schedulers.tasks.host_selection import EVEN, ideal_host, movement
from jobcast.schedulers.tasks.packing import limits_of, nearness, room_of, wants_of
from tests.simulator.tasks.task_cases import TaskJob, cluster_of, jobs_of, view_of

LIMITS = limits_of(0.9, 0.9)
SMALL = np.array([0.1, 0.5, 1.0, 10.0])


def room_with(*shares, gpus=4):
    """Servers of 4 GPUs, 32 cores, 244 GB and 1,250 MB/s of which so much is used."""
    view = view_of(jobs_of(TaskJob()), cluster_of(len(shares), gpus))
    shares = np.array([np.broadcast_to(share, 4) for share in shares], dtype=float)
    each = np.repeat(shares[:, 0], gpus)
    return room_of(view._replace(load=shares * view.cluster.capacity, gpu_load=each))


def chosen(room, near, *, use=SMALL, origin=-1, bandwidth=True, weights=EVEN):
    return ideal_host(room, LIMITS, use, np.array(near, dtype=float), origin, bandwidth, weights)


def test_the_least_used_server_is_the_ideal_one_without_communication():
    assert chosen(room_with(0.5, 0.25, 0.5), [0, 0, 0]) == 1


@pytest.mark.parametrize(("near", "server"), [(0.4, 0), (0.6, 1)])
def test_communication_outweighs_utilisation_when_its_share_is_further_from_the_best(near, server):
    """Used by a half against a quarter: 4 x 0.25^2 = 0.5^2, so that a share of 0.5 tips the scales."""
    room = room_with(0.25, 0.5)
    assert chosen(room, [0, near]) == server
    assert chosen(room, [0, near], bandwidth=False) == 0


def test_the_ideal_takes_the_best_of_each_resource_from_different_servers():
    """The ideal is (0, 0, 0.2, 0.2): distances squared 0.49, 2 x 0.16 and 2 x 0.09."""
    room = room_with([0.7, 0.0, 0.2, 0.2], [0.4, 0.4, 0.2, 0.2], [0.0, 0.0, 0.5, 0.5])
    assert chosen(room, [0, 0, 0]) == 2


def test_overloaded_servers_are_no_candidates_and_shape_no_ideal():
    """Server 0 has the least GPU use but too many cores in use; were it counted, server 2 would be closer."""
    room = room_with([0.0, 0.95, 0.0, 0.0], [0.3, 0.3, 0.3, 0.3], [0.25, 0.45, 0.25, 0.25])
    assert chosen(room, [0, 0, 0]) == 1
    assert chosen(room, [1, 0, 0]) == 1


@pytest.mark.parametrize("kind", range(4))
def test_a_server_that_the_task_would_overload_is_no_candidate(kind):
    shares = np.full(4, 0.2)
    shares[kind] = 0.85
    room = room_with(shares, 0.8)
    room.gpu_load[:] = 0.5  # the servers decide, not their GPUs
    use = np.zeros(4)
    use[kind] = 0.06 * room.capacity[0, kind]
    assert chosen(room, [0, 0], use=use) == 1


def test_the_least_loaded_gpu_must_not_be_overloaded_either():
    room = room_with([0.5, 0, 0, 0], [0.6, 0, 0, 0])
    assert chosen(room, [0, 0], use=np.array([0.35, 0, 0, 0])) == 0
    assert chosen(room, [0, 0], use=np.array([0.45, 0, 0, 0])) == -1
    room.gpu_load[5], room.least[1] = 0.1, 5
    assert chosen(room, [0, 0], use=np.array([0.45, 0, 0, 0])) == 1
    room.gpu_load[:] = 0.95
    assert chosen(room, [0, 0], use=np.zeros(4)) == 0  # a parameter server


def test_an_idle_server_takes_all_that_it_has_room_for():
    assert [chosen(room_with(0.0), [0], use=np.array([1.0, cpu, 1.0, 10.0])) for cpu in (32.0, 33.0)] == [0, -1]


def test_movement_costs_the_share_of_a_minute_that_the_memory_takes():
    """45 GB at the 625 MB/s that are free at the busier end: 72 s; at 1,250 MB/s 36 s."""
    room, use = room_with(0.0, 0.5, 0.0), np.array([0.5, 1.0, 45.0, 10.0])
    assert movement(room, use, 0, 1) == 1.0
    assert movement(room, use, 0, 2) == pytest.approx(0.6)
    assert movement(room, use, 2, 2) == 0.0
    assert movement(room, use, -1, 1) == 0.0


def test_movement_is_weighed_against_use_and_counts_on_a_tenth_of_the_bandwidth():
    """0.6 GB at 125 MB/s: 4.8 s, 0.08 of a minute, less against server 0 than the 0.2 of bandwidth."""
    room = room_with([0, 0, 0, 0.3], [0.0, 0.0, 0.0, 0.5], [0, 0, 0, 1.0])
    assert movement(room, np.array([0.5, 1.0, 0.6, 1.0]), 2, 0) == pytest.approx(0.08)
    assert chosen(room, [0, 0, 0], use=np.array([0.5, 1.0, 0.6, 1.0]), origin=2) == 0
    # 37.5 GB at 875 MB/s: 0.71 of a minute, more than the 0.3 of bandwidth, unless its square counts a tenth.
    busy, use = room_with([0, 0, 0, 0.3], 0.0), np.array([0.5, 1.0, 37.5, 1.0])
    weights = [EVEN, np.array([0.1, 1.0, 1.0, 1.0, 1.0, 1.0])]
    assert [chosen(busy, [0, 0], use=use, origin=0, weights=each) for each in weights] == [0, 1]


def test_nearness_is_the_share_of_the_volume_with_each_server():
    """Of a chain of three the middle one exchanges as much with the first as with the last; the last is queued."""
    jobs = jobs_of(TaskJob(workers=3, chain=True, volume_mb=0.4))
    view = view_of(jobs, cluster_of(2, 1), gpu_of=[1, -1, -1])
    near = np.full(2, 9.0)
    nearness(room_of(view), wants_of(view), 1, near)
    assert near.tolist() == [0.0, 0.5]
    nearness(room_of(view), wants_of(view), 2, near)
    assert near.tolist() == [0.0, 0.0]
