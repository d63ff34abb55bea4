"""The registry of policies of energy and due dates."""

from jobcast.schedulers.energy.andreas import Andreas, AndreasSettings
from jobcast.schedulers.energy.baselines import QueuePolicy
from jobcast.schedulers.energy.exact import Exact, ExactSettings
from jobcast.schedulers.registry import make_rule


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


def test_what_stands_for_what_is_not_set():
    equation, thorough = (AndreasSettings(objective="equation_1", thorough=thorough) for thorough in (False, True))
    told = [(one.made, one.held) for one in (AndreasSettings(), equation, thorough)]
    assert told == [(30, 0.0), (1000, 0.1), (1000, 0.0)]
    own = AndreasSettings(max_iterations=7, hold=0.2)
    assert (own.made, own.held) == (7, 0.2)
