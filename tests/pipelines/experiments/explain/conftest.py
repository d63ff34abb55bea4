"""Small runs in minutes, written as `simulate --out` writes them and explained."""

from pathlib import Path

import pytest

from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.pipelines.experiments.explain.explanation import explain
from jobcast.pipelines.experiments.explain.run_table import read_run_table
from jobcast.pipelines.experiments.forecast_recording import Recording
from jobcast.pipelines.experiments.run_record import bin_names, limit_table, pool_record_of, write_run_record
from jobcast.pipelines.report.job_table import job_table, listed, write_table
from jobcast.schedulers.registry import make_policy
from jobcast.simulator.engine import replay
from jobcast.simulator.forecast_sources import Oracle
from jobcast.simulator.workload import Workload

MINUTE_S = 60.0


class Scripted(Oracle):
    """The oracle, but some answers are given: bins by job id, and who is said to come to a pool."""

    def __init__(self, workload, bins=None, comes=None):
        super().__init__(workload)
        self._bins, self._comes = bins or {}, comes or {}

    def will_jobs_arrive(self, pool, horizon_s):
        """Given, or the truth."""
        return self._comes[pool] > 0 if pool in self._comes else super().will_jobs_arrive(pool, horizon_s)

    def new_load(self, pool, horizon_s):
        """Given, or the truth."""
        return self._comes.get(pool, super().new_load(pool, horizon_s))

    def duration_bin(self, job):
        """Given, or the truth."""
        return self._bins.get(job.job_id, super().duration_bin(job))


class Runs:
    """Makes logs of runs in a folder, and explains them."""

    def __init__(self, folder: Path):
        self.folder = folder

    def workload(self, jobs, pools):
        """Workload from rows (job id, pool, submit min, duration min, gpus) and quotas by pool."""
        return Workload(
            [Job(0, name, pool, MINUTE_S * at, gpus) for name, pool, at, _, gpus in jobs],
            [Outcome(MINUTE_S * duration) for *_, duration, _ in jobs],
            [Pool(name, quota) for name, quota in pools.items()],
        )

    def log(self, workload, policy, source=None, rule=None, ending="csv"):
        """Path of the log of a run; `rule` instead of the policy of that name."""
        recording = Recording(source or Oracle(workload))
        made = rule(recording) if rule else make_policy(policy, recording, {})
        log = replay(workload, made, recording)
        path = self.folder / f"log.{ending}"
        write_table(job_table(log, listed(workload), bins=bin_names(recording, workload)), path)
        result = {"forecasts": "oracle", "seed": 0, "configuration": {"settings": {}}}
        told = pool_record_of(log, workload, "fcfs" if rule else policy, result, {}, recording) | {"policy": policy}
        limits = None if rule else limit_table(policy, workload)
        write_run_record(path, told, log, recording, limits=limits)
        return path

    def table(self, jobs, pools, policy, bins=None, comes=None, rule=None):
        """A run, read back."""
        workload = self.workload(jobs, pools)
        return read_run_table(self.log(workload, policy, Scripted(workload, bins, comes), rule))

    def report(self, job_id, *run, **options):
        """The explanation of one job of a run."""
        return explain(self.table(*run, **options), job_id)


def reasons(told):
    """(from min, until min, on the quota, on other GPUs) of each stretch."""
    return [
        (stretch["from_s"] / 60, stretch["until_s"] / 60, stretch["quota_reason"], stretch["spare_reason"])
        for stretch in told["waits"]
    ]


@pytest.fixture
def runs(tmp_path):
    return Runs(tmp_path)
