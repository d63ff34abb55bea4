"""CurvePrior: what is known of each family's parameters before a curve is seen, as plain numbers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.errors import RegistryError
from jobcast.models.curves.families import FAMILIES, WIDEST

Floats = NDArray[np.float64]
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
        with np.errstate(divide="ignore"):
            log_weight = np.log(np.array([self.weight[name] for name in FAMILIES]))
        return mean, precision, log_weight - np.log(sum(self.weight.values()))

    def told(self) -> dict[str, Any]:
        """As JSON."""
        return {
            name: {"mean": list(self.mean[name]), "sd": list(self.sd[name]), "weight": self.weight[name]}
            for name in FAMILIES
        }

    @classmethod
    def read(cls, told: Mapping[str, Any]) -> Self:
        """What `told` gave."""
        return cls(
            {name: tuple(one["mean"]) for name, one in told.items()},
            {name: tuple(one["sd"]) for name, one in told.items()},
            {name: one["weight"] for name, one in told.items()},
        )
