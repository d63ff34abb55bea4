"""How good NewLoad is on a later window."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jobcast.domain.clock import MINUTE_S
from jobcast.domain.errors import RegistryError
from jobcast.domain.history import PoolHistory
from jobcast.domain.horizons import horizon_label
from jobcast.domain.memory import need_memory
from jobcast.features.arrivals import arrival_features
from jobcast.features.corpus import REMEDY, STEP_S, active_grid
from jobcast.features.loads import sliding_max
from jobcast.features.targets import load_within
from jobcast.models import baselines, scores
from jobcast.models.evaluation.intervals import DRAWS, DayDraws, checked, days_of
from jobcast.models.load_sliding import SlidingMax
from jobcast.models.new_load import NewLoad, total_new_load
from jobcast.models.will_jobs_arrive import WillJobsArrive

MAX_OF_N = "max_of_n"
"""Name of the paper's rule with its n chosen on a training time, beside the other rules to beat."""
Floats = NDArray[Any]
ByPool = Mapping[str, Floats]


@dataclass(frozen=True, slots=True)
class ChosenMax:
    """The rule of SIA, section 5.4.1: the largest of the last n windows, n chosen by horizon on a training time.

    Attributes
    ----------
    windows : horizon in seconds -> n
    """

    windows: Mapping[float, int]

    @classmethod
    def on(cls, histories: Mapping[str, PoolHistory], from_s: float, until_s: float, model: NewLoad) -> "ChosenMax":
        """The smallest n of each of a model's horizons that covers, on [from, until), what the model is to cover.

        Nothing from `until_s` on is read. Raises TrainingError where the time holds no window of a horizon.
        """
        demands = model.demands
        asked = (demands.coverage, demands.loaded_coverage, demands.lending_coverage)
        rule = NewLoad(SlidingMax.algorithm, *asked).fit(histories, from_s, until_s, model.horizons_min_).rule_
        assert isinstance(rule, SlidingMax)
        return cls({MINUTE_S * k: n for k, n in zip(model.horizons_min_, rule.windows_, strict=True)})

    def __call__(self, history: PoolHistory, ticks_s: ArrayLike, horizon_s: float) -> Floats:
        """GPUs at some instants, shape (T,)."""
        return sliding_max(history, np.asarray(ticks_s, dtype=np.float64), horizon_s, self.windows[horizon_s])


def evaluate_loads(
    model: NewLoad,
    histories: Mapping[str, PoolHistory],
    from_s: float,
    until_s: float,
    step_s: float = STEP_S,
    *,
    arrivals: WillJobsArrive | None = None,
    chosen_max: ChosenMax | None = None,
    rules: Mapping[str, baselines.LoadRule] | None = None,
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
    arrivals : a model of arrivals with the same horizons: adds `total`
    chosen_max, rules : more rules to beat
    draws, seed : of the intervals by day blocks; 0 draws leaves them out

    Returns
    -------
    `horizons`: horizon -> figures, among them `lent`, those of what a scheduler reserves (`NewLoad.lend_rows`), of all
    windows and, with `arrivals`, `gated`: of those where it reserves at all. With `arrivals`, `total`: {`horizons`},
    the figures of TotalNewLoad = gate x estimate (SIA, section 5.4.1), each with `base_rate`, the share of windows
    with load, and `reserved`, the same of gate x what a scheduler reserves.

    Raises
    ------
    RegistryError
        The model of arrivals has other horizons.
    TrainingError
        There is nothing to score.
    MemoryLimitError
        The rows would need more memory than they may take.
    """
    longest_s = MINUTE_S * max(model.horizons_min_)
    ticks_s = active_grid(histories, from_s, until_s, step_s, longest_s)
    what = f"estimates of {len(histories):,} pools at {len(ticks_s):,} instants"
    # Before anything is computed: long windows of many pools would fill the memory.
    numbers = 2 * len(model.columns) + 4 * len(histories)  # rows of a pool at a time; loads and estimates of all
    need_memory(8 * len(ticks_s) * len(model.horizons_min_) * numbers, what, REMEDY)
    estimates, lent = {}, {}
    for pool, history in histories.items():
        rows = model.rows(history, ticks_s)
        estimates[pool], lent[pool] = model.predict_rows(rows), model.lend_rows(rows)
    gates = {} if arrivals is None else _gates(model, arrivals, histories, ticks_s)
    beside = dict(baselines.LOAD_RULES) | dict(rules or {})
    if chosen_max is not None:
        beside[MAX_OF_N] = chosen_max
    blocks = {}
    for horizon, horizon_min in enumerate(model.horizons_min_):
        horizon_s = MINUTE_S * horizon_min
        at_s, loads = _came(histories, ticks_s, horizon_s, until_s)
        # Instants whose window ends too late are the last ones.
        said = {pool: of[: len(at_s), horizon] for pool, of in estimates.items()}
        block = _load_block(loads, said)
        block["stated_coverage"] = model.coverages_[horizon]
        of_horizon = ({pool: of[: len(at_s), horizon] for pool, of in described.items()} for described in (lent, gates))
        block["lent"] = _lent_block(loads, *of_horizon)
        block["intervals"] = _intervals(loads, said, at_s, draws, seed)
        block["baselines"] = {
            name: _load_block(loads, {pool: rule(history, at_s, horizon_s) for pool, history in histories.items()})
            for name, rule in beside.items()
        }
        # Pools are told of the model alone.
        for described in block["baselines"].values():
            del described["by_pool"]
        if chosen_max is not None:
            block["baselines"][MAX_OF_N]["windows"] = chosen_max.windows[horizon_s]
        blocks[horizon_label(horizon_min)] = block
    result: dict[str, Any] = {"horizons": checked(blocks)}
    if arrivals is not None:
        result["total"] = {"horizons": _totals(model, histories, ticks_s, until_s, estimates, lent, gates)}
    return result


def _came(
    histories: Mapping[str, PoolHistory], ticks_s: Floats, horizon_s: float, until_s: float
) -> tuple[Floats, dict[str, Floats]]:
    """Instants whose window ends in time, the first ones, and the load of each pool's windows."""
    at_s = ticks_s[ticks_s + horizon_s <= until_s]
    return at_s, {pool: load_within(history, at_s, [horizon_s])[:, 0] for pool, history in histories.items()}


def _gates(
    model: NewLoad, arrivals: WillJobsArrive, histories: Mapping[str, PoolHistory], ticks_s: Floats
) -> dict[str, Floats]:
    """By pool, (T, H), whether jobs are forecast to arrive, as a scheduler is told."""
    if tuple(arrivals.horizons_min_) != tuple(model.horizons_min_):
        have, wanted = (", ".join(map(horizon_label, one.horizons_min_)) for one in (arrivals, model))
        raise RegistryError(f"{arrivals.name} forecasts {have}, {model.name} {wanted}; train them with the same")
    horizons_s = MINUTE_S * np.asarray(model.horizons_min_, np.float64)
    return {
        pool: arrivals.predict(arrival_features(history, ticks_s, horizons_s), gate=True)
        for pool, history in histories.items()
    }


def _lent_block(loads: ByPool, lent: ByPool, gates: ByPool) -> dict[str, Any]:
    """Figures of what a scheduler reserves, its idle GPUs beyond which it lends; `gated`: where it reserves at all."""
    block = _load_block(loads, lent)
    del block["by_pool"]
    if gates:
        gate = _pooled(gates).astype(np.bool_)
        block["gated"] = {"n": int(gate.sum()), **scores.coverage(_pooled(loads)[gate], _pooled(lent)[gate])}
    return block


def _totals(
    model: NewLoad,
    histories: Mapping[str, PoolHistory],
    ticks_s: Floats,
    until_s: float,
    estimates: ByPool,
    lent: ByPool,
    gates: ByPool,
) -> dict[str, Any]:
    """Figures of gate x estimate and of gate x what is reserved, by horizon."""
    horizons_s = MINUTE_S * np.asarray(model.horizons_min_, np.float64)
    total, reserved = (
        {pool: total_new_load(gate, of[pool]) for pool, gate in gates.items()} for of in (estimates, lent)
    )
    blocks = {}
    for horizon, horizon_min in enumerate(model.horizons_min_):
        at_s, loads = _came(histories, ticks_s, horizons_s[horizon], until_s)
        block, kept = (
            _load_block(loads, {pool: of[: len(at_s), horizon] for pool, of in said.items()})
            for said in (total, reserved)
        )
        del kept["by_pool"]
        # How often the gate should have opened.
        base_rate = scores.mean(_pooled(loads) > 0)
        blocks[horizon_label(horizon_min)] = {**block, "base_rate": base_rate, "reserved": kept}
    return blocks


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
    days = DayDraws(days_of(np.tile(at_s, len(loads))), draws, seed)
    covered, loaded = load <= estimate, load > 0
    return {
        "coverage": days.of_mean(covered),
        "coverage_nonzero": days.interval(days.ratio(covered & loaded, loaded)),
        "over": days.interval(days.ratio(estimate, load)),
        "missed": days.interval(days.ratio(np.maximum(load - estimate, 0.0), load)),
    }


def _pooled(by_pool: ByPool) -> Floats:
    return np.concatenate([np.empty(0), *by_pool.values()])
