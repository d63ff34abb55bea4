"""How good NewLoad is on a later window."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.history import PoolHistory
from jobcast.domain.horizons import horizon_label
from jobcast.features.arrivals import arrival_features
from jobcast.features.corpus import STEP_S, grid
from jobcast.features.targets import load_within
from jobcast.models import baselines, scores
from jobcast.models.evaluation.blocks import checked
from jobcast.models.evaluation.intervals import DRAWS, day_block_intervals, days_of, sums_by_day
from jobcast.models.new_load import NewLoad, total_new_load
from jobcast.models.will_jobs_arrive import WillJobsArrive

MINUTE_S = 60.0
Floats = NDArray[Any]
ByPool = Mapping[str, Floats]


def evaluate_loads(
    model: NewLoad,
    histories: Mapping[str, PoolHistory],
    from_s: float,
    until_s: float,
    step_s: float = STEP_S,
    *,
    arrivals: WillJobsArrive | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> dict[str, Any]:
    """Figures of NewLoad by horizon, all rows pooled and by pool, with the rules to beat.

    Parameters
    ----------
    histories : events of the pools that count, from before `from_s` to `until_s` at least
    from_s, until_s : seconds from the epoch; instants on the grid from `from_s` on whose window does not reach
        past `until_s` are scored
    step_s : grid
    arrivals : a model of arrivals with the same horizons: adds `total_new_load`, the figures of gate x estimate that a
        scheduler reserves by (SIA, section 5.4.1)
    draws, seed : of the intervals by day blocks; 0 draws leaves them out

    Raises
    ------
    TrainingError
        There is nothing to score.
    """
    ticks_s = grid(from_s, until_s, step_s)
    estimates = {pool: model.predict(history, ticks_s) for pool, history in histories.items()}
    gates = {} if arrivals is None else {pool: _gate(arrivals, h, ticks_s) for pool, h in histories.items()}
    blocks = {}
    for horizon, horizon_min in enumerate(model.horizons_min_):
        horizon_s = MINUTE_S * horizon_min
        rows = ticks_s + horizon_s <= until_s
        at_s = ticks_s[rows]
        loads = {pool: load_within(history, at_s, [horizon_s])[:, 0] for pool, history in histories.items()}
        said = {pool: of[rows, horizon] for pool, of in estimates.items()}
        block = _load_block(loads, said)
        block["stated_coverage"] = model.coverages_[horizon]
        block["intervals"] = _intervals(loads, said, at_s, draws, seed)
        if gates:
            gated = {pool: total_new_load(gates[pool][rows, horizon], of) for pool, of in said.items()}
            block["total_new_load"] = _load_block(loads, gated)
        block["baselines"] = {
            name: _load_block(loads, {pool: rule(history, at_s, horizon_s) for pool, history in histories.items()})
            for name, rule in baselines.LOAD_RULES.items()
        }
        for told in block["baselines"].values():
            del told["by_pool"]
        blocks[horizon_label(horizon_min)] = block
    return {"horizons": checked(blocks)}


def _gate(model: WillJobsArrive, history: PoolHistory, ticks_s: Floats) -> NDArray[np.bool_]:
    X = arrival_features(history, ticks_s, MINUTE_S * np.asarray(model.horizons_min_, np.float64))
    return model.predict(X, gate=True)


def _load_block(loads: ByPool, estimates: ByPool) -> dict[str, Any]:
    by_pool = {pool: scores.coverage(loads[pool], estimates[pool]) for pool in loads}
    pooled = scores.coverage(_pooled(loads), _pooled(estimates))
    name, worst = scores.worst_pool(by_pool)
    n = sum(len(load) for load in loads.values())
    return {"n": n, **pooled, "worst_pool": worst, "worst_pool_name": name, "by_pool": by_pool}


def _intervals(loads: ByPool, estimates: ByPool, at_s: Floats, draws: int, seed: int) -> dict[str, Any]:
    """95 % intervals of the pooled figures, by day blocks; {} without rows or draws."""
    load, estimate = _pooled(loads), _pooled(estimates)
    if not len(load) or not draws:
        return {}
    covered, loaded = load <= estimate, load > 0
    columns = {
        "rows": np.ones(len(load)),
        "covered": covered,
        "loaded": loaded,
        "both": covered & loaded,
        "load": load,
        "estimate": estimate,
        "missed": np.maximum(load - estimate, 0.0),
    }
    days, sums = sums_by_day(days_of(np.tile(at_s, len(loads))), columns)

    def ratio(weights: Floats, above: str, below: str) -> float | None:
        total = float(weights @ sums[below])
        return float(weights @ sums[above]) / total if total else None

    def figures(weights: Floats) -> dict[str, float | None]:
        return {
            "coverage": ratio(weights, "covered", "rows"),
            "coverage_nonzero": ratio(weights, "both", "loaded"),
            "over": ratio(weights, "estimate", "load"),
            "missed": ratio(weights, "missed", "load"),
        }

    return dict(day_block_intervals(figures, days, draws, seed))


def _pooled(by_pool: ByPool) -> Floats:
    return np.concatenate([np.empty(0), *by_pool.values()])
