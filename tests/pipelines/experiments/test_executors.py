import time
import warnings

from joblib import delayed

from jobcast.pipelines.experiments.executors import results


def slept(seconds):
    time.sleep(seconds)
    return seconds


def test_whoever_stops_asking_for_results_is_not_warned_of_those_that_are_left():
    """Some are done and not asked for, some still run: joblib has a warning of each."""
    done = results([delayed(slept)(0.01 * (i % 2)) for i in range(12)], jobs=2, engine_name="local")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        next(done)
        time.sleep(0.2)
        done.close()
    assert [str(warning.message) for warning in heard] == []


def test_results_are_of_all_tasks():
    tasks = [delayed(slept)(seconds) for seconds in (0.02, 0.0, 0.01)]
    assert sorted(results(tasks, jobs=2, engine_name="local")) == [0.0, 0.01, 0.02]
