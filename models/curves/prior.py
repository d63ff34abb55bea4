"""CurvePrior: what is known of each family's parameters before a curve is seen, as plain numbers.

The eleven families of learning curves of Domhan, Springenberg and Hutter (IJCAI 2015, table 1).

All are of x = 1 + 100 t / T, for epoch t of a run of T epochs, so that x lies in [1, 101], and give a metric scaled so
that the first value seen is 1 and the last of the run is expected at 2; see `normalised`. Positive parameters are kept
as logarithms. Values and gradients are compiled: `kernels`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.errors import RegistryError

WIDEST = 4
"""Most parameters that a family has."""
TIME_SPAN = 100.0
"""x - 1 at the end of a run."""


@dataclass(frozen=True, slots=True)
class Family:
    """A parametric family.

    Attributes
    ----------
    name : as users see it
    formula : of x, with parameters as in the paper
    parameters : what a fit finds, in order
    mean, sd : weakly informative defaults for these, of a curve that has reached four fifths of its rise after a fifth
        of its run and is level at the end: about the best fit to `finished.usual_progress`, and how far off a curve may
        be
    """

    name: str
    formula: str
    parameters: tuple[str, ...]
    mean: tuple[float, ...]
    sd: tuple[float, ...]


_RISE = ("upper", "lower", "log_kappa", "log_delta")
_RISE_SD = (0.3, 0.5, 0.8, 0.4)
_FAMILIES = (
    Family("pow3", "c - a x^-alpha", ("c", "log_a", "log_alpha"), (2.5, 0.6, -1.2), (0.4, 0.5, 0.5)),
    Family(
        "pow4",
        "c - (a x + b)^-alpha",
        ("c", "log_a", "log_b", "log_alpha"),
        (2.05, -3.0, 0.0, 1.0),
        (0.3, 1.0, 0.5, 0.7),
    ),
    Family("loglog", "log(a log x + b)", ("log_a", "log_b"), (0.3, 0.6), (0.7, 0.7)),
    Family("vapor", "exp(a + b / x + c log x)", ("a", "b", "c"), (0.3, -0.7, 0.1), (0.3, 0.5, 0.1)),
    Family(
        "hill3", "m x^eta / (kappa^eta + x^eta)", ("log_m", "log_eta", "log_kappa"), (0.8, -0.5, 1.0), (0.3, 0.5, 0.8)
    ),
    Family("mmf", "u - (u - l) / (1 + (kappa x)^delta)", _RISE, (2.05, 1.0, -2.2, 0.4), _RISE_SD),
    Family(
        "exp4", "c - exp(b - a x^alpha)", ("c", "log_a", "log_alpha", "b"), (2.0, -2.0, -0.1, 0.1), (0.3, 0.8, 0.4, 0.5)
    ),
    Family("janoschek", "u - (u - l) exp(-kappa x^delta)", _RISE, (2.0, 0.9, -2.2, -0.1), _RISE_SD),
    Family("weibull", "u - (u - l) exp(-(kappa x)^delta)", _RISE, (2.0, 0.9, -2.4, -0.1), _RISE_SD),
    Family("log_power", "a / (1 + (x / e^b)^-c)", ("log_a", "b", "log_c"), (0.8, 1.0, -0.5), (0.3, 0.8, 0.5)),
    Family("ilog2", "c - a / log(x + 1)", ("c", "log_a"), (2.35, 0.5), (0.4, 0.5)),
)
FAMILIES: Mapping[str, Family] = {family.name: family for family in _FAMILIES}
"""By name, in the order of the compiled code's indices."""
NAMES = tuple(FAMILIES)


UNUSED_SD = 1.0
"""Of parameters that a family does not have: they stay at 0 and touch nothing."""


@dataclass(frozen=True, slots=True)
class CurvePrior:
    """A normal distribution of each parameter of each family, and how likely families are.

    Curves are scaled as `normalised` says: x = 1 + 100 t / T for epoch t of T, and the metric v = 1 at the first value
    of the run, 2 at its last (smoothed) one, whether it rises or falls. Parameters of one family are independent.

    Attributes
    ----------
    mean, sd : family -> one number a parameter, in the order of `FAMILIES[name].parameters`
    weight : family -> its prior probability; sums to 1
    """

    mean: Mapping[str, tuple[float, ...]]
    sd: Mapping[str, tuple[float, ...]]
    weight: Mapping[str, float]

    def __post_init__(self) -> None:
        for name, family in FAMILIES.items():
            mean, sd = self.mean.get(name, ()), self.sd.get(name, ())
            if not len(mean) == len(sd) == len(family.parameters):
                raise RegistryError(
                    f"prior of {name}: {len(mean)} means and {len(sd)} sds; give {len(family.parameters)} each, of "
                    f"{', '.join(family.parameters)}"
                )
            if not (np.isfinite(mean).all() and np.isfinite(sd).all() and min(sd) > 0):
                raise RegistryError(f"prior of {name}: means must be finite and sds finite and above 0")
        if set(self.weight) != set(FAMILIES) or min(self.weight.values()) < 0 or sum(self.weight.values()) <= 0:
            raise RegistryError(f"prior's weights: give one number of at least 0 for each of {', '.join(FAMILIES)}")

    @classmethod
    def default(cls) -> Self:
        """Weakly informative: see `families.Family`; all families are equally likely.

        >>> CurvePrior.default().mean["ilog2"] == FAMILIES["ilog2"].mean
        True
        """
        mean = {name: family.mean for name, family in FAMILIES.items()}
        sd = {name: family.sd for name, family in FAMILIES.items()}
        return cls(mean, sd, dict.fromkeys(FAMILIES, 1 / len(FAMILIES)))

    def arrays(self) -> tuple[Floats, Floats, Floats]:
        """Means (11, 4), precisions (11, 4) and log weights (11,), unused parameters padded."""
        mean, precision = np.zeros((len(FAMILIES), WIDEST)), np.full((len(FAMILIES), WIDEST), UNUSED_SD**-2)
        for row, name in enumerate(FAMILIES):
            used = len(self.mean[name])
            mean[row, :used] = self.mean[name]
            precision[row, :used] = np.asarray(self.sd[name]) ** -2.0
        # A family may have weight 0, whose logarithm is minus infinity.
        with np.errstate(divide="ignore"):
            log_weight = np.log(np.array([self.weight[name] for name in FAMILIES]))
        return mean, precision, log_weight - np.log(sum(self.weight.values()))

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            name: {"mean": list(self.mean[name]), "sd": list(self.sd[name]), "weight": self.weight[name]}
            for name in FAMILIES
        }

    @classmethod
    def read(cls, saved: Mapping[str, Any]) -> Self:
        """What `told` gave."""
        return cls(
            {name: tuple(one["mean"]) for name, one in saved.items()},
            {name: tuple(one["sd"]) for name, one in saved.items()},
            {name: one["weight"] for name, one in saved.items()},
        )
