"""Models of training curves that policies go by: of earlier jobs of the workload, or of other applications."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jobcast.traces.learning_curves import LearningCurve, read_job_curves, read_learning_curves
from jobcast.traces.owners import scratch_room
from jobcast.traces.readers import read_trace
from papers.mlfs.rows import BY_EARLIER
from papers.mlfs.workloads import CURVES, TRACE, scaled, write_workload

if TYPE_CHECKING:
    from jobcast.models.curves.accuracy_curve import AccuracyCurve

MEASURED = Path("curves", "training_curves.csv")
EARLIER_SEED, EARLIER_JOBS = 100, 120
"""A draw that no figure is made of, and how many of its jobs have ended when the others begin."""


def fit_model(kind: str, data: Path, arrivals: Path) -> "AccuracyCurve":
    """A model fitted as a user would: to the curves of jobs that have ended, or to measured ones."""
    from jobcast.models.curves.accuracy_curve import AccuracyCurve

    curves = earlier_curves(arrivals) if kind == BY_EARLIER else read_learning_curves(data / MEASURED).curves
    return AccuracyCurve().fit(curves)


def earlier_curves(arrivals: Path) -> tuple[LearningCurve, ...]:
    """Curves of the first jobs of `EARLIER_SEED`'s draw, by learning algorithm."""
    with scratch_room("mlfs-earlier") as folder:
        files = write_workload(scaled("1"), EARLIER_SEED, arrivals, folder / "draw")
        jobs, known = read_trace(files / TRACE).jobs.head(EARLIER_JOBS), read_job_curves(files / CURVES)
    made = []
    for number, (job_id, algorithm) in enumerate(zip(jobs["job_id"], jobs["model"], strict=True), 1):
        row = known.row_of[job_id]
        # The first value is that before any iteration.
        metric = known.metric[known.begin[row] + 1 : known.begin[row + 1]]
        made.append(LearningCurve(algorithm, number, np.arange(1, len(metric) + 1), metric))
    return tuple(made)
