"""`rounding.rounded` compiled, for rules that are. Importing numba takes a second, so only what computes does."""

from typing import Any

import numba

from jobcast.domain import rounding

# Without fastmath, which would cancel the two subtractions against each other.
rounded: Any = numba.njit("float64(float64)", cache=True)(rounding.rounded)
