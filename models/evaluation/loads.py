"""How good NewLoad is on a later window."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.history import PoolHistory
from jobcast.domain.horizons import horizon_label
from jobcast.features.corpus import STEP_S, grid
from jobcast.features.targets import load_within
from jobcast.models import baselines, scores
from jobcast.models.evaluation.blocks import checked
from jobcast.models.new_load import NewLoad

MINUTE_S = 60.0
Floats = NDArray[Any]


def evaluate_loads(
    model: NewLoad, histories: Mapping[str, PoolHistory], from_s: float, until_s: float, step_s: float = STEP_S
) -> dict[str, Any]:
    """Figures of NewLoad by horizon, all rows pooled and by pool, with the rules to beat.

    Parameters
    ----------
    histories : events of the pools that count, from before `from_s` to `until_s` at least
    from_s, until_s : seconds from the epoch; instants on the grid from `from_s` on whose window does not reach
        past `until_s` are scored
    step_s : grid

    Raises
    ------
    TrainingError
        There is nothing to score.
    """
    blocks = {}
    for horizon, horizon_min in enumerate(model.horizons_min_):
        horizon_s = MINUTE_S * horizon_min
        ticks_s = grid(from_s, until_s, step_s)
        ticks_s = ticks_s[ticks_s + horizon_s <= until_s]
        loads = {pool: load_within(history, ticks_s, [horizon_s])[:, 0] for pool, history in histories.items()}
        estimates = {pool: model.predict(history, ticks_s)[:, horizon] for pool, history in histories.items()}
        block = _load_block(loads, estimates)
        block["windows"] = model.windows_[horizon]
        block["baselines"] = {
            name: _load_block(loads, {pool: rule(history, ticks_s, horizon_s) for pool, history in histories.items()})
            for name, rule in baselines.LOAD_RULES.items()
        }
        for told in block["baselines"].values():
            del told["by_pool"]
        blocks[horizon_label(horizon_min)] = block
    return {"horizons": checked(blocks)}


def _load_block(loads: Mapping[str, Floats], estimates: Mapping[str, Floats]) -> dict[str, Any]:
    by_pool = {pool: scores.coverage(loads[pool], estimates[pool]) for pool in loads}
    pooled = scores.coverage(*(np.concatenate([np.empty(0), *of.values()]) for of in (loads, estimates)))
    name, worst = scores.worst_pool(by_pool)
    n = sum(len(load) for load in loads.values())
    return {"n": n, **pooled, "worst_pool": worst, "worst_pool_name": name, "by_pool": by_pool}
