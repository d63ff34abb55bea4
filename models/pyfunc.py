"""Predictors as MLflow serves them: a table in, a table out, for users who have neither a trace nor jobcast at hand.

MLflow calls `_load_pyfunc` with the folder that a predictor's `save` wrote. Imports nothing of MLflow's.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from jobcast.domain.errors import RegistryError
from jobcast.domain.horizons import bin_labels, horizon_label
from jobcast.domain.jobs import Job
from jobcast.models.job_duration import JobDuration
from jobcast.models.new_load import NewLoad
from jobcast.models.regimes.guarded import ServedRegimePrior
from jobcast.models.regimes.prior import RegimePrior
from jobcast.models.will_jobs_arrive import WillJobsArrive

if TYPE_CHECKING:
    import pandas as pd

HORIZON = "horizon_min"


class Served(Protocol):
    """A predictor behind MLflow's generic interface.

    Attributes
    ----------
    inputs, outputs : MLflow type by column, in order
    """

    inputs: Mapping[str, str]
    outputs: Mapping[str, str]

    def example(self) -> "pd.DataFrame":
        """A valid table of a few rows."""
        ...

    def predict(self, frame: "pd.DataFrame", params: Mapping[str, Any] | None = None) -> "pd.DataFrame":
        """Answers, one row for each row asked, in that order. RegistryError names what cannot be answered."""
        ...


class ServedWillJobsArrive:
    """One row an instant, pool and horizon: `horizon_min` and the features of `features.arrivals.arrival_features`.

    Answers `probability` of any arrival in (t, t + horizon], and `will_arrive`: whether it reaches the threshold
    that guards a scheduler (`thresholds_gate_`).
    """

    outputs: Mapping[str, str] = {"probability": "double", "will_arrive": "boolean"}

    def __init__(self, predictor: WillJobsArrive) -> None:
        self.predictor = predictor
        self.inputs = {HORIZON: "double", **dict.fromkeys(predictor.feature_names_, "double")}

    def example(self) -> "pd.DataFrame":
        """A row a horizon, all features zero."""
        import pandas as pd

        horizons = [float(k) for k in self.predictor.horizons_min_]
        return pd.DataFrame({HORIZON: horizons, **dict.fromkeys(self.predictor.feature_names_, 0.0)})

    def predict(self, frame: "pd.DataFrame", params: Mapping[str, Any] | None = None) -> "pd.DataFrame":
        """See `Served`."""
        import pandas as pd

        asked = _horizon_index(self.predictor, frame)
        X = frame[list(self.predictor.feature_names_)].to_numpy(np.float64)
        probability = np.empty(len(frame))
        for index in np.unique(asked):
            rows = asked == index
            probability[rows] = self.predictor.horizon_proba(X[rows], int(index))
        gates = np.asarray(self.predictor.thresholds_gate_)[asked]
        return pd.DataFrame({"probability": probability, "will_arrive": probability >= gates}, index=frame.index)


class ServedNewLoad:
    """One row an instant, pool and horizon: `horizon_min` and the columns that the model reads.

    For `sliding-max` these are the GPUs that arrived in past windows: `load_1` is the window of one horizon that ends
    at t, `load_2` the one before it, and so on. For `quantile` they are `features.load_features`. Answers `load_gpus`,
    of each row by itself.
    """

    outputs: Mapping[str, str] = {"load_gpus": "double"}

    def __init__(self, predictor: NewLoad) -> None:
        self.predictor = predictor
        self.columns = list(predictor.columns)
        self.inputs = {HORIZON: "double", **dict.fromkeys(self.columns, "double")}

    def example(self) -> "pd.DataFrame":
        """A row a horizon, all columns zero."""
        import pandas as pd

        horizons = [float(k) for k in self.predictor.horizons_min_]
        return pd.DataFrame({HORIZON: horizons, **dict.fromkeys(self.columns, 0.0)})

    def predict(self, frame: "pd.DataFrame", params: Mapping[str, Any] | None = None) -> "pd.DataFrame":
        """See `Served`."""
        import pandas as pd

        asked = _horizon_index(self.predictor, frame)
        X = frame[self.columns].to_numpy(np.float64)
        gpus = np.empty(len(frame))
        for index in np.unique(asked):
            rows = asked == index
            gpus[rows] = self.predictor.rule_.estimate(X[rows], int(index))
        return pd.DataFrame({"load_gpus": gpus}, index=frame.index)


class ServedJobDuration:
    """One row a job: what was known of jobs like it when it was submitted.

    Columns are those of `features.durations.duration_columns`: `tag last 5 <=5min` counts, of the last 5 finished jobs
    of the same tag, those that took up to 5 minutes. Answers a probability for each bin, the likeliest `bin`, `chosen`,
    the bin to tell a scheduler, and `duration_s`, the run time that stands for the likeliest bin.
    """

    def __init__(self, predictor: JobDuration) -> None:
        self.predictor = predictor
        self.bins = bin_labels(predictor.horizons_min)
        self.inputs = dict.fromkeys(predictor.columns, "double")
        self.outputs = {
            **dict.fromkeys(self.bins, "double"),
            "bin": "string",
            "chosen": "string",
            "duration_s": "double",
        }

    def example(self) -> "pd.DataFrame":
        """The first job of a run: one GPU, and nothing has happened before it."""
        import pandas as pd

        row = self.predictor.tracker().row(Job(0, "0", "pool", 0.0, 1))
        return pd.DataFrame([row], columns=list(self.inputs))

    def predict(self, frame: "pd.DataFrame", params: Mapping[str, Any] | None = None) -> "pd.DataFrame":
        """See `Served`."""
        import pandas as pd

        rows = frame[list(self.inputs)].to_numpy(np.float64)
        answers = pd.DataFrame(self.predictor.predict_proba(rows), columns=self.bins, index=frame.index)
        answers["bin"] = [self.bins[index] for index in self.predictor.predict(rows)]
        answers["chosen"] = [self.bins[index] for index in self.predictor.choose(rows)]
        answers["duration_s"] = self.predictor.predict_duration_s(rows)
        return answers


SERVED: Mapping[str, Any] = {
    WillJobsArrive.name: ServedWillJobsArrive,
    NewLoad.name: ServedNewLoad,
    JobDuration.name: ServedJobDuration,
    RegimePrior.name: ServedRegimePrior,
}
"""Served form of each predictor, by the predictor's name."""
SERVED_ON_DEMAND: Mapping[str, str] = {
    "accuracy-curve": "jobcast.models.curves.served:ServedAccuracyCurve",
    "epoch-time": "jobcast.models.epoch_time.served:ServedEpochTime",
    "mlf-policy": "jobcast.models.scheduling.served:ServedSchedulingPolicy",
    "device-rl": "jobcast.models.scheduling.served:ServedSchedulingPolicy",
}
"""Module and class of those that are imported when they are asked for alone; see `predictors.ON_DEMAND`."""


def served(folder: Path) -> Served:
    """The served form of the predictor in a folder that is named after it."""
    from jobcast.models.predictors import load_predictor, on_demand

    name = folder.name
    if name not in SERVED and name not in SERVED_ON_DEMAND:
        known = ", ".join((*SERVED, *SERVED_ON_DEMAND))
        raise RegistryError(f"{folder}: named after no predictor; choose from {known}")
    form = SERVED[name] if name in SERVED else on_demand(SERVED_ON_DEMAND[name])
    made: Served = form(load_predictor(name, folder))
    return made


def _load_pyfunc(data_path: str) -> Served:
    """MLflow's entry point."""
    return served(Path(data_path))


def _horizon_index(predictor: Any, frame: "pd.DataFrame") -> np.ndarray:
    """Position of each row's horizon among the predictor's, shape (n_rows,)."""
    position = {float(k): index for index, k in enumerate(predictor.horizons_min_)}
    unknown = sorted(set(frame[HORIZON].astype(float)) - set(position))
    if unknown:
        have = ", ".join(horizon_label(k) for k in predictor.horizons_min_)
        raise RegistryError(f"{predictor.name} knows the horizons {have}, not {horizon_label(unknown[0])}")
    return np.array([position[float(k)] for k in frame[HORIZON]], dtype=np.intp)
