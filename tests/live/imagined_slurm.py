"""A Slurm in memory for tests: limits by QOS, jobs that start as soon as they fit, and what is done to it."""

from dataclasses import replace
from math import inf, nan

from jobcast.domain.errors import ClusterError
from jobcast.live.slurm import Node, Qos, Snapshot
from jobcast.traces.readers.slurm_queue import QueuedJob


class Calm:
    """Forecasts of nobody to come, and of jobs that end within the first window."""

    horizons_min = (15.0, 60.0)

    def __init__(self, arrives=False, load=0.0, lane=0):
        self.arrives, self.load, self.lane = arrives, load, lane

    def advance(self, now_s):
        """Nothing depends on the instant."""

    def will_jobs_arrive(self, pool, horizon_s):
        return self.arrives

    def new_load(self, pool, horizon_s):
        return self.load

    def duration_bin(self, job):
        return self.lane


class ImaginedSlurm:
    """Two pools of 16 GPUs on 4 nodes of 8; `submit`, `end` and `pass_time` are what happens to it."""

    def __init__(self):
        self.now_s, self.jobs, self.done = 1_000_000.0, {}, []
        self.limits = {"a": Qos(16), "lent_a": Qos(0), "b": Qos(16), "lent_b": Qos(0), "normal": Qos(None)}
        self.up = {f"n{number}": 8 for number in range(4)}
        self.fails, self.by_qos = set(), True

    def submit(self, job_id, pool, gpus, nodes=1, **more):
        self.jobs[job_id] = QueuedJob(
            **{
                "job_id": job_id, "state": "PENDING", "reason": "None", "user": "u", "account": pool, "qos": pool,
                "partition": "gpu", "name": "t", "gpus": gpus, "nodes": nodes, "submit_s": self.now_s, "start_s": nan,
                "end_s": nan, "limit_s": inf, "mark": "", "comment": "", **more,
            }
        )  # fmt: skip
        self._start()

    def end(self, name):
        self.jobs[name] = replace(self.jobs[name], state="COMPLETED", end_s=self.now_s)
        self._start()

    def requeue(self, name):
        self.jobs[name] = replace(self.jobs[name], state="PENDING", reason="BeginTime", start_s=nan)

    def pass_time(self, seconds):
        self.now_s += seconds

    def held(self, qos=None):
        return sum(job.gpus for job in self.jobs.values() if job.runs and qos in (None, job.qos))

    def _start(self):
        for name, job in self.jobs.items():
            limit = inf if self.limits[job.qos].gpus is None else self.limits[job.qos].gpus
            fits = self.held() + job.gpus <= sum(self.up.values()) and self.held(job.qos) + job.gpus <= limit
            if job.waits and not job.held and fits:
                self.jobs[name] = replace(job, state="RUNNING", start_s=self.now_s)
            elif job.waits and not job.held:
                self.jobs[name] = replace(job, reason="QOSGrpGRES")

    def _said(self, *words):
        if words[0] in self.fails:
            raise ClusterError(f"{words[0]}: Slurm says: no")
        self.done.append(words)

    def look(self, now_s):
        self._said("look")
        self.done.pop()
        return Snapshot(now_s, list(self.jobs.values()), dict(self.limits), self.nodes())

    def nodes(self):
        left, found = self.held(), {}
        for name, gpus in self.up.items():
            found[name] = Node(8, min(left, gpus), gpus > 0)
            left -= found[name].held
        return found

    def queue(self):
        return list(self.jobs.values())

    def history(self, from_s, pool_by):
        return None

    def limit(self, qos, gpus, told):
        self._said("limit", qos, gpus)
        self.limits[qos] = replace(self.limits[qos], gpus=gpus, told=told)
        self._start()

    def preempts(self, qos, others, told):
        self._said("preempt", qos, tuple(others))
        self.limits[qos] = replace(self.limits[qos], preempts=tuple(others), told=told)

    def stops_by_qos(self):
        return self.by_qos

    def move(self, job_id, qos, mark, limit_s=None):
        self._said("move", job_id, qos)
        limit = {} if limit_s is None else {"limit_s": limit_s}
        self.jobs[job_id] = replace(self.jobs[job_id], qos=qos, mark=mark, **limit)
        self._start()
