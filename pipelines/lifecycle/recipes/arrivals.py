"""How WillJobsArrive is trained."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jobcast.domain.clock import MINUTE_S
from jobcast.features.arrivals import TABLE_9
from jobcast.features.corpus import Corpus, active_grid, build_corpus
from jobcast.models.algorithms import ALGORITHMS as MODELS
from jobcast.models.algorithms import PAPER, Settings
from jobcast.models.arrival_folds import FOLDS, cuts, odd
from jobcast.models.arrival_selection import Selection, Tuned, averages_the_others, flat, select, tune_arrivals
from jobcast.models.evaluation import arrival_curves, evaluate_arrivals
from jobcast.models.will_jobs_arrive import WillJobsArrive
from jobcast.pipelines.lifecycle.recipes.common import AUTO, Trained, TrainingData, TrainSettings, kept
from jobcast.pipelines.report.console import Step
from jobcast.pipelines.report.predictor_plots import CurvePoints, by_kind
from jobcast.traces.history import histories_of

HOW: Mapping[str, Mapping[str, Any]] = {PAPER: {"columns": TABLE_9, "threshold": 0.5}}
"""What an algorithm is given beside its settings."""
LEARNT_ALONE = len(MODELS) - 1
"""Algorithms that `auto` trains; the average comes of them."""
SECOND = 1.0
MOST_ROWS = 400_000
"""Longer traces and more pools are read on a coarser grid."""


def train_arrivals(
    data: TrainingData,
    algorithm: str,
    settings: TrainSettings,
    progress: Step | None,
    kind: type[WillJobsArrive] = WillJobsArrive,
) -> Trained:
    """WillJobsArrive. SIA, section 5.4.1.

    A twin learns and chooses everything on what lies before the last part of the training time and is scored on that
    part. With `auto` its algorithm is the winner of the folds before; with `tune` settings are searched there too.
    """
    plan = _Plan(_corpus(data, settings, progress), data, settings, progress, kind)
    # `early` is chosen by what lies before the twin's window, `winner` by all of the training time.
    early, tuned = plan.tuned(algorithm)
    chosen = {} if tuned is None else {early: tuned.settings}
    selection = plan.selection(chosen) if algorithm == AUTO else None
    winner = algorithm
    if selection is not None:
        winner = selection.winner()
        # Where settings were searched, their algorithm was chosen on the same folds already.
        early = early if tuned is not None else selection.winner(plan.folds_before_validation)
    validation, curves = plan.validated(early, chosen)
    model = plan.fitted(winner, data.until_s, chosen, selection)
    parameters = _parameters(model, plan.corpus.step_s, settings, selection, tuned)
    tables = kept(selection.table() if selection else (), tuned.trials if tuned else ())
    return Trained(model, winner, validation, parameters, curves, **tables)


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """The steps of a training, all on the same rows."""

    corpus: Corpus
    data: TrainingData
    settings: TrainSettings
    progress: Step | None
    kind: type[WillJobsArrive]

    def tuned(self, algorithm: str) -> tuple[str, Tuned | None]:
        """The algorithm whose settings are searched before the twin's window, and what was found, if at all."""
        if not self.settings.tune:
            return algorithm, None
        from_s, until_s, seed = self.data.from_s, self.data.validation_from_s, self.settings.seed
        if algorithm == AUTO:
            algorithm = select(self.corpus, from_s, until_s, seed).winner()
        trials = self.settings.tune
        return algorithm, tune_arrivals(self.corpus, from_s, until_s, algorithm, trials, seed, self.progress)

    def selection(self, chosen: Mapping[str, Settings]) -> Selection:
        """All algorithms on the folds of the training time."""
        learnt = LEARNT_ALONE if averages_the_others(chosen) else LEARNT_ALONE + 1  # a tuned average learns anew
        steps = _counted(self.progress, learnt * len(self.corpus.horizons_min))
        return select(self.corpus, self.data.from_s, self.data.until_s, self.settings.seed, chosen, steps)

    @property
    def folds_before_validation(self) -> int:
        """Folds that end before the twin's window."""
        # A second of slack, for the cuts are products of floats.
        ends = cuts(self.data.from_s, self.data.until_s)[1:]
        return int((ends <= self.data.validation_from_s + SECOND).sum())

    def fitted(
        self, name: str, until_s: float, chosen: Mapping[str, Settings], selection: Selection | None = None
    ) -> WillJobsArrive:
        """A model; its forecasts out of fold are the selection's where there are any."""
        # The paper takes half as the threshold and its own columns; all else is as of ours.
        own: Mapping[str, Any] = HOW.get(name, {})
        model = self.kind(name, self.settings.miss_share, self.settings.seed, chosen.get(name), **own)
        return model.fit(self.corpus, until_s, None if selection is None else selection.forecasts[name])

    def validated(self, name: str, chosen: Mapping[str, Settings]) -> tuple[Mapping[str, Any], CurvePoints]:
        """What a twin scores on the end of the training time; nothing where that is shorter than a window."""
        window = (self.data.validation_from_s, self.data.until_s)
        # No window of the longest horizon would end in it.
        if window[1] - window[0] <= 60.0 * max(self.settings.horizons_min):
            return {}, CurvePoints()
        known = self.data.twin
        # Stage care has trained it already, on the same rows with the same seed.
        twin = known if isinstance(known, WillJobsArrive) else self.fitted(name, window[0], chosen)
        curves = arrival_curves(twin, self.corpus, *window)
        return evaluate_arrivals(twin, self.corpus, *window), by_kind(curves, twin.feature_importances)


def _corpus(data: TrainingData, settings: TrainSettings, progress: Step | None) -> Corpus:
    """Rows of the training window."""
    # A run builds the features once, for all predictors and for the test window.
    if data.corpus is not None:
        corpus = data.corpus
        return corpus.of_rows((corpus.tick_s >= data.from_s) & corpus.until(data.until_s))
    histories = histories_of(data.trace, data.pools)
    longest_s = MINUTE_S * max(settings.horizons_min)
    rows = len(histories) * active_grid(histories, data.from_s, data.until_s, settings.step_s, longest_s).size
    # Thinned before the rows are built: they are what takes memory.
    step_s = settings.step_s * odd(rows / MOST_ROWS)
    return build_corpus(histories, data.from_s, data.until_s, settings.horizons_min, step_s, progress)


def _parameters(
    model: WillJobsArrive, step_s: float, settings: TrainSettings, selection: Selection | None, tuned: Tuned | None
) -> dict[str, Any]:
    result: dict[str, Any] = {"miss_share": settings.miss_share, "step_s": step_s, "folds": FOLDS}
    if selection is not None:
        result["chosen_from"] = ",".join(selection.forecasts)
    if model.unfolded_:
        result["horizons_without_folds"] = ",".join(f"{k:g}" for k in model.unfolded_)
    if model.bot_pools_:
        result["bot_pools"] = ",".join(model.bot_pools_)
    if tuned is not None:
        result |= {"tune": settings.tune, **flat(tuned.settings)}
    return result


def _counted(progress: Step | None, total: int) -> Callable[[], None] | None:
    """One more done, each time it is called."""
    if progress is None:
        return None
    count = iter(range(1, total + 1))
    return lambda: progress(next(count), total)
