"""Stage queue: when first come, first served on their quotas starts the jobs of a few small pools, to learn waits from.

The trace of a run need not tell starts; what a cluster's own accounting tells is learnt from by `jobcast train`.
"""

from dataclasses import replace

import polars as pl

from jobcast.domain.hardware import pools_cluster
from jobcast.pipelines.experiments.experiment import Experiment
from jobcast.pipelines.experiments.policy_runs import run
from jobcast.pipelines.experiments.sources import Ask
from jobcast.pipelines.report.formatting import counted
from jobcast.pipelines.report.job_table import job_table, write_table
from jobcast.pipelines.stages.context import Context
from jobcast.pipelines.stages.enrich import small_pools
from jobcast.schedulers.registry import find_policy
from jobcast.traces.pools import read_pools

POLICY = "fcfs"
LAST_S = 14 * 86400.0
"""Before the split: waits of long ago teach little, and each instant has rows."""


def work(context: Context, item: str = "") -> None:
    """Write the table of jobs of the replay, as `jobcast simulate --out` does."""
    trace, (split, _) = context.trace(), context.split()
    pools = small_pools(trace, read_pools(context.pools).at(split.train_until_s), context.params.enrich.pools)
    begin_s = max(split.train_from_s, split.train_until_s - LAST_S)
    mine = replace(trace, jobs=trace.jobs.filter(pl.col("pool").is_in([pool.name for pool in pools])))
    experiment = Experiment(
        trace=mine,
        cluster=pools_cluster(pools),
        from_s=begin_s,
        until_s=split.test_until_s,
        drop_wide=True,
        only_pools=True,
    )
    rule = find_policy(POLICY)
    log = run(experiment, Ask(policy=POLICY, home=context.home)).log
    write_table(job_table(log, experiment.scenario(rule.kind, rule.scope).listed), context.queue)
    context.write_receipt("queue", {"input": context.input_hash()})
    waited = int((log.start_s > log.submit_s).sum())
    context.console.note(f"queue: {counted(len(log), 'job')} of {len(pools)} pools, {waited:,} of which waited")
