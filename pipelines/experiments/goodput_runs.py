"""Simulations of jobs that scale: a scenario under a goodput policy, and what becomes of batch sizes and accuracy."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jobcast.domain.bad_answers import GOODPUTS, BadAnswers
from jobcast.domain.errors import ConfigError
from jobcast.domain.forecasts import Question
from jobcast.models.predictors import ours_for
from jobcast.pipelines.experiments.rigid_jobs import RigidScenario
from jobcast.pipelines.experiments.scaling_jobs import CURVES, STEP_TIMES, Application, application
from jobcast.pipelines.experiments.sources import Ask, Believed, believed
from jobcast.pipelines.report.console import Step
from jobcast.schedulers.policies import split_settings
from jobcast.schedulers.registry import find_policy, make_rule
from jobcast.simulator.engine import Meter
from jobcast.simulator.laws.goodput import ScalableWork, Stretch, replay_goodput
from jobcast.simulator.log import RunLog
from jobcast.traces.goodput_tables import NoiseCurve

Curves = Mapping[int, NoiseCurve]


def replay_scaling(
    scenario: RigidScenario,
    policy: str,
    settings: Mapping[str, object],
    progress: Step | None,
    meters: Sequence[Meter],
    shown: Sequence[ScalableWork] | None,
) -> tuple[RunLog, dict[str, float]]:
    """What happened, and figures of what it did to batch sizes and accuracy; see `scaling_figures`.

    `shown`: works whose goodputs the policy is shown; None: the true ones.

    Raises ConfigError for a scenario of several pools or without tables of how its jobs scale.
    """
    scaling, pools = scenario.facts.scaling, scenario.workload.pools
    if scaling is None:
        raise ConfigError(
            f"policy {policy}: how jobs scale is not known; add --set {STEP_TIMES}=FILE --set {CURVES}=FILE"
        )
    if len(pools) > 1:
        raise ConfigError(f"policy {policy} shares one cluster out, got {len(pools)} pools; pass --gpus N")
    rule, own = make_rule(policy, None, settings), split_settings(find_policy(policy), settings).own
    log, ran = replay_goodput(scaling.works, rule, pools[0], own.restart_s, progress, meters, shown)
    return replace(log, policy=policy), scaling_figures(scaling.applications, scaling.tables.curves, log, ran)


def scaling_figures(
    apps: Sequence[Application], curves: Mapping[str, Curves], log: RunLog, stretches: Sequence[Sequence[Stretch]]
) -> dict[str, float]:
    """What a replay did to GPUs, batch sizes and accuracy. Shockwave, sections 2.3 and 8.7.

    `gpu_time_asked_to_held`: GPU time alone on the GPUs asked for / held. `gpu_changes_mean`: changes of GPUs a job.
    `batch_growth_mean`, `batch_growth_max`: batch size / the initial one, the mean over a job's running time averaged
    over jobs, and the largest. `efficiency_mean`: progress a sample, relative to the smallest batch size measured.
    `metric_change_mean_pct`, `metric_change_worst_pct`: see `metric_change_pct`.
    """
    growth, most, efficiency, change = [], [], [], []
    for app, ran in zip(apps, stretches, strict=True):
        time_s = np.array([stretch.end_s - stretch.begin_s for stretch in ran])
        size = np.array([stretch.batch_size for stretch in ran]) / app.limits.initial
        # What each stretch could have done at its throughput: efficiency is the work over that.
        samples = sum(
            seconds * app.samples_s(stretch.gpus, stretch.batch_size)
            for seconds, stretch in zip(time_s.tolist(), ran, strict=True)
        )
        # Means over time and not over stretches, of which there are more where much changes.
        growth.append(float(time_s @ size / time_s.sum()))
        most.append(float(size.max()))
        efficiency.append(sum(stretch.work for stretch in ran) / samples)
        change.append(metric_change_pct(curves[app.name], app, ran))
    return {
        "gpu_time_asked_to_held": float(log.gpus @ log.duration_s / log.spans.gpu_s.sum()),
        "gpu_changes_mean": float(log.preemptions.mean()),
        "batch_growth_mean": float(np.mean(growth)),
        "batch_growth_max": max(most),
        "efficiency_mean": float(np.mean(efficiency)),
        "metric_change_mean_pct": float(np.mean(change)),
        "metric_change_worst_pct": min(change),
    }


def metric_change_pct(curves: Curves, app: Application, ran: Sequence[Stretch]) -> float:
    """How much better the validation metric ends than at the initial batch size throughout, % of that; below 0, worse.

    An estimate: each share of the work is taken to end at the metric measured, after as much progress, at its own batch
    size (between measured ones, by its logarithm). Whether more is better is read off the initial size's curve. NaN
    where that ends at 0.
    """
    # Curves count progress in units of so many samples.
    until = app.work.phases[-1].until / app.limits.unit_size
    sizes = sorted(curves)
    ends = np.array([np.interp(until, curves[size].progress, curves[size].metric) for size in sizes])
    begin, initial = curves[app.limits.initial].metric, float(ends[sizes.index(app.limits.initial)])
    if initial == 0:
        return float("nan")
    work = np.array([stretch.work for stretch in ran])
    at = np.interp(np.log2([stretch.batch_size for stretch in ran]), np.log2(sizes), ends)
    # A perplexity falls as it gets better: the initial curve tells which way is up.
    better = float(np.sign(begin[-1] - begin[0])) or 1.0
    return 100.0 * better * float(work @ at / work.sum() - initial) / abs(initial)


def shown_goodputs(scenario: RigidScenario, ask: Ask) -> Believed[Sequence[ScalableWork]]:
    """(n_jobs,) works with goodputs as a registered model has them; see `sources.believed`.

    It knows how fast steps are; batch sizes, and the noise that says how much a step is worth, are the jobs' own.
    """
    scaling, spec = scenario.facts.scaling, ask.source
    # Jobs that do not scale are refused by the replay, in its own words.
    if spec.kind == "oracle" or scaling is None:
        return Believed()
    if spec.kind != "registry":
        raise ConfigError(
            f"--forecasts {spec.label}: goodput is as measured (oracle), or as a version has it (registry)"
        )
    tables = scaling.tables

    def answer(model: Any, tally: BadAnswers) -> Sequence[ScalableWork]:
        tally.checked(GOODPUTS, len(scaling.works))
        made: dict[int, Application] = {}
        for app in scaling.applications:
            # Jobs of one application share the object: each is fitted once.
            if id(app) not in made:
                most, batch_size = len(app.work.phases[0].goodput), app.limits.initial
                fitted: dict[str, Any] = {"gpus_per_node": app.gpus_per_node, "fitted": model.throughput(app.name)}
                made[id(app)] = application(app.name, tables, most, batch_size=batch_size, **fitted)
        return [
            _showing(work, [phase.goodput for phase in made[id(app)].work.phases])
            for work, app in zip(scaling.works, scaling.applications, strict=True)
        ]

    def flat() -> Sequence[ScalableWork]:
        # The same goodput on any number of GPUs: nobody gains by getting more.
        return [_showing(work, [(1.0,) * len(one.goodput) for one in work.phases]) for work in scaling.works]

    return believed(ours_for(Question.GOODPUT), GOODPUTS, scenario, ask, answer, flat)


def _showing(work: ScalableWork, goodputs: Sequence[tuple[float, ...]]) -> ScalableWork:
    """A work with other goodputs; its phases may be the first of more."""
    phases = work.phases
    # Not strict: a job may be told of more phases than its epochs reach.
    return replace(
        work, phases=tuple(replace(one, goodput=described) for one, described in zip(phases, goodputs, strict=False))
    )
