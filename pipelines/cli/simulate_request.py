"""`jobcast simulate`: one policy on an experiment, beside a baseline; what happened is written and told."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import polars as pl

from jobcast import __version__
from jobcast.domain.errors import ConfigError
from jobcast.models.registry import open_registry
from jobcast.pipelines.cli.options import check_places, dropped_lines, made_by, table_or_json
from jobcast.pipelines.experiments.energy.simulation import KNOWN, PROFILES, SEGMENTS, write_segments
from jobcast.pipelines.experiments.experiment import BY_OPTIONS, Experiment
from jobcast.pipelines.experiments.forecast_recording import job_answer_table
from jobcast.pipelines.experiments.forecast_specs import ForecastSpec
from jobcast.pipelines.experiments.policy_runs import run, sources_for
from jobcast.pipelines.experiments.rigid_jobs import asks_for_locality, check_locality
from jobcast.pipelines.experiments.rounds import has_training
from jobcast.pipelines.experiments.run_record import bin_names, limit_table, pool_record_of, record_of, write_run_record
from jobcast.pipelines.experiments.scenarios import Scenario
from jobcast.pipelines.experiments.settings import check_forecasts, policies_meant, settings_apart
from jobcast.pipelines.experiments.simulation import (
    Simulated,
    check_loop,
    counted_from,
    figures,
    figures_table,
    told_of_loop,
    trust_lines,
)
from jobcast.pipelines.experiments.sources import Ask
from jobcast.pipelines.experiments.worlds import check_living, law_apart
from jobcast.pipelines.report.console import Console
from jobcast.pipelines.report.job_table import check_job_table, job_table, write_table
from jobcast.schedulers.policies import WHOLE_JOBS, PolicySpec
from jobcast.schedulers.registry import SHORT, find_policy
from jobcast.simulator.workload import Workload

DEFAULT_BASELINE = "fcfs"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulateRequest:
    """What the user asked for, beside the experiment.

    Attributes
    ----------
    policy, baseline : names; None for the default baseline, "none" to skip it
    spec : source of forecasts, None for the policy's default
    settings : `--set`
    warmup_days : days left out of the figures
    predict : whether to forecast completions
    seed : of draws
    allow_overlap, degrade : what registered models may have seen, and what becomes of a missing one
    out, json_to : where jobs and figures go
    """

    policy: str
    baseline: str | None = None
    spec: ForecastSpec | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    warmup_days: float = 0.0
    predict: bool = False
    seed: int = 0
    allow_overlap: bool = False
    degrade: bool = False
    out: Path | None = None
    json_to: str | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Finished:
    """A finished simulation, before anything of it is written or told.

    Attributes
    ----------
    experiment, request : what was asked for
    scenario : jobs and cluster as the policy met them
    ran, base : the run, and the baseline's, None without one
    result : figures, as `jobcast simulate --json` tells them
    settings : those that the policy decided by
    segments : where the Gantt chart goes, None for nowhere
    """

    experiment: Experiment
    request: SimulateRequest
    scenario: Scenario[Any, Any]
    ran: Simulated
    base: Simulated | None
    result: dict[str, Any]
    settings: Mapping[str, str]
    segments: Path | None = None

    def __repr__(self) -> str:
        return figures_table(self.result)

    @property
    def jobs(self) -> pl.DataFrame:
        """One row a job; see `job_table`."""
        base = None if self.base is None else self.base.log
        return job_table(self.ran.log, self.scenario.listed, base, self.bins)

    @property
    def bins(self) -> list[str | None] | None:
        """Labels of the duration bins that the policy was told, None where it was told none."""
        workload = self.scenario.workload
        # Only workloads of pools have duration bins.
        return bin_names(self.ran.recording, workload) if isinstance(workload, Workload) else None

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the figures should know."""
        dropped = dropped_lines(self.scenario.dropped)
        # What was assumed is told before the run.
        said = (note for note in self.scenario.notes if note not in self.result["assumptions"])
        notes = [*said, *self.ran.notes, *dropped, *trust_lines(self.result)]
        if self.base is not None:
            ours, base = self.ran.log, self.base.log
            if base.policy == ours.policy and not self.result["configuration"]["settings"]:
                notes.append(f"{base.policy} is compared with itself: its gains say nothing; name a --baseline")
            # Run times under different laws are of different work.
            if base.law != ours.law:
                law = f"its jobs ran under another law ({base.law}); no gains are told"
                notes.append(f"baseline {base.policy}: {law}")
        return tuple(notes)

    def write(self, out: str | PathLike[str]) -> None:
        """Write the job table, CSV or Parquet, and the record beside it, from which `explain` tells."""
        path, ran, scenario, result = Path(out), self.ran, self.scenario, self.result
        # Of pools more is known: reservations, quotas, bins.
        found, limits = record_of(ran.log, ran.log.policy, result), None
        if isinstance(scenario.workload, Workload):
            limits = limit_table(ran.log.policy, scenario.workload)
            found = pool_record_of(ran.log, scenario.workload, ran.log.policy, result, self.settings, ran.recording)
        # Answers beyond the room of the record are counted, not kept.
        left_out = 0 if ran.of_jobs is None else ran.of_jobs.left_out
        again = _again(self.experiment, self.request)
        found |= {"asks": list(find_policy(result["policy"]).asks), "answers_left_out": left_out, "again": again}
        of_jobs = None if ran.of_jobs is None else job_answer_table(ran.of_jobs, scenario.job_ids, ran.log)
        write_table(self.jobs, path)
        write_run_record(path, found, ran.log, ran.recording, ran.replaced, of_jobs, limits)

    def write_segments(self) -> None:
        """Write who held what when, where a setting asks for it."""
        if self.segments:
            write_segments(self.scenario, self.ran.log, self.segments)


def simulate_one(experiment: Experiment, request: SimulateRequest, home: Path, console: Console) -> None:
    """Replay, write the job table and the record, print or write the figures.

    Raises ConfigError, TraceError, RegistryError and OverlapError as `running.run`; nothing is written then.
    """
    done = simulated(experiment, request, home, console)
    if request.out:
        done.write(request.out)
        console.note(f"jobs: {request.out}")
    done.write_segments()
    if done.segments:
        console.note(f"segments: {done.segments}")
    console.note(*done.notes)
    table_or_json({**done.result, **made_by()}, request.json_to, figures_table(done.result), console)


def simulated(
    experiment: Experiment, request: SimulateRequest, home: Path, console: Console, record: bool = False
) -> Finished:
    """Replay an experiment under a policy, and under its baseline; nothing is written.

    `record`: keep what forecasts answered even where the request names no file. Raises as `simulate_one`.
    """
    # Short names stand for policies of several papers: which one hangs on the trace.
    rule, baseline, taken = policies_meant(request.policy, request.baseline, request.settings, experiment.trace)
    base_rule = find_policy(baseline) if baseline not in (None, "none") else None
    local = asks_for_locality(request.settings)
    costs, settings = law_apart(request.settings, experiment.law)
    facts, decide = settings_apart(settings, rule, base_rule, local)
    experiment = replace(experiment, given={**facts, **costs})
    segments = _segments(facts, request)
    assumed = experiment.assumptions(rule.kind, rule.needs)
    # Before the run, which may take long: the user may want to stop it.
    console.note(*(f"assumed: {line}" for line in assumed), *taken)
    ask = Ask(
        policy=rule.name,
        home=home,
        spec=request.spec,
        settings=decide,
        seed=request.seed,
        allow_overlap=request.allow_overlap,
        degrade=request.degrade,
        predict=request.predict,
        record=record or request.out is not None,
    )
    check_living(experiment, rule)
    scenario = experiment.scenario(rule.kind, rule.scope)
    counted_s = counted_from(*experiment.stretch_s, request.warmup_days)
    # None is no wish, "none" is the wish for none.
    if baseline is None and _has_default(rule, scenario):
        base_rule = find_policy(DEFAULT_BASELINE)
    with console.progress(f"simulate {rule.name}") as step:
        ran = run(experiment, ask, step)
    base = None if base_rule is None else _baseline(experiment, ask, rule, base_rule, ran)
    result = {
        **figures(ran, base, policy=rule.name, warmup_until_s=counted_s),
        **(told_of_loop(scenario.workload, ran.log) if rule.kind in WHOLE_JOBS else {}),
        "baseline": None if base_rule is None else base_rule.name,
        "simulated": True,
        "inputs": scenario.provenance(),
        "configuration": {
            "settings": {**experiment.files(rule.kind), **costs, **decide},
            **({} if experiment.law is None else {"law": experiment.law}),
            **({"begin": "recorded"} if experiment.recorded else {}),
            "limit": experiment.limit,
            "warmup_days": request.warmup_days,
            "predict": request.predict,
        },
        "assumptions": list(assumed),
        "seed": request.seed,
        "models": dict(ran.models),
        **(open_registry(home).staleness() if ran.models else {}),
        "overlap_allowed": ran.overlap,
        "jobcast": __version__,
    }
    return Finished(experiment, request, scenario, ran, base, result, decide, segments)


def check_request(request: SimulateRequest, max_think_s: float | None) -> None:
    """Refuse what cannot be carried out before a trace is read; names that depend on it are looked at later.

    Raises ConfigError for names, sources and places that cannot be.
    """
    # A short name is looked at again once the trace is known.
    known = request.policy not in SHORT
    base = None if request.baseline in SHORT else request.baseline
    policies_meant(request.policy if known else DEFAULT_BASELINE, base, request.settings, None)
    if request.out:
        check_job_table(request.out)
    baseline = request.baseline or DEFAULT_BASELINE
    if max_think_s is not None:
        sources = () if request.spec is None else (request.spec,)
        check_loop((request.policy,), sources, None if baseline == "none" else baseline, request.settings)
    if known:
        check_forecasts(request.policy, request.spec)
    if asks_for_locality(request.settings):
        check_locality(request.policy, None if baseline == "none" else baseline)


def _segments(given: Mapping[str, str], request: SimulateRequest) -> Path | None:
    """Where the Gantt chart goes. Raises ConfigError for a place that cannot be written to."""
    if SEGMENTS not in given:
        return None
    if not given[SEGMENTS]:
        raise ConfigError(f"--set {SEGMENTS}=: names nothing; name a file that ends in .csv or .parquet")
    segments = Path(given[SEGMENTS])
    check_job_table(segments, f"--set {SEGMENTS}=")
    inputs = [Path(given[name]) for name in (PROFILES, KNOWN) if name in given]
    check_places(request.json_to, inputs, {"--out": request.out, f"--set {SEGMENTS}": segments})
    return segments


def _has_default(rule: PolicySpec, scenario: Scenario[Any, Any]) -> bool:
    """Whether a policy is compared with the default baseline where none is named: whole jobs that do not train."""
    return rule.kind in WHOLE_JOBS and not has_training(scenario) and scenario.facts.scaling is None


def _baseline(experiment: Experiment, ask: Ask, rule: PolicySpec, base: PolicySpec, ran: Simulated) -> Simulated:
    """The baseline in the same world, with the policy's forecasts where these tell what it asks, else its default."""
    # How decisions are carried out is the world's, so the baseline has it, too; what the policy decides by is not.
    mechanism = rule.parts()["mechanism"].model_fields if base.kind == rule.kind else {}
    settings = {name: value for name, value in ask.settings.items() if name in mechanism}
    result = sources_for(experiment, base, [] if ask.spec is None else [ask.spec]) if base.asks else []
    spec = result[0] if result else None
    alike = replace(ask, policy=base.name, settings=settings, spec=spec, predict=False, record=False)
    # A policy beside itself need not run twice.
    same = base.name == rule.name and settings == ask.settings and (not base.asks or ask.spec in (None, spec))
    return ran if same else run(experiment, alike)


def _again(experiment: Experiment, request: SimulateRequest) -> dict[str, Any]:
    """What was asked for, so that the run can be replayed: see `explain.what_if`."""
    of_experiment = ("from_s", "recorded", "limit", "drop_wide", "only_pools", "law")
    # A cluster that was given as an object has no name to write down.
    named = {name: experiment.named.get(name) for name in BY_OPTIONS}
    return {
        "trace": experiment.trace.source.path,
        **{name: value if isinstance(value, int) or value is None else str(value) for name, value in named.items()},
        **{name: getattr(experiment, name) for name in of_experiment},
        "closed_loop": experiment.max_think_s is not None,
        "settings": dict(request.settings),
        "forecasts": None if request.spec is None else request.spec.label,
        "seed": request.seed,
        "allow_overlap": request.allow_overlap,
        "degrade": request.degrade,
    }
