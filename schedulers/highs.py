"""HiGHS: programmes in whole numbers and fractions, as its own interface takes them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats

# One thread: with several, which of two equal optima is found depends on who comes first.
QUIET: dict[str, Any] = {"output_flag": False, "threads": 1}


def solver_of(options: Mapping[str, Any]) -> Any:
    """A solver with some options, on one core, that prints nothing."""
    import highspy

    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    for option, value in (QUIET | dict(options)).items():
        solver.setOptionValue(option, value)
    return solver


def model_of(
    cost: Floats, matrix: Any, low: Floats, high: Floats, most: Floats, whole: NDArray[np.bool_] | None = None
) -> Any:
    """Minimise cost x subject to low <= matrix x <= high and 0 <= x <= most.

    Parameters
    ----------
    cost, most : (n,)
    matrix : (rows, n) by columns, scipy's csc_array
    low, high : (rows,)
    whole : (n,) which columns are whole numbers; None: none is
    """
    import highspy

    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(cost), len(high)
    model.col_cost_, model.row_lower_, model.row_upper_ = cost, low, high
    model.col_lower_, model.col_upper_ = np.zeros(len(cost)), most
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_, model.a_matrix_.index_, model.a_matrix_.value_ = matrix.indptr, matrix.indices, matrix.data
    if whole is not None:
        kinds = highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger
        model.integrality_ = [kinds[one] for one in whole.tolist()]
    return model
