import numpy as np

from jobcast.traces.history import TraceHistory, pool_histories, rows_by_pool
from jobcast.traces.readers import read_trace
from jobcast.traces.table import Trace


def test_events_of_each_pool_in_their_orders(make_trace):
    trace = make_trace(("b", 0, 100, 2), ("a", 5, 10, 1), ("b", 10, 20, 4), ("b", 20, 5, 8))
    histories = pool_histories(trace)
    assert list(histories) == ["a", "b"]
    b = histories["b"]
    assert b.arrival_s.tolist() == [0.0, 10.0, 20.0]
    assert b.arrival_gpus.tolist() == [2.0, 4.0, 8.0]
    assert b.start_s.tolist() == [0.0, 10.0, 20.0]
    assert b.end_s.tolist() == [100.0, 30.0, 25.0]
    assert b.completion_s.tolist() == [25.0, 30.0, 100.0]
    assert b.completion_duration_s.tolist() == [5.0, 20.0, 100.0]
    assert histories["a"].completion_s.tolist() == [15.0]
    assert {column.dtype for column in (b.arrival_s, b.arrival_gpus, b.start_s, b.end_s)} == {np.dtype("float64")}


def test_jobs_that_waited_start_out_of_turn(csv_file):
    header = "job_id,pool,submit_time,start_time,end_time,duration,gpus\n"
    trace = read_trace(csv_file("1,p,0,50,60,9,1\n2,p,10,10,90,80,2\n", header=header))
    history = pool_histories(trace)["p"]
    assert history.arrival_s.tolist() == [0.0, 10.0]
    assert history.start_s.tolist() == [10.0, 50.0]
    assert history.end_s.tolist() == [90.0, 60.0]
    assert history.completion_s.tolist() == [60.0, 90.0]
    assert history.completion_duration_s.tolist() == [9.0, 80.0]


def test_rows_of_pools_cover_the_trace_once(make_trace):
    trace = make_trace(("b", 0, 1, 1), ("a", 0, 1, 1), ("b", 0, 1, 1))
    assert {name: rows.tolist() for name, rows in rows_by_pool(trace).items()} == {"a": [1], "b": [0, 2]}


def test_a_history_reads_columns_as_often_for_many_jobs_as_for_few(make_trace, monkeypatch):
    """Each look at starts makes them anew from the table: one a job took hours of a million jobs."""
    looks, starts = [], Trace.start_s.fget
    monkeypatch.setattr(Trace, "start_s", property(lambda trace: looks.append(1) or starts(trace)))

    def looked(count):
        looks.clear()
        history = TraceHistory(make_trace(*(("p", 10 * at, 5, 1) for at in range(count))), 1e6)
        assert len(history.started_since(0)) == len(history.finished_since(0)) == count
        return len(looks)

    assert looked(50) == looked(2)
