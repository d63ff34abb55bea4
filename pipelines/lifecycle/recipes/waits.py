"""How QueueWait is trained."""

from dataclasses import asdict

from jobcast.models.evaluation.queue_waits import fold_figures
from jobcast.models.queue_wait import BOUND, QueueWait
from jobcast.pipelines.lifecycle.recipes.common import Trained, TrainingData, TrainSettings
from jobcast.pipelines.report.console import Step


def train_waits(
    data: TrainingData,
    algorithm: str,
    settings: TrainSettings,
    progress: Step | None,
    kind: type[QueueWait] = QueueWait,
) -> Trained:
    """QueueWait; its figures are of the last part of the training time, forecast from what was known before."""
    model = kind(seed=settings.seed).fit(data.trace, data.from_s, data.until_s)
    result = {"calibrated_rows": model.calibrated_rows_, "bound_moved_log10": float(model.shifts_[BOUND])}
    return Trained(model, algorithm, fold_figures(model.folds_, data.until_s), {**asdict(model.settings), **result})
