"""One simulation of jobs of tasks: a scenario replayed under a policy, its figures and its table."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from jobcast.domain.bad_answers import BadAnswers
from jobcast.domain.tasks import AccuracyForecast, TaskRule
from jobcast.pipelines.experiments.simulation import Simulated, timed
from jobcast.pipelines.experiments.sources import trust
from jobcast.pipelines.experiments.tasks.jobs import TaskScene
from jobcast.pipelines.experiments.tasks.learned_policies import Learned
from jobcast.schedulers.policies import TASKS, PolicySpec, split_settings
from jobcast.schedulers.registry import find_of_kind, make_rule
from jobcast.simulator.engine import Meter, replay
from jobcast.simulator.laws.tasks import Tasks


def simulate_tasks(
    scenario: TaskScene,
    policy: str,
    settings: Mapping[str, str],
    forecast: AccuracyForecast | None,
    *,
    seed: int = 0,
    learned: Learned | None = None,
    models: Mapping[str, int] | None = None,
    tally: BadAnswers | None = None,
    progress: Callable[[int, int], None] | None = None,
    meters: Sequence[Meter] = (),
) -> Simulated:
    """Replay a scenario. Raises ConfigError for a setting that is not known, DecisionError as the engine does.

    `told`: where it is counted what a forecast and a learned policy answered that could not be.
    """
    known, tally = learned or Learned(), BadAnswers() if tally is None else tally
    spec = find_of_kind(policy, TASKS)
    rule = _rule(spec, settings, known, tally)
    how = dict(split_settings(spec, settings).mechanism)
    # How often is the policy's; all other settings of the mechanism are the law's.
    rule.trigger = replace(rule.trigger, period_s=how.pop("round_s"))
    law = Tasks(scenario.workload, forecast, seed=seed, **how)
    log, took = timed(lambda: replay(scenario.workload.whole(), rule, progress=progress, law=law, meters=meters))
    used = {**(models or {}), **known.models}
    return Simulated(log, **took, models=used, overlap=known.overlap, trust=trust(tally, used))


def _rule(spec: PolicySpec, settings: Mapping[str, str], known: Learned, tally: BadAnswers) -> TaskRule:
    """A policy; a learned one is guarded by the rule whose place it takes, which takes its where there is none."""
    if known.networks is None and not known.missed:
        return cast(TaskRule, make_rule(spec.name, None, settings))
    from jobcast.schedulers.tasks.learned_priorities import Corrections
    from jobcast.schedulers.tasks.mlf_rl import GuardedPolicy
    from jobcast.schedulers.tasks.network import Networks

    # The rule takes those of the settings that it knows.
    instead = find_of_kind(spec.instead, TASKS)
    rule = make_rule(spec.instead, None, {name: settings[name] for name in settings if instead.decides_by(name)})
    if not isinstance(known.networks, Networks | Corrections):
        return cast(TaskRule, rule)
    return GuardedPolicy(make_rule(spec.name, known.networks, settings), rule, known.networks, tally)
