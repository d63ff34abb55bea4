"""The registry of policies of energy and due dates."""

import pytest

from jobcast.domain.errors import ConfigError
from jobcast.schedulers.energy.andreas import Andreas, AndreasSettings
from jobcast.schedulers.energy.baselines import QueuePolicy
from jobcast.schedulers.energy.exact import Exact, ExactSettings
from jobcast.schedulers.policies import ENERGY
from jobcast.schedulers.registry import find_of_kind, make_policy, make_rule, names_of


def test_all_are_there_by_name():
    assert names_of(ENERGY) == ("andreas", "energy_fifo", "edf", "ps", "exact")
    assert tuple(make_policy(name).name for name in names_of(ENERGY)) == names_of(ENERGY)


def test_without_settings_as_the_paper_has_it():
    made = make_rule("andreas")
    assert isinstance(made, Andreas)
    assert (made.settings.max_iterations, made.settings.rho) == (1000, 100.0)


def test_settings_are_read_from_text():
    given = {"max_iterations": "50", "rho": "10", "seed": "3", "draw": "0.5", "keep": "no", "hold": "0.25"}
    made = make_rule("andreas", None, given | {"caps": "no", "force_nodes": "true", "thorough": "true"})
    assert isinstance(made, Andreas)
    assert made.settings == AndreasSettings(
        max_iterations=50, rho=10.0, seed=3, draw=0.5, keep=False, hold=0.25, force_nodes=True, thorough=True
    )
    exact = make_rule("exact", None, {"time_limit_s": "5", "as_printed": "yes"})
    assert isinstance(exact, Exact)
    assert exact.settings == ExactSettings(time_limit_s=5.0, as_printed=True, force_nodes=True)
    assert not make_rule("exact", None, {"force_nodes": "false"}).settings.force_nodes
    strict = make_rule("edf", None, {"strict": "true"})
    assert isinstance(strict, QueuePolicy)
    assert strict.settings.strict


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("andreas", {"draws": "1"}, "setting draws: not known; did you mean draw"),
        ("andreas", {"draw": "2"}, "must be a probability from 0 to 1, got 2"),
        ("andreas", {"max_iterations": "0"}, "whole number >= 1"),
        ("ps", {"seed": "1"}, "setting seed: not known; known: .*strict"),
    ],
)
def test_wrong_settings(name, given, said):
    with pytest.raises(ConfigError, match=said):
        make_policy(name, None, given)


def test_unknown_policy():
    with pytest.raises(ConfigError, match="of pools, not of energy; choose from andreas, energy_fifo, edf, ps, exact"):
        find_of_kind("sjf", ENERGY)
