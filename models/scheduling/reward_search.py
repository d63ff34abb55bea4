"""Which weights of the reward to train with: Bayesian optimisation, then small changes. MLFS, section 3.4."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

BETAS = (0.5, 0.55, 0.25, 0.15, 0.15)
"""beta_1 to beta_5: completion time, deadlines, bandwidth, accuracy requirements, mean accuracy. Section 4.1."""
LOWEST, HIGHEST = 0.05, 1.0
VARIATION = 0.1
"""By which share each weight of the best is changed afterwards, up and down in turn."""


@dataclass(frozen=True, slots=True)
class Tried:
    """Weights, and what training with them was worth."""

    betas: tuple[float, ...]
    value: float


def search_betas(
    value_of: Callable[[tuple[float, ...]], float], rounds: int, seed: int = 0, variations: int = len(BETAS)
) -> tuple[Tried, ...]:
    """Everything that was tried, in order; the first are the weights of section 4.1.

    Parameters
    ----------
    value_of : what training with weights is worth on a scale that does not depend on the weights, the more the better
    rounds : of Bayesian optimisation, the first one included
    seed : of the search
    variations : small changes of the best afterwards, kept where they are better
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    names = [f"beta_{number}" for number in range(1, len(BETAS) + 1)]
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=4))
    study.enqueue_trial(dict(zip(names, BETAS, strict=True)))
    tried: list[Tried] = []

    def tell(trial: optuna.Trial) -> float:
        betas = tuple(trial.suggest_float(name, LOWEST, HIGHEST) for name in names)
        tried.append(Tried(betas, value_of(betas)))
        return tried[-1].value

    study.optimize(tell, n_trials=rounds)
    rng = np.random.default_rng(seed)
    for number in range(variations if rounds else 0):
        best = max(tried, key=lambda each: each.value)
        changed = list(best.betas)
        place = number % len(BETAS)
        changed[place] *= 1.0 + VARIATION * rng.choice([-1.0, 1.0])
        betas = tuple(float(np.clip(beta, LOWEST, HIGHEST)) for beta in changed)
        tried.append(Tried(betas, value_of(betas)))
    return tuple(tried)
