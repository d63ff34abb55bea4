"""Stage enrich: the jobs around the split of a few small pools, with facts that the trace lacks, and nodes to run on.

What learns from training jobs, task graphs and profiles is trained and judged on these; see stages learn and judge.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from jobcast.domain.errors import TraceError
from jobcast.domain.jobs import Pool
from jobcast.pipelines.report.files import write_json
from jobcast.pipelines.stages.context import Context
from jobcast.traces.enrich.columns import FACTS, EnrichConfig, parse_enrich
from jobcast.traces.enrich.enrichment import enrich, write_enriched
from jobcast.traces.pools import read_pools
from jobcast.traces.table import Trace

NODE_GPUS = 4
LEAST_S = 2 * 86400.0
"""What learns from ended jobs wants a day of them at least."""
TYPES = 2
"""Types of GPUs of the nodes, half of them each: the first of the settings, the reference among them."""


def work(context: Context, item: str = "") -> None:
    """Write the enriched jobs with their tables, and the nodes."""
    params, (split, _) = context.params.enrich, context.split()
    trace = context.trace()
    pools = small_pools(trace, read_pools(context.pools).at(split.train_until_s), params.pools)
    jobs = trace.jobs.filter(pl.col("pool").is_in([pool.name for pool in pools]))
    mine = replace(trace, jobs=jobs, source=replace(trace.source, path=trace.name))  # no path, which would differ
    before = lessons(mine.between(split.train_from_s, split.train_until_s), split.train_until_s, params.train_jobs)
    after = mine.between(split.train_until_s, split.test_until_s).jobs.head(params.test_jobs)
    for part, described in ((before, "training time"), (after, "test window")):
        if part.is_empty():
            names = ", ".join(pool.name for pool in pools)
            raise TraceError(
                f"{trace.name}: no job of {names} in the {described}; raise enrich.pools in the parameters"
            )
    config = parse_enrich(params.settings)
    made = enrich(replace(mine, jobs=pl.concat([before, after])), tuple(FACTS), config, params.seed)
    write_enriched(made, context.enriched.parent)
    write_json(context.nodes, nodes_of(pools, config))  # JSON is YAML, too
    context.write_receipt("enrich", {"input": context.input_hash()})
    context.console.note(
        f"enrich: {len(before):,} jobs to learn from and {len(after):,} to judge by, of {len(pools)} pools"
    )


def small_pools(trace: Trace, pools: Sequence[Pool], count: int) -> list[Pool]:
    """Those with the fewest GPUs, of the pools whose jobs differ in width where there are enough of these."""
    widths = trace.jobs.group_by("pool").agg(pl.col("gpus").n_unique() > 1)
    # Jobs of one width teach nothing of speedups.
    differ = dict(zip(widths["pool"].to_list(), widths["gpus"].to_list(), strict=True))
    ranked = sorted(pools, key=lambda pool: (not differ.get(pool.name, False), pool.quota, pool.name))
    return sorted(ranked[:count], key=lambda pool: pool.name)


def lessons(trace: Trace, until_s: float, count: int) -> pl.DataFrame:
    """The last jobs before an instant; where two days hold more of them, so many of these, evenly spread."""
    late = trace.between(until_s - LEAST_S, None).jobs
    # So many as there are: the last ones, whenever they were.
    if len(late) <= count:
        return trace.jobs.tail(count)
    # Evenly spread: two days must remain two days.
    return late[np.linspace(0, len(late) - 1, count).round().astype(np.int64)]


def nodes_of(pools: Sequence[Pool], config: EnrichConfig) -> dict[str, object]:
    """A cluster file's content: nodes for the pools' quotas, of a few types."""
    types = list(config.speeds)[:TYPES]
    # Rounded up, so that the quotas fit on the nodes.
    count = math.ceil(sum(pool.quota for pool in pools) / NODE_GPUS / len(types))
    groups = [{"count": count, "gpus": NODE_GPUS, "gpu_type": name} for name in types]
    return {"nodes": groups, "pools": {pool.name: pool.quota for pool in pools}}
