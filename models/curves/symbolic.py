"""The families of learning curves as expressions, of PyTensor or NumPy; values are `kernels.value_and_gradient`'s.

The library is handed in (it knows exp, log and clip), so that this module is imported without PyTensor. Parameters come
in the order of `families.FAMILIES`; they broadcast against x and log x.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Tensor = Any
Formula = Callable[[Any, Tensor, Tensor, Sequence[Tensor]], Tensor]
LARGEST_EXPONENT = 30.0
"""As in `kernels`."""


def _exp(lib: Any, value: Tensor) -> Tensor:
    return lib.exp(lib.clip(value, -LARGEST_EXPONENT, LARGEST_EXPONENT))


def _share(lib: Any, value: Tensor) -> Tensor:
    return 1 / (1 + _exp(lib, -value))


def _pow3(lib: Any, x: Tensor, log_x: Tensor, p: Sequence[Tensor]) -> Tensor:
    return p[0] - _exp(lib, p[1] - _exp(lib, p[2]) * log_x)


def _pow4(lib: Any, x: Tensor, log_x: Tensor, p: Sequence[Tensor]) -> Tensor:
    base = _exp(lib, p[1] + log_x) + _exp(lib, p[2])
    return p[0] - _exp(lib, -_exp(lib, p[3]) * lib.log(base))


def _loglog(lib: Any, x: Tensor, log_x: Tensor, p: Sequence[Tensor]) -> Tensor:
    return lib.log(_exp(lib, p[0]) * log_x + _exp(lib, p[1]))


def _vapor(lib: Any, x: Tensor, log_x: Tensor, p: Sequence[Tensor]) -> Tensor:
    return _exp(lib, p[0] + p[1] / x + p[2] * log_x)


def _hill3(lib: Any, x: Tensor, log_x: Tensor, p: Sequence[Tensor]) -> Tensor:
    return _exp(lib, p[0]) * _share(lib, _exp(lib, p[1]) * (log_x - p[2]))


def _mmf(lib: Any, x: Tensor, log_x: Tensor, p: Sequence[Tensor]) -> Tensor:
    return p[0] - (p[0] - p[1]) * _share(lib, -_exp(lib, p[3]) * (p[2] + log_x))


def _exp4(lib: Any, x: Tensor, log_x: Tensor, p: Sequence[Tensor]) -> Tensor:
    return p[0] - _exp(lib, p[3] - _exp(lib, p[1] + _exp(lib, p[2]) * log_x))


def _janoschek(lib: Any, x: Tensor, log_x: Tensor, p: Sequence[Tensor]) -> Tensor:
    return p[0] - (p[0] - p[1]) * _exp(lib, -_exp(lib, p[2] + _exp(lib, p[3]) * log_x))


def _weibull(lib: Any, x: Tensor, log_x: Tensor, p: Sequence[Tensor]) -> Tensor:
    return p[0] - (p[0] - p[1]) * _exp(lib, -_exp(lib, _exp(lib, p[3]) * (p[2] + log_x)))


def _log_power(lib: Any, x: Tensor, log_x: Tensor, p: Sequence[Tensor]) -> Tensor:
    return _exp(lib, p[0]) * _share(lib, _exp(lib, p[2]) * (log_x - p[1]))


def _ilog2(lib: Any, x: Tensor, log_x: Tensor, p: Sequence[Tensor]) -> Tensor:
    return p[0] - _exp(lib, p[1]) / lib.log(x + 1)


FORMULAS: Mapping[str, Formula] = {
    "pow3": _pow3,
    "pow4": _pow4,
    "loglog": _loglog,
    "vapor": _vapor,
    "hill3": _hill3,
    "mmf": _mmf,
    "exp4": _exp4,
    "janoschek": _janoschek,
    "weibull": _weibull,
    "log_power": _log_power,
    "ilog2": _ilog2,
}
"""By the family's name."""
