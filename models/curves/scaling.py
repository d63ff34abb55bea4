"""Prefixes of curves in the scale that all families share, thinned to few points; compiled.

A stretch of training is a whole run, or what lies between two cuts of its learning rate. Its time p runs from 0 at the
first value that was measured in it to 1 at its last epoch; families see x = 1 + 100 p. Its metric is scaled so that the
first value is v = 1 and the last is expected at v = 2.

Columns of what is known of a curve once it is scaled; see `scaling`.
"""

import math

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.compiled import F1, F2, I1, njit, types
from jobcast.models.curves.points import Points, Stretches

BASE, PER_V, NOISE_SD, LAST, LEVEL, REACHED, SHARE, ANNEALED, ORIGIN, LENGTH, ROOM, RECENT, CENTER, SEEN = range(14)
"""Columns of what is known of a curve: metric at v = 0, metric per v (signed), standard deviation of noise in v, last
value seen; level in v, mean progress that was expected there, p of the last value; noise in v if annealing may give it
back; epoch - 1 at p = 0, epochs to p = 1; way from the level to the bound in v; values that the level is the
mean of, and mean p of these; values seen."""
SCALE_WIDTH = 14


MOST_POINTS = 16
"""A long prefix is averaged into as many bins, evenly spaced in log x."""
MISFIT, MISFIT_AGE = 0.02, 1.0
"""Standard deviation of what no family can follow, as a share of the whole rise: at the last value seen, and how much
of that is added by each unit of distance in log x, so that a fit follows what came last."""
NOISE, NOISE_POINTS = 0.03, 4.0
"""Noise of a metric as a share of the whole rise before it is seen, and the number of values that this counts as."""
LEAST_ANNEALED = 12
"""Values seen from which on noise is told from curvature well enough to say what annealing will give back."""
LEAST_RISE = 0.05
"""Least rise expected of a run, as a share of the way to the bound: a run that has not moved yet may still."""
ONE_POINT_RISE = 0.4
"""Whole rise of a run of which one value is seen, as a share of the way to the bound."""
FREE = 3
"""Parameters of a rise: as many points say nothing of how well it fits."""
LEAST_PROGRESS = 0.02
"""Least share of the rise that what was seen counts as."""
MEDIAN_TO_SD = 1.4826


@njit(types.float64(F1, types.float64), cache=True)  # type: ignore[untyped-decorator]
def progress_at(progress: Floats, share: float) -> float:
    """Progress at a share of the epochs, linear between knots."""
    place = min(max(share, 0.0), 1.0) * (progress.size - 1)
    left = min(int(place), progress.size - 2)
    return float(progress[left] + (place - left) * (progress[left + 1] - progress[left]))


@njit(types.float64(F1, F1, types.int64), cache=True)  # type: ignore[untyped-decorator]
def noise_variance(values: Floats, steps: Floats, count: int) -> float:
    """Variance of noise from second differences of the later half, by their median; `steps` is room to work in."""
    first = 1 + (count - 2) // 2
    for i in range(first, count - 1):
        steps[i - first] = abs(values[i] - 0.5 * (values[i - 1] + values[i + 1]))
    inside = count - 1 - first
    steps[:inside].sort()
    middle = 0.5 * (steps[(inside - 1) // 2] + steps[inside // 2])
    return float((MEDIAN_TO_SD * middle) ** 2 / 1.5)


POINTS = types.NamedTuple([I1, F2, F2, F2, F2], Points)
_STRETCHES = types.NamedTuple([F2, I1, I1, I1, F1, F1], Stretches)


@njit(types.void(_STRETCHES, F1, POINTS, F2), cache=True)  # type: ignore[untyped-decorator]
def scale_prefixes(seen: Stretches, progress: Floats, points: Points, scale: Floats) -> None:
    """Scale and thin what is seen of stretches of training.

    Parameters
    ----------
    progress : (KNOTS,) see `finished`
    points : written, m = MOST_POINTS
    scale : (n, SCALE_WIDTH) written, see the columns above
    """
    metric, (_, x, log_x, v, weight) = seen.metric, points
    values, shares, steps = np.empty(metric.shape[1]), np.empty(metric.shape[1]), np.empty(metric.shape[1])
    for row in range(metric.shape[0]):
        count, length, sign, origin = 0, 1.0, seen.direction[row], 0
        for column in range(seen.begin[row], seen.seen[row]):
            if not math.isnan(metric[row, column]):
                # The stretch's time begins with its first measured value.
                if count == 0:
                    origin, length = column, max(seen.until[row] - column - 1.0, 1.0)
                values[count], shares[count] = metric[row, column], (column - origin) / length
                count += 1
        first, recent = values[0], int(math.sqrt(count) + 0.5)
        gained, reached, center = 0.0, 0.0, 0.0
        for i in range(count - recent, count):
            gained += sign * (values[i] - first) / recent
            reached += progress_at(progress, shares[i]) / recent
            center += shares[i] / recent
        room = max(sign * (seen.bound[row] - first), 0.0)
        least = max(LEAST_RISE * room, 1e-9 * (1.0 + abs(first)))
        # What was gained, over the share of the rise that is usual by now.
        rise = max(gained / max(reached, LEAST_PROGRESS) if count > 1 else ONE_POINT_RISE * room, least)
        prior, found = (NOISE * rise) ** 2, 0.0
        # Second differences need three values.
        if count >= 3:
            found = noise_variance(values, steps, count)
        result = max(count - 2, 0)
        # A prior of so many values, then what was measured.
        noise = math.sqrt((NOISE_POINTS * prior + result * found) / (NOISE_POINTS + result)) / rise
        scale[row, BASE], scale[row, PER_V] = first - sign * rise, sign * rise
        scale[row, NOISE_SD], scale[row, LAST] = noise, values[count - 1]
        scale[row, LEVEL], scale[row, REACHED] = 1.0 + gained / rise, reached
        scale[row, SHARE] = shares[count - 1]
        scale[row, ANNEALED] = math.sqrt(found) / rise if count >= LEAST_ANNEALED else 0.0
        scale[row, ORIGIN], scale[row, LENGTH] = origin, length
        scale[row, ROOM], scale[row, RECENT] = max(room - gained, 0.0) / rise, recent
        scale[row, CENTER], scale[row, SEEN] = center, count
        # The last value's place; a single value has no width.
        wide = max(math.log(1.0 + 100.0 * shares[count - 1]), 1e-12)
        last_bin, kept, inside = -1, -1, 0
        for i in range(count):
            place = math.log(1.0 + 100.0 * shares[i])
            here = i if count <= MOST_POINTS else min(int(place / wide * MOST_POINTS), MOST_POINTS - 1)
            if here != last_bin:
                kept, inside, last_bin = kept + 1, 0, here
                log_x[row, kept], v[row, kept] = 0.0, 0.0
            inside += 1
            # Running means of the bin.
            log_x[row, kept] += (place - log_x[row, kept]) / inside
            v[row, kept] += (1.0 + sign * (values[i] - first) / rise - v[row, kept]) / inside
            weight[row, kept] = inside
        points.used[row] = kept + 1
        for i in range(kept + 1):
            x[row, i] = math.exp(log_x[row, i])
            # Grows backwards, so that a fit follows what came last.
            misfit = MISFIT * (1.0 + MISFIT_AGE * (log_x[row, kept] - log_x[row, i]))
            weight[row, i] = 1.0 / (misfit * misfit + noise * noise / weight[row, i])
