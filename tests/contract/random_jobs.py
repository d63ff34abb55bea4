"""Harsh random workloads, one generator for all engines, and what is recomputed of a run from its spans alone.

Everything is drawn from one seed: `rng_of(name, seed)` gives the same draws on every machine. A test that fails names
both; `case_of(name, seed)` of the test's module makes that one case again.
"""

from collections import defaultdict
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from random import Random

import numpy as np
import pytest

from jobcast.domain import tolerance

EPOCHS_S = (0.0, 0.1, 1.7e9, -2e9, 7e9)
"""Where a run begins: 1906 to 2191."""
GPUS = (1, 2, 3, 4, 8, 13, 16, 64)
CLOCK_DEPENDENT = ("decision_s", "decision_max_s")


def rng_of(name, seed):
    """Python's own generator, since its draws from a text are the same on every machine and version."""
    return Random(f"{name} {seed}")


@contextmanager
def told(name, seed):
    """Whatever goes wrong names the policy and the seed."""
    try:
        yield
    except Exception as error:
        error.add_note(f"policy {name}, seed {seed}: case_of({name!r}, {seed}) makes this case again")
        raise


@dataclass(frozen=True)
class Row:
    """A job: submission (seconds from the epoch), seconds of work on its GPUs, and GPUs."""

    submit_s: float
    work_s: float
    gpus: int


def rows_of(rng, most_gpus, *, most_jobs=14, least_s=1e-300, most_s=1e5, epochs_s=EPOCHS_S):
    """Jobs in order of submission: bursts, ties, coinciding ends, gaps of one unit in the last place, widths to the
    whole pool; now and then hundreds at one instant."""
    count = rng.choice((1, 2, 3, rng.randint(4, most_jobs), rng.randint(4, most_jobs), most_jobs))
    if most_jobs >= 14 and rng.random() < 0.02:
        count = rng.randint(100, 300)
    at_s, submits = rng.choice(epochs_s), []
    gap = rng.choice((_no_gap, _grid_gap, _any_gap, _ulp_gap, _mixed_gap))
    for _ in range(count):
        submits.append(at_s)
        at_s = max(at_s, gap(rng, at_s))
    last_s, one_s = submits[-1], _any_work(rng, least_s, most_s)
    work = rng.choice(("any", "any", "equal", "grid", "coinciding"))
    found = []
    for submit_s in submits:
        work_s = {
            "any": lambda: _any_work(rng, least_s, most_s),
            "equal": lambda: one_s,
            "grid": lambda: 60.0 * rng.randint(1, 20),
            "coinciding": lambda at_s=submit_s: last_s + 120.0 - at_s,
        }[work]()
        width = rng.choice((1, 1, most_gpus, rng.randint(1, most_gpus), min(most_gpus, 2 ** rng.randint(0, 6))))
        found.append(Row(submit_s, min(max(work_s, least_s), most_s), width))
    return found


def _any_work(rng, least_s, most_s):
    low, high = np.log10(least_s), np.log10(most_s)
    return float(10.0 ** rng.uniform(low if rng.random() < 0.2 else max(low, -3.0), high))


def _no_gap(rng, at_s):
    return at_s


def _grid_gap(rng, at_s):
    return at_s + 60.0 * rng.choice((0, 0, 1, 2, 10))


def _any_gap(rng, at_s):
    return at_s + rng.expovariate(1.0) * 10.0 ** rng.uniform(-6.0, 4.0)


def _ulp_gap(rng, at_s):
    return float(np.nextafter(at_s, np.inf)) if rng.random() < 0.5 else at_s


def _mixed_gap(rng, at_s):
    return rng.choice((_no_gap, _grid_gap, _any_gap, _ulp_gap))(rng, at_s)


def dust_s(*times):
    """What rounding of so large instants, and events that are one, may make of a difference of two, seconds."""
    return 4.0 * tolerance.EVENT_S + 8.0 * float(
        np.spacing(max(1.0, *(float(np.abs(each).max(initial=0.0)) for each in times)))
    )


def most_held(start_s, end_s, gpus):
    """The most GPUs held at any instant by spans [start, end); those of no length hold nothing."""
    held = end_s > start_s
    at_s = np.concatenate([start_s[held], end_s[held]])
    change = np.concatenate([gpus[held], -gpus[held]]).astype(float)
    order = np.lexsort((change, at_s))  # of one instant, what is given back first
    return float(np.cumsum(change[order]).max(initial=0.0))


def check_run(log, jobs, *, lost_s=0.0, resume_s=0.0, work_s=None):
    """Every job ran once, on its own GPUs, from its submission on, for as long as its work takes: from spans alone."""
    submit_s = np.array([job.submit_s for job in jobs])
    assert len(log) == len(jobs)
    assert np.array_equal(log.submit_s, submit_s)
    assert np.isfinite(log.start_s).all(), "a job never started"
    assert np.isfinite(log.end_s).all(), "a job never ended"
    assert (log.start_s >= submit_s).all(), "a job started before it was submitted"
    assert (log.end_s >= log.start_s).all()
    spans = spans_by_job(log)
    assert set(spans) == set(range(len(jobs)))
    dust = dust_s(log.end_s, submit_s)
    for seq, mine in spans.items():
        begins, ends = (np.array(column) for column in zip(*mine, strict=True))
        assert len(mine) == 1 + log.preemptions[seq], f"job {seq}: spans and stops"
        assert begins[0] == log.start_s[seq]
        assert ends[-1] == log.end_s[seq]
        assert (ends >= begins).all()
        assert (begins[1:] >= ends[:-1]).all(), f"job {seq} ran twice at once"
        lost = np.where(np.arange(len(mine)) > 0, lost_s + resume_s, lost_s)
        done = np.maximum(0.0, ends - begins - lost).sum()
        owed = log.duration_s[seq] if work_s is None else work_s[seq]
        assert abs(done - owed) <= dust * len(mine) + 1e-9 * owed, f"job {seq}: {done} s done, {owed} s owed"


def spans_by_job(log):
    """seq -> (start, end) of its spans in order of time, those side by side on several nodes as one."""
    found, spans = defaultdict(list), log.spans
    for seq, start_s, end_s, node in zip(spans.job.tolist(), spans.from_s, spans.until_s, spans.node, strict=True):
        if node < 0 or (start_s, end_s) not in found[seq]:
            found[seq].append((start_s, end_s))
    return {seq: sorted(mine) for seq, mine in found.items()}


def check_held(log, *, nodes=(), quotas=None, jobs=()):
    """Never more GPUs held than there are, in all, of each node (GPUs) and, with `quotas`, in each pool of the jobs."""
    spans = log.spans

    def held(here):
        return most_held(spans.from_s[here], spans.until_s[here], spans.gpus[here])

    assert held(spans.job >= 0) <= log.total_gpus + 1e-6, "more GPUs than there are"
    for node, gpus in enumerate(nodes):
        assert held(spans.node == node) <= gpus + 1e-6, f"node {node} of {gpus} GPUs has more in use"
    for pool, quota in (quotas or {}).items():
        here = np.array([jobs[job].pool == pool for job in spans.job], dtype=bool)
        assert held(here) <= quota + 1e-6, f"pool {pool} of {quota} GPUs holds more"


def check_lives(log):
    """Nobody holds anything before its submission or after its end; what was metered is what was held."""
    spans, dust = log.spans, dust_s(log.end_s, log.submit_s)
    assert (spans.until_s >= spans.from_s).all()
    assert (spans.from_s >= log.submit_s[spans.job] - dust).all()
    assert (spans.until_s <= log.end_s[spans.job] + dust).all(), "a job holds GPUs after its end"
    if "gpu_s" in log.columns:
        held_s = np.bincount(spans.job, spans.gpu_s, minlength=len(log))
        assert held_s == pytest.approx(log.columns["gpu_s"], rel=1e-6, abs=16 * dust), "spans are not what was metered"


def check_same(first, second, *, but=()):
    """Two logs are equal, bit by bit, but for what is read off a clock and what `but` names."""
    but = {*CLOCK_DEPENDENT, *but}
    told, again = (
        each if isinstance(each, Mapping) else {one.name: getattr(each, one.name) for one in fields(each)}
        for each in (first, second)
    )
    assert told.keys() - but == again.keys() - but
    for name in told.keys() - but:
        one, two = told[name], again[name]
        if isinstance(one, Mapping) or hasattr(one, "__dataclass_fields__"):
            check_same(one, two, but=but)
        elif isinstance(one, np.ndarray):
            assert one.tobytes() == two.tobytes(), f"{name} differs between two runs"
        else:
            assert one == two, f"{name} differs between two runs"


class Recorder:
    """An engine's policy that does what another says and keeps it: (instant, decision)."""

    def __init__(self, policy, after=None):
        self.policy, self.name, self.decisions, self._after = policy, policy.name, [], after

    def __getattr__(self, name):
        return getattr(self.policy, name)

    def decide(self, view):
        decision = self.policy.decide(view)
        self.decisions.append((view.now_s, decision))
        if self._after is not None:
            self._after(view, decision)
        return decision
