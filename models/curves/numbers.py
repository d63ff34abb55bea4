"""CurveNumbers: all that `AccuracyCurve` has learnt, as plain numbers.

Applications that were trained before: at another batch size, their curve is much better known.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import numpy as np

from jobcast.domain.arrays import Floats, Ints
from jobcast.models.curves.finished import USUAL_RATE
from jobcast.models.curves.prior import CurvePrior

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
    rate : usual rate of the rise, see `finished`
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

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {**asdict(self), "prior": self.prior.as_dict()}

    @classmethod
    def read(cls, saved: Mapping[str, Any]) -> Self:
        """What `told` gave."""
        apps = {
            name: AppCurve(app["direction"], app["curves"], tuple(app["mean"]), tuple(app["sd"]))
            for name, app in saved["apps"].items()
        }
        several = {name: tuple(saved[name]) for name in ("spread", "cut_sizes", "cut_sds")}
        return cls(**{**saved, **several, "prior": CurvePrior.read(saved["prior"]), "apps": apps})


PLACES = 101
"""Of an application's mean curve, at equal shares of the epochs."""
APP_SD, APP_CURVES = 0.05, 2.0
"""How far runs of one application are apart before several are seen, as a share of their rise, and its weight."""


@dataclass(frozen=True, slots=True, eq=False)
class KnownApps:
    """Mean curves of the applications that each of n curves is of.

    Attributes
    ----------
    rows : (k,) which of the n are of a known application
    mean, sd : (k, PLACES) metric of a new run at shares of the epochs
    last : (k,) the level that the curve has reached
    """

    rows: Ints
    mean: Floats
    sd: Floats
    last: Floats

    def combined(
        self, epoch: Floats, metric: Floats, lower: Floats, upper: Floats, seen: Ints, epochs: Ints
    ) -> tuple[Floats, Floats, Floats]:
        """Forecasts (n, e) weighted by precision with the application's mean; how far off that is now wears off."""
        if not len(self.rows):
            return metric, lower, upper
        metric, lower, upper = metric.copy(), lower.copy(), upper.copy()
        places = np.linspace(0.0, 1.0, PLACES)
        for k, row in enumerate(self.rows):
            now, share = seen[row] / epochs[row], epoch[row] / epochs[row]
            off = self.last[k] - np.interp(now, places, self.mean[k])
            ahead = np.clip((1 - share) / max(1 - now, 1e-9), 0.0, 1.0)
            expected = np.interp(share, places, self.mean[k]) + off * ahead
            own = np.interp(share, places, self.sd[k])
            # Precisions add up, on either side.
            for sd in (lower, upper):
                sd[row] = 1 / np.sqrt(sd[row] ** -2.0 + own**-2.0)
            wide = np.hypot(lower[row], upper[row]) / np.sqrt(2)
            trust = np.clip(wide**2 / own**2, 0.0, 1.0)
            metric[row] += trust * (expected - metric[row])
        return metric, lower, upper


def known_apps(apps: Sequence[str], last: Floats, known: Mapping[str, AppCurve]) -> KnownApps:
    """What is known of the applications of n curves, whose levels are `last` (n,)."""
    rows = [row for row, app in enumerate(apps) if app in known]
    # reshape: without rows the array has no second axis.
    mean = np.array([known[apps[row]].mean for row in rows]).reshape(len(rows), PLACES)
    sd = np.array([known[apps[row]].sd for row in rows]).reshape(len(rows), PLACES)
    return KnownApps(np.array(rows, np.int64), mean, sd, np.asarray(last)[rows])


def app_curve(direction: float, shares: Sequence[Floats], metrics: Sequence[Floats]) -> AppCurve:
    """Mean of an application's whole curves, and how far a new one may be off it.

    Parameters
    ----------
    direction : 1 where its metric rises, -1 where it falls
    shares, metrics : of each run, shares of its epochs and the metric at these
    """
    places = np.linspace(0.0, 1.0, PLACES)
    found = np.array([np.interp(places, share, metric) for share, metric in zip(shares, metrics, strict=True)])
    mean, rise = found.mean(axis=0), float(np.mean([np.ptp(metric) for metric in metrics]))
    runs = len(found)
    # As if some more runs had been seen that are apart as usual.
    variance = ((found - mean) ** 2).sum(axis=0) + APP_CURVES * (APP_SD * rise) ** 2
    sd = np.sqrt(variance / max(runs - 1 + APP_CURVES, 1.0) * (1 + 1 / runs))
    return AppCurve(direction, runs, tuple(mean.tolist()), tuple(np.maximum(sd, 1e-9).tolist()))
