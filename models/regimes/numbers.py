"""The numbers of a learned prior: plain floats by key, model and mode, as they are exported.

How long a regime is that another follows: a Beta share of the epochs that were left when it began.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.training import Training
from jobcast.models.regimes.finished import MOST_PIECES, Finished, Key, key_of
from jobcast.models.regimes.learning import MOST_SHARE, Drawn, Levels

LEAST_SHARE = 1e-4
LEAST_SURVIVAL = 1e-12
"""Probability below which a regime that still runs is beyond all belief."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One regime's length.

    Attributes
    ----------
    kind : shares, of a Dirichlet distribution over the job's epochs; or epochs, a typical number of them
    middle : the mean share of what is left, or the typical number of epochs
    spread : precision of the share; or, of epochs, standard deviation on the logit scale
    """

    kind: str
    middle: float
    spread: float

    def beta(self, left: float) -> tuple[float, float]:
        """Both parameters of its share of the epochs left, a Beta variable.

        >>> Piece("shares", 0.3, 10.0).beta(50.0)
        (3.0, 7.0)
        """
        if self.kind == "shares":
            return self.middle * self.spread, (1 - self.middle) * self.spread
        # A typical length beyond what is left is cut to nearly all of it.
        part = min(max(self.middle / left, LEAST_SHARE), MOST_SHARE) if left > 0 else MOST_SHARE
        return 1 / (self.spread**2 * (1 - part)), 1 / (self.spread**2 * part)

    def mean(self, left: float) -> float:
        """Mean share of the epochs left."""
        if self.kind == "shares":
            return self.middle
        return min(max(self.middle / left, LEAST_SHARE), MOST_SHARE) if left > 0 else MOST_SHARE


def survival(a: float, b: float, share: float) -> tuple[float, float]:
    """Probability that a Beta variable exceeds a share, and its mean where it does.

    The mean of the truncated variable is a / (a + b) times the ratio of two regularised incomplete beta functions.

    >>> survival(1.0, 1.0, 0.5)
    (0.5, 0.75)
    """
    from scipy.special import betainc

    if share <= 0:
        return 1.0, a / (a + b)
    exceeds = 1 - float(betainc(a, b, min(share, 1.0)))
    if exceeds < LEAST_SURVIVAL:
        return 0.0, min(1.0, share + (1 - share) / (b + 1))
    mean = a / (a + b) * (1 - float(betainc(a + 1, b, share))) / exceeds
    return exceeds, min(1.0, max(share, mean))


ENOUGH_PIECES = 3
"""Pieces of one order of a model that choose between shares and epochs by themselves."""
LEAST_PRECISION = 0.5
"""Of a share: what is believed where next to nothing is known."""
LEVELS = ("mode", "model", "key")


@dataclass(frozen=True, slots=True)
class Numbers:
    """What is believed of the jobs of a key.

    Attributes
    ----------
    turn : (MOST_PIECES,) logit that another regime follows, of a job of `centre` (logarithm of epochs), its mean
    turn_variance : (MOST_PIECES,) of that logit
    slope : of the logit by the logarithm of the epochs
    centre : of the logarithm of the epochs
    pieces : (MOST_PIECES,) how long regimes are that are followed by another
    """

    turn: tuple[float, ...]
    turn_variance: tuple[float, ...]
    slope: float
    centre: float
    pieces: tuple[Piece, ...]

    @classmethod
    def read(cls, saved: Mapping[str, Any]) -> "Numbers":
        """From what `told` gives."""
        pieces = tuple(Piece(**piece) for piece in saved["pieces"])
        return cls(tuple(saved["turn"]), tuple(saved["turn_variance"]), saved["slope"], saved["centre"], pieces)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    def goes_on(self, order: int, log_epochs: float) -> float:
        """Probability that the regime of an order (from 0) is followed by another, before it is seen to last.

        The mean of a logistic function of a normal variable (MacKay, 1992).
        """
        at = min(order, MOST_PIECES - 1)
        mean = self.turn[at] + self.slope * (log_epochs - self.centre)
        # An uncertain logit counts for less.
        logit = mean / np.sqrt(1 + np.pi * self.turn_variance[at] / 8)
        return float(1 / (1 + np.exp(-min(max(logit, -30.0), 30.0))))


NOTHING_KNOWN = Numbers(
    (0.0,) * MOST_PIECES,
    (9.0,) * MOST_PIECES,
    0.0,
    0.0,
    tuple(Piece("shares", 1 / (MOST_PIECES + 1 - order), 3.0) for order in range(MOST_PIECES)),
)
"""Of a mode that no finished job had: even odds, and wide shares."""


def numbers_for(training: Training, known: Mapping[Key, Numbers]) -> Numbers:
    """Those of the job's key, else of its model, else of its mode, else `NOTHING_KNOWN`."""
    # The most specific that was learnt.
    key = key_of(training)
    return next((known[key[:depth]] for depth in (3, 2, 1) if key[:depth] in known), NOTHING_KNOWN)


def numbers_of(finished: Finished, drawn: Drawn) -> dict[Key, Numbers]:
    """The posterior's moments by mode, model and key, names ascending."""
    levels = Levels.of(finished.keys)
    epochs_better = _choices(finished, drawn, levels)
    names = {"mode": levels.modes, "model": levels.models, "key": finished.keys}
    found: dict[Key, Numbers] = {}
    for level in LEVELS:
        for index, name in enumerate(names[level]):
            mode = levels.modes.index(name[:1])
            models = (
                [levels.models.index(name[:2])] if len(name) > 1 else np.flatnonzero(levels.mode_of == mode).tolist()
            )
            turn = drawn.turn[level][:, index]
            better = epochs_better[models[0]] if len(name) > 1 else epochs_better[-1 - mode]
            found[name] = Numbers(
                tuple(turn.mean(0).tolist()),
                tuple(turn.var(0).tolist()),
                float(drawn.slope[:, mode].mean()),
                drawn.centre,
                _pieces(drawn, level, index, models, better),
            )
    return dict(sorted(found.items()))


def _pieces(drawn: Drawn, level: str, index: int, models: list[int], epochs_better: np.ndarray) -> tuple[Piece, ...]:
    mean = 1 / (1 + np.exp(-drawn.share[level][:, index]))
    before = np.cumprod(np.column_stack([np.ones(len(mean)), 1 - mean[:, :-1]]), axis=1)
    precision = drawn.concentration[:, models].mean(1)[:, None] * before
    middle = mean.mean(0)
    variance = (mean * (1 - mean) / (precision + 1)).mean(0) + mean.var(0)
    # The Beta distribution of the same mean and variance, uncertainty of the mean included.
    spread = np.maximum(middle * (1 - middle) / variance - 1, LEAST_PRECISION)
    shares = [Piece("shares", float(m), float(s)) for m, s in zip(middle, spread, strict=True)]
    log_epochs = drawn.epochs[level][:, index]
    width = np.sqrt((drawn.width[:, models] ** 2).mean() + log_epochs.var(0))
    epochs = [Piece("epochs", float(np.exp(m)), float(w)) for m, w in zip(log_epochs.mean(0), width, strict=True)]
    return tuple(epochs[order] if epochs_better[order] else shares[order] for order in range(MOST_PIECES))


def _choices(finished: Finished, drawn: Drawn, levels: Levels) -> dict[int, np.ndarray]:
    """Where pieces in epochs fit held-out jobs better than shares: model (index), or mode (-1 - index) -> (orders,)."""
    pieces = finished.pieces
    gain = _left_out(finished, drawn, levels)
    model_of, order = levels.model_of[pieces.key], pieces.order
    chosen: dict[int, np.ndarray] = {}
    for mode in range(len(levels.modes)):
        of_mode = levels.mode_of[model_of] == mode
        # A mode decides for models that have too few pieces of their own.
        whole = float(gain[of_mode].sum()) > 0
        here = [of_mode & (order == o) for o in range(MOST_PIECES)]
        base = np.array([gain[rows].sum() > 0 if rows.sum() >= ENOUGH_PIECES else whole for rows in here])
        chosen[-1 - mode] = base
        for model in np.flatnonzero(levels.mode_of == mode):
            mine = [(model_of == model) & (order == o) for o in range(MOST_PIECES)]
            own = [gain[rows].sum() > 0 if rows.sum() >= ENOUGH_PIECES else base[o] for o, rows in enumerate(mine)]
            chosen[int(model)] = np.array(own)
    return chosen


def _left_out(finished: Finished, drawn: Drawn, levels: Levels) -> Floats:
    """(n_pieces,) log likelihood of each piece held out, in epochs less in shares.

    By importance sampling from the posterior with it (Gelfand, 1992): the harmonic mean of its likelihood.
    """
    pieces = finished.pieces
    model_of = levels.model_of[pieces.key]
    at = (slice(None), pieces.key, pieces.order)
    mean = 1 / (1 + np.exp(-drawn.share["key"]))
    before = np.cumprod(np.concatenate([np.ones_like(mean[..., :1]), 1 - mean[..., :-1]], axis=2), axis=2)
    scale = drawn.concentration[:, model_of] * before[at]
    shares = _log_beta(pieces.share, scale * mean[at], scale * (1 - mean[at]))
    part = np.clip(np.exp(drawn.epochs["key"][at]) / pieces.left, 1e-4, MOST_SHARE)
    variance = drawn.width[:, model_of] ** 2
    epochs = _log_beta(pieces.share, 1 / (variance * (1 - part)), 1 / (variance * part))
    return _harmonic(epochs) - _harmonic(shares)


def _harmonic(log_likelihood: Floats) -> Floats:
    from scipy.special import logsumexp

    return np.asarray(np.log(len(log_likelihood)) - logsumexp(-log_likelihood, axis=0))


def _log_beta(x: Floats, a: Floats, b: Floats) -> Floats:
    from scipy.special import betaln

    return np.asarray((a - 1) * np.log(x) + (b - 1) * np.log1p(-x) - betaln(a, b))
