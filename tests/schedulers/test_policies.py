from types import SimpleNamespace

import pytest

from jobcast.domain.errors import ConfigError
from jobcast.schedulers import policies
from jobcast.schedulers.fcfs import Fcfs
from jobcast.schedulers.policies import POLICIES, PolicyFactory, make_policy, uses_forecasts
from jobcast.schedulers.round_policies import ROUND_POLICIES

FORECASTS = SimpleNamespace(horizons_min=(5, 60, 720), jobs=())
SIAS = ["themis_np", "hived", "sia", "sia_vc", "sia_risk", "sia_preempt", "milp"]
FLAT = ["fcfs", "ssf", "sjf", "gssf", "mmfs", *SIAS]
"""Policies over pools of whole jobs."""


def test_policies_go_by_their_papers_names():
    assert list(POLICIES)[: len(FLAT)] == FLAT
    for name in FLAT:
        assert make_policy(name, FORECASTS, {}).name == name
    assert [name for name in FLAT if not uses_forecasts(name)] == ["fcfs", "mmfs", "hived"]


def test_settings_come_as_text_or_as_values():
    assert make_policy("ssf", FORECASTS, {"backfill": "true"})._backfill is True
    assert make_policy("gssf", FORECASTS, {"backfill": False})._backfill is False
    assert make_policy("mmfs", None, {"strict": "1"})._strict is True
    assert make_policy("sia", FORECASTS, {"tick_s": "300"})._tick_s == 300.0


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("sja", {}, "unknown policy sja; known policies: fcfs, ssf, sjf, gssf, mmfs"),
        ("fcfs", {"backfill": "true"}, "policy fcfs: unknown setting backfill; known settings: none"),
        ("ssf", {"back": "true"}, "policy ssf: unknown setting back; known settings: backfill"),
        ("ssf", {"backfill": "maybe"}, "policy ssf: setting backfill must be true or false, got maybe"),
        ("sia", {"tick_s": "soon"}, "policy sia: setting tick_s must be a positive number of seconds, got soon"),
        ("sia", {"order": "best"}, "policy sia: setting order must be share or submission or shortest or narrow, got"),
        ("sia", {"windows_min": "5,x"}, "policy sia: setting windows_min must be minutes such as 5,60, got 5,x"),
        (
            "sia_preempt",
            {"preemptible_share": 2},
            "policy sia_preempt: setting preemptible_share must be a number from",
        ),
        ("sia", {"tick_s": 0}, "policy sia: setting tick_s must be a positive number of seconds, got 0"),
    ],
)
def test_mistakes_get_one_line_that_lists_what_is_known(name, settings, message):
    with pytest.raises(ConfigError) as caught:
        make_policy(name, FORECASTS, settings)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["sia_vc", "milp"])
def test_policies_that_need_every_job_take_the_oracle_alone(name):
    with pytest.raises(ConfigError, match=f"policy {name} needs .* future; pass --forecasts oracle"):
        make_policy(name, SimpleNamespace(horizons_min=(5, 60, 720)), {})


def test_settings_of_the_scenario_are_read_and_not_passed_on():
    factory = POLICIES["sia_preempt"]
    assert set(factory.known) == {"resume_s", "preemptible_share"}
    assert make_policy("sia_preempt", FORECASTS, {"preemptible_share": "0.5", "resume_s": "60"})._resume_s == 60.0


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
    assert list(POLICIES) == [*FLAT, *ROUND_POLICIES, "pollux", "mine", "plain"]
    assert len(POLICIES) == len(FLAT) + 3 + len(ROUND_POLICIES)
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
