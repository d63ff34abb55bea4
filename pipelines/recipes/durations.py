"""How JobDuration is trained."""

from collections.abc import Mapping
from typing import Any

from jobcast.models.evaluation import evaluate_durations
from jobcast.models.job_duration import JobDuration
from jobcast.pipelines.console import Step
from jobcast.pipelines.recipes.common import Trained, TrainingData, TrainSettings

ALGORITHMS = ("tag-pool-width",)
"""The default first."""


def train_durations(data: TrainingData, algorithm: str, settings: TrainSettings, progress: Step | None) -> Trained:
    """JobDuration. SIA, section 5.4.2."""
    window = data.trace.between(data.from_s, None)

    def fitted(until_s: float) -> JobDuration:
        return JobDuration(settings.horizons_min).fit(window, until_s)

    validation: Mapping[str, Any] = {}
    ended = data.trace.end_s[data.trace.submit_s >= data.validation_from_s] <= data.until_s
    if ended.any():
        twin = fitted(data.validation_from_s)
        validation = evaluate_durations(twin, data.trace, data.validation_from_s, data.until_s, data.pools)
    model = fitted(data.until_s)
    parameters = {"last_n": model.last_n, "min_same_tag": model.min_same_tag, "prior_weight": model.prior_weight}
    return Trained(model, algorithm, validation, parameters)
