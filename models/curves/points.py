"""What compiled code is told of many curves: what is seen of each, and the points that this is thinned to."""

from typing import NamedTuple

from jobcast.domain.arrays import Floats, Ints


class Stretches(NamedTuple):
    """What of each curve is seen of the stretch of training that it is in.

    Attributes
    ----------
    metric : (n, L) metric of epoch column + 1, NaN where not measured; at least one of each row's is
    begin, seen, until : (n,) epochs before the stretch, the last that is seen, the last of the stretch
    direction : (n,) 1 where the metric rises, -1 where it falls
    bound : (n,) best value that the metric can have
    """

    metric: Floats
    begin: Ints
    seen: Ints
    until: Ints
    direction: Floats
    bound: Floats


class Points(NamedTuple):
    """Points of scaled curves.

    Attributes
    ----------
    used : (n,) how many of each curve's there are; the others are padding
    x, log_x, v, weight : (n, m) place, its logarithm, scaled metric, 1 / variance
    """

    used: Ints
    x: Floats
    log_x: Floats
    v: Floats
    weight: Floats


class Families(NamedTuple):
    """Parameters of each family, (11,), and means and precisions of their prior, (11, 4)."""

    sizes: Ints
    mean: Floats
    precision: Floats
