"""What whole curves teach: priors, annealing and jumps after cuts, pooled over applications.

Applications are few, so each counts once, however many runs it has, and defaults count as applications too.

How wide intervals must be: from applications left out one by one inside of the training curves.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.special import ndtri

from jobcast.domain.arrays import Floats
from jobcast.models.curves.finished import bounds, end_level
from jobcast.models.curves.fitting import fit_stretches
from jobcast.models.curves.forecast import CurveForecast
from jobcast.models.curves.numbers import ANNEALING, CUT_SIZE_SD, CUT_SIZES, SPREAD_SHARES, CurveNumbers, app_curve
from jobcast.models.curves.points import Stretches
from jobcast.models.curves.prior import FAMILIES, CurvePrior
from jobcast.models.curves.scaling import ANNEALED, BASE, LEVEL, PER_V, SHARE
from jobcast.traces.learning_curves import LearningCurve

ByApp = Mapping[str, Sequence[LearningCurve]]
Forecaster = Callable[[CurveNumbers, Sequence[LearningCurve], Sequence[int]], CurveForecast]
"""What numbers forecast of curves so far, up to their last epochs."""
PRIOR_APPS = 2.0
"""Applications that the defaults of families count as."""
ANNEALING_APPS, MOST_ANNEALING = 1.0, 10.0
ANNEALING_SHARES = (0.35, 0.5, 0.65)
"""Shares of the epochs after which what is still gained is compared with the noise."""
CUT_APPS = 2.0
LEAST_POINTS = 5
"""Values of a curve from which on it tells of families."""


def learn_numbers(curves: Sequence[LearningCurve], prior: CurvePrior | None, forecaster: Forecaster) -> CurveNumbers:
    """All numbers from whole curves, intervals calibrated on applications left out one by one."""

    by_app = grouped(curves)
    numbers = core_numbers(by_app, prior)
    spread = calibrated_spread(by_app, prior, forecaster)
    apps = {
        app: app_curve(app_direction(runs), [run.epoch / run.epoch[-1] for run in runs], [run.metric for run in runs])
        for app, runs in by_app.items()
    }
    return replace(numbers, spread=spread, apps=apps)


def grouped(curves: Sequence[LearningCurve]) -> dict[str, list[LearningCurve]]:
    """Application -> its curves, in the order of names."""
    found: dict[str, list[LearningCurve]] = {}
    for curve in sorted(curves, key=lambda one: (one.app, one.batch_size)):
        found.setdefault(curve.app, []).append(curve)
    return found


def app_direction(runs: Sequence[LearningCurve]) -> float:
    """1 where most of an application's runs rise, else -1."""
    return 1.0 if sum(np.sign(end_level(run.metric) - run.metric[0]) for run in runs) >= 0 else -1.0


def core_numbers(by_app: ByApp, prior: CurvePrior | None) -> CurveNumbers:
    """Numbers without calibrated intervals and without single applications' curves."""
    numbers = CurveNumbers.default()
    # Families know no jumps: runs with a declared schedule teach cuts alone.
    plain = {app: [run for run in runs if not run.lr_milestones] for app, runs in by_app.items()}
    if prior is None:
        prior = learn_prior(plain, numbers)
    rising = sum(app_direction(runs) > 0 for runs in by_app.values())
    sizes, sds = learn_cuts(by_app)
    return replace(
        numbers,
        prior=prior,
        annealing=learn_annealing(plain, numbers),
        # Laplace's rule.
        rising=(1 + rising) / (2 + len(by_app)),
        cut_sizes=sizes,
        cut_sds=sds,
    )


def whole_stretches(runs: Sequence[LearningCurve], seen: Sequence[int]) -> Stretches:
    """Whole runs, of which the first rows are seen."""
    last = np.array([int(run.epoch[rows - 1]) for run, rows in zip(runs, seen, strict=True)], np.int64)
    metric = np.full((len(runs), int(last.max())), np.nan)
    for row, (run, rows) in enumerate(zip(runs, seen, strict=True)):
        metric[row, run.epoch[:rows] - 1] = run.metric[:rows]
    way = np.full(len(runs), app_direction(runs))
    until = np.array([int(run.epoch[-1]) for run in runs], np.int64)
    return Stretches(metric, np.zeros(len(runs), np.int64), last, until, way, bounds(metric, way))


def learn_prior(by_app: ByApp, numbers: CurveNumbers) -> CurvePrior:
    """Means and standard deviations of the families' parameters over applications and the default."""
    found: list[Floats] = []
    for runs in by_app.values():
        long = [run for run in runs if len(run.metric) >= LEAST_POINTS]
        if long:
            whole = whole_stretches(long, [len(run.metric) for run in long])
            found.append(fit_stretches(whole, numbers.prior, numbers.rate).parameters)
    means, sds = {}, {}
    for row, (name, family) in enumerate(FAMILIES.items()):
        used, default, default_sd = len(family.parameters), np.array(family.mean), np.array(family.sd)
        app_means = np.array([one[:, row, :used].mean(axis=0) for one in found]).reshape(-1, used)
        within = np.array([one[:, row, :used].var(axis=0) for one in found]).reshape(-1, used)
        count = PRIOR_APPS + len(found)
        mean = (app_means.sum(axis=0) + PRIOR_APPS * default) / count
        apart = ((app_means - mean) ** 2 + within).sum(axis=0)
        # Variance about the pooled mean, of applications and of the defaults.
        spread = apart + PRIOR_APPS * (default_sd**2 + (default - mean) ** 2)
        means[name], sds[name] = tuple(mean.tolist()), tuple(np.sqrt(spread / count).tolist())
    return CurvePrior(means, sds, numbers.prior.weight)


def learn_annealing(by_app: ByApp, numbers: CurveNumbers) -> float:
    """Standard deviations of noise that runs gained by annealing, the median of each application's, and the default."""
    total, count = ANNEALING_APPS * ANNEALING, ANNEALING_APPS
    for runs in by_app.values():
        ratios: list[float] = []
        for share in ANNEALING_SHARES:
            rows = [max(1, int(np.searchsorted(run.epoch, round(share * run.epoch[-1]), "right"))) for run in runs]
            if runs:
                fits = fit_stretches(whole_stretches(runs, rows), numbers.prior, numbers.rate)
                ratios += _annealing_ratios(runs, fits.scale)
        if ratios:
            total += float(np.clip(np.median(ratios), 0.0, MOST_ANNEALING))
            count += 1
    return total / count


def _annealing_ratios(runs: Sequence[LearningCurve], scale: Floats) -> list[float]:
    final = (np.array([run.metric[-1] for run in runs]) - scale[:, BASE]) / scale[:, PER_V]
    noise = scale[:, ANNEALED] * np.sqrt(1 - scale[:, SHARE])
    result = noise > 0
    return list((final - scale[:, LEVEL])[result] / noise[result])


def learn_cuts(by_app: ByApp) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Jumps after the first, second, ... declared cut as shares of the way to the bound, and their deviations."""
    found: list[list[float]] = [[] for _ in CUT_SIZES]
    for runs in by_app.values():
        own: list[list[float]] = [[] for _ in CUT_SIZES]
        for run in runs:
            for order, size in enumerate(jumps(run)):
                own[min(order, len(own) - 1)].append(size)
        for order, sizes in enumerate(own):
            if sizes:
                # One number an application, however many runs it has.
                found[order].append(float(np.mean(sizes)))
    sizes, sds = [], []
    for default, seen in zip(CUT_SIZES, found, strict=True):
        count = CUT_APPS + len(seen)
        size = (CUT_APPS * default + sum(seen)) / count
        apart = sum((one - size) ** 2 for one in seen)
        spread = CUT_APPS * ((CUT_SIZE_SD * default) ** 2 + (default - size) ** 2) + apart
        sizes.append(size)
        sds.append(float(np.sqrt(spread / count)))
    return tuple(sizes), tuple(sds)


def jumps(run: LearningCurve) -> list[float]:
    """What a run gained by each declared cut, until the next, as a share of its way to the bound before it."""
    way = app_direction([run])
    bound = bounds(run.metric[None], np.array([way]))[0]
    cuts = [cut for cut in sorted(run.lr_milestones) if run.epoch[0] <= cut < run.epoch[-1]]
    found = []
    for cut, end in zip(cuts, [*cuts[1:], int(run.epoch[-1])][: len(cuts)], strict=True):
        before = run.metric[run.epoch <= cut]
        after = run.metric[(run.epoch > cut) & (run.epoch <= end)]
        level = before[-max(1, round(0.1 * before.size)) :].mean()
        # At its bound a metric has no way to jump.
        gap = way * (bound - level)
        if gap > 0 and after.size:
            found.append(float(way * (end_level(after) - level) / gap))
    return found


COVERED = 0.9
DEFAULT_POINTS = 200
"""Before an application is seen, deviations are normal, as computed; kept as so many quantiles."""
LEAST_SPREAD, MOST_SPREAD = 0.5, 4.0
NORMAL_QUANTILE = float(ndtri(0.5 + COVERED / 2))
LEAST_EPOCHS = 5


def calibrated_spread(by_app: ByApp, prior: CurvePrior | None, forecaster: Forecaster) -> tuple[float, ...]:
    """By SPREAD_SHARES, what to multiply standard deviations with so that nine in ten intervals hold.

    The quantile of all applications' deviations together, where each counts once, and so does the default.
    """
    usual = ndtri(0.5 + (np.arange(DEFAULT_POINTS) + 0.5) / DEFAULT_POINTS / 2)
    found: list[list[Floats]] = [[usual] for _ in SPREAD_SHARES[1:-1]]
    for app, runs in by_app.items():
        long = [run for run in runs if len(run.metric) >= LEAST_EPOCHS]
        if long:
            # Forecast by what the other applications teach, as a new one would be.
            others = {name: rest for name, rest in by_app.items() if name != app}
            numbers = core_numbers(others, prior)
            for place, share in enumerate(SPREAD_SHARES[1:-1]):
                off = deviations(long, share, partial(forecaster, numbers))
                if off.size:
                    found[place].append(off)
    spread = [float(np.clip(pooled_quantile(parts) / NORMAL_QUANTILE, LEAST_SPREAD, MOST_SPREAD)) for parts in found]
    # At both ends nothing is measured; the nearest share stands in.
    return (spread[0], *spread, spread[-1])


def pooled_quantile(parts: Sequence[Floats]) -> float:
    """The COVERED quantile of all parts together, each of which weighs the same.

    >>> pooled_quantile([np.zeros(9), np.array([1.0, 2.0, 3.0])])
    3.0
    """
    value = np.concatenate(parts)
    weight = np.concatenate([np.full(part.size, 1 / part.size / len(parts)) for part in parts])
    order = np.argsort(value, kind="stable")
    place = np.searchsorted(np.cumsum(weight[order]), COVERED)
    return float(value[order][min(int(place), value.size - 1)])


def deviations(
    runs: Sequence[LearningCurve],
    share: float,
    forecaster: Callable[[Sequence[LearningCurve], Sequence[int]], CurveForecast],
) -> Floats:
    """How many standard deviations off later epochs were, forecast by what other applications taught.

    What cuts of the learning rate may have done is left out of the deviation of nine intervals in ten.
    """
    rows = [max(1, int(np.searchsorted(run.epoch, round(share * run.epoch[-1]), "right"))) for run in runs]
    kept = [(run, row) for run, row in zip(runs, rows, strict=True) if row < len(run.metric)]
    if not kept:
        return np.zeros(0)
    forecast = forecaster([run.prefix(row) for run, row in kept], [int(run.epoch[-1]) for run, _ in kept])
    most = max(len(run.metric) - row for run, row in kept)
    # Repeated up to equal lengths; `real` leaves the repetitions out.
    later = np.array([np.resize(run.epoch[row:], most) for run, row in kept])
    actual = np.array([np.resize(run.metric[row:], most) for run, row in kept])
    real = np.arange(most) < np.array([len(run.metric) - row for run, row in kept])[:, None]
    mean, sd, worse, better = forecast.parts(later.astype(float))
    change = forecast.direction[:, None] * (actual - mean)
    by_cuts = np.where(change < 0, worse, better) * NORMAL_QUANTILE
    off: Floats = np.sqrt(np.maximum(change**2 - by_cuts**2, 0.0)) / sd
    return off[real]
