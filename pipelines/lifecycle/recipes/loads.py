"""How NewLoad is trained."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from jobcast.domain.errors import TrainingError
from jobcast.domain.history import PoolHistory
from jobcast.features.loads import need_windows
from jobcast.models.algorithms import PAPER
from jobcast.models.baselines import windows_of_week
from jobcast.models.evaluation import evaluate_loads
from jobcast.models.load_data import Demands, LoadData
from jobcast.models.load_quantile import QuantileLoad, QuantileSettings
from jobcast.models.load_selection import select, tune_loads
from jobcast.models.load_sliding import SlidingMax
from jobcast.models.new_load import NewLoad
from jobcast.pipelines.lifecycle.recipes.common import AUTO, Trained, TrainingData, TrainSettings, kept
from jobcast.pipelines.report.console import Step
from jobcast.traces.history import histories_of

Table = Sequence[Mapping[str, Any]]
Histories = Mapping[str, PoolHistory]


def train_loads(
    data: TrainingData,
    algorithm: str,
    settings: TrainSettings,
    progress: Step | None,
    kind: type[NewLoad] = NewLoad,
) -> Trained:
    """NewLoad. SIA, section 5.4.1."""
    asked = algorithm
    if asked == PAPER:
        # SIA reserves what it estimates: no second, higher quantile for lending.
        algorithm, settings = SlidingMax.algorithm, replace(settings, lending_coverage=settings.coverage)
    histories = histories_of(data.trace, data.pools)
    tuned, trials = None, list[Mapping[str, Any]]()
    if settings.tune and algorithm in (AUTO, QuantileLoad.algorithm):
        # On what came before the twin's validation, so that its figures are of windows that nothing was chosen by.
        earlier = LoadData.of(histories, data.from_s, data.validation_from_s, settings.horizons_min)
        tuned, trials = tune_loads(earlier, Demands.of(settings.coverage), settings.tune, settings.seed)
    fit = partial(_fitted, kind, histories, data.from_s, algorithm, settings, tuned)
    validation: Mapping[str, Any] = {}
    # A twin can only be scored on windows that end within the training time.
    scored_s = data.until_s - data.validation_from_s
    if scored_s > 60.0 * max(settings.horizons_min):
        # A rule beside it looks back a week: better refused now than after the training.
        for horizon_min in settings.horizons_min:
            need_windows(60.0 * horizon_min, windows_of_week(60.0 * horizon_min), int(scored_s // settings.step_s))
        known = data.twin
        try:
            twin = known if isinstance(known, NewLoad) else fit(data.validation_from_s)[0]
        except TrainingError:
            twin = None  # too short to leave a part out: the model itself is trained all the same
        if twin is not None:
            validation = evaluate_loads(twin, histories, data.validation_from_s, data.until_s, settings.step_s)
    if progress is not None:
        progress(1, 2)
    model, table = fit(data.until_s)
    if progress is not None:
        progress(2, 2)
    concrete = asked if asked == PAPER else model.algorithm
    return Trained(model, concrete, validation, _parameters(model), **kept(table, trials))


def _fitted(
    kind: type[NewLoad],
    histories: Histories,
    from_s: float,
    algorithm: str,
    settings: TrainSettings,
    tuned: QuantileSettings | None,
    until_s: float,
) -> tuple[NewLoad, Table]:
    """A model, and the table that `auto` chose its algorithm by."""
    data = LoadData.of(histories, from_s, until_s, settings.horizons_min)
    table: Table = []
    if algorithm == AUTO:
        algorithm, table = select(data, Demands.of(settings.coverage), settings.seed, tuned)
    model = kind(
        algorithm,
        settings.coverage,
        lending_coverage=settings.lending_coverage,
        seed=settings.seed,
        settings=tuned,
    )
    # Sorted, for equal models must give equal bytes.
    model.pools_ = tuple(sorted(histories))
    return model.fit_data(data), table


def _parameters(model: NewLoad) -> dict[str, Any]:
    result: dict[str, Any] = {"coverage": model.coverage, "loaded_coverage": model.loaded_coverage}
    result["lending_coverage"] = model.lending_coverage
    rule = model.rule_
    if isinstance(rule, QuantileLoad):
        result |= {"levels": ",".join(f"{level:.4f}" for level in rule.levels_)}
        result |= {"trees": rule.settings.trees, "leaves": rule.settings.leaves}
    elif isinstance(rule, SlidingMax):
        result |= {"windows": ",".join(map(str, rule.windows_))}
    # A horizon without any load has no coverage.
    covered = ["" if share is None else f"{share:.4f}" for share in rule.coverages_]
    return result | {"coverages": ",".join(covered), "demands": ",".join(f"{share:.4f}" for share in rule.demands_)}
