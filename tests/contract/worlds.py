"""Random experiments of policies in laws that others know too: gangs and elastic jobs of epochs, gangs of tasks.

What holds of each run is recomputed from its spans: who held what where, and how far the law's own tables say that
takes a job.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from jobcast.domain import law as laws
from jobcast.domain.jobs import FLAT_POOL, Outcome, Pool
from jobcast.pipelines.experiments.worlds import CONCAVE
from jobcast.schedulers.elastic.whole_widths import WholeWidths
from jobcast.schedulers.policies import ELASTIC, GOODPUT, POOL, POOLS, ROUNDS
from jobcast.schedulers.registry import find_policy, make_policy
from jobcast.simulator.elastic.run import ElasticCluster
from jobcast.simulator.engine import Simulation
from jobcast.simulator.laws.speedup import Speedup, elastic_workload
from jobcast.simulator.laws.tasks import Tasks
from jobcast.simulator.log import RunLog
from jobcast.simulator.meters import EnergyMeter
from jobcast.simulator.workload import Workload
from tests.contract import elastic, energy, tasks
from tests.contract.drawn import drawn
from tests.contract.random_jobs import check_held, check_lives, check_same, dust_s, rng_of, rows_of
from tests.contract.rigid import NOT_LENT, sources
from tests.simulator.energy.accounting import cost_of_spans
from tests.simulator.tasks.test_task_properties import last_seen

SOLVED = ("shockwave", "ossp", "allox")
"""Each round is a programme: few jobs, few rounds."""
EVENT_DUST_S = energy.EVENT_DUST_S


@dataclass(frozen=True)
class Experiment:
    """A workload in a law, and a policy; all that changes is made anew for each run.

    Attributes
    ----------
    work : asserts that jobs got done what they held GPUs for, from the log
    sizes : GPUs of each node, where spans name nodes
    quotas : by pool, where the policy keeps to them
    """

    workload: Workload
    law: Callable[[], Any]
    policy: Callable[[Any], Any]
    source: Callable[[], Any]
    work: Callable[[RunLog], None]
    sizes: Sequence[float] = ()
    quotas: Mapping[str, int] = field(default_factory=dict)
    meters: Callable[[], tuple[Any, ...]] = tuple

    def run(self) -> RunLog:
        """The log of a run."""
        source = self.source()
        return Simulation(self.workload, self.policy(source), source, None, self.law(), self.meters()).run().log()


def check(made: Experiment) -> None:
    """What holds of every run."""
    log, again = made.run(), made.run()
    check_same(log, again)
    dust = dust_s(log.end_s, log.submit_s)
    assert np.isfinite(log.end_s).all(), "a job never ended"
    assert (log.start_s >= log.submit_s - dust).all(), "a job started before it was submitted"
    assert (log.end_s >= log.start_s).all()
    check_held(log, nodes=made.sizes, quotas=made.quotas, jobs=made.workload.jobs)
    check_lives(log)
    made.work(log)


class Stretch(NamedTuple):
    """What a job held unchanged: from, until (seconds), and GPUs by node."""

    from_s: float
    until_s: float
    on: dict[int, float]


def stretches(log: RunLog) -> dict[int, list[Stretch]]:
    """By job, in order of time; of those without any length, which one decision took back, one an instant."""
    found: defaultdict[int, dict[tuple[float, float], dict[int, float]]] = defaultdict(dict)
    spans = log.spans
    columns = (spans.job, spans.from_s, spans.until_s, spans.node, spans.gpus)
    for job, from_s, until_s, node, gpus in zip(*(column.tolist() for column in columns), strict=True):
        found[job].setdefault((from_s, until_s), {})[node] = gpus
    return {job: [Stretch(*when, on) for when, on in sorted(held.items())] for job, held in found.items()}


def in_pools(rng, workload, total, widest, *, flat, elastic=None):
    """The same jobs as gangs of other widths, of one pool or several; `widest` : (n_jobs,) on which each can run."""
    count = 1 if flat else rng.randint(1, min(3, total))
    cuts = sorted(rng.sample(range(1, total), count - 1))
    quotas = [until - begin for begin, until in zip([0, *cuts], [*cuts, total], strict=True)]
    pools = [Pool(FLAT_POOL if flat else f"p{place}", quota) for place, quota in enumerate(quotas)]
    jobs = []
    for job, most in zip(workload.jobs, widest, strict=True):
        pool = rng.choice(pools)
        gpus = min(rng.choice((1, most, rng.randint(1, most))), pool.quota)
        least = {None: 0, True: 1}.get(elastic, rng.choice((0, 1, gpus)))
        stops = elastic is not None or rng.random() < 0.7
        jobs.append(replace(job, pool=pool.name, gpus=gpus, min_gpus=least, preemptible=stops))
    return jobs, pools


def made_in(spec, source, settings, *, round_s, restart_s):
    """A policy as it is asked in a law that it shares with others."""
    if spec.kind == ROUNDS:
        return make_policy(spec.name, source, {**settings, "round_s": round_s, "restart_s": restart_s})
    if spec.kind == ELASTIC:
        whole = {"whole_gpus": True} if "whole_gpus" in spec.settings.model_fields else {}
        return WholeWidths(make_policy(spec.name, None, {**settings, **whole}))
    times = {"round_s": round_s, "restart_s": restart_s} if spec.kind == GOODPUT else {}
    return make_policy(spec.name, source, {**settings, **times})


def few_rows(name):
    """Rows of so many jobs as a policy answers about in no time."""
    most = 5 if name in SOLVED else 12
    return lambda rng, widest, **how: rows_of(rng, widest, **{**how, "most_jobs": most, "least_s": 1e-3})[:most]


def on_unlike_nodes(rng, spec, base):
    """Jobs of epochs as gangs or elastic jobs, and (n_jobs, n_kinds, n_gpus) seconds an epoch on any number of GPUs."""
    cluster, true_s = base.cluster, base.true_s
    there = np.bincount(cluster.kind_of, minlength=len(cluster.kind_gpus)) * cluster.kind_gpus
    able, total = np.isfinite(true_s[:, :, 0]), int(there.sum())
    shrink = spec.name in CONCAVE if spec.kind in (ELASTIC, GOODPUT) else None
    widest = (able * there).max(axis=1).tolist()
    jobs, pools = in_pools(rng, base.workload, total, widest, flat=spec.scope != POOL, elastic=shrink)
    columns = [np.minimum(np.arange(total), gpus - 1) for gpus in cluster.kind_gpus]
    flat_s = np.stack([true_s[:, kind, column] for kind, column in enumerate(columns)], axis=1)
    alone_s = base.jobs.epochs * [flat_s[row, _first(flat_s[row]), job.gpus - 1] for row, job in enumerate(jobs)]
    return Workload(jobs, [Outcome(one) for one in alone_s.tolist()], pools, servers=base.workload.servers), flat_s


def of_epochs(name, seed):
    """Gangs and elastic jobs on unlike nodes."""
    spec, (base, times, _) = find_policy(name), energy.case_of(f"{laws.EPOCHS} {name}", seed, few_rows(name))
    rng, cluster = rng_of(f"{laws.EPOCHS} {name} here", seed), base.cluster
    workload, flat_s = on_unlike_nodes(rng, spec, base)
    round_s = times["period_s"] * (8.0 if name in SOLVED else 1.0)
    told = {"round_s": round_s, "restart_s": min(times["restart_s"], 0.1 * round_s)}
    every = rng.choice((None, 1, 3)) if spec.kind == POOLS and not spec.preempts else None
    settings = drawn(name, seed)
    grows = settings.get("workers") == "elastic"

    def work(log):
        check_energy(log, cluster)
        for row, held in stretches(log).items():
            job = workload.jobs[row]
            scales = spec.kind in (ELASTIC, GOODPUT) or (grows and job.preemptible)
            least = min(job.min_gpus or job.gpus, job.gpus) if scales else job.gpus
            most = flat_s.shape[2] if grows and scales and job.min_gpus else job.gpus
            lasting = [one for one in held if one.until_s > one.from_s]
            assert all(least <= sum(one.on.values()) <= most for one in lasting), f"job {row}: {lasting}"
            check_epochs(log, held, row, job, flat_s[row], cluster.kind_of, told["restart_s"])

    return Experiment(
        workload,
        lambda: base.law(snapshot_epochs=every, restart_s=told["restart_s"]),
        lambda source: made_in(spec, source, settings, **told),
        source_of(rng, spec, workload),
        work,
        sizes=base.workload.servers,
        quotas=workload.quotas() if name in NOT_LENT else {},
        meters=lambda: (EnergyMeter(cluster),),
    )


def source_of(rng, spec, workload):
    """What makes a source of forecasts."""
    return sources(rng, workload)["oracle" if spec.needs_every_job else rng.choice(("oracle", "conservative"))]


def check_energy(log, cluster):
    """Energy and its cost, as metered, are what spans and tariff add up to: of all nodes, and of jobs."""
    everywhere = cost_of_spans(log.spans, cluster, log.submit_s.min(), log.end_s.max())
    assert log.totals["energy_kwh"] == pytest.approx(everywhere.kwh.sum(), rel=1e-6, abs=1e-9)
    assert log.totals["energy_eur"] == pytest.approx(everywhere.eur.sum(), rel=1e-6, abs=1e-9)
    busy = cost_of_spans(log.spans, cluster)
    assert log.columns["energy_kwh"].sum() == pytest.approx(busy.kwh.sum(), rel=1e-6, abs=1e-9)
    assert log.columns["energy_eur"].sum() == pytest.approx(busy.eur.sum(), rel=1e-6, abs=1e-9)


def check_epochs(log, held, row, job, flat_s, kind_of, restart_s):
    """Time held over the time of an epoch is the job's epochs and those lost."""
    done, slack, dust = 0.0, 1e-6, EVENT_DUST_S + dust_s(log.end_s)
    for place, one in enumerate(held):
        if one.until_s == one.from_s:
            continue
        gpus, kinds = int(sum(one.on.values())), {int(kind_of[node]) for node in one.on}
        assert len(kinds) == 1, "a job is on nodes of two kinds"
        epoch_s = flat_s[kinds.pop(), gpus - 1]
        done += max(0.0, one.until_s - one.from_s - restart_s * (place > 0)) / epoch_s
        slack += dust / epoch_s
    owed = log.columns["lost_epochs"][row] + log.duration_s[row] / flat_s[_first(flat_s), job.gpus - 1]
    assert abs(done - owed) <= slack + 1e-9 * owed, f"job {row}: {done} epochs done, {owed} owed"


def _first(flat_s):
    """The first kind of nodes that a job runs on."""
    return int(np.isfinite(flat_s[:, 0]).argmax())


def of_tasks(name, seed):
    """Gangs whose workers are put on servers, a GPU each."""
    spec = find_policy(name)
    base, times = tasks.case_of(f"{laws.TASKS} {name}", seed, few_rows(name), gangs=True)
    rng, sizes = rng_of(f"{laws.TASKS} {name} here", seed), np.bincount(base.cluster.server_of).tolist()
    whole, total = base.whole(), sum(sizes)
    flat = spec.scope != POOL or 2 * int(base.jobs.gpus.max()) > total
    pools = [Pool(FLAT_POOL, total)] if flat else [Pool("p0", total - total // 2), Pool("p1", total // 2)]
    jobs = [replace(job, pool=rng.choice(pools).name, preemptible=rng.random() < 0.7) for job in whole.jobs]
    workload = Workload(jobs, whole.outcomes, pools)
    round_s = times.pop("round_s") * (3.0 if name in SOLVED else 1.0)
    told = {"round_s": round_s, "restart_s": min(times["restart_s"], 0.1 * round_s)}
    return Experiment(
        workload,
        lambda: Tasks(base, last_seen, **{**times, "restart_s": told["restart_s"]}),
        lambda source: made_in(spec, source, drawn(name, seed), **told),
        source_of(rng, spec, workload),
        lambda log: check_iterations(log, base),
        sizes=sizes,
        quotas=workload.quotas() if name in NOT_LENT else {},
    )


def check_iterations(log, base):
    """All iterations are done, in no less time than the slowest task takes, each worker on a GPU of its own."""
    slowest_s = np.maximum.reduceat(base.jobs.compute_s, base.jobs.task_of[:-1])
    dust = dust_s(log.end_s, log.submit_s)
    assert log.columns["done"] == pytest.approx(base.iterations, rel=1e-9), "iterations done are not those owed"
    assert (log.columns["ran_s"] + dust >= base.iterations * slowest_s * (1 - 1e-9)).all(), "more than tasks can do"
    held_s = np.bincount(log.spans.job, log.spans.gpu_s, minlength=len(log))
    assert held_s == pytest.approx(log.columns["ran_s"] * log.gpus, rel=1e-6, abs=dust * 64 * (1 + len(log.spans)))
    assert (log.columns["used_gpu_s"] <= held_s * (1 + 1e-9) + 64 * dust).all()


def of_speedup(name, seed):
    """Elastic jobs in the engine's own loop; GPU types stand for nodes."""
    case, size_s, policy = elastic.case_of(name, seed)
    size_s = np.asarray(size_s)
    jobs, cluster = case.jobs, ElasticCluster(np.rint(case.cluster.capacity), preempt_s=case.cluster.preempt_s)

    return Experiment(
        elastic_workload(jobs, size_s, cluster),
        lambda: Speedup(jobs, size_s, cluster.preempt_s),
        lambda _: policy,
        lambda: None,
        lambda log: check_sizes(log, jobs, size_s, cluster.preempt_s),
        sizes=cluster.capacity.tolist(),
    )


def check_sizes(log, jobs, size_s, preempt_s):
    """Speed by the tables over the time held is the job's size, but for what changes may have cost."""
    held = stretches(log)
    for row in range(len(log)):
        table, speed = jobs.speedup[jobs.model[row], 0], jobs.speed[jobs.model[row]]
        rates, lasted_s = np.zeros((2, len(held.get(row, []))))
        for place, one in enumerate(held.get(row, [])):
            gpus = sum(one.on.values())
            mean = sum(each * speed[kind] for kind, each in one.on.items()) / gpus
            rates[place] = float(np.interp(gpus, np.arange(len(table)), table)) * mean
            lasted_s[place] = one.until_s - one.from_s
        most = rates @ lasted_s
        least = rates @ np.maximum(0.0, lasted_s - preempt_s * (len(rates) > 1))
        slack = dust_s(log.end_s) * table.max() * (1 + len(rates)) + 1e-9 * size_s[row]
        assert least - slack <= size_s[row] <= most + slack, f"job {row}: {least} to {most} of {size_s[row]} done"
