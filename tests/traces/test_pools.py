import csv
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import PoolsError, TraceError
from jobcast.domain.hardware import PoolsTable, Quota
from jobcast.domain.jobs import Pool
from jobcast.traces.pools import RETRY_S, derive_pools, held_beyond, peak_demand, put_off, read_pools, write_pools
from jobcast.traces.readers import read_trace
from tests.shared import refused

DAY_S = 86_400.0


def test_quotas_in_force(written):
    rows = "pool,gpus,from\nb,4,\na,8,1970-01-02\na,2,\nc,1,172800\na,16,1970-01-03T08:00:00+08:00\n"
    table = read_pools(written("pools.csv", rows))
    assert table.at(0.0) == [Pool("a", 2), Pool("b", 4)]
    assert table.at(DAY_S - 1) == table.at(0.0)
    assert table.at(DAY_S) == [Pool("a", 8), Pool("b", 4)]
    assert table.at(2 * DAY_S) == [Pool("a", 16), Pool("b", 4), Pool("c", 1)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pool,gpus\na,1\na,2\n", "row 3, column pool: 'a' is given twice"),
        ("pool,gpus,from\na,1,60\na,2,1970-01-01T00:01Z\n", "row 3, column pool: 'a' is given twice"),
        ("pool,gpus\na,0\n", "row 2, column gpus: must be a whole number >= 1, got '0'"),
        ("pool,gpus,from\na,-1,60\n", "row 2, column gpus: must be a whole number >= 1, got '-1'"),
        ("pool,gpus,from,cells\na,0,60,1x2\n", "row 2, column cells: 1x2 are not the 0 GPUs of the pool"),
        ("pool,gpus\na,1.5\n", "row 2, column gpus: must be a whole number >= 1, got '1.5'"),
        ("pool,gpus\na,\n", "row 2, column gpus: must be a whole number >= 1, got ''"),
        ("pool,gpus\na\n", "row 2, column gpus: must be a whole number >= 1, got ''"),
        ("pool,gpus\n,1\n", "row 2, column pool: must not be empty"),
        ("pool,gpus\na,1,2\n", "row 2: more fields than the header has"),
        ("pool,gpus,from\na,1,never\n", "row 2, column from: must be a time, got 'never'"),
        ("pool,quota\na,1\n", "column gpus missing, found pool, quota"),
        ("pool,gpus\n", "no pools, only a header"),
        ("", "column pool and gpus missing, found none"),
    ],
)
def test_a_bad_row_is_named(written, text, message):
    path = written("pools.csv", text)
    assert refused(PoolsError, message, read_pools, path).startswith(str(path))


def test_a_row_of_0_from_a_date_on_ends_a_pool(tmp_path, written):
    path = written("pools.csv", "pool,gpus,from\na,8,\na,0,1970-01-02\na,4,1970-01-03\nb,2,\n")
    table = read_pools(path)
    there = [[pool.name for pool in table.at(day * DAY_S)] for day in range(3)]
    assert there == [["a", "b"], ["b"], ["a", "b"]]
    again = tmp_path / "again.csv"
    write_pools(table, again)
    assert read_pools(again) == table


def test_what_is_written_is_read_back(tmp_path):
    path = tmp_path / "pools.csv"
    write_pools([Pool("b, c", 2), Pool("a", 1)], path)
    assert path.read_text() == 'pool,gpus\na,1\n"b, c",2\n'
    dated = PoolsTable((Quota("a", 1), Quota("a", 2, 60.5), Quota("b", 3, DAY_S)))
    write_pools(dated, path)
    assert read_pools(path) == dated


def test_cells_of_quotas(tmp_path, written):
    table = read_pools(written("pools.csv", "pool,gpus,cells\na,12,3x4\nb,21,1x4+2x8+1x1\nc,7,\n"))
    assert table.cells_at(0.0) == {"a": (4, 4, 4), "b": (8, 8, 4, 1)}
    write_pools(table, tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_text() == "pool,gpus,cells\na,12,3x4\nb,21,2x8+1x4+1x1\nc,7,\n"
    assert read_pools(tmp_path / "again.csv") == table


def test_derived_quotas_by_hand(make_trace):
    # Pool a: (2 x 100 + 1 x 300) / 100 s / 0.8 = 6.25; pool b is as wide as its widest job.
    trace = make_trace(("a", 0, 100, 2), ("b", 50, 10, 8), ("a", 100, 300, 1))
    assert derive_pools(trace) == [Pool("a", 7), Pool("b", 8)]
    assert derive_pools(trace, load=0.5, span_s=50) == [Pool("a", 20), Pool("b", 8)]
    assert derive_pools(trace, load=1.0, span_s=100) == [Pool("a", 5), Pool("b", 8)]


def test_jobs_submitted_at_once_are_spread_to_the_last_end(make_trace):
    assert derive_pools(make_trace(("a", 5, 100, 1), ("a", 5, 50, 1)), load=1.0) == [Pool("a", 2)]


def test_jobs_without_gpus_or_a_run_time_ask_for_no_work(make_trace):
    trace = make_trace(("cpu", 0, 5, 0), ("a", 0, 4000, 2), ("a", 100, None, 8), ("b", 1000, None, 1))
    assert derive_pools(trace) == [Pool("a", 10), Pool("b", 1)]
    refused(TraceError, "made: no job asks for GPUs", derive_pools, make_trace(("cpu", 0, 5, 0)))
    assert derive_pools(make_trace(("a", 7, None, 3))) == [Pool("a", 3)]


@pytest.mark.parametrize(
    ("first", "last", "days", "file"),
    [
        ((2017, 11, 6), (2017, 11, 27), 21, "pools_nov06_nov26.csv"),
        ((2017, 10, 2), (2017, 11, 13), 42, "pools_oct02_nov12.csv"),
    ],
)
def test_philly_quotas_are_those_of_the_data(philly, first, last, days, file):
    trace = read_trace(philly / "philly_jobs.csv")
    window = trace.between(datetime(*first, tzinfo=UTC).timestamp(), datetime(*last, tzinfo=UTC).timestamp())
    derived = {pool.name: pool.quota for pool in derive_pools(window, span_s=days * DAY_S)}
    with open(philly / file) as rows:
        expected = {row["pool"]: int(row["gpus"]) for row in csv.DictReader(rows)}
    assert len(expected) == 9
    assert {name: derived[name] for name in expected} == expected
    assert {pool.name: pool.quota for pool in read_pools(philly / file).at(0.0)} == expected


@pytest.mark.parametrize(
    ("starts", "told"),
    [
        # four jobs of two GPUs side by side, then a quiet day
        ((0, 0, 0, 0), "jobs of 1 of 1 pools held more at once (a: 8, derived 2)"),
        # one after the other, each as the one before ends
        ((0, 100, 200, 300), ""),
    ],
)
def test_derived_quotas_that_the_traces_own_starts_outgrow_are_told(tmp_path, starts, told):
    rows = [f"{row},a,0,{start},{start + 100},100,2" for row, start in enumerate(starts)]
    header = "job_id,pool,submit_time,start_time,end_time,duration,gpus"
    (tmp_path / "jobs.csv").write_text(
        "\n".join([header, *rows, "8,a,86400,86400,86500,100,1", "9,a,86400,,,,1"]) + "\n"
    )
    trace = read_trace(tmp_path / "jobs.csv")
    pools = derive_pools(trace)
    assert pools == [Pool("a", 2)]
    clause = held_beyond(trace, pools)
    assert told in clause
    assert bool(clause) == bool(told)


Jobs = st.lists(st.tuples(st.integers(0, 5000), st.integers(1, 3000), st.integers(0, 8)), min_size=1, max_size=40)


@given(Jobs, st.integers(0, 10), st.integers(0, 100))
def test_demand_stays_within_the_room_and_nobody_comes_early(jobs, room, seed):
    submit_s, duration_s, gpus = (np.array(column) for column in zip(*jobs, strict=True))
    submit_s, duration_s = submit_s.astype(float), duration_s.astype(float)
    moved_s = put_off(submit_s, duration_s, gpus, room, np.random.default_rng(seed))
    assert (moved_s >= submit_s).all()
    assert peak_demand(moved_s, duration_s, gpus) <= max(room, gpus.max())
    if peak_demand(submit_s, duration_s, gpus) <= room:
        assert moved_s.tolist() == submit_s.tolist()


def test_who_finds_no_room_comes_back_after_a_quarter_of_an_hour():
    """Each of 4,000 pairs asks for one GPU at once; its second job comes back until the first has left, after 1 s."""
    waits_s = []
    for seed in range(4000):
        twice = put_off(np.zeros(2), np.ones(2), np.ones(2, dtype=int), 1, np.random.default_rng(seed))
        waits_s.append(twice[1])
    # who comes back within the second tries once more, which one in 900 does
    assert np.mean(waits_s) == pytest.approx(RETRY_S, rel=0.05)
