"""Sums of squared residuals of all families as one PyTensor operation, on the compiled code of the online fit.

Stated family by family, PyTensor takes minutes to compile the model and milliseconds a step; as one operation, seconds
and less than one. Imports PyTensor: import this module where it is needed alone.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor import as_tensor_variable
from pytensor.tensor.type import TensorType

from jobcast.domain.arrays import Floats
from jobcast.models.curves.finished import FinishedCurves
from jobcast.models.curves.kernels import value_and_gradient

compiled: Any = njit(cache=True)


@compiled  # type: ignore[untyped-decorator]
def fill_squares(
    own: Floats, x: Floats, log_x: Floats, v: Floats, seen: NDArray[np.bool_], squares: Floats, downhill: Floats
) -> None:
    """Squared residuals (families, curves), and minus half of their gradients by the parameters `own`, both written."""
    slope = np.zeros(own.shape[2])
    for family in range(own.shape[0]):
        for curve in range(own.shape[1]):
            squares[family, curve] = 0.0
            downhill[family, curve, :] = 0.0
            for row in range(x.shape[1]):
                if seen[curve, row]:
                    slope[:] = 0.0
                    place, log_place = x[curve, row], log_x[curve, row]
                    off = v[curve, row] - value_and_gradient(family, place, log_place, own[family, curve], slope)
                    squares[family, curve] += off * off
                    for column in range(own.shape[2]):
                        # Without the factor -2, which `grad` puts in.
                        downhill[family, curve, column] += off * slope[column]


class SquaredResiduals(Op):
    """Parameters (11, n_curves, WIDEST) -> sums of squared residuals (11, n_curves), and their descents.

    It holds the curves, so no two are equal: one without `__props__` is compared by identity.
    """

    def __init__(self, finished: FinishedCurves) -> None:
        self._data = finished.x, np.log(finished.x), finished.v, finished.seen

    def make_node(self, *inputs: Any) -> Apply[Any]:
        """One input, two outputs."""
        squares, downhill = TensorType("float64", (None,) * 2)(), TensorType("float64", (None,) * 3)()
        return Apply(self, [as_tensor_variable(each) for each in inputs], [squares, downhill])

    def perform(self, node: Apply[Any], inputs: Sequence[Any], output_storage: list[list[Any]]) -> None:
        """Fill both outputs."""
        own = np.ascontiguousarray(inputs[0], np.float64)
        squares, downhill = np.empty(own.shape[:2]), np.empty(own.shape)
        fill_squares(own, *self._data, squares, downhill)
        output_storage[0][0], output_storage[1][0] = squares, downhill

    def grad(self, inputs: Sequence[Any], output_grads: Sequence[Any]) -> list[Any]:
        """Of the squares alone; their descents are not differentiated again."""
        outputs: Any = self(*inputs)
        return [-2.0 * output_grads[0][..., None] * outputs[1]]
