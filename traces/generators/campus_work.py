"""What jobs of a campus are like: run times that resemble each other within a tag, crashes, widths."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jobcast.traces.generators.campus_characters import Character
from jobcast.traces.generators.campus_config import HOUR_S, MINUTE_S, CampusConfig

SHORTEST_S = 5.0  # neither a crash nor a run is over sooner: a container has to start
ODD_FROM_GPUS = 4


@dataclass(frozen=True, slots=True)
class Experiment:
    """What jobs of one tag share: median run time in seconds, and gang width."""

    tag: str
    median_s: float
    gpus: int


def draw_experiment(
    tag: str, character: Character, widest: int, config: CampusConfig, rng: np.random.Generator
) -> Experiment:
    """One user's experiment: its level of run times is lognormal around the pool's."""
    median_s = config.duration_median_min * character.duration_factor * MINUTE_S
    level = config.duration_sigma * np.sqrt(config.tag_correlation) * rng.standard_normal()
    return Experiment(tag, float(median_s * np.exp(level)), int(_widths(1, character, widest, rng)[0]))


def draw_durations_s(
    count: int, experiment: Experiment, config: CampusConfig, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Run times in seconds, and which of them are crashes, each of shape (count,)."""
    sigma = config.duration_sigma * np.sqrt(1 - config.tag_correlation)
    whole_s = experiment.median_s * np.exp(sigma * rng.standard_normal(count))
    whole_s = np.clip(whole_s, SHORTEST_S, config.longest_h * HOUR_S)
    crash_s = rng.uniform(min(SHORTEST_S, config.crash_longest_s), config.crash_longest_s, count)
    failed = rng.random(count) < config.failure_share
    return np.where(failed, crash_s, whole_s), failed


def draw_gpus(
    count: int,
    experiment: Experiment,
    character: Character,
    widest: int,
    config: CampusConfig,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Gang widths, shape (count,): the experiment's, but for the few jobs that depart from it."""
    changed = rng.random(count) < config.width_change_share
    gpus = np.where(changed, _widths(count, character, widest, rng), experiment.gpus)
    odd = (rng.random(count) < config.odd_width_share) & (gpus >= ODD_FROM_GPUS)
    return np.where(odd, gpus * 3 // 4, gpus).astype(np.int64)


def _widths(count: int, character: Character, widest: int, rng: np.random.Generator) -> NDArray[np.int64]:
    within = np.minimum(np.asarray(character.widths, dtype=np.int64), widest)
    drawn: NDArray[np.int64] = rng.choice(within, size=count, p=character.width_shares)
    return drawn
