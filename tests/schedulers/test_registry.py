"""Policies of all kinds under one name each: names, settings, what is refused in one line, plug-ins."""

import inspect
from pkgutil import resolve_name
from types import SimpleNamespace

import pytest

from jobcast.domain.errors import ConfigError
from jobcast.domain.optstop import OptStop
from jobcast.domain.settings import Settings
from jobcast.schedulers import registry
from jobcast.schedulers.policies import ENERGY, KINDS, POOLS, ROUNDS, PolicyFactory, PolicySpec, split_settings
from jobcast.schedulers.pool_rules import Fcfs
from jobcast.schedulers.registry import (
    BUILT_IN,
    POLICIES,
    SHORT,
    find_of_kind,
    find_policy,
    make_policy,
    resolve_policy,
)
from tests.shared import refused

FORECASTS = SimpleNamespace(horizons_min=(5, 60, 720), jobs=())
SIAS = ["themis_np", "hived", "sia", "sia_vc", "sia_risk", "sia_plan", "sia_preempt", "milp"]
RUN = ["easy", "easy_forecast", "conservative_backfill", "as_recorded"]
FLAT = ["fcfs", "ssf", "sjf", "gssf", "mmfs", "karma", *SIAS, *RUN]
"""Policies over pools of whole jobs."""


def test_policies_go_by_their_papers_names():
    assert list(POLICIES)[: len(FLAT)] == FLAT
    for name in FLAT:
        assert make_policy(name, FORECASTS, {}).name == name
    silent = ["fcfs", "mmfs", "karma", "hived", "easy", "conservative_backfill"]
    assert [name for name in FLAT if not find_policy(name).asks] == silent


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("sja", {}, "unknown policy sja; did you mean sjf"),
        ("zzz", {}, "unknown policy zzz; known policies: fcfs, ssf, sjf, gssf, mmfs"),
        ("FCFS", {}, "unknown policy FCFS; did you mean fcfs"),
        ("sia mmfs", {}, "unknown policy sia mmfs; write commas between policies: sia,mmfs"),
        ("fifo", {}, "unknown policy fifo: several papers have one; did you mean elastic_fifo, energy_fifo or fcfs?"),
        ("hived", {"backfill": "true"}, "policy hived: setting backfill: not known; known: none"),
        ("ssf", {"back": "true"}, "policy ssf: setting back: not known; did you mean backfill? known: backfill"),
        ("sia", {"slak": ".1"}, "policy sia: setting slak: not known; did you mean slack? known: adapt, backfill"),
        ("sia", {"throughput": "t"}, "policy sia: setting throughput: not known; did you mean throughputs? known:"),
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
    assert refused(ConfigError, "", make_policy, name, FORECASTS, settings).startswith(message)


@pytest.mark.parametrize("name", ["sia_vc", "milp"])
def test_policies_that_need_every_job_take_the_oracle_alone(name):
    with pytest.raises(ConfigError, match=f"policy {name} needs .* future; pass --forecasts oracle"):
        make_policy(name, SimpleNamespace(horizons_min=(5, 60, 720)), {})


def test_settings_of_the_scenario_are_read_and_not_passed_on():
    own = split_settings(find_policy("sia_preempt"), {"preemptible_share": "0.5", "resume_s": "60"}).own
    assert own.given() == {"preemptible_share": 0.5, "resume_s": 60.0}
    assert make_policy("sia_preempt", FORECASTS, {"preemptible_share": "0.5", "resume_s": "60"})._resume_s == 60.0


def test_a_policy_that_needs_forecasts_says_so():
    refused(ConfigError, "policy sia needs forecasts", make_policy, "sia", None, {})


MILD = PolicySpec(name="theirs", kind=ENERGY, make=lambda given, own: Strict(own), summary="waits", settings=Settings)


class Strict:
    def __init__(self, own):
        self.own = own

    def decide(self, view):
        return None


@pytest.fixture
def installed(monkeypatch):
    loads = []
    factory = PolicyFactory(Fcfs, uses_forecasts=False)

    made = {"mine": factory, "plain": lambda forecasts, settings: Fcfs(), "fcfs": None, "mild": MILD}
    points = {
        name: SimpleNamespace(name=name, load=lambda value=value: loads.append(1) or value)
        for name, value in made.items()
    }
    monkeypatch.setattr(registry, "_installed", lambda: points)
    return loads


def test_installed_policies_are_found_by_name_and_loaded_when_used(installed):
    assert list(POLICIES) == [*BUILT_IN, "mild", "mine", "plain"]
    assert len(POLICIES) == len(BUILT_IN) + 3
    assert "mine" in POLICIES
    assert installed == []
    assert isinstance(make_policy("mine", None, {}), Fcfs)
    assert installed == [1]
    assert not find_policy("mine").asks
    assert isinstance(make_policy("plain", FORECASTS, {}), Fcfs)
    assert find_policy("plain").asks


def test_an_installed_policy_cannot_replace_ours(installed):
    assert isinstance(make_policy("fcfs", None, {}), Fcfs)
    assert installed == []


def test_an_installed_policy_may_be_of_any_kind(installed):
    assert (find_policy("mild").kind, find_policy("mild").name) == (ENERGY, "mild")
    assert isinstance(make_policy("mild"), Strict)
    with pytest.raises(ConfigError, match="policy mild: setting slack: not known; known: on_events, period_s"):
        make_policy("mild", None, {"slack": "1"})
    assert split_settings(find_policy("mild"), {"period_s": "60"}).mechanism.period_s == 60.0


def test_a_plugins_readers_check_its_settings(monkeypatch):
    factory = PolicyFactory(lambda keep=1.0: SimpleNamespace(keep=keep, **PARTS), {"keep": float}, uses_forecasts=False)
    monkeypatch.setattr(registry, "_installed", lambda: {"hers": SimpleNamespace(load=lambda: factory, name="hers")})
    assert make_policy("hers", None, {"keep": "0.2"}).keep == 0.2
    with pytest.raises(ConfigError, match="policy hers: setting kep: not known; did you mean keep"):
        make_policy("hers", None, {"kep": "0.2"})


PARTS = {"decide": lambda *given: None}


def test_names_are_unique_and_specs_complete():
    assert len(BUILT_IN) == 53
    for name, spec in BUILT_IN.items():
        assert (spec.name, spec.kind in KINDS, bool(spec.summary)) == (name, True, True)
        assert spec.instead in ("", *BUILT_IN)
        parts = [set(model.model_fields) for model in spec.parts().values()]
        assert sum(map(len, parts)) == len(set().union(*parts)), f"{name}: a setting belongs to two"


@pytest.mark.parametrize(
    ("name", "where", "found"),
    [
        ("fifo", {"elastic": True}, "elastic_fifo"),
        ("las", {"elastic": True}, "elastic_las"),
        ("themis", {"elastic": True}, "elastic_themis"),
        ("fair", {"elastic": True}, "elastic_fair"),
        ("fifo", {"profiles": True}, "energy_fifo"),
        ("fifo", {"elastic": True, "profiles": True}, "energy_fifo"),
    ],
)
def test_short_names_are_taken_for_one_and_it_is_said(name, where, found):
    spec, note = resolve_policy(name, **where)
    assert spec.name == found
    assert note.startswith(f"policy {name}: taken for {found}, as ")


def test_other_names_stand_for_themselves():
    assert resolve_policy("las") == (BUILT_IN["las"], None)
    assert resolve_policy("sia", elastic=True, profiles=True) == (BUILT_IN["sia"], None)
    for name in set(SHORT) - {"las"}:
        refused(ConfigError, f"unknown policy {name}", resolve_policy, name)


def test_a_policy_of_another_kind_is_refused_with_those_that_there_are():
    with pytest.raises(
        ConfigError, match=r"^policy pcs is of elastic, not of pools or rounds; choose from fcfs, .*las$"
    ):
        find_of_kind("pcs", POOLS, ROUNDS)


CLASSES = {
    # Those that are left out read their settings themselves.
    "ssf": "pool_rules:ShortestServiceFirst", "mmfs": "pool_rules:MaxMinFair", "themis_np": "themis_np:ThemisNp",
    "karma": "pool_rules:Karma",
    "ossp": "ossp:OpenShop", "allox": "round_rules:AlloX", "themis_filter": "round_rules:ThemisFilter",
    "gavel": "gavel:Gavel", "mst": "round_rules:MaxSumThroughput", "gandiva_fair": "round_rules:GandivaFair",
    "srpt": "round_rules:ShortestRemaining", "pollux": "pollux:Pollux",
    "longest_then_srpt": "round_rules:LongestThenSrpt", "sia_preempt": "sia_preempt:SiaPreempt",
    "easy": "backfill:Easy", "easy_forecast": "backfill:EasyForecast",
    "conservative_backfill": "backfill:Conservative",
}  # fmt: skip


@pytest.mark.parametrize("name", CLASSES)
def test_defaults_of_settings_are_those_of_the_class(name):
    told = inspect.signature(resolve_name(f"jobcast.schedulers.{CLASSES[name]}").__init__).parameters
    own = split_settings(find_policy(name)).own
    shared = {key: value.default for key, value in told.items() if key in type(own).model_fields}
    assert shared == {key: getattr(own, key) for key in shared}
    assert len(shared) >= len(told) - 2  # all but itself and what it is given


def test_defaults_of_mechanisms_are_those_of_the_engines():
    from jobcast.domain.tasks import TaskRule
    from jobcast.schedulers.energy.whole_schedule import WholeSchedule
    from jobcast.schedulers.rounds import RESTART_S, ROUND_S
    from jobcast.simulator.laws.epochs import Epochs
    from jobcast.simulator.laws.tasks import Tasks

    rounds = split_settings(find_policy("las")).mechanism
    assert (rounds.round_s, rounds.restart_s) == (ROUND_S, RESTART_S)
    for name, engines in (("mlfs", (Tasks,)), ("edf", (WholeSchedule, Epochs))):
        told = {key: one for engine in engines for key, one in inspect.signature(engine).parameters.items()}
        how = dict(split_settings(find_policy(name)).mechanism)
        assert how.pop("round_s", 60.0) == TaskRule.trigger.period_s
        # What an engine must be told has no second default.
        assert how == {key: how[key] if told[key].default is told[key].empty else told[key].default for key in how}


def test_defaults_of_mlf_c_are_those_of_optstop():
    own = make_policy("mlf_c").settings
    assert OptStop() == OptStop(confidence=own.confidence, tolerance=own.tolerance, give_up=own.give_up)
