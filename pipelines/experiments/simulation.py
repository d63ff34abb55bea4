"""One simulation: a scenario replayed under a policy with a source of forecasts, and its figures.

What closed-loop replays refuse, and what they tell beside the usual figures.
"""

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import polars as pl

from jobcast.domain.clock import DAY_S
from jobcast.domain.errors import ConfigError
from jobcast.domain.law import EPOCHS, RUNTIME
from jobcast.domain.switches import Switches
from jobcast.pipelines.experiments.forecast_recording import Asked, JobAnswers, Recording
from jobcast.pipelines.experiments.forecast_specs import PARTS, REGISTRY, ForecastSpec
from jobcast.pipelines.experiments.goodput_runs import replay_scaling, shown_goodputs
from jobcast.pipelines.experiments.rigid_jobs import RigidScenario, check_locality, prepared, scenario_workload
from jobcast.pipelines.experiments.rounds import replay_gavel, round_workload, work_forecasts
from jobcast.pipelines.experiments.settings import check_forecasts, check_horizons, loaded
from jobcast.pipelines.experiments.sources import Ask, Chosen, Sources
from jobcast.pipelines.experiments.worlds import World
from jobcast.pipelines.report.console import Step
from jobcast.pipelines.report.figure_lines import bad_forecast_lines, fidelity_line, unfamiliar_lines
from jobcast.pipelines.report.formatting import duration
from jobcast.schedulers import policies as kinds
from jobcast.schedulers.policies import ARRIVALS, LOADS, POOLS, PolicySpec, Split, TrainingFiles, split_settings
from jobcast.schedulers.registry import BUILT_IN, find_of_kind, find_policy, make_policy, make_rule, plugin_named
from jobcast.schedulers.rounds import figures_of
from jobcast.schedulers.run_times import noise_factor
from jobcast.simulator.engine import Meter, replay
from jobcast.simulator.forecast_sources import NO_ARRIVALS
from jobcast.simulator.guard import Replaced
from jobcast.simulator.log import RunLog
from jobcast.simulator.workload import Workload


def check_loop(
    policies: Sequence[str], sources: Sequence[ForecastSpec], baseline: str | None, settings: Mapping[str, str]
) -> None:
    """Refuse a command that cannot be carried out in a closed loop, before anything is read.

    Parameters
    ----------
    policies : by name
    sources : of forecasts; none for the default
    baseline : policy to compare with
    settings : `--set`

    Raises
    ------
    ConfigError
        See `check_closed`; and where settings name tables of training jobs.
    """
    # Training jobs come with tables by job id, which say nothing of who thinks for how long.
    tables = [name for name in TrainingFiles.model_fields if name in settings]
    if tables:
        raise ConfigError(f"--closed-loop --set {tables[0]}: training jobs are replayed as they came; leave one out")
    # Without any source named the registry's champions are asked.
    for spec in sources or (REGISTRY,):
        for policy in policies:
            check_closed(policy, spec)
        if baseline is not None:
            try:
                check_closed(baseline, spec)
            except ConfigError as error:
                raise ConfigError(f"--baseline {baseline}: {error}") from None


def check_closed(policy: str, spec: ForecastSpec) -> None:
    """Refuse what cannot be replayed in a closed loop, before anything is.

    Raises
    ------
    ConfigError
        The policy is not one of pools of whole jobs, or it would ask for arrivals to come a source that reads them off
        the trace.
    """
    rule = find_policy(policy)
    if rule.kind != POOLS:
        able = [name for name, spec in BUILT_IN.items() if spec.kind == POOLS and not spec.needs_every_job]
        raise ConfigError(
            f"--closed-loop: {policy} schedules by rounds, tasks, energy or elastic jobs; "
            f"it goes with {', '.join(able)}"
        )
    # Told before forecasts are looked at: no source helps such a policy here.
    if rule.needs_every_job:
        raise ConfigError(
            f"--closed-loop: {policy} needs every single job's future, which nobody knows where arrivals follow from "
            "what the scheduler does; leave one out"
        )
    if not rule.asks:
        return
    # A wrong answer is drawn about what would come, which here nobody knows.
    if any(source.kind == "noisy" for source in (spec, *dict(spec.parts).values())):
        raise ConfigError(f"--forecasts {spec.label}: {NO_ARRIVALS.format(kind='noisy oracle')}")
    # Arrivals and loads; durations are a job's own and known to the oracle all the same.
    result = (spec.part(part) for part in PARTS[:2]) if spec.kind == "mixed" else (spec,)
    # Who asks only for run times may be told those of the trace.
    ahead = ARRIVALS in rule.asks or LOADS in rule.asks  # installed ones are refused when they ask
    if ahead and any(source.kind == "oracle" for source in result):
        raise ConfigError(f"{policy} --forecasts {spec.label}: {NO_ARRIVALS.format(kind='oracle')}")


def told_of_loop(workload: Workload, log: RunLog) -> dict[str, Any]:
    """Figures of a closed-loop run: who follows whom, and how far the run moved the arrivals of those who do.

    `following_jobs` and `mean_think_s` are of the workload; `mean_shift_s` is the mean of (submission in the run -
    submission in the trace) of the jobs that follow others. Nothing for an open loop.
    """
    successions = workload.successions
    if successions is None:
        return {}
    follows = np.array([job.job_id in successions for job in workload.jobs], dtype=np.bool_)
    thinks_s = [one.think_s for one in successions.values()]
    # Those who follow nobody come when the trace says.
    shift_s = (log.submit_s - log.told_submit_s)[follows]
    return {
        "closed_loop": True,
        "following_jobs": len(successions),
        "mean_think_s": float(np.mean(thinks_s)) if thinks_s else None,
        "mean_shift_s": float(shift_s.mean()) if thinks_s else None,
    }


ROUND_COUNT = "rounds"
"""What policies of rounds tell, and no other."""
FIDELITY = "fidelity"
"""Figure that tells how near simulated starts are to recorded ones, where a trace has these; see `metrics.fidelity`."""
TRUST = ("bad_forecasts", "degraded", "another_cluster", "features_beyond_training")
"""Figures that tell how far a run's forecasts could be trusted."""
T = TypeVar("T")
Wrap = Callable[..., Asked]
"""From a source of forecasts, and the factors of jobs that lengthen what it says is left of them."""


@dataclass(frozen=True, slots=True)
class Simulated:
    """A finished replay.

    Attributes
    ----------
    log : what happened, by job
    cpu_s, wall_s : of the replay alone
    models : concrete versions that answered, by predictor
    overlap : whether a model was used whose training data reach into the window
    own : figures that a policy reports of its work: rounds, gaps and times of its solver
    trust : how far its forecasts could be trusted; see `sources.Chosen.trust`
    replaced : since when which of them were replaced
    forecasts : the source that was asked, None where none was
    future : whether it reads what nobody can know
    recording, of_jobs : what it answered about pools, and what was forecast of jobs, where that was kept
    notes : what a reader of the result should know of it
    jobs : `job_table.LISTED` of each job, in the log's order
    """

    log: RunLog
    cpu_s: float
    wall_s: float
    models: Mapping[str, int] = field(default_factory=dict)
    overlap: bool = False
    own: Mapping[str, float] = field(default_factory=dict)
    trust: Mapping[str, Any] = field(default_factory=dict)
    replaced: Sequence[Replaced] = ()
    forecasts: str | None = None
    future: bool = False
    recording: Recording | None = None
    of_jobs: JobAnswers | None = None
    notes: tuple[str, ...] = ()
    jobs: pl.DataFrame | None = None


def timed(work: Callable[[], T]) -> tuple[T, dict[str, Any]]:
    """What some work gives, and the seconds that it took, by the names that `Simulated` has for them."""
    wall, cpu = time.perf_counter(), time.process_time()
    done = work()
    return done, {"cpu_s": time.process_time() - cpu, "wall_s": time.perf_counter() - wall}


def simulate(
    scenario: RigidScenario,
    ask: Ask,
    progress: Step | None = None,
    wrap: Wrap | None = None,
    world: World | None = None,
) -> Simulated:
    """Replay a scenario. A policy that uses no forecasts is given none, whatever is named; settings' files are read.

    A policy is given what `wrap` makes of its source of forecasts. `world`: what the scenario is of, where jobs do not
    simply run their time.

    Raises ConfigError for an unknown policy or setting, RegistryError and OverlapError for models that cannot answer.
    """
    # Files are read before anything is made: a mistake in one costs no replay.
    read, policy, spec, watching = loaded(ask.settings), ask.policy, ask.source, ask.watching
    rule_of = find_of_kind(policy, *kinds.WHOLE_JOBS)
    check_forecasts(policy, ask.spec)
    if scenario.workload.closed:
        check_closed(policy, spec)
    if scenario.workload.servers:
        check_locality(policy)
    on_cells = bool(scenario.workload.servers)
    split = split_settings(rule_of, read, on_cells)
    if rule_of.kind == kinds.GOODPUT and world is not None:
        rule = make_rule(policy, None, split.plain("own"))
        log, took = timed(lambda: world.replay(scenario.workload, rule, progress=progress, meters=watching))
        return Simulated(log, **took, own={ROUND_COUNT: float(_rounds(log, split.own.round_s))})
    if rule_of.kind == kinds.GOODPUT:
        shown = shown_goodputs(scenario, ask)
        own = split.plain("own")
        (log, told), took = timed(lambda: replay_scaling(scenario, policy, own, progress, watching, shown.answers))
        rounds = {ROUND_COUNT: float(_rounds(log, split.own.round_s))}
        return shown.beside(Simulated(log, **took, own={**rounds, **told}))
    # Meters may need run times under a policy that asks for none.
    asks = bool(rule_of.asks) or needs_run_times(watching, world)
    if rule_of.kind == kinds.ROUNDS:
        chosen = work_forecasts(scenario, ask) if asks else Chosen()
        return _by_rounds(scenario, ask, chosen, split, wrap, progress, world)
    scenario, notes = prepared(rule_of, split.own, scenario)
    scenario = replace(scenario, workload=scenario_workload(scenario.workload, split.own, ask.seed))
    parts = parts_of(rule_of, needs_run_times(watching, world))
    chosen = Sources(scenario, ask).make(spec, parts) if asks else Chosen()
    # Only what the policy itself asks is recorded, not what its meters do.
    source = wrap(chosen.source) if wrap is not None and rule_of.asks and chosen.source is not None else chosen.source
    # A policy that asks nothing must not be able to peek.
    given = source if rule_of.asks else None
    rule = make_policy(policy, given, read, cells=scenario.facts.cells if on_cells else None)
    if isinstance(read.get("switches"), Switches) and source is not None:
        check_horizons(read["switches"], source.horizons_min)
    play = replay if world is None else world.replay
    with plugin_named(policy):
        log, took = timed(lambda: play(scenario.workload, rule, source, chosen.history, progress, meters=watching))
    # Asked for only now: a policy counts while it decides.
    return Simulated(log, **took, **_rests_on(chosen), own=figures_of(rule), notes=notes)


def parts_of(rule: PolicySpec, run_times: bool) -> Collection[str]:
    """What of `forecast_specs.PARTS` a policy asks, run times too where completions are forecast from them.

    All of them for one that does not say.

    >>> from jobcast.schedulers.registry import find_policy
    >>> [parts_of(find_policy(name), False) for name in ("sia", "ssf")]
    [('arrivals', 'loads', 'durations'), ('durations',)]
    """
    asked = {*rule.asks, kinds.DURATIONS} if run_times else set(rule.asks)
    # In the order of PARTS, which sources are made by.
    known = tuple(part for part in PARTS if part in asked)
    # Who does not say what it asks may ask anything.
    return PARTS if asked & {kinds.ANYTHING, kinds.FUTURE} or not known else known


def needs_run_times(watching: Sequence[Meter], world: World | None) -> bool:
    """Whether completions are forecast from run times: jobs of other laws declare their work."""
    return bool(watching) and (world is None or world.law == RUNTIME)


def _by_rounds(
    scenario: RigidScenario,
    ask: Ask,
    chosen: Chosen,
    split: Split,
    wrap: Wrap | None,
    progress: Step | None,
    world: World | None,
) -> Simulated:
    policy, mechanism, settings = ask.policy, split.mechanism, split.plain("own", "mechanism")
    by_gavel = mechanism.mechanism == "gavel"
    if getattr(split.own, "workers", "asked") == "elastic" and (world is None or world.law != EPOCHS):
        raise ConfigError(
            f"policy {policy}: workers=elastic needs a law in which GPUs of a job change; add --law epochs"
        )
    # The published mechanism brings its own clock and costs.
    if by_gavel and world is not None:
        raise ConfigError(f"policy {policy}: mechanism=gavel has a law of its own; leave --law {world.law} out")
    if by_gavel and ask.watching:
        raise ConfigError(f"policy {policy}: no completions are forecast under mechanism=gavel; leave it out")
    workload = scenario.workload if world is not None else round_workload(scenario, mechanism)
    asks = bool(find_of_kind(policy, kinds.ROUNDS).asks)
    noise = getattr(split.own, "noise", 0.0)
    # By how much a setting lengthens what is forecast to be left of a job.
    factor = (lambda job: noise_factor(job, noise, split.own.noise_seed)) if noise else None
    source: Any = wrap(chosen.source, factor) if wrap is not None and asks else chosen.source
    forecasts = source if asks else None
    if by_gavel:
        rule: Any = make_rule(policy, forecasts, settings)
        log, took = timed(lambda: replay_gavel(scenario, workload, policy, rule, mechanism.round_s, progress, source))
    else:
        rule = make_policy(policy, forecasts, settings, workload.servers)
        play = replay if world is None else world.replay
        log, took = timed(lambda: play(workload, rule, source, chosen.history, progress, meters=ask.watching))
    own = {ROUND_COUNT: float(_rounds(log, mechanism.round_s)), **figures_of(rule)}
    # Where explanations are kept, what the policy says of each job is.
    said: dict[str, dict[int, float]] = getattr(rule, "job_columns", dict)() if wrap is not None else {}
    columns = {name: np.array([of.get(seq, np.nan) for seq in range(len(log.jct_s))]) for name, of in said.items()}
    log = replace(log, columns={**log.columns, **columns})
    # Fairness is measured by plans where there are any: what executed may have been the scheduler's doing.
    if scenario.facts.planned_s:
        rows = zip(scenario.workload.jobs, scenario.workload.outcomes, strict=True)
        planned = [scenario.facts.planned_s.get(job.job_id, outcome.duration_s) for job, outcome in rows]
        log = replace(log, columns={**log.columns, "exclusive_s": np.array(planned)})
    return Simulated(log, **took, **_rests_on(chosen), own=own)


def _rests_on(chosen: Chosen) -> dict[str, Any]:
    """What of a finished run its forecasts tell."""
    replaced = () if chosen.guard is None else tuple(chosen.guard.replaced)
    return {"models": chosen.models, "overlap": chosen.overlap, "trust": chosen.trust(), "replaced": replaced}


def _rounds(log: RunLog, round_s: float) -> int:
    """Rounds from the first submission to the last completion."""
    # A round that was begun counts whole.
    return math.ceil(float(np.nanmax(log.end_s) - log.submit_s.min()) / round_s) if len(log) else 0


def warmup_end(scenario: RigidScenario, days: float) -> float | None:
    """Instant from which on jobs count, None = all do; ConfigError when the warm-up leaves none."""
    return counted_from(scenario.from_s, scenario.workload.jobs[-1].submit_s, days)


def counted_from(begin_s: float, last_s: float, days: float) -> float | None:
    """End of a warm-up from `begin_s` on, None without one; ConfigError when the last submission comes before it."""
    if not days:
        return None
    end_s = begin_s + DAY_S * days
    if last_s < end_s:
        raise ConfigError(
            f"--warmup {days:g}: leaves no job to count, the last one is submitted "
            f"{(last_s - begin_s) / DAY_S:.3g} days after the beginning; choose a shorter warm-up"
        )
    return end_s


def figures(
    run: Simulated, base: Simulated | None, *, policy: str, warmup_until_s: float | None = None
) -> dict[str, Any]:
    """The figures of `simulate --json`: what the log tells, what the run tells of itself, those against a baseline.

    Where the baseline's jobs ran under another law there are none: who gains what from whom is told within a law only.
    """
    from jobcast.simulator import metrics

    result: dict[str, Any] = {
        "policy": policy,
        "forecasts": run.forecasts,
        "future": run.future,
        "law": run.log.law,
        **metrics.figures(run.log, warmup_until_s),
        **run.own,
        **run.trust,
        "wall_s": run.wall_s,
        "cpu_s": run.cpu_s,
    }
    if base is not None and base.log.law == run.log.law:
        result |= metrics.against(run.log, base.log, warmup_until_s)
    return finite_or_none(result) | fidelity_told(run.log, warmup_until_s=warmup_until_s)


def finite_or_none(result: Mapping[str, Any]) -> dict[str, Any]:
    """Figures as JSON can hold them: None in place of what is no number or infinite."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in result.items()
    }


def figures_table(result: Mapping[str, Any]) -> str:
    """The figures of one simulation for a person: a line each."""
    # Said in other lines, in notes or in warnings.
    told_elsewhere = {"future", "inputs", "configuration", "notes", "assumptions", "models", "overlap_allowed", *TRUST}
    left_out = {"simulated", "jobcast", FIDELITY, *told_elsewhere}
    lines = []
    if result.get("future"):
        result = {**result, "forecasts": f"{result['forecasts']} (read off the trace's future)"}
    for key, value in result.items():
        if key in left_out or value is None:
            continue
        # Large figures need no decimals: they get separators instead.
        small = f"{value:,.4g}" if isinstance(value, float) and abs(value) < 1e4 else value
        shown = f"{small:,.0f}" if isinstance(small, float) else f"{small}"
        lines.append(f"{key:<22} {shown}{_in_words(key, value)}")
    if result.get("models"):
        lines.append(f"{'models':<22}" + ", ".join(f"{name} {version}" for name, version in result["models"].items()))
    if result.get(FIDELITY):
        lines.append(f"{FIDELITY:<22} {fidelity_line(result[FIDELITY])}")
    if result.get("overlap_allowed"):
        lines.append("warning: training data of a model reach into this window (--allow-overlap)")
    lines += [f"warning: {line}" for line in trust_lines(result)]
    return "\n".join(lines)


UNITS_S = {"_s": 1.0, "_min": 60.0}
"""By how the names of figures end, in seconds."""
LONG_S = 600.0
"""From here on people count in other units than JSON does."""


def _in_words(key: str, value: object) -> str:
    """A length of time in hours or days, where it is long."""
    unit_s = next((unit_s for end, unit_s in UNITS_S.items() if key.endswith(end)), 0.0)
    if not isinstance(value, int | float) or abs(value) * unit_s < LONG_S:
        return ""
    words = duration(value * unit_s)
    # Minutes that stay minutes say nothing new.
    return "" if key.endswith(f"_{words.split()[-1]}") else f" ({words})"


def fidelity_told(log: RunLog, *, warmup_until_s: float | None = None, by_s: float = math.inf) -> dict[str, Any]:
    """`fidelity` of a run as figures tell it, as known at an instant; nothing where its trace has no starts."""
    from jobcast.simulator import metrics

    result = metrics.fidelity(log, metrics.after_warmup(log, warmup_until_s), by_s)
    return {} if result is None else {FIDELITY: result}


def trust_lines(result: Mapping[str, Any]) -> list[str]:
    """What a person should know of a run's forecasts; nothing where all could be trusted."""
    return [*bad_forecast_lines(result), *unfamiliar_lines(result)]
