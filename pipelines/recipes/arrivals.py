"""How WillJobsArrive is trained."""

from jobcast.features.corpus import build_corpus
from jobcast.models.evaluation import arrival_curves, evaluate_arrivals
from jobcast.models.will_jobs_arrive import WillJobsArrive
from jobcast.pipelines.console import Step
from jobcast.pipelines.curves import CurvePoints, by_kind
from jobcast.pipelines.recipes.common import Trained, TrainingData, TrainSettings
from jobcast.traces.history import pool_histories

ALGORITHMS = ("lightgbm", "xgboost")
"""The default first."""


def train_arrivals(data: TrainingData, algorithm: str, settings: TrainSettings, progress: Step | None) -> Trained:
    """WillJobsArrive. SIA, section 5.4.1."""
    corpus = data.corpus
    if corpus is None:
        histories = {name: h for name, h in pool_histories(data.trace).items() if name in data.pools}
        corpus = build_corpus(histories, data.from_s, data.until_s, settings.horizons_min, settings.step_s, progress)

    def fitted(until_s: float) -> WillJobsArrive:
        model = WillJobsArrive(algorithm, settings.miss_share, settings.seed)
        return model.fit(corpus.of_rows(corpus.until(until_s)), until_s)

    validation, curves = {}, CurvePoints()
    if data.until_s - data.validation_from_s > 60.0 * max(settings.horizons_min):
        twin = fitted(data.validation_from_s)
        window = (data.validation_from_s, data.until_s)
        validation = evaluate_arrivals(twin, corpus, *window)
        curves = by_kind(arrival_curves(twin, corpus, *window), twin.feature_importances)
    model = fitted(data.until_s)
    parameters = {"miss_share": settings.miss_share, "step_s": settings.step_s}
    return Trained(model, algorithm, validation, parameters, curves)
