"""What a policy shares and in which order it serves, as far as explanations depend on it."""

from enum import StrEnum

import numpy as np

from jobcast.pipelines.experiments.explain.cluster_history import ClusterPast
from jobcast.pipelines.experiments.explain.run_table import RunTable
from jobcast.simulator.log import Ints


class Sharing(StrEnum):
    """How a policy lends GPUs."""

    PRIVATE = "private"
    """Each pool runs on its quota alone."""
    WINDOWS = "windows"
    """Spare GPUs go to jobs that end in a window, less what is reserved for their owners."""
    SPARE = "spare"
    """Spare GPUs go to anybody; quotas come first."""
    CLOCK = "clock"
    """Whatever leaves all jobs their virtual starts."""
    SHARED = "shared"
    """GPUs are one pile; quotas say at most whose turn it is."""
    UNKNOWN = "unknown"
    """Quotas are not known."""


ONE_PILE = (Sharing.SHARED, Sharing.CLOCK)
"""Where a pool's quota bounds nobody: all that its jobs wait for are idle GPUs."""
BY_POLICY = {
    "fcfs": Sharing.PRIVATE,
    "ssf": Sharing.PRIVATE,
    "sjf": Sharing.PRIVATE,
    "sia": Sharing.WINDOWS,
    "sia_risk": Sharing.WINDOWS,
    "sia_preempt": Sharing.WINDOWS,
    "sia_vc": Sharing.CLOCK,
    "hived": Sharing.SPARE,
    "gssf": Sharing.SHARED,
    "mmfs": Sharing.SHARED,
    "themis_np": Sharing.SHARED,
}
"""Of policies that are not listed here the log tells it: see `sharing_of`."""

SERVICE, DURATION = "service", "duration"
SHORTEST = {"ssf": SERVICE, "gssf": SERVICE, "sjf": DURATION}
"""Policies that serve the shortest job first, and what it is measured by; others serve a pool in submission order."""
WHOLE_CLUSTER = ("gssf",)
"""Policies that order the jobs of all pools in one queue."""


def sharing_of(past: ClusterPast, windows: bool) -> Sharing:
    """How the policy of a run lends GPUs; `windows`: whether it asked for forecasts of duration bins."""
    table = past.table
    if table.quotas is None:
        return Sharing.UNKNOWN
    if table.policy in BY_POLICY:
        return BY_POLICY[table.policy]
    if (~table.dedicated).any():
        return Sharing.WINDOWS if windows else Sharing.SPARE
    return Sharing.SHARED if past.shares() else Sharing.PRIVATE


def ahead_of(table: RunTable, job: int) -> Ints:
    """Jobs that the policy would serve before a job, pending or not, in that order: by submission, or shorter ones."""
    measure = SHORTEST.get(table.policy or "")
    alike = np.ones(len(table), dtype=np.bool_) if table.policy in WHOLE_CLUSTER else table.pool == table.pool[job]
    places = np.arange(len(table))
    if measure is None:
        return np.flatnonzero(alike & (places < job))
    keys = table.duration_s * (table.gpus if measure == SERVICE else 1)
    before = np.flatnonzero(alike & ((keys < keys[job]) | ((keys == keys[job]) & (places < job))))
    return before[np.argsort(keys[before], kind="stable")]
