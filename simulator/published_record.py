"""The record of a replay in rounds: who held GPUs from when to when."""

from math import nan

import numpy as np

from jobcast.simulator.log import RunLog, Spans
from jobcast.simulator.workload import Workload


class SliceRecord:
    """Rounds of each job, joined where they follow upon each other.

    Parameters
    ----------
    workload : what is replayed
    """

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._spans: list[list[tuple[float, float]]] = [[] for _ in workload.jobs]
        self._end_s = [nan] * len(workload.jobs)

    def held(self, seq: int, begin_s: float, end_s: float, ended: bool) -> None:
        """A job held its GPUs in a round, whose beginning is the end of the one before; whether it ended there."""
        spans = self._spans[seq]
        if spans and spans[-1][1] == begin_s:
            begin_s, _ = spans.pop()
        spans.append((begin_s, end_s))
        if ended:
            self._end_s[seq] = end_s

    def log(self, policy: str, origin_s: float, rounds: int) -> RunLog:
        """The finished replay; instants counted from `origin_s` so far. All GPUs count as one cluster's own."""
        jobs, pools = self._workload.jobs, tuple(self._workload.pools)
        index = {pool.name: position for position, pool in enumerate(pools)}
        stops = [max(0, len(spans) - 1) for spans in self._spans]
        rows = [(seq, *span) for seq, spans in enumerate(self._spans) for span in spans]
        table = np.array(sorted(rows, key=lambda row: (row[2], row[0])), dtype=np.float64).reshape(-1, 3)
        return RunLog(
            policy=policy,
            pools=pools,
            submit_s=np.array([job.submit_s for job in jobs], dtype=np.float64),
            start_s=np.array([spans[0][0] if spans else nan for spans in self._spans]) + origin_s,
            end_s=np.array(self._end_s, dtype=np.float64) + origin_s,
            duration_s=np.array([outcome.duration_s for outcome in self._workload.outcomes], dtype=np.float64),
            gpus=np.array([job.gpus for job in jobs], dtype=np.int64),
            pool=np.array([index[job.pool] for job in jobs], dtype=np.int64),
            preemptions=np.array(stops, dtype=np.int64),
            dedicated=np.ones(len(jobs), dtype=np.bool_),
            spans=Spans(table[:, 0].astype(np.int64), table[:, 1] + origin_s, table[:, 2] + origin_s),
            events=2 * len(jobs) + sum(stops) + rounds,
        )
