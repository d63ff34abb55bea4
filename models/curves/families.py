"""The eleven families of learning curves of Domhan, Springenberg and Hutter (IJCAI 2015, table 1).

All are of x = 1 + 100 t / T, for epoch t of a run of T epochs, so that x lies in [1, 101], and give a metric scaled so
that the first value seen is 1 and the last of the run is expected at 2; see `normalised`. Positive parameters are kept
as logarithms. Values and gradients are compiled: `kernels`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

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
        of its run and is level at the end: about the best fit to `shape.usual_progress`, and how far off a curve may be
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
