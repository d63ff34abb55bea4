import pytest

from jobcast.domain.errors import ConfigError, TrainingError
from jobcast.traces.splits import Split, check_split, check_tests, check_training, split_by_share
from tests.shared import refused

DAY_S = 86_400.0


def days(make_trace, *at):
    return make_trace(*(("p", day * DAY_S, 1, 1) for day in at))


def test_the_split_lies_at_the_nearest_midnight(make_trace):
    trace = days(make_trace, 0.25, 1, 2, 3, 4, 9.75)
    # 0.25 + 0.7 x 9.5 = day 6.9; 0.25 + 0.4 x 9.5 = day 4.05
    assert split_by_share(trace, 0.7) == Split(0.25 * DAY_S, 7 * DAY_S, 9.75 * DAY_S + 1)
    assert split_by_share(trace, 0.4) == Split(0.25 * DAY_S, 4 * DAY_S, 9.75 * DAY_S + 1)


def test_every_job_is_in_one_part(make_trace):
    trace = days(make_trace, 0.1, 1, 2, 3, 3.5)
    split = split_by_share(trace, 0.5)
    parts = (
        trace.between(split.train_from_s, split.train_until_s),
        trace.between(split.train_until_s, split.test_until_s),
    )
    assert [len(part) for part in parts] == [2, 3]


@pytest.mark.parametrize("share", [0.0, 1.0, -1.0, float("nan")])
def test_a_share_out_of_range(make_trace, share):
    refused(ConfigError, r"train_share must be in \(0, 1\)", split_by_share, days(make_trace, 0, 5), share)


def test_too_short_to_train(make_trace):
    with pytest.raises(TrainingError, match=r"made: 12\.0 h to train on from .+ at least 24 h are needed; widen"):
        split_by_share(days(make_trace, 0.5, 1.2, 1.4), 0.6)
    with pytest.raises(TrainingError, match=r"made: 4\.8 h from first to last job, too short to split"):
        split_by_share(days(make_trace, 0.1, 0.3), 0.5)
    refused(TrainingError, "no jobs to train on", split_by_share, days(make_trace, 0, 5).between(10 * DAY_S, None), 0.5)


def test_nothing_to_test_on(make_trace):
    with pytest.raises(
        TrainingError, match=r"made: no jobs to test on from 1970-01-04T00:00:00Z until .+: train on less"
    ):
        split_by_share(days(make_trace, 0, 1, 2.9), 0.9)


def test_windows_of_ones_own(make_trace):
    trace = days(make_trace, 0, 1, 2, 3)
    check_training(trace, None, None)
    check_tests(trace, 3 * DAY_S, None)
    check_split(trace, Split(0.0, 2 * DAY_S, 4 * DAY_S))
    refused(TrainingError, "no jobs to train on from the start until 1969-12-31", check_training, trace, None, -1.0)
    with pytest.raises(TrainingError, match=r"0\.0 h to train on from 1970-01-04T00:00:00Z until the end"):
        check_training(trace, 3 * DAY_S, None)
