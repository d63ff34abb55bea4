"""What nodes draw, added up from event to event: bookkeeping of the engine's own, apart from `accounting`."""

from bisect import bisect_right

import numpy as np

from jobcast.domain.energy import DAY_S, WATT_SECONDS, EnergyCluster, Floats, Ints, Tariff


def price_seconds_between(tariff: Tariff, from_s: float, until_s: float) -> float:
    """EUR/kWh x seconds from an instant to another, price step by price step.

    >>> price_seconds_between(Tariff(np.array([0.0, 3600.0]), np.array([0.1, 0.2])), 3500.0, 3700.0)
    30.0
    """
    if len(tariff.from_s) == 1:
        return float(tariff.price_eur_kwh[0]) * (until_s - from_s)
    ends = [*map(float, tariff.from_s[1:]), DAY_S]
    day_s = from_s - from_s % DAY_S
    step = bisect_right(ends, from_s % DAY_S)
    total, at_s = 0.0, from_s
    while at_s < until_s:
        next_s = min(day_s + ends[step], until_s)
        total += float(tariff.price_eur_kwh[step]) * (next_s - at_s)
        at_s, step = next_s, step + 1
        if step == len(ends):
            day_s, step = day_s + DAY_S, 0
    return total


class Meter:
    """Accounts of nodes and jobs.

    Attributes
    ----------
    used : (n_nodes,) GPUs in use
    node_kwh, node_eur : (n_nodes,) so far
    job_kwh, job_eur : (n_jobs,) so far, by GPUs held over GPUs in use
    """

    def __init__(self, cluster: EnergyCluster, n_jobs: int) -> None:
        self._cluster = cluster
        self._nodes = np.arange(len(cluster.kind_of))
        self.used: Ints = np.zeros(len(self._nodes), dtype=np.int64)
        self.node_kwh, self.node_eur = np.zeros(len(self._nodes)), np.zeros(len(self._nodes))
        self.job_kwh, self.job_eur = np.zeros(n_jobs), np.zeros(n_jobs)
        self._watts = self._drawn()

    def _drawn(self) -> Floats:
        watts: Floats = self._cluster.power_w[self._cluster.kind_of, self.used]
        return watts

    def take(self, node: Ints, gpus: Ints) -> None:
        """Jobs take (n,) GPUs of (n,) nodes; negative numbers give them back."""
        np.add.at(self.used, node, gpus)
        self._watts = self._drawn()

    def pass_time(self, from_s: float, until_s: float, jobs: Ints, node: Ints, gpus: Ints) -> None:
        """Charge a stretch in which the (n,) running jobs hold (n,) GPUs of (n,) nodes."""
        if not until_s > from_s:
            return
        kwh = (until_s - from_s) / WATT_SECONDS
        price = price_seconds_between(self._cluster.tariff, from_s, until_s)
        eur = price * self._cluster.pue / WATT_SECONDS
        self.node_kwh += self._watts * kwh
        self.node_eur += self._watts * eur
        share = self._watts[node] * gpus / self.used[node]
        self.job_kwh[jobs] += share * kwh
        self.job_eur[jobs] += share * eur
