"""Numbers rounded before they decide, so that near-equal ones are equal on every machine.

Sums, quotients, logarithms and solvers differ in their last bits from processor to processor and from one version of a
library to the next. Where such numbers rank jobs, values that are equal by construction would be told apart by that
noise, and one such choice changes a whole run. Ranks are therefore compared after rounding, and ties go by position.

Rounding moves the cliff from where values are equal by construction to where nothing is: two values straddle the edge
of a rounding cell with a chance of noise / cell, here some 1e-12 / 1e-7.
"""

import numpy as np

from jobcast.domain.arrays import Floats

BITS = 24
"""That are kept: 7 significant digits, far above what noise grows to over a run, far below what any model knows."""
ERROR = 2.0**-BITS
"""Share of a number by which rounding moves it at most."""
SPLIT = 2.0 ** (53 - BITS) + 1.0
"""Dekker, "A floating-point technique for extending the available precision", 1971."""
LARGEST = 1e290
"""Beyond it the product would overflow: such numbers, infinite ones and NaN stay as they are."""


def rounded(value: float) -> float:
    """A number to the nearest of `BITS` bits; also compiled, see `rounding_kernels`.

    >>> rounded(0.1 + 0.2) == rounded(0.3), rounded(3600.0), rounded(float("inf"))
    (True, 3600.0, inf)
    """
    # Written so that NaN stays as well.
    if not -LARGEST < value < LARGEST:
        return value
    high = value * SPLIT
    # Not `value`: the subtraction rounds, which is the whole point; no compiler may simplify it.
    return high - (high - value)


def rounded_all(values: Floats) -> Floats:
    """Numbers, of any shape, each as `rounded`.

    >>> rounded_all(np.array([0.1 + 0.2, -1e300, np.inf])).tolist() == [rounded(0.3), -1e300, np.inf]
    True
    """
    # The product of what is too large would overflow with a warning.
    small = np.where(np.abs(values) < LARGEST, values, 0.0)
    high = small * SPLIT
    return np.where(np.abs(values) < LARGEST, high - (high - small), values)
