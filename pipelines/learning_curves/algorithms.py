"""How AccuracyCurve learns, by the algorithm's name."""

from collections.abc import Callable, Mapping, Sequence

from jobcast.models.curves.accuracy_curve import AccuracyCurve
from jobcast.pipelines.console import Step
from jobcast.traces.learning_curves import LearningCurve

Curves = Sequence[LearningCurve]
Fit = Callable[[Curves, int, Step | None], AccuracyCurve]


def _combination(curves: Curves, seed: int, progress: Step | None) -> AccuracyCurve:
    """Priors of the families by penalised least squares."""
    return AccuracyCurve(seed).fit(curves)


def _bayes(curves: Curves, seed: int, progress: Step | None) -> AccuracyCurve:
    """Priors of the families by PyMC, which takes a minute and more; ConfigError where that is not installed."""
    from jobcast.models.curves.learning import learn_prior

    return AccuracyCurve(seed, learn_prior(curves, seed, progress=progress)).fit(curves)


ALGORITHMS: Mapping[str, Fit] = {"combination": _combination, "bayes": _bayes}
"""Algorithm -> (curves, seed, progress) -> a fitted predictor; the default first."""


def fitted(algorithm: str, curves: Curves, seed: int, progress: Step | None = None) -> AccuracyCurve:
    """A predictor trained on finished runs. Raises TrainingError where they tell nothing."""
    return ALGORITHMS[algorithm](curves, seed, progress)
