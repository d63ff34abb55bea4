"""How far runs in other processes are."""

from jobcast.pipelines.experiments.going import going


def test_parts_of_runs_that_are_not_over_count():
    calls = []
    with going(2, lambda *counts: calls.append(counts)) as told:
        step = told.of(1)
        step(1, 4)
        assert told.far() == (25, 200)
        step(4, 4)
        told.of(0)(1, 3)
        assert told.far() == (133, 200)
    assert calls[-1] == (133, 200)
    assert not told.path.exists()


def test_nobody_asks():
    with going(2, None) as told:
        assert told is None
