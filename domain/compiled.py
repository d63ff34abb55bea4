"""Types of what compiled loops take: contiguous arrays of floats (F) or whole numbers (I), by number of axes.

Importing numba takes a second, so only what computes imports this file.
"""

from typing import Any

import numba

# Numba has no types that mypy could read.
njit: Any = numba.njit
types: Any = numba.types
F1, F2, F3, F4 = (types.Array(types.float64, axes, "C") for axes in (1, 2, 3, 4))
I1, I2 = (types.Array(types.int64, axes, "C") for axes in (1, 2))
READ_F1, READ_F2, READ_F3 = (types.Array(types.float64, axes, "C", readonly=True) for axes in (1, 2, 3))
READ_I1, READ_I2 = (types.Array(types.int64, axes, "C", readonly=True) for axes in (1, 2))
"""Those of `READ` may be arrays that must not be written to."""
