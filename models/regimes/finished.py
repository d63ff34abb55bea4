"""Finished training jobs as a prior learns from them: which ones changed, and what share of the rest each regime took.

A job that changes R - 1 times breaks R - 1 pieces off a stick of N epochs: piece r is a share of what the pieces before
it left. For shares of a Dirichlet distribution these are independent Beta variables (neutrality).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats
from jobcast.domain.errors import TrainingError
from jobcast.domain.training import Regime, Training
from jobcast.models.regimes.trajectories import UNKNOWN, Adaptation

Key = tuple[str, ...]
"""(mode, model, batch size) as text, or the first one or two of them."""
Ints = NDArray[np.intp]
MOST_PIECES = 6
"""Pieces that have numbers of their own; later ones share those of the last."""
LEAST_SHARE = 1e-4


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """Regimes that ended before their job did, one row each.

    Attributes
    ----------
    key : (n,) index of the job's key
    order : (n,) which regime, from 0, at most MOST_PIECES - 1
    share : (n,) of the epochs that were left, inside (0, 1)
    left : (n,) epochs that were left when it began
    """

    key: Ints
    order: Ints
    share: Floats
    left: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Turns:
    """Regimes after which another batch size was possible, one row each.

    Attributes
    ----------
    key, order : as of `Pieces`
    log_epochs : (n,) natural logarithm of all epochs of the job
    changed : (n,) 1 where another regime followed, else 0
    """

    key: Ints
    order: Ints
    log_epochs: Floats
    changed: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Finished:
    """What a prior learns from.

    Attributes
    ----------
    keys : all keys that occur, ascending
    jobs : how many jobs there are
    pieces, turns : see there
    """

    keys: tuple[Key, ...]
    jobs: int
    pieces: Pieces
    turns: Turns

    @classmethod
    def of(cls, finished: Iterable[tuple[Training, Sequence[Regime]]], rules: Mapping[str, Adaptation]) -> "Finished":
        """Tables from jobs and the regimes that they ran through; static ones tell nothing.

        Raises TrainingError where no job could have changed its batch size.
        """
        rows = [(training, tuple(regimes)) for training, regimes in finished]
        keys = tuple(sorted({key_of(training) for training, _ in rows if _may_change(training, rules)}))
        place = {key: index for index, key in enumerate(keys)}
        pieces: list[tuple[int, int, float, float]] = []
        turns: list[tuple[int, int, float, float]] = []
        for training, regimes in rows:
            rule = rules.get(training.mode, UNKNOWN)
            if key_of(training) not in place:
                continue
            sizes, left = [regime.batch_size for regime in regimes], float(training.epochs)
            for order, regime in enumerate(regimes):
                changed = order + 1 < len(regimes)
                # Nothing could have followed the last regime, so that it did not tells nothing.
                if not changed and rule.following(training, sizes) is None:
                    break
                at = (place[key_of(training)], min(order, MOST_PIECES - 1))
                turns.append((*at, np.log(training.epochs), float(changed)))
                if changed:
                    # A Beta variable is never quite 0 or 1.
                    share = min(max(regime.epochs / left, LEAST_SHARE), 1 - LEAST_SHARE)
                    pieces.append((*at, share, left))
                    left -= regime.epochs
        if not turns:
            raise TrainingError("regime: no job could change its batch size; give a trace with accordion or gns jobs")
        return cls(keys, len(rows), Pieces(*_columns(pieces)), Turns(*_columns(turns)))


def key_of(training: Training) -> Key:
    """What jobs must share to be alike.

    >>> key_of(Training("LM", 10, 40, "gns", {10: 60.0}))
    ('gns', 'LM', '10')
    """
    return (training.mode, training.model, str(training.batch_size))


def _may_change(training: Training, rules: Mapping[str, Adaptation]) -> bool:
    return rules.get(training.mode, UNKNOWN).following(training, (training.batch_size,)) is not None


def _columns(rows: list[tuple[int, int, float, float]]) -> tuple[Ints, Ints, Floats, Floats]:
    table = np.array(rows, np.float64).reshape(-1, 4)
    return table[:, 0].astype(np.intp), table[:, 1].astype(np.intp), table[:, 2], table[:, 3]
