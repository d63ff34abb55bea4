"""The one door to whatever engine: a policy replayed on an experiment leaves a log, whatever its kind."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.bad_answers import BadAnswers
from jobcast.domain.errors import ConfigError, OverlapError, RegistryError
from jobcast.domain.forecasts import Question
from jobcast.domain.jobs import Job
from jobcast.domain.law import GOODPUT as GOODPUT_LAW
from jobcast.domain.law import RUNTIME
from jobcast.live.completion_forecasts import RunTimeDraws
from jobcast.models.predictors import answers_of, ours_for
from jobcast.pipelines.experiments.completion_meters import AtSubmission
from jobcast.pipelines.experiments.elastic.simulation import believed_sizes, placing_notes, simulate_elastic, with_sizes
from jobcast.pipelines.experiments.energy.simulation import believed_times, simulate_energy
from jobcast.pipelines.experiments.experiment import Experiment
from jobcast.pipelines.experiments.forecast_recording import (
    Asked,
    JobAnswers,
    Recording,
    epoch_time_columns,
    forecast_columns,
    keep_epoch_times,
    keep_sizes,
    keeping_accuracies,
)
from jobcast.pipelines.experiments.forecast_specs import ORACLE, REGIME_KINDS, REGISTRY, RESTATEMENT, ForecastSpec
from jobcast.pipelines.experiments.rounds import has_training
from jobcast.pipelines.experiments.scenarios import Scenario
from jobcast.pipelines.experiments.seen_data import seen_by
from jobcast.pipelines.experiments.simulation import Simulated, needs_run_times, simulate, timed
from jobcast.pipelines.experiments.sources import Ask, Believed, Registered, earlier_jobs, registered
from jobcast.pipelines.experiments.tasks.simulation import (
    accuracy_forecast,
    last_values,
    learned_policy,
    simulate_tasks,
)
from jobcast.pipelines.experiments.worlds import World, check_living
from jobcast.pipelines.report.console import Step
from jobcast.schedulers import policies as kinds
from jobcast.schedulers.elastic.whole_widths import WholeWidths
from jobcast.schedulers.policies import PolicySpec
from jobcast.schedulers.registry import find_policy, make_rule
from jobcast.simulator.elastic.run import alone_s

FUTURES = 20
"""Drawn of each job at its submission, where a version of completion times makes intervals."""
COMPLETIONS = "completions"
"""As what it is counted that there is no such version."""


def run(experiment: Experiment, ask: Ask, progress: Step | None = None) -> Simulated:
    """Replay an experiment under a policy. Its log names the law that jobs ran under.

    Raises ConfigError for an unknown policy or setting, a source that cannot tell what it asks, and facts that are
    missing; TraceError for jobs that cannot run; RegistryError and OverlapError for models that cannot answer.
    """
    rule = find_policy(ask.policy)
    # Before jobs are made: a policy that cannot live in the law has no scenario either.
    check_living(experiment, rule)
    spec = default_forecasts(experiment, rule) if ask.spec is None else ask.spec
    learned = _learned_completions(experiment, rule, ask, spec) if ask.predict else None
    if learned is None:
        forecast = AtSubmission()
    else:
        earlier = earlier_jobs(experiment.scenario(rule.kind, rule.scope))
        draws = RunTimeDraws(earlier, FUTURES, ask.seed, learned.model)
        forecast = AtSubmission(draws=draws, tracker=learned.model.tracker())
    # The compiled twin forecasts by itself, without meters.
    twin = rule.kind == kinds.ELASTIC and experiment.world is None
    watching = (*ask.watching, forecast) if ask.predict and not twin else ask.watching
    # Its plan is the future: a copy would only repeat it.
    if watching and kinds.FUTURE in rule.asks:
        raise ConfigError(f"policy {rule.name}: plans with each job's future, so that nothing is left to forecast")
    asked = bool(rule.asks) or (
        rule.kind in (kinds.POOLS, kinds.ROUNDS) and needs_run_times(watching, experiment.world)
    )
    try:
        made = _RUNS[rule.kind](experiment, rule, replace(ask, spec=spec, watching=watching), progress)
    # Whoever named no source did not ask for a registry: the way out is told.
    except (RegistryError, OverlapError) as error:
        if ask.spec is not None:
            raise
        raise type(error)(
            f"{error}; or name another source: --forecasts oracle reads the future, conservative asks nobody"
        ) from error
    scenario = experiment.scenario(rule.kind, rule.scope)
    notes = (*made.notes, *forecast.notes())
    if learned is not None:
        made = replace(made, models={**made.models, learned.version.name: learned.version.version})
    return replace(
        made,
        log=replace(made.log, columns={**made.log.columns, **_recorded(scenario)}),
        forecasts=spec.label if asked else None,
        future=asked and spec.future,
        jobs=scenario.listed,
        notes=notes,
    )


def _recorded(scenario: Scenario[Any, Any]) -> dict[str, Floats]:
    """Starts in the trace as a column of a log, where it tells any: seconds from the epoch, NaN of jobs without."""
    known_s = scenario.trace.recorded_start_s
    if np.isnan(known_s).all():
        return {}
    start_s = dict(zip(scenario.trace.jobs["job_id"], known_s.tolist(), strict=True))
    return {"recorded_start_s": np.array([start_s.get(job_id, np.nan) for job_id in scenario.job_ids])}


def _learned_completions(experiment: Experiment, rule: PolicySpec, ask: Ask, spec: ForecastSpec) -> Registered | None:
    """The version of completion times that is pinned, None where none is.

    Raises ConfigError where jobs declare their work, OverlapError for a version that has seen the window.
    """
    if Question.COMPLETIONS not in {answers_of(name) for name, _ in spec.versions}:
        return None
    if not needs_run_times((AtSubmission(),), experiment.world) or rule.kind not in (kinds.POOLS, kinds.ROUNDS):
        raise ConfigError(
            f"--forecasts {spec.label}: under {rule.name} jobs declare their work, of which nothing is drawn; leave "
            "the version of completion times out, or ask `jobcast predict completion-time`"
        )
    found = registered(ours_for(Question.COMPLETIONS), spec, ask.home, BadAnswers(), COMPLETIONS)
    assert found is not None
    seen_by(found.version, experiment.scenario(rule.kind, rule.scope).trace, ask.allow_overlap)
    return found


PREDICTORS_OF: Mapping[str, str] = {
    kinds.ARRIVALS: "will-jobs-arrive",
    kinds.LOADS: "new-load",
    kinds.DURATIONS: "job-duration",
    kinds.REGIMES: "regime",
    kinds.ACCURACIES: "accuracy-curve",
    kinds.TIMES: "epoch-time",
    kinds.SIZES: "job-size",
    kinds.GOODPUTS: "goodput",
}
"""What a policy asks of forecasts -> the registered predictor that answers."""
ANSWERED_BY: Mapping[str, tuple[str, ...]] = {
    kinds.TASKS: ("oracle", "registry", "conservative", "random", "noisy"),
    kinds.ENERGY: ("oracle", "registry", "conservative", "noisy"),
    kinds.ELASTIC: ("oracle", "registry"),
    kinds.GOODPUT: ("oracle", "registry"),
}
"""Kinds of sources that tell what policies of a kind ask."""
TOLD_RESTARTS = (kinds.ROUNDS, kinds.GOODPUT)
"""Kinds of policies over whole jobs that count on what a start costs."""
DECLARED = (kinds.ELASTIC, kinds.GOODPUT)
"""Kinds whose jobs declare what policies ask: a registered model answers in their place only where it is named."""


def answers(spec: ForecastSpec, rule: PolicySpec, training: bool = False) -> bool:
    """Whether a source tells what a policy asks; where it pins versions, whether any is of a predictor that is asked.

    `training`: whether jobs report epochs, so that policies of rounds ask for regimes.
    """
    if not rule.asks:
        return True
    # Pins of other predictors alone: nothing of the source would be asked.
    if spec.versions and not pinned(spec, rule).versions:
        return False
    # No model forecasts every single job.
    if kinds.FUTURE in rule.asks:
        return spec.kind == "oracle"
    # A bare `registry` means what schedulers ask by default; jobs that declare are not asked.
    if rule.kind in DECLARED and spec.kind == "registry" and not spec.versions:
        return False
    if rule.kind in ANSWERED_BY:
        return spec.kind in ANSWERED_BY[rule.kind]
    if rule.kind == kinds.ROUNDS and training:
        return spec.kind in ("oracle", "registry", *REGIME_KINDS)
    return spec.kind not in REGIME_KINDS


def default_forecasts(experiment: Experiment, rule: PolicySpec) -> ForecastSpec:
    """Where forecasts come from that nobody named: what jobs declare, batch sizes by Shockwave's rule, else models.

    Recorded starts are read off the trace.
    """
    if rule.kind in DECLARED or kinds.STARTS in rule.needs:
        return ORACLE
    return RESTATEMENT if rule.kind == kinds.ROUNDS and has_training(experiment.scenario(kinds.ROUNDS)) else REGISTRY


def sources_for(experiment: Experiment, rule: PolicySpec, asked: Sequence[ForecastSpec]) -> list[ForecastSpec]:
    """Those of the sources that were asked for that tell what a policy asks.

    Where none does, its default: only if nothing was asked for or it needs no model, else there is none.
    """
    default = default_forecasts(experiment, rule)
    found = [pinned(spec, rule) for spec in asked if answers(spec, rule, training=default == RESTATEMENT)]
    # Pins that a policy does not ask fall away, so that two sources may become one.
    return list(dict.fromkeys(found)) or ([default] if not asked or default != REGISTRY else [])


def pinned(spec: ForecastSpec, rule: PolicySpec) -> ForecastSpec:
    """A source with those pins alone that are of predictors that a policy asks."""
    asked = {answers_of(name) for name in predictors_of(rule)}
    return replace(spec, versions=tuple(one for one in spec.versions if answers_of(one[0]) in asked))


def lacking_source(rule: PolicySpec, asked: Sequence[ForecastSpec]) -> str:
    """What to say where none of the sources tells what a policy asks and it has no default: which do."""
    # The two that everybody has.
    able = [one.label for one in (REGISTRY, ORACLE) if answers(one, rule)]
    known = ", ".join(spec.label for spec in asked)
    return f"asks {' and '.join(rule.asks)}, which {known} does not tell; add {' or '.join(able)} to --forecasts"


def predictors_of(rule: PolicySpec) -> set[str]:
    """Registered predictors that answer what a policy asks, and the one that it runs."""
    return {PREDICTORS_OF[one] for one in rule.asks if one in PREDICTORS_OF} | {rule.learned} - {""}


def _whole_jobs(experiment: Experiment, rule: PolicySpec, ask: Ask, progress: Step | None) -> Simulated:
    scenario, world = experiment.scenario(rule.kind, rule.scope), experiment.world
    result = {"restart_s": world.costs["restart_s"]} if world is not None and rule.kind in TOLD_RESTARTS else {}
    # The run wraps its source only where it asks one: what was made is read afterwards.
    made: list[Asked] = []

    def asked(source: Any, factor: Callable[[Job], float] | None = None) -> Asked:
        made.append(Recording(source, factor) if ask.record else Asked(source, factor))
        return made[-1]

    ran = simulate(scenario, replace(ask, settings={**ask.settings, **result}), progress, asked, world)
    # Jobs that scale are as fast on the GPUs that they ask for as under any policy of goodput that gives them these.
    law = RUNTIME if scenario.facts.scaling is None else GOODPUT_LAW
    if world is None:
        ran = replace(ran, log=replace(ran.log, law=law))
    if not made:
        return ran
    (source,) = made
    job_ids = [job.job_id for job in scenario.workload.jobs]
    # Sources of work alone know no horizons.
    horizons_min = source.horizons_min if source.bins() else ()
    columns = forecast_columns(source.of_jobs, ran.log, job_ids, horizons_min=horizons_min)
    ran = replace(ran, recording=source if isinstance(source, Recording) else None)
    return _told(ran, ask, source.of_jobs, columns)


def _told(ran: Simulated, ask: Ask, of_jobs: JobAnswers, columns: Mapping[str, Floats]) -> Simulated:
    """A run with what was forecast of its jobs: columns of the log, and the answers where they are asked for."""
    log = replace(ran.log, columns={**ran.log.columns, **columns})
    return replace(ran, log=log, of_jobs=of_jobs if ask.record else None)


def _elastic(experiment: Experiment, rule: PolicySpec, ask: Ask, progress: Step | None) -> Simulated:
    spec = ask.source
    if rule.asks and spec.kind not in ANSWERED_BY[kinds.ELASTIC]:
        raise ConfigError(
            f"--forecasts {spec.label}: elastic policies go by declared sizes (oracle) or by those of a version of "
            "job-size (registry); for wrong ones pass --set noise=0.4, for completions ask `jobcast predict jct`"
        )
    scenario = experiment.scenario(kinds.ELASTIC)
    if experiment.world is not None:
        if rule.asks and spec.kind != ORACLE.kind:
            raise ConfigError(f"--forecasts {spec.label}: under --law sizes are as declared; leave one of both out")
        return _elastic_in(experiment.world, rule, ask, progress)
    believed: Believed[Floats] = believed_sizes(scenario, ask) if rule.asks else Believed()
    if believed.answers is not None:
        scenario = with_sizes(scenario, believed.answers)
    ran = simulate_elastic(scenario, rule.name, ask.settings, predict=ask.predict, progress=progress)
    ran = replace(ran, notes=(*ran.notes, *placing_notes(scenario, rule.name, ask.settings)))
    ran = believed.beside(ran)
    if not rule.asks:
        return ran
    of_jobs = JobAnswers(ask.record)
    jobs = scenario.workload.jobs
    keep_sizes(of_jobs, scenario.job_ids, ran.log.submit_s, alone_s(jobs, jobs.size_s))
    return _told(ran, ask, of_jobs, forecast_columns(of_jobs, ran.log, scenario.job_ids))


def _elastic_in(world: World, rule: PolicySpec, ask: Ask, progress: Step | None) -> Simulated:
    """Elastic policies where GPUs are whole, and lie on nodes."""
    scenario, whole = world.scenario(kinds.ELASTIC, rule.scope), "whole_gpus" in rule.settings.model_fields
    made = make_rule(rule.name, None, {**ask.settings, **({"whole_gpus": True} if whole else {})})
    if made.later:
        raise ConfigError("--set configs: is not carried out under --law; leave one of both out")
    policy = WholeWidths(made)
    log, took = timed(lambda: world.replay(scenario.workload, policy, progress=progress, meters=ask.watching))
    return Simulated(log, **took)


def _tasks(experiment: Experiment, rule: PolicySpec, ask: Ask, progress: Step | None) -> Simulated:
    scenario = experiment.scenario(kinds.TASKS)
    chosen = accuracy_forecast(scenario, ask) if rule.asks else Believed()
    learned = learned_policy(ask, scenario.trace, chosen.tally)
    of_jobs, final, forecast = JobAnswers(ask.record), last_values(scenario.workload.truth.metric), chosen.answers
    if rule.asks and forecast is not None:
        forecast = keeping_accuracies(of_jobs, forecast, scenario.job_ids, final)
    costs = {} if experiment.world is None else experiment.world.costs
    paid = replace(ask, settings={**ask.settings, **costs})
    ran = simulate_tasks(scenario, paid, forecast, learned, chosen.tally, progress)
    used, overlap = {**chosen.models, **learned.models}, chosen.overlap or learned.overlap
    ran = replace(chosen, models=used, overlap=overlap).beside(ran)
    return _told(ran, ask, of_jobs, forecast_columns(of_jobs, ran.log, scenario.job_ids, final=final))


def _energy(experiment: Experiment, rule: PolicySpec, ask: Ask, progress: Step | None) -> Simulated:
    scenario, world = experiment.scenario(kinds.ENERGY), experiment.world
    costs = None if world is None else world.costs
    paid = ask if costs is None else replace(ask, settings={**ask.settings, "restart_s": costs["restart_s"]})
    known = experiment.given.get("known")
    believed = believed_times(scenario, ask, None if known is None else Path(known))
    ran = believed.beside(simulate_energy(scenario, paid, believed.answers, costs, progress))
    if not rule.asks:
        return ran
    of_jobs, true_s = JobAnswers(ask.record), scenario.facts.times.epoch_s
    times = (true_s if believed.answers is None else believed.answers, true_s)
    if ask.record:
        keep_epoch_times(of_jobs, scenario.job_ids, ran.log.submit_s, scenario.facts.gpu_types, *times)
    return _told(ran, ask, of_jobs, epoch_time_columns(*times))


_RUNS: Mapping[str, Callable[[Experiment, PolicySpec, Ask, Step | None], Simulated]] = {
    kinds.POOLS: _whole_jobs,
    kinds.ROUNDS: _whole_jobs,
    kinds.GOODPUT: _whole_jobs,
    kinds.ELASTIC: _elastic,
    kinds.TASKS: _tasks,
    kinds.ENERGY: _energy,
}
