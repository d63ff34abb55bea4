from types import SimpleNamespace

import pytest

from jobcast.domain.errors import ConfigError
from jobcast.schedulers import policies
from jobcast.schedulers.fcfs import Fcfs
from jobcast.schedulers.policies import POLICIES, PolicyFactory, make_policy, uses_forecasts
from jobcast.schedulers.round_policies import ROUND_POLICIES

FORECASTS = SimpleNamespace(horizons_min=(5, 60, 720))


def test_policies_go_by_their_papers_names():
    assert list(POLICIES)[:5] == ["fcfs", "ssf", "gssf", "mmfs", "sia"]
    for name in list(POLICIES)[:5]:
        assert make_policy(name, FORECASTS, {}).name == name
    assert [name for name in list(POLICIES)[:5] if uses_forecasts(name)] == ["ssf", "gssf", "sia"]


def test_settings_come_as_text_or_as_values():
    assert make_policy("ssf", FORECASTS, {"backfill": "true"})._backfill is True
    assert make_policy("gssf", FORECASTS, {"backfill": False})._backfill is False
    assert make_policy("mmfs", None, {"strict": "1"})._strict is True
    assert make_policy("sia", FORECASTS, {"tick_s": "300"})._tick_s == 300.0


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("sja", {}, "unknown policy sja; known policies: fcfs, ssf, gssf, mmfs, sia"),
        ("fcfs", {"backfill": "true"}, "policy fcfs: unknown setting backfill; known settings: none"),
        ("ssf", {"back": "true"}, "policy ssf: unknown setting back; known settings: backfill"),
        ("ssf", {"backfill": "maybe"}, "policy ssf: setting backfill must be true or false, got maybe"),
        ("sia", {"tick_s": "soon"}, "policy sia: setting tick_s must be a positive number of seconds, got soon"),
        ("sia", {"tick_s": 0}, "policy sia: setting tick_s must be a positive number of seconds, got 0"),
    ],
)
def test_mistakes_get_one_line_that_lists_what_is_known(name, settings, message):
    with pytest.raises(ConfigError) as caught:
        make_policy(name, FORECASTS, settings)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_a_policy_that_needs_forecasts_says_so():
    with pytest.raises(ConfigError, match="policy sia needs forecasts"):
        make_policy("sia", None, {})


@pytest.fixture
def installed(monkeypatch):
    loads = []
    factory = PolicyFactory(Fcfs, uses_forecasts=False)

    def point(value):
        return SimpleNamespace(load=lambda: loads.append(1) or value)

    points = {"mine": point(factory), "plain": point(lambda forecasts, settings: Fcfs()), "fcfs": point(None)}
    monkeypatch.setattr(policies, "_installed", lambda: points)
    return loads


def test_installed_policies_are_found_by_name_and_loaded_when_used(installed):
    assert list(POLICIES) == ["fcfs", "ssf", "gssf", "mmfs", "sia", *ROUND_POLICIES, "pollux", "mine", "plain"]
    assert len(POLICIES) == 8 + len(ROUND_POLICIES)
    assert "mine" in POLICIES
    assert installed == []
    assert isinstance(make_policy("mine", None, {}), Fcfs)
    assert installed == [1]
    assert not uses_forecasts("mine")
    assert isinstance(make_policy("plain", FORECASTS, {}), Fcfs)
    assert uses_forecasts("plain")


def test_an_installed_policy_cannot_replace_ours(installed):
    assert isinstance(make_policy("fcfs", None, {}), Fcfs)
    assert installed == []
