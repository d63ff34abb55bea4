"""Energy jobs from rows, clusters of unlike nodes, views at some instant, and strategies that draw them."""

from dataclasses import dataclass
from math import inf

import numpy as np
from hypothesis import strategies as st

from jobcast.domain.energy import POSTPONED, EnergyCluster, EnergyJobs, EnergyView, EpochTimes, Tariff
from jobcast.domain.jobs import FLAT_POOL, Job, Outcome, Pool
from jobcast.schedulers.energy.whole_schedule import WholeSchedule
from jobcast.simulator.engine import replay
from jobcast.simulator.laws.epochs import Epochs
from jobcast.simulator.meters import EnergyMeter, Timed
from jobcast.simulator.workload import Workload

PRICE_EUR_KWH = 0.172
PUE = 1.33
PERIOD_S = 300.0


@dataclass(frozen=True)
class EnergyJob:
    """A job. `epoch_s` has one tuple a kind of node: seconds an epoch with 1, 2, ... GPUs; what lacks is infinite."""

    submit_s: float = 0.0
    due_s: float = inf
    weight: float = 1.0
    epochs: float = 10.0
    epoch_s: tuple[tuple[float, ...], ...] = ((10.0,),)


def jobs_of(*rows, cluster=None):
    """EnergyJobs from EnergyJob rows, in order of submission; as many kinds and GPUs as the cluster, or the rows."""
    if cluster is None:
        kinds = max(len(row.epoch_s) for row in rows)
        most = max(len(times) for row in rows for times in row.epoch_s)
    else:
        kinds, most = len(cluster.kind_gpus), cluster.power_w.shape[1] - 1
    epoch_s = np.full((len(rows), kinds, most), inf)
    for job, row in enumerate(rows):
        for kind, times in enumerate(row.epoch_s):
            epoch_s[job, kind, : len(times)] = times

    def column(name):
        return np.array([getattr(row, name) for row in rows], dtype=float)

    return EnergyJobs(column("submit_s"), column("due_s"), column("weight"), column("epochs"), epoch_s)


def tariff_of(*steps):
    """A tariff from (hour, EUR a kWh) pairs."""
    hours, prices = zip(*steps, strict=True)
    return Tariff(np.array(hours, dtype=float) * 3600.0, np.array(prices, dtype=float))


def cluster_of(*kinds, pue=PUE, price=PRICE_EUR_KWH, tariff=None):
    """Nodes from (count, power_w) pairs, one a kind; power_w by GPUs in use from 0 on says how many GPUs there are.

    >>> cluster_of((2, (0.0, 420.0, 670.0)), (1, (0.0, 240.0))).power_w.tolist()
    [[0.0, 420.0, 670.0], [0.0, 240.0, 240.0]]
    """
    most = max(len(power) for _, power in kinds)
    padded = [list(power) + [power[-1]] * (most - len(power)) for _, power in kinds]
    return EnergyCluster(
        kind_of=np.repeat(np.arange(len(kinds)), [count for count, _ in kinds]).astype(np.int64),
        kind_gpus=np.array([len(power) - 1 for _, power in kinds], dtype=np.int64),
        power_w=np.array(padded, dtype=float),
        pue=pue,
        tariff=tariff_of((0, price)) if tariff is None else tariff,
    )


@dataclass(frozen=True)
class World:
    """Jobs, what is known of them, their true times, nodes; the workload of it."""

    jobs: EnergyJobs
    cluster: EnergyCluster
    true_s: np.ndarray
    workload: Workload

    def law(self, **settings):
        """A law for a run."""
        times = EpochTimes(self.jobs.epochs, self.true_s, np.arange(len(self)))
        return Epochs(times, self.cluster, self.jobs.epoch_s, **settings)

    def __len__(self):
        return len(self.jobs.submit_s)


def workload_of(jobs, cluster, true_s=None):
    """A world of jobs j0, j1, ...; the truth is what the jobs are believed to take unless it is given.

    They ask for the GPUs of their fastest configuration, which is what they last for alone.
    """
    true_s = jobs.epoch_s if true_s is None else np.asarray(true_s, dtype=float)
    servers = cluster.kind_gpus[cluster.kind_of].tolist()
    fits = np.arange(1, true_s.shape[2] + 1) <= cluster.kind_gpus[:, None]
    fastest_s = np.where(fits, true_s, inf)[:, np.unique(cluster.kind_of)].min(axis=1)
    digits = 1 if len(jobs.submit_s) <= 10 else 4
    rows = zip(*(column.tolist() for column in jobs[:4]), fastest_s, strict=True)
    made = [
        (
            Job(
                seq,
                f"j{seq:0{digits}}",
                FLAT_POOL,
                submit_s,
                int(times.argmin()) + 1,
                preemptible=True,
                weight=weight,
                due_s=due_s,
            ),
            Outcome(epochs * times.min()),
        )
        for seq, (submit_s, due_s, weight, epochs, times) in enumerate(rows)
    ]
    workload = Workload(*map(list, zip(*made, strict=True)), [Pool(FLAT_POOL, sum(servers))], servers=servers)
    return World(jobs, cluster, true_s, workload)


class Told(WholeSchedule):
    """A policy of this folder's, which keeps what it saw and knows jobs by their place among all of them."""

    def __init__(self, policy, period_s=PERIOD_S, on_events=True, restart_s=0.0):
        super().__init__(policy.schedule, policy.name, period_s, on_events, restart_s)
        self.started = None

    def seen(self, view):
        found, count, here = super().seen(view), len(view.facts(EpochTimes).epochs), list(view.active)
        if self.started is None:
            self.started = np.zeros(count, dtype=np.bool_)
        self.started[here] = found.started

        def of_all(column, value=0.0):
            whole = np.full((count, *column.shape[1:]), value, dtype=column.dtype)
            whole[here] = column
            return whole

        return found._replace(
            jobs=EnergyJobs(*(of_all(column) for column in found.jobs)),
            active=np.array(here),
            node_of=of_all(found.node_of, POSTPONED),
            gpus_of=of_all(found.gpus_of),
            left=of_all(found.left),
            left_saved=of_all(found.left_saved),
            started=self.started.copy(),
        )


def metered(world, policy, *, period_s=PERIOD_S, on_events=True, snapshot_epochs=1, restart_s=0.0, progress=None):
    """The log of a run, and what the engine metered node by node."""
    if not isinstance(policy, WholeSchedule):
        policy = Told(policy, period_s=period_s, on_events=on_events, restart_s=restart_s)
    policy, meter = Timed(policy), EnergyMeter(world.cluster)
    law = world.law(snapshot_epochs=snapshot_epochs, restart_s=restart_s)
    log = replay(world.workload, policy, progress=progress, law=law, meters=(meter, policy))
    return log, meter


def replayed(world, policy, **settings):
    """The log of a run."""
    return metered(world, policy, **settings)[0]


def view_of(
    jobs, cluster, *, now_s=None, active=None, node_of=None, gpus_of=None, left=None, left_saved=None, restart_s=0.0
):
    """A view; by default at the last submission, all jobs active, waiting and at their beginning.

    `node_of` and `gpus_of` are by job of all jobs, not of the active ones alone; jobs on a node count as started;
    `left_saved` is `left` rounded up to whole epochs of the job unless it is given.
    """
    count = len(jobs.submit_s)
    node_of = np.full(count, POSTPONED) if node_of is None else np.array(node_of)
    gpus_of = np.where(node_of == POSTPONED, 0, 1) if gpus_of is None else np.array(gpus_of)
    left = jobs.epochs.copy() if left is None else np.array(left, dtype=float)
    if left_saved is None:
        saved = np.where(node_of == POSTPONED, left, jobs.epochs - np.floor(jobs.epochs - left + 1e-9))
        left_saved = np.maximum(saved, left)
    return EnergyView(
        now_s=float(jobs.submit_s.max() if now_s is None else now_s),
        jobs=jobs,
        cluster=cluster,
        active=np.arange(count, dtype=np.int64) if active is None else np.array(active, dtype=np.int64),
        node_of=node_of.astype(np.int64),
        gpus_of=gpus_of.astype(np.int64),
        left=left,
        left_saved=np.array(left_saved, dtype=float),
        started=node_of != POSTPONED,
        restart_s=restart_s,
        period_s=PERIOD_S,
    )


@st.composite
def clusters(draw, most_nodes=4, most_kinds=3, most_gpus=4, idle=False, tariffs=False):
    """Clusters of up to so many nodes; power grows with GPUs; at 0 GPUs it is 0 unless `idle`."""
    kinds = draw(st.integers(1, min(most_kinds, most_nodes)))
    counts = [1] * kinds
    for _ in range(draw(st.integers(0, most_nodes - kinds))):
        counts[draw(st.integers(0, kinds - 1))] += 1
    powers = []
    for _ in range(kinds):
        rest = draw(st.floats(0.0, 200.0)) if idle else 0.0
        more = draw(st.lists(st.floats(10.0, 400.0), min_size=1, max_size=most_gpus))
        powers.append((rest, *(rest + np.cumsum([100.0 + more[0], *more[1:]]))))
    steps = [(0, draw(st.floats(0.01, 1.0)))]
    if tariffs:
        hours = draw(st.lists(st.integers(1, 95), max_size=3, unique=True))
        steps += [(hour / 4.0, draw(st.floats(0.01, 1.0))) for hour in sorted(hours)]
    return cluster_of(
        *zip(counts, powers, strict=True), pue=draw(st.sampled_from([1.0, PUE, 2.0])), tariff=tariff_of(*steps)
    )


@st.composite
def energy_jobs(draw, cluster, most_jobs=6, least_jobs=1, begin_s=0.0):
    """Jobs for a cluster, sub-linear in GPUs; some cannot run on some kinds, none nowhere; some without due dates."""
    rows, submit_s = [], begin_s
    for _ in range(draw(st.integers(least_jobs, most_jobs))):
        first = draw(st.floats(5.0, 600.0))
        able = draw(st.integers(0, len(cluster.kind_gpus) - 1))
        times = []
        for kind, gpus in enumerate(cluster.kind_gpus):
            slower, speedup = draw(st.floats(0.5, 3.0)), draw(st.floats(0.3, 0.95))
            runs = kind == able or draw(st.integers(0, 3)) > 0
            times.append(tuple(first * slower / g**speedup for g in range(1, gpus + 1)) if runs else ())
        epochs = draw(st.integers(1, 12))
        fastest = min(min(each) for each in times if each)
        slack = draw(st.one_of(st.none(), st.floats(0.0, 3.0)))
        rows.append(
            EnergyJob(
                submit_s=submit_s,
                due_s=inf if slack is None else submit_s + slack * fastest * epochs,
                weight=float(draw(st.integers(1, 5))),
                epochs=float(epochs),
                epoch_s=tuple(times),
            )
        )
        submit_s += draw(st.one_of(st.just(0.0), st.sampled_from([150.0, 300.0]), st.floats(0.0, 4000.0)))
    return jobs_of(*rows, cluster=cluster)


@st.composite
def energy_views(draw, most_jobs=6, most_nodes=3, most_gpus=4, tariffs=False):
    """Views in the midst of a run: some jobs run where they fit, some wait, some are over."""
    cluster = draw(clusters(most_nodes=most_nodes, most_gpus=most_gpus, tariffs=tariffs))
    jobs = draw(energy_jobs(cluster, most_jobs))
    count = len(jobs.submit_s)
    node_of, gpus_of = np.full(count, POSTPONED), np.zeros(count, dtype=np.int64)
    free = cluster.kind_gpus[cluster.kind_of].copy()
    over = draw(st.sets(st.integers(0, count - 1), max_size=count - 1))
    active = np.array([job for job in range(count) if job not in over])
    for job in active:
        fits = [
            (node, g)
            for node, kind in enumerate(cluster.kind_of)
            for g in range(1, free[node] + 1)
            if np.isfinite(jobs.epoch_s[job, kind, g - 1])
        ]
        if fits and draw(st.booleans()):
            node_of[job], gpus_of[job] = draw(st.sampled_from(fits))
            free[node_of[job]] -= gpus_of[job]
    share = np.array([draw(st.floats(0.01, 1.0)) for _ in range(count)])
    return view_of(
        jobs,
        cluster,
        now_s=float(jobs.submit_s.max()) + draw(st.floats(0.0, 2000.0)),
        active=active,
        node_of=node_of,
        gpus_of=gpus_of,
        left=np.where(np.isin(np.arange(count), active), share * jobs.epochs, 0.0),
        restart_s=draw(st.sampled_from([0.0, 30.0])),
    )
