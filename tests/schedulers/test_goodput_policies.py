import pytest

from jobcast.domain.errors import ConfigError
from jobcast.schedulers.policies import split_settings
from jobcast.schedulers.pollux import Pollux
from jobcast.schedulers.registry import find_policy, make_policy
from tests.schedulers.scaling_views import Scalable, allocated

POLLUX = find_policy("pollux")


def test_it_is_a_policy_like_others():
    assert POLLUX.asks == ("goodput",)
    assert isinstance(make_policy("pollux"), Pollux)


def test_rounds_are_as_pollux_has_them_unless_set():
    def told(settings):
        own = split_settings(POLLUX, settings).own
        return own.round_s, own.restart_s

    assert told({}) == (60.0, 30.0)
    assert told({"round_s": "120", "restart_s": "0"}) == (120.0, 0.0)


def test_settings_reach_the_rule():
    # two GPUs more would gain little: with free restarts they are taken
    job = Scalable(60.0, 2, 1, (1.0, 2.0, 2.1))
    assert allocated(make_policy("pollux", None, {}), [job], 3) == [2]
    assert allocated(make_policy("pollux", None, {"restart_s": "0"}), [job], 3) == [3]
    assert make_policy("pollux", None, {"p": "-4"}).fitness([1.0, 0.5]) == pytest.approx((17 / 2) ** -0.25)


@pytest.mark.parametrize("text", ["1", "0", "-101", "one", "nan", "-inf"])
def test_exponents_that_are_none(text):
    with pytest.raises(ConfigError, match="must be a number from -100 to below 1 and not 0"):
        make_policy("pollux", None, {"p": text})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mechanism": "gavel"}, "policy pollux: setting mechanism: not known; known: p, restart_s, round_s"),
        ({"p": "1"}, "policy pollux: setting p must be a number"),
        ({"round_s": "0.001"}, "policy pollux: setting round_s must be at least 1 second, got 0.001"),
    ],
)
def test_settings_that_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        make_policy("pollux", None, settings)
