"""Pools grouped by how long their jobs run. SIA, appendix B, Table 23."""

from collections.abc import Iterable, Mapping

import numpy as np

from jobcast.domain.horizons import bin_labels, duration_bin
from jobcast.traces.table import Trace

GROUP_EDGES_MIN = (5, 60, 720)
"""Mean durations between the groups, minutes. SIA, Table 23."""
SECONDS_A_MINUTE = 60.0


def mean_durations_min(trace: Trace) -> dict[str, float]:
    """Mean run time of each pool's jobs that had ended, minutes."""
    ended = trace.ended
    pools, position = np.unique(trace.jobs["pool"].to_numpy().astype(str)[ended], return_inverse=True)
    seconds = np.bincount(position, weights=trace.duration_s[ended]) / np.bincount(position)
    return dict(zip(pools.tolist(), (seconds / SECONDS_A_MINUTE).tolist(), strict=True))


def duration_groups(pools: Iterable[str], mean_min: Mapping[str, float]) -> dict[str, tuple[str, ...]]:
    """Pools by group, groups from short to long; pools of unknown mean and empty groups are left out.

    >>> duration_groups(["a", "b", "c", "d"], {"a": 5.0, "b": 2000.0, "c": 1.0})
    {'<=5min': ('a', 'c'), '>720min': ('b',)}
    """
    labels = bin_labels(GROUP_EDGES_MIN)
    groups: dict[str, tuple[str, ...]] = dict.fromkeys(labels, ())
    for pool in pools:
        if pool in mean_min:
            label = labels[duration_bin(SECONDS_A_MINUTE * mean_min[pool], GROUP_EDGES_MIN)]
            groups[label] = (*groups[label], pool)
    return {label: members for label, members in groups.items() if members}
