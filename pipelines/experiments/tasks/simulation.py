"""One simulation of jobs of tasks: a scenario replayed under a policy, its figures and its table.

Learned schedulers come from the registry; forecasts of a job's final accuracy from the truth, a registered model, a
draw, or nowhere.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

import numpy as np

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.bad_answers import CURVES, BadAnswers
from jobcast.domain.errors import ConfigError, OverlapError, RegistryError
from jobcast.domain.tasks import AccuracyForecast, TaskRule
from jobcast.pipelines.experiments.forecast_specs import ACCURACY_CURVE
from jobcast.pipelines.experiments.simulation import Simulated, timed
from jobcast.pipelines.experiments.sources import Ask, Believed, believed, count_missing
from jobcast.pipelines.experiments.tasks.jobs import TaskScene
from jobcast.pipelines.report.formatting import iso
from jobcast.schedulers.policies import TASKS, PolicySpec, split_settings
from jobcast.schedulers.registry import find_of_kind, find_policy, make_rule
from jobcast.simulator.engine import replay
from jobcast.simulator.laws.tasks import Tasks
from jobcast.traces.table import Trace

if TYPE_CHECKING:
    from jobcast.models.curves.accuracy_curve import AccuracyCurve


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """What a policy has learned, the version behind it, and whether that saw the window.

    Attributes
    ----------
    networks : None where it runs without
    missed : whether it does so because there was nothing that could be used
    """

    networks: object | None = None
    models: Mapping[str, int] = field(default_factory=dict)
    overlap: bool = False
    missed: bool = False


def learned_policy(ask: Ask, window: Trace, tally: BadAnswers | None = None) -> Learned:
    """What a policy has learned: the champion, or what is named of the registry, an alias or a pinned version.

    Where `degrade` says so a registry that does not have it, or is damaged, is counted in `tally`.

    Raises
    ------
    RegistryError
        The policy cannot run without, and none is registered.
    OverlapError
        It was trained on this trace, and on jobs of this window or later ones, and that is not allowed.
    """
    try:
        return _learned(ask, window)
    # Never degraded: it would hide that the answer is known.
    except OverlapError:
        raise
    except Exception as error:  # a registry may be damaged in any way: counted with its reason
        if not ask.degrade or tally is None:
            raise
        from jobcast.schedulers.tasks.mlf_rl import DECISIONS

        count_missing(tally, DECISIONS, error)
        return Learned(missed=True)


def _learned(ask: Ask, window: Trace) -> Learned:
    from jobcast.models.registry import open_registry
    from jobcast.pipelines.experiments.sources import loaded_version
    from jobcast.schedulers.tasks.learned_priorities import learned_from

    policy, spec = ask.policy, ask.source
    rule = find_policy(policy)
    # A policy that stands in for itself runs its heuristic until it has learned.
    ours, alone = rule.learned, rule.instead == policy
    # Another package's may be pinned in its place.
    name, _ = spec.pinned(ours) if ours else ("", "")
    if not name or (alone and spec.versions and name not in dict(spec.versions)):
        return Learned()  # whoever pins versions means these alone
    registry = open_registry(ask.home)
    if name not in {version.name for version in registry.list()}:
        if alone:
            return Learned()
        raise RegistryError(
            f"policy {policy}: no {name} is registered; train one: `jobcast train {name} --trace FILE --until TIME`, "
            "on jobs with --set tasks=FILE and curves=FILE or as `jobcast trace enrich --facts tasks` writes them"
        )
    version = registry.asked(*spec.pinned(ours))
    model = loaded_version(ask.home, version.name, version.version)
    # It runs the heuristic until a learned policy is better (MLFS, section 3.4), or one is named.
    if alone and not model.better_ and name not in dict(spec.versions):
        return Learned()
    overlap = version.trace_sha256 == window.source.sha256 and version.train_until_s > float(window.submit_s[0])
    if overlap and not ask.allow_overlap:
        raise OverlapError(
            f"{version.name} version {version.version} was trained on jobs of this trace until "
            f"{iso(version.train_until_s)}, which reaches into the window from {iso(float(window.submit_s[0]))}; "
            "choose another version or a later --from, or pass --allow-overlap"
        )
    return Learned(learned_from(model.arrays_), {version.name: version.version}, overlap)


def simulate_tasks(
    scenario: TaskScene,
    ask: Ask,
    forecast: AccuracyForecast | None,
    learned: Learned | None = None,
    tally: BadAnswers | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Simulated:
    """Replay a scenario. Raises ConfigError for a setting that is not known, DecisionError as the engine does.

    `tally`: where it is counted what a learned policy answered that could not be.
    """
    spec = find_of_kind(ask.policy, TASKS)
    rule = _rule(spec, ask.settings, learned or Learned(), BadAnswers() if tally is None else tally)
    how = dict(split_settings(spec, ask.settings).mechanism)
    # How often is the policy's; all other settings of the mechanism are the law's.
    rule.trigger = replace(rule.trigger, period_s=how.pop("round_s"))
    law = Tasks(scenario.workload, forecast, seed=ask.seed, **how)
    log, took = timed(lambda: replay(scenario.workload.whole(), rule, progress=progress, law=law, meters=ask.watching))
    return Simulated(log, **took)


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


RISING = 1
"""Accuracies grow."""
UPPER_Z = 1.6448536269514722
"""Standard deviations from the mean to the upper end of a 90 % interval."""
NO_INTERVAL = -1.0
"""In place of a standard deviation where an interval's lower end is above its mean."""


def accuracy_forecast(scenario: TaskScene, ask: Ask) -> Believed[AccuracyForecast]:
    """Forecasts of a source; where a registered model answers what cannot be, nothing is forecast of that job.

    Of the true metrics, oracle and noisy read the last value.

    Raises ConfigError for a source that tells nothing of accuracies, RegistryError for a model that is not there,
    OverlapError for one that has seen the window where that is not allowed.
    """
    spec, final = ask.source, last_values(scenario.workload.truth.metric)
    if spec.kind == "oracle":
        return Believed(lambda jobs, seen, at, epochs: (final[jobs], np.zeros(len(jobs))))
    if spec.kind == "conservative":
        return Believed()
    if spec.kind in ("random", "noisy"):
        return Believed(_drawn(final, 1.0 if spec.kind == "random" else spec.probability, ask.seed))
    if spec.kind == "registry":
        from jobcast.models.curves.accuracy_curve import guarded_accuracies

        def guarded(model: "AccuracyCurve", tally: BadAnswers) -> AccuracyForecast:
            return guarded_accuracies(by_model(model), tally, scenario.job_ids)

        return believed(ACCURACY_CURVE, CURVES, scenario, ask, guarded, lambda: None)
    raise ConfigError(
        f"--forecasts {spec.label}: forecasts regimes, not accuracies; choose oracle, registry, conservative, random "
        "or noisy:P"
    )


def last_values(metric: Floats) -> Floats:
    """(n,) the last value of each row that is one.

    >>> last_values(np.array([[0.1, 0.5, np.nan], [0.2, 0.3, 0.4]])).tolist()
    [0.5, 0.4]
    """
    # The first number from behind.
    last = metric.shape[1] - 1 - np.argmax(~np.isnan(metric[:, ::-1]), axis=1)
    return np.asarray(metric[np.arange(len(metric)), last])


def _drawn(final: Floats, probability: float, seed: int) -> AccuracyForecast:
    """The truth, but for a share of the jobs a value drawn between what they have reached and 1; the same each time."""
    rng = np.random.default_rng([seed, len(final)])
    # Drawn for all jobs at once: a job's answer does not depend on when it is asked.
    wrong, share = rng.random(len(final)) < probability, rng.random(len(final))

    def forecast(jobs: Ints, seen: Floats, at: Ints, epochs: Ints) -> tuple[Floats, Floats]:
        reached = last_values(seen)
        # Between what is seen and 1: a forecast below what was reached would be absurd.
        drawn = reached + share[jobs] * np.maximum(1.0 - reached, 0.0)
        return np.where(wrong[jobs], drawn, final[jobs]), np.zeros(len(jobs))

    return forecast


def by_model(model: "AccuracyCurve") -> AccuracyForecast:
    """Forecasts of a fitted model of training curves; its interval's upper side tells the standard deviation."""

    def forecast(jobs: Ints, seen: Floats, at: Ints, epochs: Ints) -> tuple[Floats, Floats]:
        result = model.forecast_arrays(seen, at, epochs, np.full(len(jobs), RISING))
        # From the upper side: the lower one is cut off by what was reached.
        spread = (result.final_high - result.final_mean) / UPPER_Z
        return result.final_mean, np.where(result.final_low > result.final_mean, NO_INTERVAL, spread)

    return forecast
