"""Stage judge: a predictor of enriched traces on the jobs after the split: its figures, and the policies that ask it.

The first algorithm's version becomes champion unless `jobcast drift` would say on these jobs that it is to be trained
anew, or the champion that there is is better.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import joblib

from jobcast.domain.errors import JobcastError
from jobcast.models.predictors import load_predictor
from jobcast.models.registry import Registry, open_registry
from jobcast.models.registry.cards import ModelVersion
from jobcast.models.registry.references import CHAMPION
from jobcast.pipelines.experiments import backtest
from jobcast.pipelines.experiments.backtest import Cell, CellResult, baselines_of, label_of, run_matrix
from jobcast.pipelines.experiments.backtest_results import results_of, write_results
from jobcast.pipelines.experiments.clusters import cluster_of
from jobcast.pipelines.experiments.experiment import Experiment
from jobcast.pipelines.experiments.forecast_specs import ORACLE, ForecastSpec
from jobcast.pipelines.experiments.policy_runs import default_forecasts, sources_for
from jobcast.pipelines.lifecycle import promotion
from jobcast.pipelines.lifecycle.drift_verdict import LEAST_DAYS, RETRAIN, bare_findings, findings, in_words, verdict_of
from jobcast.pipelines.lifecycle.forecast_rows import Blocks, Sample
from jobcast.pipelines.lifecycle.job_rows import gain_rows
from jobcast.pipelines.lifecycle.model_files import JUDGED, VERDICT, model_folder
from jobcast.pipelines.lifecycle.replay_judges import Judge, Window
from jobcast.pipelines.lifecycle.standards import Standards, judged
from jobcast.pipelines.report.files import write_json
from jobcast.pipelines.report.model_tables import log_on_versions, version_row
from jobcast.pipelines.stages.config import LEARNED, SCHEDULERS
from jobcast.pipelines.stages.context import Context
from jobcast.pipelines.stages.learn import registered
from jobcast.traces.facts import facts_beside
from jobcast.traces.files import replacing
from jobcast.traces.readers import read_trace
from jobcast.traces.table import Trace

FIGURES = ("skill", "coverage_90")
"""That `dvc metrics diff` compares of a predictor's first block, beside its main figure."""
HEADLINE = "speedup_gmean"
"""And of each policy with the version in use."""
DIGITS = 12
"""That figures in files keep: the last ones of a logarithm go by the processor, and the files are the same on all."""
BARE = f"by the figures alone, for fewer than {LEAST_DAYS} days have jobs"


def work(context: Context, item: str) -> None:
    """Score a predictor, replay its judges with each version, say whether it may be champion; then promote it."""
    versions = registered(context, item)
    if not versions:
        return _left_out(context, item)
    case, folder = _Case(context, item, versions, read_trace(context.learned_from(item))), context.root / JUDGED / item
    ran = {judge.policy: case.replayed(judge) for judge in case.standards.judges}
    # Two judges may share a baseline: it is told once.
    results = list({one.cell.identity: one for _, found in ran.values() for one in found}.values())
    result: dict[str, Any] = {"gains": [], "baselines": {}}
    if results:  # there are predictors that no policy asks
        bases = {law: base for named, _ in ran.values() for law, base in named.items()}
        result = results_of(results, bases=bases, draws=context.params.backtest.draws)
        write_results(folder, result, results)
    verdict = _settled(case.verdict(ran))
    write_json(folder / VERDICT, verdict)
    write_json(context.root / f"processed/metrics/{item}.json", _settled(case.headlines(verdict, ran)))
    rows = [one.full_row() for one in results]
    span, source = (case.experiment.from_s, case.experiment.until_s), case.trace.source
    logged = log_on_versions(context.home, {**result, "rows": rows}, case.trace.name, source.sha256, span)
    outcome = case.promoted() if verdict["passed"] else "no champion by this run"
    # Read again: promotion has moved aliases.
    registry = open_registry(context.home)
    models = [version_row(registry.resolve(one.name, one.version)) for one in versions.values()]
    context.write_receipt(f"judge-{item}", {"models": models, "logged": logged, "promotion": outcome})
    context.console.note(f"judge: {item} {'; '.join([verdict['verdict'], *verdict['reasons'], outcome])}")


def _settled(value: Any) -> Any:
    """What a JSON file is to hold, its numbers to `DIGITS` significant digits.

    >>> _settled({"mae": [0.1 + 0.2, None], "n": 3, "why": "few"})
    {'mae': [0.3, None], 'n': 3, 'why': 'few'}
    """
    if isinstance(value, Mapping):
        return {name: _settled(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_settled(one) for one in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def _left_out(context: Context, item: str) -> None:
    # An older verdict must not outlive the model that it was of.
    with replacing((context.root / JUDGED / item).resolve()) as draft:
        draft.mkdir()
        write_json(draft / VERDICT, {"passed": False, "reasons": ["no version"]})
    write_json(context.root / f"processed/metrics/{item}.json", {})
    context.console.note(f"judge: {item} was left out")


Ran = Mapping[str, tuple[Mapping[str, Cell], list[CellResult]]]
"""By policy what it is compared with, by law, and its runs."""


@dataclass(frozen=True)
class _Case:
    """A predictor's versions before the jobs after the split.

    Attributes
    ----------
    versions : by algorithm, that in use first
    trace : that it learns from
    """

    context: Context
    item: str
    versions: Mapping[str, ModelVersion]
    trace: Trace

    @property
    def standards(self) -> Standards:
        """What it is judged by."""
        return judged(self.item)

    @property
    def first(self) -> str:
        """The algorithm in use."""
        return next(iter(self.versions))

    @cached_property
    def experiment(self) -> Experiment:
        """The jobs after the split on the nodes of stage enrich."""
        split, _ = self.context.split()
        begin_s, end_s = split.train_until_s, float(self.trace.submit_s[-1]) + 1.0
        place = cluster_of(self.trace, cluster=self.context.nodes, from_s=begin_s)
        return Experiment(
            trace=self.trace, cluster=place, from_s=begin_s, until_s=end_s, drop_wide=True, only_pools=True
        )

    @cached_property
    def facts(self) -> Any:
        """The table beside the enriched jobs, for a predictor that learns from one."""
        table = self.standards.table
        return None if table is None else table.read(facts_beside(self.context.enriched, (table.name,))[table.name])

    def replayed(self, judge: Judge) -> tuple[Mapping[str, Cell], list[CellResult]]:
        """A policy with each version, and with what it goes by without one."""
        pairs = self._pairs(judge)
        cells = backtest.matrix(pairs, 1, 1)
        named = baselines_of(cells, judge.baseline, self.experiment, [pairs[0][1]])
        # Files of a stage are the same in every checkout, versions are not.
        bases = {law: replace(base, label=self._told(base)) for law, base in named.items()}
        with self.context.console.progress(f"judge {judge.policy}") as step:
            found = run_matrix(
                [self.experiment],
                backtest.with_baseline(cells, bases),
                home=self.context.home,
                bases=bases,
                jobs=min(len(cells), joblib.cpu_count()),
                progress=step,
            )
        return bases, found

    def _pairs(self, judge: Judge) -> list[tuple[str, ForecastSpec, str]]:
        """(policy, forecasts, label) of every run but the baselines; the first version's comes first."""
        rule, policy = judge.rule, judge.policy
        beside = self._beside(judge)
        pins = {name: tuple((one.name, one.version) for one in (own, *beside)) for name, own in self.versions.items()}
        specs = {name: ForecastSpec("registry", versions=of) for name, of in pins.items()}
        pairs = [(policy, spec, label_of(policy, spec, _label(name))) for name, spec in specs.items()]
        if rule.learned:  # other sources would take what was learned from the home's registry
            return pairs
        others = [*sources_for(self.experiment, rule, [ORACLE]), default_forecasts(self.experiment, rule)]
        return [*pairs, *((policy, one, label_of(policy, one)) for one in others if not one.asks_registry)]

    def _told(self, base: Cell) -> str:
        """A baseline's label, which names no version: their numbers differ from registry to registry."""
        return label_of(base.policy, base.spec, _label(self.first) if base.spec.asks_registry else None)

    def _beside(self, judge: Judge) -> list[ModelVersion]:
        """The run's versions of the other predictors that a policy cannot do without."""
        # Of this run, not the home's champions, which differ from home to home.
        names = sorted(judge.needs & {*LEARNED, *SCHEDULERS} - {self.item})
        found = [registered(self.context, name) for name in names]
        return [next(iter(versions.values())) for versions in found if versions]

    def _rows(self, algorithm: str, ran: Ran) -> Blocks:
        """Forecasts beside what came; of a scheduler, what it gained."""
        if self.standards.rows is None:
            return gain_rows(_of_version(ran, self.standards.judges[0].policy, algorithm))
        begin_s, end_s = self.experiment.stretch_s[0], self.experiment.until_s or 0.0
        times: dict[str, Any] = {"from_s": begin_s, "until_s": end_s, "known_s": end_s}
        sample = Sample(trace=self.trace, pools=tuple(self.trace.pools), facts=self.facts, **times)
        return self.standards.forecasts(self._model(algorithm), sample)

    def _model(self, algorithm: str) -> Any:
        return load_predictor(self.item, model_folder(self.context.root, self.item, algorithm))

    def verdict(self, ran: Ran) -> dict[str, Any]:
        """Figures of each version; what drift says of the first, all jobs after the split being its only week."""
        rows = {algorithm: self._rows(algorithm, ran) for algorithm in self.versions}
        metrics = open_registry(self.context.home).metrics(self.versions[self.first])
        nominal = self.standards.promised(self._model(self.first), metrics)
        promises = self.standards.promises(metrics)
        week_s = self.experiment.stretch_s[0], self.experiment.until_s or 0.0
        found = findings(rows[self.first], self.standards.limits, nominal, week_s[:1], week_s[1], promises)
        verdict = verdict_of(found or bare_findings(rows[self.first], self.standards.limits, nominal, week_s[0]))
        reasons = [in_words(one, one.figure in nominal) for one in verdict.off]
        return {
            "algorithm": self.first,
            "passed": verdict.says != RETRAIN,
            "verdict": verdict.says,
            "reasons": reasons if found else [*reasons, BARE],
            "nominal": nominal,
            "figures": {algorithm: {name: one.figures() for name, one in of.items()} for algorithm, of in rows.items()},
        }

    def headlines(self, verdict: Mapping[str, Any], ran: Ran) -> dict[str, Any]:
        """What `dvc metrics diff` compares, of the algorithm in use; the rest lies beside."""
        block = next(iter(verdict["figures"][self.first].values()))
        names = dict.fromkeys((self.standards.columns[0], *FIGURES))
        speedups = {policy: _of_version(ran, policy, self.first).figures.get(HEADLINE) for policy in ran}
        result = {**{name: block.get(name) for name in names}, **speedups}
        return {name: value for name, value in result.items() if value is not None}  # a law may have no baseline

    def promoted(self) -> str:
        """Make the first version champion, unless the champion is better; what became of it, in words."""
        registry, version = open_registry(self.context.home), self.versions[self.first]
        # Where nobody is champion, keeping the limits is enough.
        if CHAMPION not in registry.show(self.item).aliases:
            registry.promote(self.item, version.version, alias=CHAMPION)
            return "champion"
        if registry.resolve(self.item, CHAMPION).version == version.version:
            return "champion already"
        window = Window(self.trace, from_s=self.experiment.from_s, cluster=self.context.nodes)

        def compared(registry: Registry, candidate: ModelVersion, champion: ModelVersion) -> dict[str, Any]:
            return promotion.compare(registry, candidate, champion, window, self.facts)

        how: dict[str, Any] = {"force": False, "home": self.context.home}
        try:
            result = promotion.promote(self.item, version.version, CHAMPION, compared, **how)
        except JobcastError as error:  # one that has seen the jobs cannot be compared on them
            return f"no champion: {error}"
        return "champion" if result["promoted"] else f"no champion: {'; '.join(result['reasons'])}"


def _label(algorithm: str) -> str:
    return f"registry ({algorithm})"


def _of_version(ran: Ran, policy: str, algorithm: str) -> CellResult:
    """A policy's run with a version."""
    return next(one for one in ran[policy][1] if (one.cell.policy, one.forecasts) == (policy, _label(algorithm)))
