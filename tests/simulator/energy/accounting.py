"""Energy and its cost from spans alone, integrated exactly across changes of power and of price.

Energy is what nodes draw, in kWh; cost is energy x PUE x price. ANDREAS, section V.A.
"""

from typing import NamedTuple

import numpy as np

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.clock import DAY_S
from jobcast.domain.energy import WATT_SECONDS, EnergyCluster, Tariff
from jobcast.simulator.log import Spans


class NodeEnergy(NamedTuple):
    """(n_nodes,) kWh that nodes drew, without PUE, and EUR that it cost, with PUE."""

    kwh: Floats
    eur: Floats


def price_seconds(tariff: Tariff, from_s: Floats, until_s: Floats) -> Floats:
    """Price integrated over stretches, EUR/kWh x seconds; shapes as given.

    Whole days are counted, not walked through: a year costs as much to compute as a second.

    >>> halves = Tariff(np.array([0.0, 43200.0]), np.array([0.1, 0.3]))
    >>> price_seconds(halves, np.array([0.0, 43199.0]), np.array([86400.0 * 10, 43201.0])).round(9).tolist()
    [172800.0, 0.4]
    """
    first, last = np.asarray(from_s, dtype=np.float64), np.asarray(until_s, dtype=np.float64)
    first_in, last_in = first % DAY_S, last % DAY_S
    days = np.rint(((last - last_in) - (first - first_in)) / DAY_S)
    step, last_step = (np.searchsorted(tariff.from_s, each, side="right") - 1 for each in (first_in, last_in))
    whole = np.diff(np.append(tariff.from_s, DAY_S)) * tariff.price_eur_kwh
    before = np.concatenate([[0.0], np.cumsum(whole)])
    prices, begins = tariff.price_eur_kwh, tariff.from_s
    across = (
        days * before[-1]
        + (before[last_step] - before[step])
        + ((last_in - begins[last_step]) * prices[last_step] - (first_in - begins[step]) * prices[step])
    )
    within = (days == 0.0) & (step == last_step)
    found: Floats = np.where(within, (last - first) * prices[step], across)
    return found


class _Levels(NamedTuple):
    """(n,) Nodes, by node and time: from when until when they have so many GPUs in use."""

    node: Ints
    used: Ints
    from_s: Floats
    until_s: Floats


def _levels(spans: Spans, nodes: int, from_s: float, until_s: float) -> _Levels:
    """GPUs in use of all nodes from event to event; the bounds are events of each."""
    every = np.arange(nodes)
    node = np.concatenate([spans.node, spans.node, every, every])
    gpus = np.rint(spans.gpus).astype(np.int64)
    change = np.concatenate([gpus, -gpus, np.zeros(2 * nodes, dtype=np.int64)])
    at_s = np.concatenate([spans.from_s, spans.until_s, np.full(nodes, from_s), np.full(nodes, until_s)])
    order = np.lexsort((at_s, node))
    node, used, at_s = node[order], np.cumsum(change[order]), at_s[order]
    kept = (node[1:] == node[:-1]) & (at_s[1:] > at_s[:-1])  # each node's changes add up to 0: the sum starts anew
    return _Levels(node[:-1][kept], used[:-1][kept], at_s[:-1][kept], at_s[1:][kept])


def cost_of_spans(
    spans: Spans, cluster: EnergyCluster, from_s: float | None = None, until_s: float | None = None
) -> NodeEnergy:
    """What nodes drew and what that cost, from the spans alone.

    Parameters
    ----------
    spans : on nodes; no more GPUs in use at a time than these have
    cluster : nodes, power, PUE, tariff
    from_s, until_s : between which idle nodes count too, where they draw power; the first begin and the last end of
        the spans where not given. A log's are its first submission and its last completion.
    """
    nodes = len(cluster.kind_of)
    if not len(spans) and (from_s is None or until_s is None):
        return NodeEnergy(np.zeros(nodes), np.zeros(nodes))
    begin_s = float(spans.from_s.min()) if from_s is None else from_s
    end_s = float(spans.until_s.max()) if until_s is None else until_s
    level = _levels(spans, nodes, begin_s, end_s)
    watts = cluster.power_w[cluster.kind_of[level.node], level.used]
    kwh = watts * (level.until_s - level.from_s) / WATT_SECONDS
    eur = watts * price_seconds(cluster.tariff, level.from_s, level.until_s) * (cluster.pue / WATT_SECONDS)
    return NodeEnergy(_by_node(level.node, kwh, nodes), _by_node(level.node, eur, nodes))


def _by_node(node: Ints, amount: Floats, nodes: int) -> Floats:
    sums: Floats = np.bincount(node, weights=amount, minlength=nodes).astype(np.float64)
    return sums
