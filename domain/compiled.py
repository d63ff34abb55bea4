"""What compiled code is written with: numba's decorator and its types. Importing numba takes a second.

Types of contiguous arrays are named by their elements, floats (F), whole numbers (I) or truth values (B), and by how
many axes they have.
"""

from typing import Any

import numba

# Numba has no types that mypy could read.
njit: Any = numba.njit
types: Any = numba.types
F1, F2, F3, F4 = (types.Array(types.float64, axes, "C") for axes in (1, 2, 3, 4))
I1, I2, I3 = (types.Array(types.int64, axes, "C") for axes in (1, 2, 3))
B1, B2 = (types.Array(types.boolean, axes, "C") for axes in (1, 2))
READ_F1, READ_F2, READ_F3 = (types.Array(types.float64, axes, "C", readonly=True) for axes in (1, 2, 3))
READ_I1, READ_I2 = (types.Array(types.int64, axes, "C", readonly=True) for axes in (1, 2))
"""Those of `READ` may be arrays that must not be written to."""
