"""Event-driven policies' plain counterparts: a cluster of lists, a loop over instants, random small workloads."""

from hypothesis import strategies as st

from jobcast.domain import tolerance
from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.simulator.engine import replay
from jobcast.simulator.forecast_sources import Oracle
from jobcast.simulator.workload import Workload

NAMES = "pqr"
EPOCH_S = 1_507_000_000.0


class Cluster:
    """Plain state that a rule reads and changes."""

    def __init__(self, quotas, durations):
        self.quotas, self.durations, self.now = quotas, durations, 0.0
        self.pending, self.running, self.start_s = [], [], {}  # running: (start, end, job, dedicated)

    def idle(self):
        return sum(self.quotas.values()) - sum(job.gpus for _, _, job, _ in self.running)

    def held(self, pool, dedicated_only=False):
        runs = (run for run in self.running if run[2].pool == pool and (run[3] or not dedicated_only))
        return sum(run[2].gpus for run in runs)

    def queue(self, pool):
        return sorted((job for job in self.pending if job.pool == pool), key=lambda job: job.seq)

    def by_share(self):
        return sorted(self.quotas, key=lambda pool: (self.held(pool) / self.quotas[pool], pool))

    def start(self, job, dedicated=True):
        assert job.gpus <= self.idle()
        self.pending.remove(job)
        self.running.append((self.now, self.now + self.durations[job.seq], job, dedicated))
        self.start_s[job.seq] = self.now


def instant(events_s):
    """The next instant: events apart by float noise are one, the last of them."""
    first_s = min(events_s)
    return max(at_s for at_s in events_s if at_s <= first_s + tolerance.EVENT_S)


def reference(workload, rule, source=None):
    """Start times by seq, of a rule called after each instant's completions and arrivals."""
    cluster = Cluster(workload.quotas(), [outcome.duration_s for outcome in workload.outcomes])
    to_come = list(workload.jobs)
    while to_come or cluster.running:
        cluster.now = instant([job.submit_s for job in to_come] + [run[1] for run in cluster.running])
        cluster.running = [run for run in cluster.running if run[1] > cluster.now]
        cluster.pending += [job for job in to_come if job.submit_s <= cluster.now]
        to_come = [job for job in to_come if job.submit_s > cluster.now]
        if source is not None:
            source.advance(cluster.now)
        rule(cluster)
    return [cluster.start_s[job.seq] for job in workload.jobs]


def starts(workload, policy, source=None):
    """Start times by seq, of a policy made from forecasts."""
    source = source or Oracle(workload)
    return replay(workload, policy(source), source).start_s.tolist()


@st.composite
def workloads(draw, max_jobs=14, durations=(1, 2, 3, 4, 5, 6, 9, 11, 20, 40), steps=(1.0, 60.0, 0.1), exact=False):
    """Up to three pools; ties and bursts. Unless `exact`, instants a third or a hair off steps, or from an epoch on."""
    quotas = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    step_s, origin_s = draw(st.sampled_from(steps)), draw(st.sampled_from([0.0] if exact else [0.0, EPOCH_S]))
    off_s = st.sampled_from([0.0] if exact else [0.0, 0.0, 0.0, step_s / 3, 1e-4 * step_s])
    jobs, outcomes, at = [], [], 0
    for index in range(draw(st.integers(1, max_jobs))):
        pool = draw(st.integers(0, len(quotas) - 1))
        at += draw(st.sampled_from([0, 0, 0, 1, 2, 5, 9]))
        gpus = draw(st.integers(1, quotas[pool]))
        jobs.append(Job(0, f"{index:02}", NAMES[pool], origin_s + at * step_s + draw(off_s), gpus))
        outcomes.append(Outcome(draw(st.sampled_from(durations)) * step_s + draw(off_s)))
    return Workload(jobs, outcomes, [Pool(NAMES[index], quota) for index, quota in enumerate(quotas)])


def in_minutes(max_jobs=24, steps=(60.0,)):
    """Workloads whose runs lie about the horizons of 5, 10 and 20 minutes."""
    return workloads(max_jobs, (1, 2, 3, 4, 5, 6, 9, 10, 11, 15, 20, 21, 40), steps, exact=True)
