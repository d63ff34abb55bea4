"""Jobs as explanations mention them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jobcast.pipelines.explain.reservations import Answers
from jobcast.pipelines.explain.run_table import RunTable
from jobcast.simulator.log import Floats, Ints

MOST = 10
"""Jobs and pools that a list names; the rest is counted."""


class Mentions:
    """Turns positions of jobs into what is told of them.

    Parameters
    ----------
    table : the run
    answers : knows the duration bins
    """

    def __init__(self, table: RunTable, answers: Answers) -> None:
        self._table = table
        self._answers = answers

    def job(self, job: int) -> dict[str, Any]:
        """One job: id, pool, width, times, forecast bin, why that is no forecast, how much it outlived it."""
        table = self._table
        label = table.bins[job] if table.bins is not None else None
        return {
            "job_id": table.job_ids[job],
            "pool": table.pools[table.pool[job]],
            "gpus": int(table.gpus[job]),
            "submitted_s": float(table.submit_s[job]),
            "started_s": finite(table.start_s[job]),
            "ended_s": finite(table.end_s[job]),
            "dedicated": bool(table.dedicated[job]),
            "duration_s": float(table.duration_s[job]),
            "duration_bin": label,
            "bin_replaced": self._answers.bin_replaced(table.job_ids[job]),
            "overstayed_s": self.overstayed_s(job),
        }

    def overstayed_s(self, job: int) -> float:
        """Seconds by which a job ran longer than its forecast bin allows."""
        end_s = self._answers.bin_end_s(None if self._table.bins is None else self._table.bins[job])
        return 0.0 if end_s is None else max(0.0, float(self._table.duration_s[job]) - end_s)

    def most(self, jobs: Ints, weights: Floats, most: int = MOST) -> dict[str, Any]:
        """The jobs of largest weight, how many there are and how wide together."""
        order = np.argsort(-weights[jobs], kind="stable")
        return self.first(jobs[order].tolist(), most)

    def first(self, jobs: Sequence[int], most: int = MOST) -> dict[str, Any]:
        """The first of some jobs, how many there are and how wide together."""
        return {
            "jobs": [self.job(job) for job in jobs[:most]],
            "count": len(jobs),
            "gpus": int(self._table.gpus[list(jobs)].sum()) if len(jobs) else 0,
        }


def finite(value: float) -> float | None:
    """A number, None in place of infinity and not-a-number."""
    return float(value) if np.isfinite(value) else None
