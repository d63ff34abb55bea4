"""What the main job refuses before its first stage, so that a mistake costs no minutes and leaves nothing behind."""

from pathlib import Path

from jobcast.domain.errors import ConfigError
from jobcast.domain.hardware import pools_cluster
from jobcast.pipelines.experiments.backtest import windows_of
from jobcast.pipelines.experiments.experiment import Experiment
from jobcast.pipelines.experiments.forecast_specs import PREDICTORS, parse_forecasts
from jobcast.pipelines.experiments.simulation import warmup_end
from jobcast.pipelines.lifecycle.predictors import find_predictor
from jobcast.pipelines.lifecycle.recipes import recipe_of
from jobcast.pipelines.report.console import Console
from jobcast.pipelines.report.files import check_outputs
from jobcast.pipelines.stages.config import LEARNED, SCHEDULERS, Params
from jobcast.pipelines.stages.prepared_traces import Prepared, prepare_trace
from jobcast.schedulers.policies import POOLS, WHOLE_JOBS
from jobcast.schedulers.registry import find_of_kind
from jobcast.traces.enrich.columns import parse_enrich
from jobcast.traces.generators import GENERATORS
from jobcast.traces.splits import pools_to_learn_from


def check_run(params: Params, root: Path, home: Path, console: Console) -> None:
    """Check parameters, places and the trace of a run; what the trace's reader decided is said.

    Raises
    ------
    ConfigError
        A policy, source of forecasts, algorithm or setting is not known, or a place cannot be written to.
    TraceError, PoolsError, TrainingError
        The trace cannot be read, replayed on its quotas, or learnt from.
    """
    _check_names(params)
    check_outputs({}, {"--out": root, "the store": home / "mlruns"})
    generator = GENERATORS.get(params.prepare.trace)
    if generator is not None and params.prepare.pools is None:
        generator.parse(params.prepare.settings)  # its trace fits its own quotas
        return
    prepared = prepare_trace(params.prepare)
    _check_fit(params, prepared)
    for note in prepared.trace.notes:
        console.note(f"{prepared.trace.source.path}: {note}")


def _check_names(params: Params) -> None:
    find_of_kind(params.backtest.baseline, *WHOLE_JOBS)
    for cells in params.backtest.cells:
        find_of_kind(cells.policy, *WHOLE_JOBS)
        for text in cells.forecasts:
            parse_forecasts(text)
    if not any(cells.forecasts for cells in params.backtest.cells):
        raise ConfigError("backtest.cells: nothing to replay; name a policy and its forecasts")
    for predictor in PREDICTORS:
        algorithms = params.train.algorithms(predictor)
        if not algorithms:
            raise ConfigError(f"train.{predictor.replace('-', '_')}: names no algorithm; leave it out for the default")
        for algorithm in algorithms:
            recipe_of(predictor, algorithm)
    parse_enrich(params.enrich.settings)
    for predictor in (*LEARNED, *SCHEDULERS):
        for algorithm in params.learned(predictor).algorithms:
            find_predictor(predictor, algorithm)


def _check_fit(params: Params, prepared: Prepared) -> None:
    """Whether there is enough to learn from, and each window of the backtest can be replayed."""
    trace, split = prepared.trace, prepared.split
    pools_to_learn_from(trace.between(split.train_from_s, split.train_until_s), params.featurize.min_train_jobs)
    for begin, end in windows_of(split.train_until_s, split.test_until_s, params.backtest.windows):
        place = pools_cluster(prepared.pools)
        one = Experiment(trace=trace, cluster=place, from_s=begin, until_s=end, only_pools=True)
        warmup_end(one.scenario(POOLS), params.backtest.warmup_days)
