"""Traces known by name: where they come from and how time is split for training and testing."""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from jobcast.domain.errors import ConfigError
from jobcast.domain.jobs import Pool
from jobcast.pipelines.report.formatting import parse_time
from jobcast.pipelines.stages.config import Prepare
from jobcast.traces.generators import GENERATORS, generate
from jobcast.traces.pools import derive_pools, held_beyond, read_pools
from jobcast.traces.readers import read_trace
from jobcast.traces.splits import Split, gpu_jobs, split_by_share
from jobcast.traces.table import Trace

DATA_VARIABLE = "JOBCAST_DATA"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A trace with quotas and a split in time, and in words where the quotas come from."""

    trace: Trace
    pools: list[Pool]
    split: Split
    pools_origin: str
    left_out: dict[str, int]


def data_file(relative: str) -> Path:
    """A file under the folder that JOBCAST_DATA names; ConfigError says what to set."""
    folder = os.environ.get(DATA_VARIABLE)
    if not folder:
        raise ConfigError(f"{DATA_VARIABLE} is not set; point it at a folder that holds {relative}")
    path = Path(folder) / relative
    if not path.is_file():
        raise ConfigError(f"{path}: no such file; {DATA_VARIABLE} must name a folder that holds {relative}")
    return path


def _philly(params: Prepare) -> Prepared:
    """71,570 jobs; the arrival rate ramps up until about 2017-10-02, training begins there."""
    trace = read_trace(data_file("philly/philly_jobs.csv"), format="philly")
    split = Split(parse_time("2017-10-02"), parse_time("2017-11-06"), parse_time("2017-11-27"))
    return _with_quotas(trace, split, params)


def _file(params: Prepare) -> Prepared:
    trace = gpu_jobs(read_trace(Path(params.trace)))
    return _with_quotas(trace, split_by_share(trace, params.train_share), params)


def _generated(params: Prepare) -> Prepared:
    trace, pools = generate(params.trace, params.seed, params.settings)
    split = split_by_share(trace, params.train_share)
    if params.pools:
        return _with_quotas(trace, split, params)
    return Prepared(trace, pools, split, "those that the generator gave the trace", {})


# A file of the name of a generator must be given with a path.
NAMED: dict[str, Callable[[Prepare], Prepared]] = {"philly": _philly, **dict.fromkeys(GENERATORS, _generated)}


def prepare_trace(params: Prepare) -> Prepared:
    """Load or generate the trace of a run.

    Raises ConfigError for a name that is neither known nor a file, TraceError, PoolsError and TrainingError
    for what cannot be read, replayed or split.
    """
    if params.trace in NAMED:
        return NAMED[params.trace](params)
    if not Path(params.trace).exists():
        known = ", ".join(sorted(NAMED))
        raise ConfigError(f"--trace {params.trace}: no such file, and no trace of that name (known: {known})")
    return _file(params)


def _with_quotas(trace: Trace, split: Split, params: Prepare) -> Prepared:
    """Quotas from the pools file, else `load` of each pool's average load in the test window (at least its widest job).

    Pools with too few training jobs to learn from are left out where quotas are derived; a pools file decides itself.
    """
    if params.pools:
        pools = read_pools(Path(params.pools)).at(split.train_until_s)
        origin = f"the pools file {Path(params.pools).name}"
    else:
        training = trace.between(split.train_from_s, split.train_until_s)
        test = trace.between(split.train_until_s, split.test_until_s)
        counts = training.jobs["pool"].value_counts()
        busy = set(counts.filter(counts["count"] >= params.min_pool_jobs)["pool"])
        # Of the test window, which is what is replayed.
        derived = derive_pools(test, load=params.load, span_s=split.test_until_s - split.train_until_s)
        pools = [pool for pool in derived if pool.name in busy]
        origin = (
            f"derived: each pool's average load in the test window is {params.load:g} of its quota (at least its "
            f"widest job); pools with at least {params.min_pool_jobs} training jobs"
        ) + held_beyond(test, pools)
    # Jobs without a quota could never run.
    kept = replace(trace, jobs=trace.jobs.filter(pl.col("pool").is_in([pool.name for pool in pools])))
    if not len(kept):
        raise ConfigError(
            f"{trace.source.path}: no pool is left to replay; lower prepare.min_pool_jobs "
            "or bring a pools file (--pools)"
        )
    left_out = {"jobs of other pools": len(trace) - len(kept)} if len(kept) < len(trace) else {}
    return Prepared(kept, pools, split, origin, left_out)
