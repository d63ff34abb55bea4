"""What compiled code is written with: numba's decorator and its types. Importing numba takes a second."""

from typing import Any

import numba

# Numba has no types that mypy could read.
njit: Any = numba.njit
types: Any = numba.types

FLOATS, FLOATS_2D, FLOATS_3D = (types.Array(types.float64, dimensions, "C") for dimensions in (1, 2, 3))
INTS, INTS_2D, INTS_3D = (types.Array(types.int64, dimensions, "C") for dimensions in (1, 2, 3))
BOOLS, BOOLS_2D = (types.Array(types.boolean, dimensions, "C") for dimensions in (1, 2))
"""Arrays in one piece that may be written."""
