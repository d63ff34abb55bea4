"""How NewLoad is trained."""

from collections.abc import Mapping
from typing import Any

from jobcast.models.evaluation import evaluate_loads
from jobcast.models.new_load import NewLoad
from jobcast.pipelines.console import Step
from jobcast.pipelines.recipes.common import Trained, TrainingData, TrainSettings
from jobcast.traces.history import pool_histories

ALGORITHMS = ("sliding-max",)
"""The default first."""


def train_loads(data: TrainingData, algorithm: str, settings: TrainSettings, progress: Step | None) -> Trained:
    """NewLoad. SIA, section 5.4.1."""
    histories = {name: h for name, h in pool_histories(data.trace).items() if name in data.pools}

    def fitted(until_s: float) -> NewLoad:
        return NewLoad(settings.coverage).fit(histories, data.from_s, until_s, settings.horizons_min)

    validation: Mapping[str, Any] = {}
    if data.until_s - data.validation_from_s > 60.0 * max(settings.horizons_min):
        twin = fitted(data.validation_from_s)
        validation = evaluate_loads(twin, histories, data.validation_from_s, data.until_s, settings.step_s)
    model = fitted(data.until_s)
    parameters = {"coverage": model.coverage, "windows": ",".join(map(str, model.windows_))}
    return Trained(model, algorithm, validation, parameters)
