"""Random jobs with due dates on unlike nodes: each policy; the exact model on tiny ones.

Recomputed from the spans alone: GPUs of each node at every instant, one place a job at a time, epochs done and
lost by their true times; and the energy by the tariff, held against what the engine metered.
"""

from math import inf

import numpy as np
import pytest

from jobcast.schedulers.registry import make_policy
from jobcast.simulator.metrics import tardiness_s
from tests.contract.drawn import drawn
from tests.contract.random_jobs import check_held, check_lives, check_same, dust_s, most_held, rng_of, rows_of
from tests.simulator.energy.accounting import cost_of_spans
from tests.simulator.energy.energy_cases import EnergyJob, cluster_of, jobs_of, metered, tariff_of, workload_of

MOST_PERIODS = 150
EVENT_DUST_S = 2e-6
"""Events so near to one another are one to the engine, of which the later instant counts."""


def case_of(name, seed, draw=rows_of):
    """A workload and the settings of a run."""
    rng = rng_of(name, seed)
    tiny = name == "exact"
    kinds = []
    for _ in range(rng.randint(1, 2 if tiny else 3)):
        power = [0.0, *np.cumsum([rng.uniform(10.0, 500.0) for _ in range(rng.randint(1, 2 if tiny else 4))])]
        kinds.append((rng.randint(1, 1 if tiny else 2), tuple(float(watt) for watt in power)))
    hours = sorted(rng.sample(range(1, 24), rng.randint(0, 3)))
    tariff = tariff_of((0, rng.uniform(0.01, 1.0)), *((hour, rng.uniform(0.0, 1.0)) for hour in hours))
    cluster = cluster_of(*kinds, pue=rng.choice((1.0, 1.33)), tariff=tariff)
    found = draw(rng, 4, most_jobs=5 if tiny else 10, least_s=1e-9)[: 3 if tiny else 40]
    found = [row for row in found if row.submit_s <= found[0].submit_s + 1e5]
    jobs = jobs_of(*(energy_job(rng, row, cluster) for row in found), cluster=cluster)
    span_s = 3.0 * sum(row.work_s for row in found) + found[-1].submit_s - found[0].submit_s
    times = {
        "period_s": max(rng.choice((1.0, 300.0)), span_s / (20 if tiny else MOST_PERIODS)),
        "on_events": rng.random() < 0.8,
        "snapshot_epochs": rng.choice((1, 1, 3)),
        "restart_s": rng.choice((0.0, 0.0, 20.0)),
    }
    truth = jobs.epoch_s * rng.choice((1.0, 0.8, 1.3))
    settings = settings_of(rng, name)
    # Each job is an application of its own here.
    return workload_of(jobs, cluster, truth), times, {**settings, "profile_s": rng.choice((0.0, 0.0, 5.0, 2e3))}


def energy_job(rng, row, cluster):
    """A job that takes `work_s` on one GPU of the first kind that runs it; slower or faster on others, or not there."""
    epochs = rng.choice((1, 1, 2, 12))
    able = rng.randrange(len(cluster.kind_gpus))
    times = []
    for kind, gpus in enumerate(cluster.kind_gpus):
        first_s = row.work_s / epochs * (1.0 if kind == able else rng.choice((1.0, rng.uniform(0.5, 3.0))))
        runs = kind == able or rng.random() < 0.7
        times.append(tuple(first_s / g ** rng.choice((0.5, 0.9)) for g in range(1, gpus + 1)) if runs else ())
    due_s = row.submit_s + rng.choice((inf, 0.0, -1e3, row.work_s, 3.0 * row.work_s))
    return EnergyJob(row.submit_s, due_s, float(rng.choice((0, 1, 5))), float(epochs), tuple(times))


def settings_of(rng, name):
    """Settings that a policy knows, drawn."""
    if name == "andreas":
        flags = {key: rng.random() < 0.5 for key in ("keep", "caps", "force_nodes", "thorough")}
        flags["force_nodes"] |= flags["thorough"]  # else what is never due may wait for ever, which the engine refuses
        return {**flags, "max_iterations": rng.choice((1, 20)), "rho": rng.choice((0.0, 1.0, 100.0)), "seed": 3}
    return {"time_limit_s": 600.0} if name == "exact" else {"strict": rng.random() < 0.5}


def check_energy(name, seed):
    workload, times, settings = case_of(name, seed)
    settings = {**drawn(name, seed), **settings}
    if not settings.get("impatience", True):  # what is never due may wait for ever then: here, once it was measured
        settings["profile_s"] = 0.0
    (log, meter), (again, _) = (metered(workload, make_policy(name, None, settings), **times) for _ in range(2))
    check_same(log, again)
    assert np.isfinite(log.end_s).all(), "a job never ended"
    assert (log.start_s >= log.submit_s).all()
    assert (tardiness_s(log) >= 0.0).all()
    check_nodes(log, workload.cluster)
    for job in range(len(log)):
        check_job(log, workload, job, times["restart_s"])
    found = cost_of_spans(log.spans, workload.cluster)
    assert found.kwh == pytest.approx(meter.drawn[:, 0], rel=1e-6, abs=1e-9)
    assert log.columns["energy_kwh"].sum() == pytest.approx(log.totals["energy_kwh"], rel=1e-6, abs=1e-9)


def check_nodes(log, cluster):
    """No node has more GPUs in use than it has; no job is in two places."""
    check_held(log, nodes=cluster.kind_gpus[cluster.kind_of])
    check_lives(log)
    spans = log.spans
    for job in range(len(log)):
        mine = spans.job == job
        assert most_held(spans.from_s[mine], spans.until_s[mine], np.ones(mine.sum())) <= 1


def check_job(log, workload, job, restart_s):
    """Spans over true times of epochs, restarts taken off, are the job's epochs and those lost."""
    spans = log.spans
    rows = np.flatnonzero(spans.job == job)
    if not len(rows):  # all of it within the dust of one instant
        assert log.end_s[job] - log.start_s[job] <= EVENT_DUST_S + dust_s(log.end_s)
        return
    kinds = workload.cluster.kind_of[spans.node[rows]]
    epoch_s = workload.true_s[job, kinds, spans.gpus[rows].astype(int) - 1]
    lasted_s = spans.until_s[rows] - spans.from_s[rows]
    dust = (EVENT_DUST_S + dust_s(log.end_s)) / epoch_s.min() + 1e-6
    lost_s = np.where(np.arange(len(rows)) > 0, restart_s, 0.0)
    done = (np.maximum(0.0, lasted_s - lost_s) / epoch_s).sum()
    owed = workload.jobs.epochs[job] + log.columns["lost_epochs"][job]
    assert abs(done - owed) <= dust * len(rows), "epochs done are not those owed"
    assert spans.until_s[rows[-1]] == log.end_s[job]
