"""Learning the numbers of a prior over regimes with PyMC: three levels of partial pooling, a variational fit.

Every number of a key (mode, model, batch size) is the mode's, plus a deviation of the model, plus one of the batch
size; what was never seen keeps the spread of such deviations as its uncertainty. Three sets of numbers are learned:

- turns: logit of the probability that a regime is followed by another, which grows with the logarithm of the epochs
- shares: the Dirichlet distribution of the shares of the epochs; its means by key, its concentration by model
- epochs: pieces of a typical number of epochs, whatever the job's total; a generalised Dirichlet distribution
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from jobcast.domain.arrays import Floats, Ints
from jobcast.models.regimes.finished import MOST_PIECES, Finished

STEPS = 8000
COMPILED_FROM = 2000
"""Steps that are worth two minutes of a C compiler where none like them were made before; fewer are not compiled."""
LEARNING_RATE = 0.03
DRAWS = 400
MOST_SHARE = 0.9
"""A piece of a typical number of epochs takes at most this share of what is left, on average."""
LEAST_WIDTH = 0.03
"""Spread of a piece, on the logit scale, below which no data push it."""


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """Which model and mode each key belongs to.

    Attributes
    ----------
    modes, models : names, ascending; models as (mode, model)
    model_of : (n_keys,) index of a key's model
    mode_of : (n_models,) index of a model's mode
    """

    modes: tuple[tuple[str, ...], ...]
    models: tuple[tuple[str, ...], ...]
    model_of: Ints
    mode_of: Ints

    @classmethod
    def of(cls, keys: tuple[tuple[str, ...], ...]) -> "Levels":
        """Levels above keys."""
        models = tuple(sorted({key[:2] for key in keys}))
        modes = tuple(sorted({key[:1] for key in keys}))
        return cls(
            modes,
            models,
            np.array([models.index(key[:2]) for key in keys], np.intp),
            np.array([modes.index(key[:1]) for key in models], np.intp),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """Draws from the posterior, (n_draws, ...); pieces along the last axis of the first three.

    Attributes
    ----------
    turn, share, epochs : level -> (n_draws, n, MOST_PIECES); level mode, model or key
    slope : (n_draws, n_modes), of turns, by the logarithm of the epochs less `centre`
    concentration : (n_draws, n_models), of the Dirichlet distribution
    width : (n_draws, n_models), spread of pieces in epochs, on the logit scale
    centre : of the logarithm of the epochs
    """

    turn: dict[str, Floats]
    share: dict[str, Floats]
    epochs: dict[str, Floats]
    slope: Floats
    concentration: Floats
    width: Floats
    centre: float


def learn(finished: Finished, seed: int = 0, steps: int = STEPS) -> Drawn:
    """Posterior draws by mean-field variational inference (Kucukelbir et al., 2017); equal seeds, equal draws.

    Parameters
    ----------
    finished : jobs to learn from
    seed : of the fit and of the draws
    steps : of the stochastic gradient
    """
    import logging

    import pymc as pm
    from pytensor.configdefaults import config as flags

    logging.getLogger("pymc").setLevel(logging.ERROR)
    levels, centre = Levels.of(finished.keys), float(finished.turns.log_epochs.mean())
    # Compiling pays for long fits only.
    mode = flags.mode if steps >= COMPILED_FROM else "FAST_COMPILE"
    with flags.change_flags(mode=mode), _model(finished, levels, centre):
        fit = pm.fit(
            steps,
            method="advi",
            random_seed=seed,
            progressbar=False,
            obj_optimizer=pm.adam(learning_rate=LEARNING_RATE),
        )
        drawn = fit.sample(DRAWS, random_seed=seed, return_inferencedata=False)
    values = {name: np.asarray(drawn[name], np.float64) for name in drawn.varnames}
    return _drawn(values, levels, centre, np.random.default_rng(seed))


def _model(finished: Finished, levels: Levels, centre: float) -> Any:
    import pymc as pm

    pieces, turns = finished.pieces, finished.turns
    mode_of_key = levels.mode_of[levels.model_of]
    with pm.Model() as model:
        turn = _pooled("turn", levels, 0.0, 3.0, 1.5)
        slope = pm.LogNormal("slope", np.log(1.5), 0.7, shape=len(levels.modes))
        logit = turn[turns.key, turns.order] + slope[mode_of_key[turns.key]] * (turns.log_epochs - centre)
        pm.Bernoulli("changed", logit_p=logit, observed=turns.changed.astype(np.int64))
        if len(pieces.key):
            _piece_models(finished, levels)
    return model


def _piece_models(finished: Finished, levels: Levels) -> None:
    """Both distributions of the pieces; each learns from all pieces, on its own."""
    import pymc as pm
    import pytensor.tensor as pt

    pieces = finished.pieces
    typical = float(np.log(pieces.share * pieces.left).mean())
    mean = pm.math.sigmoid(_pooled("share", levels, 0.0, 1.5, 0.5))
    tensors: Any = pt
    # What earlier pieces leave of the stick: precisions fall with it (neutrality).
    before = tensors.concatenate([tensors.ones_like(mean[:, :1]), tensors.cumprod(1 - mean, axis=1)[:, :-1]], axis=1)
    concentration = _by_model("concentration", levels, np.log(30.0), 1.5)
    at = (pieces.key, pieces.order)
    scale = concentration[levels.model_of[pieces.key]] * before[at]
    pm.Beta("shares", alpha=scale * mean[at], beta=scale * (1 - mean[at]), observed=pieces.share)

    epochs = pm.math.exp(_pooled("epochs", levels, typical, 2.0, 0.5))
    width = LEAST_WIDTH + _by_model("width", levels, np.log(0.3), 0.7)
    part = pm.math.clip(epochs[at] / pieces.left, 1e-4, MOST_SHARE)
    # Parameters whose logit has about this variance, whatever the mean.
    variance = width[levels.model_of[pieces.key]] ** 2
    pm.Beta("pieces", alpha=1 / (variance * (1 - part)), beta=1 / (variance * part), observed=pieces.share)


def _by_model(name: str, levels: Levels, centre: float, spread: float) -> Any:
    """(n_models,), positive: models differ from a common middle."""
    import pymc as pm

    middle = pm.Normal(f"{name}_middle", centre, spread)
    apart = pm.LogNormal(f"{name}_apart", np.log(0.5), 0.5)
    own = pm.Normal(f"{name}_own", 0, 1, shape=len(levels.models))
    return pm.Deterministic(name, pm.math.exp(middle + apart * own))


def _pooled(name: str, levels: Levels, centre: float, spread: float, apart: float) -> Any:
    """(n_keys, MOST_PIECES): the mode's, and deviations of model and batch size, not centred."""
    import pymc as pm

    mode = pm.Normal(f"{name}_mode", centre, spread, shape=(len(levels.modes), MOST_PIECES))
    between = pm.LogNormal(f"{name}_apart", np.log(apart), 0.5, shape=2)
    models = pm.Normal(f"{name}_model", 0, 1, shape=(len(levels.models), MOST_PIECES))
    keys = pm.Normal(f"{name}_key", 0, 1, shape=(len(levels.model_of), MOST_PIECES))
    of_model = mode[levels.mode_of] + between[0] * models
    # Not centred: deviations times their spread, which variational fits follow more easily.
    return of_model[levels.model_of] + between[1] * keys


def _drawn(values: dict[str, Floats], levels: Levels, centre: float, rng: np.random.Generator) -> Drawn:
    n_draws = len(values["slope"])
    # No regime ever ended: the priors' middles stand in.
    plain = np.full((n_draws, len(levels.models)), 30.0)
    width = values["width"] + LEAST_WIDTH if "width" in values else np.full((n_draws, len(levels.models)), 0.5)
    return Drawn(
        _levels_of("turn", values, levels, rng),
        _levels_of("share", values, levels, rng),
        _levels_of("epochs", values, levels, rng),
        values["slope"],
        values.get("concentration", plain),
        width,
        centre,
    )


def _levels_of(name: str, values: dict[str, Floats], levels: Levels, rng: np.random.Generator) -> dict[str, Floats]:
    """Numbers at each level; those of a mode and of a model are of a new model and of a new batch size of it."""
    if f"{name}_mode" not in values:
        n_draws = len(values["slope"])
        sizes = {"mode": len(levels.modes), "model": len(levels.models), "key": len(levels.model_of)}
        return {level: np.zeros((n_draws, size, MOST_PIECES)) for level, size in sizes.items()}
    mode, between = values[f"{name}_mode"], values[f"{name}_apart"][:, :, None, None]
    model = mode[:, levels.mode_of] + between[:, 0] * values[f"{name}_model"]
    key = model[:, levels.model_of] + between[:, 1] * values[f"{name}_key"]
    # Of a model, and of a batch size, that was never seen.
    new = rng.standard_normal((2, *mode.shape))
    return {
        "mode": mode + between[:, 0] * new[0] + between[:, 1] * new[1],
        "model": model + between[:, 1] * rng.standard_normal(model.shape),
        "key": key,
    }
