"""A learned scheduler as MLflow serves it: rows of waiting jobs in, scores out."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.models.predictor import ServedModel
from jobcast.models.scheduling.policy import SchedulingPolicy

if TYPE_CHECKING:
    import pandas as pd

JOBS, QUEUE = "jobs", "queue"


def scores(arrays: Mapping[str, Floats], rows: Floats, queue: int = 0) -> Floats:
    """Score of each row (n, n_features) of a job, (n,): two hidden layers with tanh, or a correction of MLF-H.

    `queue` is the column by whose length a correction's weights move.
    """
    if "ranks" in arrays:
        return np.asarray(rows @ arrays["ranks"][0] + rows[:, queue] * (rows @ arrays["ranks"][1]))
    low = np.tanh(rows @ arrays["jobs.first"] + arrays["jobs.first_bias"])
    high = np.tanh(low @ arrays["jobs.second"] + arrays["jobs.second_bias"])
    return np.asarray(high @ arrays["jobs.last"])


class ServedSchedulingPolicy(ServedModel):
    """One row a waiting job, with the columns that the policy reads of it (`columns_["jobs"]`).

    Answers `score`, and `probability`: that the policy picks the job first out of those of the table, while it learns.
    A correction's score is the power of e by which MLF-H's priority is multiplied, its probability the share of that.
    """

    outputs: Mapping[str, str] = {"score": "double", "probability": "double"}

    def __init__(self, predictor: SchedulingPolicy) -> None:
        super().__init__(predictor)
        self.inputs = dict.fromkeys(predictor.columns_[JOBS], "double")
        self.shown = {name: [0.0, 0.0] for name in self.inputs}

    def predict(self, frame: "pd.DataFrame", params: Mapping[str, Any] | None = None) -> "pd.DataFrame":
        """See `models.pyfunc.Served`."""
        import pandas as pd

        queue = list(self.inputs).index(QUEUE) if QUEUE in self.inputs else 0
        found = scores(self.predictor.arrays_, frame[list(self.inputs)].to_numpy(np.float64), queue)
        # initial: an empty table has no maximum.
        weights = np.exp(found - found.max(initial=-np.inf))
        return pd.DataFrame({"score": found, "probability": weights / weights.sum()}, index=frame.index)
