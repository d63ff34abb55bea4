"""Rounds driven without an engine: jobs of known run times, one policy, a log of who ran when."""

from dataclasses import dataclass

from hypothesis import strategies as st

from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.domain.rounds import ActiveJob, RoundState
from jobcast.domain.training import Progress, Regime, Training
from jobcast.schedulers.packing import first_fit
from jobcast.simulator.workload import Workload

ROUND_S = 120.0
RESTART_S = 20.0


@dataclass(frozen=True)
class Known:
    """Exact run times, by job."""

    run_s: dict[int, float]

    def remaining_s(self, active):
        return max(0.0, self.run_s[active.job.seq] - active.run_s)

    def at_most_s(self, active, level=0.9, hedge=1.0):
        return max(1.0, self.remaining_s(active))

    def total_s(self, active):
        return self.run_s[active.job.seq]

    def left(self, active):
        return ((1.0, max(1.0, self.remaining_s(active)), 1),)


def job(seq, gpus=1, submit_s=0.0, weight=1.0, training=None):
    return Job(seq, str(seq), "p", submit_s, gpus, weight=weight, training=training)


def active(seq, gpus=1, held_s=0.0, running=False, submit_s=0.0, weight=1.0):
    return ActiveJob(job(seq, gpus, submit_s, weight), held_s, held_s, running)


def trained(seq, model, batch_size, epoch_s, gpus=1, at=None):
    training = Training(model, batch_size, 10, "gns", epoch_s)
    progress = Progress(0.0, (Regime(at or batch_size, 0.0),))
    return ActiveJob(job(seq, gpus, training=training), 0.0, 0.0, False, progress)


def state(actives, gpus, now_s=0.0, changed=True, adapted=False):
    return RoundState(now_s, int(now_s // ROUND_S), ROUND_S, RESTART_S, gpus, tuple(actives), changed, adapted)


def seqs(jobs):
    return [one.seq for one in jobs]


def drive(policy, jobs, run_s, gpus, most_rounds=2_000):
    """Rounds as sets of seqs until all jobs are done. Checks that each fits and leaves no GPU idle in vain."""
    held, ran, running, log = dict.fromkeys(run_s, 0.0), dict.fromkeys(run_s, 0.0), set(), []
    seen = None
    for index in range(most_rounds):
        now_s = index * ROUND_S
        here = [one for one in jobs if one.submit_s <= now_s and ran[one.seq] < run_s[one.seq]]
        if not here and all(one.submit_s <= now_s for one in jobs):
            return log
        actives = [ActiveJob(one, held[one.seq], ran[one.seq], one.seq in running) for one in here]
        present = {one.seq for one in here}
        chosen = policy.choose(state(actives, gpus, now_s, changed=present != seen))
        check_round(chosen, here, gpus)
        seen = present
        for one in chosen:
            useful_s = ROUND_S - (0.0 if one.seq in running else RESTART_S)
            held[one.seq] += ROUND_S
            ran[one.seq] = min(run_s[one.seq], ran[one.seq] + useful_s)
        running = {one.seq for one in chosen}
        log.append(running)
    raise AssertionError(f"jobs {sorted(present)} are not done after {most_rounds} rounds")


def check_round(chosen, here, gpus):
    names = seqs(chosen)
    assert len(set(names)) == len(names)
    assert set(names) <= {one.seq for one in here}
    free = gpus - sum(one.gpus for one in chosen)
    assert free >= 0
    assert all(one.gpus > free for one in here if one.seq not in names)


class Following:
    """Rounds that follow shares: whoever is furthest behind its share first."""

    def __init__(self, policy):
        self._policy = policy

    def choose(self, now):
        shares = self._policy.shares(now)
        assert len(shares) == len(now.active)
        assert all(0.0 <= share <= 1.0 + 1e-9 for share in shares)
        behind = [-share / (one.held_s + ROUND_S) for share, one in zip(shares, now.active, strict=True)]
        order = sorted(range(len(behind)), key=lambda index: (behind[index], index))
        free, chosen = now.total_gpus, []
        for index in order:
            if now.active[index].job.gpus <= free:
                chosen.append(now.active[index].job)
                free -= now.active[index].job.gpus
        return chosen


@st.composite
def workloads(draw, most_jobs=12):
    """Jobs of up to 8 GPUs and 20 rounds, and a cluster that the widest fits on."""
    rows = draw(
        st.lists(
            st.tuples(st.sampled_from([1, 2, 3, 4, 8]), st.integers(1, 2400), st.integers(0, 1200)),
            min_size=1,
            max_size=most_jobs,
        )
    )
    jobs = [job(seq, gpus, float(at)) for seq, (gpus, _, at) in enumerate(sorted(rows, key=lambda row: row[2]))]
    run_s = {seq: float(length) for seq, (_, length, _) in enumerate(sorted(rows, key=lambda row: row[2]))}
    return jobs, run_s, draw(st.integers(8, 16))


class InOrder:
    """Runs jobs by `seq`, as they fit, and keeps the states that it was shown."""

    def __init__(self):
        self.states = []

    def choose(self, now):
        self.states.append(now)
        return first_fit([one.job for one in now.active], now.total_gpus)


class Equal:
    """The same share for everybody."""

    def shares(self, now):
        return [min(1.0, now.total_gpus / max(1, len(now.active)))] * len(now.active)


def gangs(rows, gpus, restart_s=RESTART_S, preemptible=True, nodes=()):
    """A workload of rows (submit, duration, width), and whether each may be stopped where that differs."""
    jobs = [
        Job(seq, f"{seq:03d}", "all", float(at), wide, preemptible=may[0] if may else preemptible)
        for seq, (at, _, wide, *may) in enumerate(rows)
    ]
    return Workload(jobs, [Outcome(float(row[1])) for row in rows], [Pool("all", gpus)], restart_s, servers=nodes)
