"""Forecasts of the batch sizes that training jobs will run at. Shockwave, section 5."""

from collections.abc import Mapping

from jobcast.models.regimes.prior import RegimePrior, RunTime
from jobcast.models.regimes.trajectories import ADAPTATIONS, Adaptation, Greedy, Restatement, StandardBayes

__all__ = [
    "ADAPTATIONS",
    "REGIME_RULES",
    "Adaptation",
    "Greedy",
    "RegimePrior",
    "Restatement",
    "RunTime",
    "StandardBayes",
]

REGIME_RULES: Mapping[str, type[Restatement] | type[StandardBayes] | type[Greedy]] = {
    "restatement": Restatement,
    "bayes": StandardBayes,
    "greedy": Greedy,
}
"""Rules that learn nothing beforehand, by the name that users give; made without arguments."""
