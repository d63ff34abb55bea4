"""How good the predictors are on a later window: the figures of `jobcast evaluate --json`."""

from jobcast.models.evaluation.arrivals import arrival_curves, evaluate_arrivals
from jobcast.models.evaluation.durations import evaluate_durations
from jobcast.models.evaluation.loads import evaluate_loads

__all__ = ["arrival_curves", "evaluate_arrivals", "evaluate_durations", "evaluate_loads"]
