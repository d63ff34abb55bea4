"""Shockwave, the policy."""
from collections import deque
from collections.abc import Sequence
from time import perf_counter

import numpy as np

from jobcast.domain.jobs import Job
from jobcast.domain.rounds import ActiveJob, RoundState
from jobcast.schedulers.packing import first_fit
from jobcast.schedulers.shockwave.programme import Programme
from jobcast.schedulers.shockwave.relaxation import relax
from jobcast.schedulers.shockwave.timetable import timetable
from jobcast.schedulers.shockwave.work import work_of


class Shockwave:
    name = "shockwave"

    def __init__(self, run_times, *, k=5.0, lam=1.0, window=20, mode="reactive", floor=1.0, urg="rho", stick=0.0, hold=True, floor_abs=None, run_bonus=1.0, eta=1.0, boost=1e9):
        self.rt, self.k, self.lam, self.window, self.mode, self.floor, self.urg, self.stick = run_times, k, lam, window, mode, floor, urg, stick
        self.cont = {}
        self.plan = deque()
        self.known = frozenset()
        self.gaps, self.times = [], []
        self.rank = {}; self.hold=hold; self.held={}; self.fa=floor_abs; self.rb=run_bonus; self.eta=eta; self.boost=boost

    def choose(self, state):
        if not state.active: return []
        c = len(state.active) / state.total_gpus
        seqs = frozenset(a.job.seq for a in state.active)
        self.cont = {a.job.seq: (lambda t: (t[0] + c, t[1] + 1))(self.cont.get(a.job.seq, (0.0, 0))) for a in state.active}
        if not self.plan or seqs != self.known or (state.adapted and self.mode == "reactive"):
            t = perf_counter()
            self.solve(state)
            self.times.append(perf_counter() - t)
        self.known = seqs
        now = self.plan.popleft()
        jobs = sorted((a for a in state.active), key=lambda a: (a.job.seq not in now, -self.rank.get(a.job.seq, 0.0)))
        return first_fit((a.job for a in jobs), state.total_gpus)

    def solve(self, state):
        act = state.active
        w = work_of([self.rt.left(a) for a in act], [a.progress.epochs if a.progress else 0.0 for a in act])
        ran = np.array([a.run_s for a in act])
        left = w.left_s
        total = ran + left
        age = np.array([state.now_s - a.job.submit_s for a in act])
        navg = np.array([max(1.0, self.cont[a.job.seq][0] / self.cont[a.job.seq][1]) for a in act])
        rho = (age + left * navg) / (total * navg)
        running = np.array([a.running for a in act])
        if self.hold:
            rho = np.array([max(r, self.held.get(a.job.seq, 0.0)) if a.running else r for r, a in zip(rho, act)])
        self.held = {a.job.seq: r for a, r in zip(act, rho)}
        fl = np.minimum(1.0, self.floor * state.round_s / total) if self.fa is None else np.full(len(act), self.fa)
        wt = rho ** self.k * np.where(running, self.rb, 1.0)
        p = Programme(w, wt, fl, np.array([a.job.gpus for a in act]),
            running, state.total_gpus, self.window, state.round_s, state.restart_s * (1 + self.stick), self.lam / total.sum())
        r = relax(p)
        best, bv = None, -np.inf
        seen = set()
        for counts in r.counts:
            if counts.tobytes() in seen: continue
            seen.add(counts.tobytes())
            urg = {"rho": rho, "slope": r.slopes[:, 0], "count": counts, "dens": (p.gains[np.arange(len(act)), counts] - p.gains[:, 0]) / np.maximum(1, counts) / p.widths, "dmk": np.take_along_axis(r.slopes.cumsum(axis=1), np.maximum(0, counts - 1)[:, None], 1)[:, 0] / np.maximum(1, counts),  "short": -left}[self.urg]
            x = timetable(p, counts, urg, r.slopes, self.boost)
            v = p.value(x)
            if v > bv: best, bv = x, v
        self.gaps.append((r.bound - bv) / abs(bv))
        ids = np.array([a.job.seq for a in act])
        self.plan = deque(frozenset(ids[best[:, t]].tolist()) for t in range(self.window))
        self.rank = dict(zip(ids.tolist(), r.slopes[:, 0].tolist()))
