"""CurveNumbers: all that `AccuracyCurve` has learnt, as plain numbers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from jobcast.models.curves.prior import CurvePrior
from jobcast.models.curves.shape import USUAL_RATE

ANNEALING = 4.0
"""Standard deviations of noise that annealing gives back, times the root of the share of epochs ahead; a default."""
SPREAD_SHARES = (0.0, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
"""Shares of the epochs seen at which intervals are calibrated."""
CUT_SIZES = (0.4, 0.15, 0.05)
"""Jumps after the first, the second and further cuts of the learning rate, as shares of the way to the bound: of
ResNets, .38 and .2 on ImageNet (from .6 by .15, then by .05), about a half and a tenth on CIFAR (He et al., CVPR 2016).
"""
CUT_SIZE_SD = 0.5
"""Standard deviation of such a jump, as a share of it."""


@dataclass(frozen=True, slots=True)
class AppCurve:
    """What is known of an application that was trained before, at other batch sizes.

    Attributes
    ----------
    direction : 1 where its metric rises, -1 where it falls
    curves : how many runs
    mean, sd : (PLACES,) metric at shares of the epochs from 0 to 1: the mean over runs, and how far these are apart
    """

    direction: float
    curves: int
    mean: tuple[float, ...]
    sd: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class CurveNumbers:
    """What forecasts are made of.

    Attributes
    ----------
    prior : of the families
    rate : usual rate of the rise, see `shape`
    annealing : see ANNEALING
    spread : by SPREAD_SHARES, what standard deviations are multiplied with so that nine in ten intervals held
    cut_sizes, cut_sds : see CUT_SIZES; by how many cuts there were before
    rising : share of applications whose metric rises
    apps : application -> what is known of it
    """

    prior: CurvePrior
    rate: float
    annealing: float
    spread: tuple[float, ...]
    cut_sizes: tuple[float, ...] = CUT_SIZES
    cut_sds: tuple[float, ...] = tuple(CUT_SIZE_SD * size for size in CUT_SIZES)
    rising: float = 0.5
    apps: Mapping[str, AppCurve] = field(default_factory=dict)

    @classmethod
    def default(cls) -> Self:
        """What is assumed before any curve is seen."""
        return cls(CurvePrior.default(), USUAL_RATE, ANNEALING, (1.0,) * len(SPREAD_SHARES))

    def told(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "prior": self.prior.told(),
            "rate": self.rate,
            "annealing": self.annealing,
            "spread": list(self.spread),
            "cut_sizes": list(self.cut_sizes),
            "cut_sds": list(self.cut_sds),
            "rising": self.rising,
            "apps": {
                name: {"direction": app.direction, "curves": app.curves, "mean": list(app.mean), "sd": list(app.sd)}
                for name, app in self.apps.items()
            },
        }

    @classmethod
    def read(cls, told: Mapping[str, Any]) -> Self:
        """What `told` gave."""
        apps = {
            name: AppCurve(app["direction"], app["curves"], tuple(app["mean"]), tuple(app["sd"]))
            for name, app in told["apps"].items()
        }
        several = {name: tuple(told[name]) for name in ("spread", "cut_sizes", "cut_sds")}
        prior = CurvePrior.read(told["prior"])
        return cls(
            prior=prior, rate=told["rate"], annealing=told["annealing"], rising=told["rising"], apps=apps, **several
        )
