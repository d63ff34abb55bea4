"""Elastic jobs from rows, views of a cluster at some instant, and strategies that draw them."""

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st

from jobcast.domain.elastic import ElasticJobs, ElasticPolicy, ElasticView
from jobcast.schedulers.elastic.config import WfqConfig
from jobcast.schedulers.policies import ELASTIC
from jobcast.schedulers.registry import make_policy, names_of
from jobcast.simulator.elastic.run import ElasticCluster, ElasticReplay, replay_elastic
from jobcast.simulator.engine import Simulation
from jobcast.simulator.laws.speedup import Speedup, elastic_workload

WIDTH = 16
LINEAR = np.arange(WIDTH + 1.0)
CONCAVE = LINEAR**0.8
BUMPY = np.array([0, 1, 1.81, 2.44, 3.45, 3.9, 4.5, 5.3, 6.6, *np.linspace(6.7, 8.4, 8)])
"""Efficiency falls and rises again, as of the measured models."""
DOUBLING = np.array([0, 1, 2.5, 3.5, *np.linspace(4, 10, 13)])
"""A second GPU more than doubles the speed."""
TABLES = np.stack([np.stack([row, 0.9 * row]) for row in (LINEAR, CONCAVE, BUMPY, DOUBLING)])
QUEUES = WfqConfig((10.0, 100.0, float("inf")), (0.7, 0.25, 0.05), 0.7, 0.2)


def policies(*, types=1):
    """Every policy once, PCS with three queues; PCS and fair twice, in fractions and whole GPUs."""
    names = ("a", "b")[:types]
    found = [make_policy(name) for name in names_of(ELASTIC) if name not in ("pcs", "elastic_fair")]
    for whole in (False, True):
        found.append(replace(QUEUES.policy(names, whole=whole), name=f"pcs whole={whole}"))
        found.append(replace(make_policy("elastic_fair", None, {"whole_gpus": whole}), name=f"fair whole={whole}"))
    return {one.name: one for one in found}


def jobs_of(rows, *, tables=TABLES, speed=None, stages=None):
    """Jobs from rows (submit_s, size_s, most[, least[, model]]); `stages`: job -> [(share done at its end, most)]."""
    filled = [(*row, *(0.0, 0)[len(row) - 3 :]) for row in rows]
    courses = [(stages or {}).get(job, [(1.0, row[2])]) for job, row in enumerate(filled)]
    submit_s, size_s, most, least = (np.array([row[i] for row in filled], dtype=float) for i in range(4))
    return ElasticJobs(
        submit_s=submit_s,
        size_s=size_s,
        least=least,
        most=most,
        model=np.array([row[4] for row in filled], dtype=np.int64),
        stage_of=np.concatenate([[0], np.cumsum([len(course) for course in courses])]).astype(np.int64),
        stage_end=np.array([end for course in courses for end, _ in course], dtype=float),
        stage_most=np.array([top for course in courses for _, top in course], dtype=float),
        speedup=np.array(tables),
        speed=np.ones((len(tables), 1)) if speed is None else np.ascontiguousarray(speed, dtype=float),
    )


@dataclass(frozen=True)
class Case:
    """Jobs and a cluster for them."""

    jobs: ElasticJobs
    cluster: ElasticCluster

    def run(self, policy: ElasticPolicy, **options) -> ElasticReplay:
        """A run at its beginning, sizes as declared."""
        return ElasticReplay(self.jobs, self.jobs.size_s, self.cluster, policy, **options)

    def log(self, policy: ElasticPolicy, *, predict=False):
        """A finished run."""
        return replay_elastic(self.run(policy), predict=predict)

    def simulation(self, policy, *, size_s=None, origin_s=0.0, **options) -> Simulation:
        """The same in the one loop, at its beginning; `size_s`: what jobs really are."""
        size_s = self.jobs.size_s if size_s is None else size_s
        law = Speedup(self.jobs, size_s, self.cluster.preempt_s, origin_s)
        return Simulation(elastic_workload(self.jobs, size_s, self.cluster, origin_s), policy, law=law, **options)


def cluster_of(*capacity, nodes=(), preempt_s=0.0):
    """GPUs by type, and nodes as (type, GPUs)."""
    return ElasticCluster(
        np.array(capacity, dtype=float),
        np.array([kind for kind, _ in nodes], dtype=np.int64),
        np.array([gpus for _, gpus in nodes], dtype=float),
        preempt_s,
    )


@st.composite
def cases(draw, *, placed=False, types=1):
    """A few jobs with stages on a small cluster, with nodes where `placed`, and some cost of a change."""
    count = draw(st.integers(1, 12))
    at_s, rows, stages = 0.0, [], {}
    for job in range(count):
        at_s += draw(st.sampled_from([0.0, 1.0, 7.0, 40.0]))
        most = draw(st.sampled_from([1, 2, 3, 4, 8]))
        least = draw(st.sampled_from([0, 0, 1, most]))
        rows.append((at_s, draw(st.floats(1.0, 300.0)), most, least, draw(st.integers(0, 3))))
        if draw(st.booleans()):
            stages[job] = [(0.4, most), (1.0, max(least, most // 2, 1))]
    sizes = [draw(st.sampled_from([8, 12])) for _ in range(types)]
    nodes = [(kind, 4) for kind, gpus in enumerate(sizes) for _ in range(gpus // 4)] if placed else ()
    speed = [[1.0, 0.5][:types], [0.5, 1.0][:types], [1.0, 1.0][:types], [1.0, 0.9][:types]]
    cluster = cluster_of(*sizes, nodes=nodes, preempt_s=draw(st.sampled_from([0.0, 2.0])))
    return Case(jobs_of(rows, speed=speed, stages=stages), cluster)


@st.composite
def views(draw, *, types=1, leasts=(0,)):
    """What a rule may be asked: a cluster at an instant; not all jobs that arrived are active."""
    count = draw(st.integers(1, 14))
    rows, active = [], []
    for job in range(count):
        most = draw(st.sampled_from([1, 2, 4, 5, 8, 16]))
        least = min(draw(st.sampled_from(leasts)), most)
        size_s = draw(st.sampled_from([5.0, 20.0, 20.0, 64.0, 500.0]))
        rows.append((float(draw(st.integers(0, 2))) + job, size_s, most, least, draw(st.integers(0, 3))))
        if draw(st.integers(0, 5)) or not active:
            active.append(job)
    jobs = jobs_of(rows, speed=[[1.0, 0.5][:types], [0.5, 1.0][:types], [1.0, 1.0][:types], [1.0, 0.9][:types]])
    done = np.array([draw(st.sampled_from([0.0, 0.0, 0.25, 0.5, 0.9])) for _ in rows])
    return ElasticView(
        now_s=float(count + 2 + draw(st.integers(0, 100))),
        capacity=np.array([draw(st.integers(1, 40)) for _ in range(types)], dtype=float),
        active=np.array([*active, *[0] * (count - len(active))], dtype=np.int64),
        count=len(active),
        jobs=jobs,
        left_s=jobs.size_s * (1.0 - done),
        most=jobs.most.copy(),
        held_gpu_s=jobs.size_s * done,
        contention=np.array([draw(st.sampled_from([1.0, 3.5, 20.0, 90.0])) for _ in rows]),
    )


def dealt(policy, view):
    """(n_jobs, n_types) what a policy's rule deals out."""
    gpus = np.zeros((len(view.left_s), len(view.capacity)))
    policy.rule(view, policy.numbers, gpus)
    return gpus
