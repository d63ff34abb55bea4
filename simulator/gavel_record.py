"""The record of a replay by the published round mechanism."""

from collections.abc import Set
from math import nan

import numpy as np

from jobcast.simulator.log import RunLog, flat_spans
from jobcast.simulator.workload import Workload


class Record:
    """Who holds GPUs when, kept round by round. Instants are seconds after the first submission.

    Parameters
    ----------
    workload : what is replayed
    origin_s : the first submission, seconds from the epoch
    """

    def __init__(self, workload: Workload, origin_s: float) -> None:
        count = len(workload.jobs)
        self._workload, self._origin_s = workload, origin_s
        self._since_s: dict[int, float] = {}  # by seq, of those that hold GPUs
        self._spans: list[tuple[int, float, float]] = []
        self._start_s, self._end_s, self._stops = [nan] * count, [nan] * count, [0] * count
        self._events = 0

    @property
    def holding(self) -> Set[int]:
        """`seq` of the jobs that hold GPUs, or held them in the round that ended last."""
        return self._since_s.keys()

    def count(self, events: int = 1) -> None:
        """Arrivals, completions or rounds were handled."""
        self._events += events

    def hold(self, seqs: Set[int], now_s: float) -> None:
        """These jobs and no others hold GPUs from now on, until this is called again."""
        for seq in [seq for seq in self._since_s if seq not in seqs]:
            self._spans.append((seq, self._since_s.pop(seq), now_s))
            self._stops[seq] += bool(np.isnan(self._end_s[seq]))
        for seq in sorted(seqs - self._since_s.keys()):
            self._since_s[seq] = now_s
            if np.isnan(self._start_s[seq]):
                self._start_s[seq] = now_s

    def end(self, seq: int, end_s: float) -> None:
        """A job has run its last step, perhaps before the round is over."""
        self._end_s[seq] = end_s

    def log(self, policy: str) -> RunLog:
        """The finished replay; all GPUs are taken for one cluster, every start for one against the quota."""
        jobs, origin_s = self._workload.jobs, self._origin_s
        pools = {pool.name: index for index, pool in enumerate(self._workload.pools)}
        gpus = np.array([job.gpus for job in jobs], dtype=np.int64)
        held = np.array([seq for seq, _, _ in self._spans], dtype=np.int64)
        return RunLog(
            policy=policy,
            pools=tuple(self._workload.pools),
            submit_s=np.array([job.submit_s for job in jobs], dtype=np.float64),
            start_s=np.array(self._start_s, dtype=np.float64) + origin_s,
            end_s=np.array(self._end_s, dtype=np.float64) + origin_s,
            duration_s=np.array([outcome.duration_s for outcome in self._workload.outcomes], dtype=np.float64),
            gpus=gpus,
            pool=np.array([pools[job.pool] for job in jobs], dtype=np.int64),
            preemptions=np.array(self._stops, dtype=np.int64),
            dedicated=np.ones(len(jobs), dtype=np.bool_),
            spans=flat_spans(
                held,
                np.array([start_s for _, start_s, _ in self._spans], dtype=np.float64) + origin_s,
                np.array([end_s for _, _, end_s in self._spans], dtype=np.float64) + origin_s,
                gpus[held],
            ),
            events=self._events,
        )
