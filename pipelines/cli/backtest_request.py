"""A backtest of a user's own trace: the matrix, its figures, its folder."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import joblib

from jobcast import __version__
from jobcast.domain.errors import ConfigError
from jobcast.models.predictors import PREDICTORS
from jobcast.models.registry import open_registry
from jobcast.pipelines.cli.closer import closer_words
from jobcast.pipelines.cli.options import typed_words
from jobcast.pipelines.experiments import backtest
from jobcast.pipelines.experiments.backtest_results import is_backtest, remarks, results_of, write_results
from jobcast.pipelines.experiments.clusters import cluster_of
from jobcast.pipelines.experiments.energy.simulation import SEGMENTS
from jobcast.pipelines.experiments.experiment import Experiment
from jobcast.pipelines.experiments.forecast_specs import ForecastSpec
from jobcast.pipelines.experiments.policy_runs import lacking_source, sources_for
from jobcast.pipelines.experiments.rigid_jobs import LOCALITY, LOOP_NOTE, asks_for_locality, check_locality
from jobcast.pipelines.experiments.scenarios import Scenario
from jobcast.pipelines.experiments.settings import check_settings
from jobcast.pipelines.experiments.simulation import check_loop, told_of_loop, trust_lines
from jobcast.pipelines.experiments.worlds import law_apart
from jobcast.pipelines.report.backtest_tables import by_lack
from jobcast.pipelines.report.console import Console
from jobcast.pipelines.report.files import write_json
from jobcast.pipelines.report.formatting import iso
from jobcast.pipelines.report.gains import DRAWS
from jobcast.pipelines.report.model_tables import log_on_versions, version_row
from jobcast.schedulers.policies import KINDS, POOLS, PolicySpec
from jobcast.schedulers.registry import POLICIES, find_policy
from jobcast.traces.facts import assumptions_beside, sentences
from jobcast.traces.files import keep_others

ALL = "all"
"""In place of a policy: every one that there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestRequest:
    """What the user asked for."""

    policies: tuple[str, ...]
    forecasts: tuple[ForecastSpec, ...]
    windows: int = 1
    seeds: int = 1
    baseline: str
    warmup_days: float = 0.0
    jobs: int | None = None
    engine: str = "local"
    allow_overlap: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    degrade: bool = False
    against: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Replayed:
    """A matrix that was replayed.

    Attributes
    ----------
    request : with the policies by name
    whole : what was asked for
    experiments : it by window
    bases : what rows are compared with, by law
    wanted, cells : what was asked for, and with the baselines
    results : of the cells that could run
    lacking, skipped : what could not, and why
    """

    request: BacktestRequest
    whole: Experiment
    experiments: Sequence[Experiment]
    bases: Mapping[str, backtest.Cell]
    wanted: Sequence[backtest.Cell]
    cells: Sequence[backtest.Cell]
    results: Sequence[backtest.CellResult]
    lacking: Sequence[backtest.Lacking]
    skipped: list[dict[str, str]]
    against: Sequence[str]

    def closer(self) -> dict[str, str]:
        """By policy the words of `simulate` that replay its rows, in one go."""
        bases = {law: cell.policy for law, cell in self.bases.items()}
        laws = {one.cell.policy: one.log.law for one in self.results}
        return closer_words(self.request, self.whole, bases, laws)

    @property
    def notes(self) -> list[str]:
        """What was decided of the jobs of any window, and how many were left out and why."""
        scenarios = _scenes_of(self.experiments, self.results)
        dropped = [
            f"dropped {count:,}: {reason} (window from {scenario.provenance()['window']['from']})"
            for scenario in scenarios
            for reason, count in scenario.dropped.items()
        ]
        # Windows and kinds repeat their notes.
        return list(dict.fromkeys(note for scenario in scenarios for note in scenario.notes)) + dropped

    @property
    def doubts(self) -> list[str]:
        """What a person should know of forecasts that were asked, behind the row that asked them."""
        told = (f"{one.cell.label}: {line}" for one in self.results for line in trust_lines(one.figures))
        return list(dict.fromkeys(told))


def replayed(
    request: BacktestRequest,
    experiment: Experiment,
    home: Path,
    console: Console,
    label: str,
    shared: backtest.Baselines | None = None,
) -> Replayed:
    """Replay the matrix that was asked for; `shared`: see `backtest.run_matrix`. Raises as `run_backtest`."""
    asked_by_name, skipped = set(request.policies), list[dict[str, str]]()
    request = replace(request, policies=_named(request.policies))
    local = asks_for_locality(request.settings)
    closed = experiment.max_think_s is not None
    request = replace(request, policies=_able(request, asked_by_name, local, closed, skipped))
    for policy in request.policies if local else ():
        check_locality(policy, request.baseline)
    # The baseline last: settings are not for it, see `_apart`.
    rules = [find_policy(name) for name in (*request.policies, request.baseline)]
    costs, settings = law_apart(request.settings, experiment.law)
    facts, own = _apart(settings, rules, local)
    # Before windows are cut, for policies that no loop can be closed around are a mistake of the line.
    if closed:
        check_loop(request.policies, request.forecasts, request.baseline, request.settings)
    experiments = _windows(replace(experiment, given={**facts, **costs}), request.windows)
    # A number that is mistyped is no lack of a policy's, and no row of the others should be waited for.
    if not request.degrade:
        _check_pins(request.forecasts, home)
    # Slow ones are left out before forecasts are looked for.
    able = _quick(rules[:-1], asked_by_name, experiments, skipped)
    pairs = _pairs(request, able, experiments[0], skipped)
    wanted = backtest.with_settings(backtest.matrix(pairs, len(experiments), request.seeds), own, local)
    if not wanted:
        lacks = "; ".join(f"{one['policy']}: {one['lacks']}" for one in skipped)
        raise ConfigError(lacks or "--policies: nothing named; write --policies mmfs,sia")
    bases = backtest.baselines_of(wanted, request.baseline, experiments[0], request.forecasts)
    cells = backtest.with_baseline(wanted, bases)
    against = _against(request.against, cells)
    # Filled by the matrix: who cannot run is skipped, not an end of all.
    lacking: list[backtest.Lacking] = []
    with console.progress(label) as step:
        results = backtest.run_matrix(
            experiments,
            cells,
            home=home,
            bases=bases,
            jobs=request.jobs or joblib.cpu_count(),
            engine=request.engine,
            allow_overlap=request.allow_overlap,
            degrade=request.degrade,
            warmup_days=request.warmup_days,
            lacking=lacking,
            shared=shared,
            progress=step,
        )
    return Replayed(request, experiment, experiments, bases, wanted, cells, results, lacking, skipped, against)


def run_backtest(
    request: BacktestRequest, experiment: Experiment, *, out: Path | None, home: Path, console: Console
) -> dict[str, Any]:
    """Replay the matrix; write the folder and its report where `out` is given; the figures come back.

    Raises ConfigError for unknown policies, and whatever scenarios and sources refuse, before anything is written.
    """
    if out:
        keep_others(out, "a backtest", is_backtest)
    done, trace = replayed(request, experiment, home, console, "backtest"), experiment.trace
    request, experiments, bases, results = done.request, done.experiments, done.bases, done.results
    wanted, lacking, skipped, against = done.wanted, done.lacking, done.skipped, done.against
    asked_for = {cell.label for cell in wanted}
    # A baseline that nobody asked for is missed where others ran under its law.
    met, law_of = {one.log.law for one in results}, experiments[0].law_of
    missed = [one for one in lacking if one.cell.label in asked_for or law_of(find_policy(one.cell.policy)) in met]
    skipped += [_missed(one) for one in missed]
    # Baselines alone are no answer to what was asked.
    if asked_for.isdisjoint(one.cell.label for one in results):
        lacks = [one.why for one in missed] or [one["lacks"] for one in skipped]
        raise ConfigError("; ".join(dict.fromkeys(lacks)))
    rests_on = assumptions_beside(trace.source.path)
    assumptions = sentences(rests_on) if rests_on else ()
    found = results_of(results, bases=bases, draws=DRAWS, against=against, assumptions=assumptions, skipped=skipped)
    result: dict[str, Any] = {
        **found,
        "rows": [_full_row(one, experiments[one.cell.window]) for one in results],
        "overlap_allowed": any(one.run.overlap for one in results),
        "simulated": True,
        "inputs": [scenario.provenance() for scenario in _scenes_of(experiments, results)],
        "configuration": {
            "settings": dict(request.settings),
            **({} if experiment.law is None else {"law": experiment.law}),
            **({"begin": "recorded"} if experiment.recorded else {}),
        },
        "seeds": request.seeds,
        "jobcast": __version__,
    }
    if out:
        # Results before figures and page, which are made of them.
        write_results(out, found, results)
        write_json(out / "inputs.json", _inputs(experiments, result, home) | {"closer": done.closer()})
        write_json(out / "figures.json", result)
        from jobcast.pipelines.stages.report import report_backtest

        console.note(f"report: {report_backtest(out)}")
    span = (experiments[0].from_s, experiments[-1].until_s)
    if logged := log_on_versions(home, result, trace.name, trace.source.sha256, span):
        console.note(f"backtest: {logged}")
        result |= open_registry(home).staleness()
    unable = [f"skipped {', '.join(policies)}: {lack}" for lack, policies in by_lack(skipped).items()]
    console.note(*dict.fromkeys((*done.notes, *remarks(result), *unable, *done.doubts)))
    return result


def _named(policies: Sequence[str]) -> tuple[str, ...]:
    """The policies, in place of `all` every one that there is."""
    return tuple(dict.fromkeys(name for asked in policies for name in (POLICIES if asked == ALL else (asked,))))


def _able(
    request: BacktestRequest, by_name: set[str], local: bool, closed: bool, skipped: list[dict[str, str]]
) -> tuple[str, ...]:
    """Policies that were asked for by name, and of the others those that can place jobs and close a loop where needed.

    The rest is skipped.
    """
    rest, lacks = set(request.policies) - by_name, dict[str, str]()
    for name in rest if local else ():
        if find_policy(name).local is None:
            lacks[name] = "knows no locality; leave it out, or --set locality=true"
    for name in rest if closed else ():
        spec = find_policy(name)
        if spec.kind != POOLS or spec.needs_every_job:
            lacks[name] = "no loop can be closed around it; leave it out, or --closed-loop"
    skipped += [{"policy": name, "lacks": lacks[name]} for name in request.policies if name in lacks]
    return tuple(name for name in request.policies if name not in lacks)


def _apart(
    settings: Mapping[str, str], rules: Sequence[PolicySpec], local: bool
) -> tuple[dict[str, str], dict[str, str]]:
    """Settings that say what is replayed, and those that policies decide by; one may be both, of different kinds.

    The last of the rules is the baseline, which is run without settings. Raises ConfigError for one that nobody knows.
    """
    if SEGMENTS in settings:
        raise ConfigError(f"--set {SEGMENTS}: `simulate` writes them, of one run; a backtest is of several")
    kinds = {KINDS[rule.kind] for rule in rules}
    # Files and prices of any kind that takes part.
    facts = {
        name: value
        for name, value in settings.items()
        if any(name in (*kind.files.model_fields, *kind.site.model_fields) for kind in kinds)
    }
    own = {name: value for name, value in settings.items() if any(rule.decides_by(name, local) for rule in rules)}
    names = tuple(rule.name for rule in rules[:-1])
    # Facts were found by their names; the rest must be decided by somebody.
    check_settings(names, {name: value for name, value in settings.items() if name not in facts}, local)
    return facts, own


def _quick(
    rules: Sequence[PolicySpec], by_name: set[str], experiments: Sequence[Experiment], skipped: list[dict[str, str]]
) -> list[PolicySpec]:
    """Policies that were asked for by name, and of the others those for so many jobs; the rest is skipped."""
    # The largest window decides: a row must be there in all.
    most = max(len(one.window) for one in experiments)
    slow = [rule for rule in rules if rule.most_jobs is not None and rule.most_jobs < most and rule.name not in by_name]
    for rule in slow:
        why = f"fewer jobs: it is for at most {rule.most_jobs:,}, of {most:,}"
        skipped.append({"policy": rule.name, "lacks": f"{why}; --policies {ALL},{rule.name} runs it all the same"})
    return [rule for rule in rules if rule not in slow]


def _pairs(
    request: BacktestRequest, rules: Sequence[PolicySpec], experiment: Experiment, skipped: list[dict[str, str]]
) -> list[tuple[str, ForecastSpec, str]]:
    """(policy, forecasts, label) of every row: sources that tell what a policy asks, else what it goes by by default.

    Who has none is skipped, with what it lacks.
    """
    found = []
    for rule in rules:
        specs = sources_for(experiment, rule, request.forecasts)
        if not specs:
            skipped.append({"policy": rule.name, "lacks": lacking_source(rule, request.forecasts)})
        found += [(rule.name, spec, backtest.label_of(rule.name, spec)) for spec in specs]
    return found


def _missed(one: backtest.Lacking) -> dict[str, str]:
    """A cell that could not run: of a policy that asks, its other forecasts may have answered."""
    asked = {"forecasts": one.cell.spec.label} if find_policy(one.cell.policy).asks else {}
    return {"policy": one.cell.policy, **asked, "lacks": one.why}


def _check_pins(forecasts: Sequence[ForecastSpec], home: Path) -> None:
    """Raise a RegistryError for a version that is asked for by its number and is not there."""
    specs = [spec for asked in forecasts for spec in (asked, *(part for _, part in asked.parts))]
    for name, number in dict.fromkeys(pin for spec in specs for pin in spec.versions):
        open_registry(home).pinned(name, number)


def _full_row(one: backtest.CellResult, experiment: Experiment) -> dict[str, Any]:
    row = one.full_row()
    if experiment.max_think_s is None:
        return row
    return {**row, "figures": row["figures"] | told_of_loop(experiment.scenario(POOLS).workload, one.log)}


def _scenes_of(experiments: Sequence[Experiment], results: Sequence[backtest.CellResult]) -> list[Scenario[Any, Any]]:
    """What was replayed, a scenario a window and kind, in the order in which policies met them."""
    rules = [(one.cell.window, find_policy(one.cell.policy)) for one in results]
    # Policies of one kind and scope share a scenario.
    met = dict.fromkeys((window, rule.kind, rule.scope) for window, rule in rules)
    scenarios = [experiments[window].scenario(kind, scope) for window, kind, scope in met]
    # Kinds may share one, too.
    return list({id(scenario): scenario for scenario in scenarios}.values())


def _against(asked: Sequence[str], cells: Sequence[backtest.Cell]) -> list[str]:
    """Labels of the rows that `--against` means: one, or all of a policy. Raises ConfigError where there is none."""
    labels = list(dict.fromkeys(cell.label for cell in cells))
    policies = {cell.label: cell.policy for cell in cells}
    for name in asked:
        if name not in (*labels, *policies.values()):
            raise ConfigError(
                f"--against {name}: no such row; name a policy of --policies, or one of: {'; '.join(labels)}"
            )
    return [label for name in asked for label in labels if name in (label, policies[label])]


def _windows(whole: Experiment, count: int) -> list[Experiment]:
    """An experiment cut in time, all of it on the cluster of its beginning."""
    trace, recorded = whole.trace, whole.recorded
    begin = float(trace.submit_s[0]) if whole.from_s is None else whole.from_s
    # A second more: the end is exclusive. Jobs that are there need no others after them.
    last = max(float(trace.submit_s[-1]), begin) if recorded else float(trace.submit_s[-1])
    end = last + 1.0 if whole.until_s is None else whole.until_s
    if begin >= end:
        raise ConfigError("--from must lie before --until")
    cuts = backtest.windows_of(begin, end, count)
    # One window is what --from and --until name; one that is begun as recorded may live of jobs from before.
    for since, until in cuts if count > 1 and not recorded else ():
        if not len(trace.between(since, until)):
            stretch = f"[{iso(since)}, {iso(until)})"
            raise ConfigError(f"--windows {count}: no job was submitted in {stretch}; cut fewer, or name --from")
    place = whole.cluster or cluster_of(trace, from_s=whole.from_s)
    return [replace(whole, cluster=place, from_s=since, until_s=until) for since, until in cuts]


def _inputs(experiments: Sequence[Experiment], result: dict[str, Any], home: Path) -> dict[str, Any]:
    used = {(name, number) for row in result["rows"] for name, number in row["versions"].items()}
    registry = open_registry(home)
    # As predictors are listed everywhere.
    order = {name: position for position, name in enumerate(PREDICTORS)}
    versions = [registry.resolve(*one) for one in sorted(used, key=lambda one: (order[one[0]], one[1]))]
    trace, place = experiments[0].trace, experiments[0].place()
    notes = [n for one in result["inputs"] for n in one["notes"]]
    return {
        "trace": {
            "name": trace.name,
            "sha256": trace.source.sha256,
            "rows": trace.source.rows,
            "jobs": sum(len(one.window) for one in experiments),
            "from": float(trace.submit_s[0]),
            "until": float(trace.submit_s[-1]),
            "pools_origin": f"quotas: {place.origin}",
            "notes": list(trace.notes),
            "dropped": dict(result["inputs"][0]["dropped"]),
        },
        "from_s": experiments[0].from_s,
        "until_s": experiments[-1].until_s,
        "pools": {pool.name: pool.quota for pool in place.pools},
        "models": [version_row(version) for version in versions],
        "command": shlex.join(["jobcast", *words]) if (words := typed_words()) else None,
        "notes": [
            *["training data of a model reach into the window (--allow-overlap)"] * result["overlap_allowed"],
            *(note for note in dict.fromkeys(notes) if note.startswith((LOOP_NOTE, LOCALITY))),
        ],
    }
