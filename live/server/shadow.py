"""Forecasts of several versions, asked on the same questions and scored by what came."""

import logging
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.horizons import horizon_label
from jobcast.domain.jobs import Pool
from jobcast.features.targets import arrivals_within, load_within
from jobcast.live.champions import ARRIVALS, LOADS, Champions
from jobcast.live.event_log import SCORE, Event
from jobcast.live.forecasts import source_of
from jobcast.live.growing_history import Window
from jobcast.live.state import WEEK_S, State
from jobcast.models.forecast_combination import pinball_losses
from jobcast.models.forecasts import GRID_S

LEVELS = (0.5, 0.9, 0.95)
"""Quantiles of the load that are told, and scored."""
LOG = logging.getLogger(__name__)


class _Said(NamedTuple):
    """Of all pools, at one instant: probabilities (n_pools,), or quantiles of loads (n_pools, n_levels)."""

    at_s: float
    name: str
    version: int
    horizon_s: float
    pools: tuple[str, ...]
    answer: Floats


class _Scored(NamedTuple):
    at_s: float
    name: str
    version: int
    horizon_s: float
    loss: float


def _event(scored: _Scored, known_s: float) -> Event:
    at_s, *_ = scored
    name = f"{scored.name}:{scored.version} {horizon_label(scored.horizon_s / 60.0)}"
    return Event(known_s, SCORE, name, at_s, {key: one for key, one in scored._asdict().items() if key != "at_s"})


class Shadow:
    """Asks versions every five minutes, and scores each answer once its window has passed.

    Of arrivals the score is Brier's: mean squared difference of probability and what came (Brier, Monthly Weather
    Review 78, 1950). Of loads it is the pinball loss of the quantiles, in GPUs. Both are means over pools. Scores are
    kept in the log; answers whose windows had not passed when a server ended are not scored.

    Attributes
    ----------
    pools : of the cluster; others may take their place
    failed : by version, how often it did not answer
    """

    def __init__(self, pools: Sequence[Pool]) -> None:
        self.pools = tuple(pools)
        self._step = -1.0
        self._said: list[_Said] = []
        self._scored: deque[_Scored] = deque()
        self.failed: dict[tuple[str, int], int] = defaultdict(int)

    def recall(self, events: Iterable[Event], now_s: float) -> None:
        """Take up the scores of the last 7 days that a log has."""
        kept = (one for one in events if one.kind == SCORE and one.at_s >= now_s - WEEK_S)
        self._scored.extend(_Scored(one.at_s, **one.facts) for one in kept)

    def look(self, state: State, now_s: float, asked: Mapping[str, Champions]) -> list[Event]:
        """Ask, where the step of five minutes is a new one, and score what can be: events for the log.

        `asked`: by alias, who answers.
        """
        if now_s // GRID_S == self._step:
            return []
        self._step = now_s // GRID_S
        # Versions answer about the step's own instant: nothing later is known to them.
        at_s = now_s - now_s % GRID_S
        history = Window(self.pools, state.past, at_s)
        versions = {(name, of.versions[name]): of.predictors[name] for of in asked.values() for name in of.versions}
        for (name, version), predictor in versions.items():
            if name in (ARRIVALS, LOADS):
                try:
                    self._said += self._ask(history, at_s, name, version, predictor)
                except Exception as error:  # a version that is on trial may fail in any way: counted
                    self.failed[name, version] += 1
                    LOG.warning("%s:%d did not answer: %r", name, version, error)
        history.move(state.past, now_s)
        return [_event(one, state.known_s) for one in self._score(history, min(now_s, state.known_s))]

    def _ask(self, history: Window, at_s: float, name: str, version: int, predictor: Any) -> list[_Said]:
        # By itself: it may know other horizons than the rest.
        source = source_of(history, {name: predictor}, self.pools)
        source.advance(at_s)
        found, names = [], tuple(pool.name for pool in self.pools)
        for horizon_s in (60.0 * one for one in source.horizons_min):
            rows = [
                source.arrival_probability(pool, horizon_s)
                if name == ARRIVALS
                else source.load_quantiles(pool, horizon_s, LEVELS)
                for pool in names
            ]
            found.append(_Said(at_s, name, version, horizon_s, names, np.array(rows)))
        return found

    def _score(self, history: Window, known_s: float) -> list[_Scored]:
        made = []
        over = [one for one in self._said if one.at_s + one.horizon_s <= known_s]
        self._said = [one for one in self._said if one.at_s + one.horizon_s > known_s]
        for one in over:
            came = arrivals_within if one.name == ARRIVALS else load_within
            truth = np.array([float(came(history.pool(pool), [one.at_s], [one.horizon_s])[0, 0]) for pool in one.pools])
            losses = (one.answer - truth) ** 2 if one.name == ARRIVALS else pinball_losses(truth, one.answer, LEVELS)
            made.append(_Scored(*one[:4], float(losses.mean())))
        self._scored.extend(made)
        while self._scored and self._scored[0].at_s < known_s - WEEK_S:
            self._scored.popleft()
        return made

    def figures(self) -> list[dict[str, Any]]:
        """By version and horizon: how many answers were scored, and the mean score."""
        losses = defaultdict[tuple[str, int, float], list[float]](list)
        for one in list(self._scored):
            losses[one.name, one.version, one.horizon_s].append(one.loss)
        return [
            {
                "name": name,
                "version": version,
                "horizon": horizon_label(horizon_s / 60.0),
                "score": "brier" if name == ARRIVALS else "pinball_gpus",
                "n": len(found),
                "mean": float(np.mean(found)),
                "failed": self.failed[name, version],
            }
            for (name, version, horizon_s), found in sorted(losses.items())
        ]
