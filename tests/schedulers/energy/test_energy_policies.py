"""The registry of policies of energy and due dates."""

import pytest

from jobcast.domain.errors import ConfigError
from jobcast.schedulers.energy.andreas import Andreas, AndreasSettings
from jobcast.schedulers.energy.baselines import QueuePolicy
from jobcast.schedulers.energy.exact import Exact, ExactSettings
from jobcast.schedulers.energy.policies import ENERGY_POLICIES, find_energy_policy


def test_all_are_there_by_name():
    assert list(ENERGY_POLICIES) == ["andreas", "fifo", "edf", "ps", "exact"]
    assert [find_energy_policy(name)().name for name in ENERGY_POLICIES] == list(ENERGY_POLICIES)


def test_without_settings_as_the_paper_has_it():
    made = find_energy_policy("andreas")()
    assert isinstance(made, Andreas)
    assert (made.settings.max_iterations, made.settings.rho) == (1000, 100.0)


def test_settings_are_read_from_text():
    given = {"max_iterations": "50", "rho": "10", "seed": "3", "draw": "0.5", "keep": "no", "hold": "0.25"}
    made = find_energy_policy("andreas")(given | {"caps": "no", "force_nodes": "true", "thorough": "true"})
    assert isinstance(made, Andreas)
    assert made.settings == AndreasSettings(50, 10.0, 3, 0.5, False, 0.25, False, True, True)
    exact = find_energy_policy("exact")({"time_limit_s": "5", "as_printed": "yes"})
    assert isinstance(exact, Exact)
    assert exact.settings == ExactSettings(time_limit_s=5.0, as_printed=True, force_nodes=True)
    assert not find_energy_policy("exact")({"force_nodes": "false"}).settings.force_nodes
    strict = find_energy_policy("edf")({"strict": "true"})
    assert isinstance(strict, QueuePolicy)
    assert strict.settings.strict


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("andreas", {"draws": "1"}, "unknown setting draws"),
        ("andreas", {"draw": "2"}, "must be a probability from 0 to 1, got 2"),
        ("andreas", {"max_iterations": "0"}, "whole number >= 1"),
        ("ps", {"seed": "1"}, "known settings: strict"),
    ],
)
def test_wrong_settings(name, given, said):
    with pytest.raises(ConfigError, match=said):
        find_energy_policy(name)(given)


def test_unknown_policy():
    with pytest.raises(ConfigError, match="choose from andreas, fifo, edf, ps, exact"):
        find_energy_policy("sjf")
