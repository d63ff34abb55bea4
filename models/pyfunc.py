"""Predictors as MLflow serves them: a table in, a table out, for users who have neither a trace nor jobcast at hand.

MLflow calls `_load_pyfunc` with the folder that a predictor's `save` wrote. Imports nothing of MLflow's.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from jobcast.domain.errors import RegistryError
from jobcast.domain.horizons import bin_labels, horizon_label
from jobcast.features.durations import GROUPS
from jobcast.models.job_duration import JobDuration
from jobcast.models.new_load import NewLoad
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
            probability[rows] = self.predictor.boosters_[index].predict_proba(X[rows])
        gates = np.asarray(self.predictor.thresholds_gate_)[asked]
        return pd.DataFrame({"probability": probability, "will_arrive": probability >= gates}, index=frame.index)


class ServedNewLoad:
    """One row an instant, pool and horizon: `horizon_min` and the GPUs that arrived in each past window.

    `load_1` is the window of one horizon that ends at t, `load_2` the one before it, and so on; the model reads as
    many as `windows_` says for the horizon, the rest may be empty. Answers `load_gpus`.
    """

    outputs: Mapping[str, str] = {"load_gpus": "double"}

    def __init__(self, predictor: NewLoad) -> None:
        self.predictor = predictor
        self.columns = [f"load_{i + 1}" for i in range(int(max(predictor.windows_)))]
        self.inputs = {HORIZON: "double", **dict.fromkeys(self.columns, "double")}

    def example(self) -> "pd.DataFrame":
        """A row a horizon: 8 GPUs in the window before the last, none otherwise."""
        import pandas as pd

        loads = {column: 8.0 if column == "load_2" else 0.0 for column in self.columns}
        return pd.DataFrame({HORIZON: [float(k) for k in self.predictor.horizons_min_], **loads})

    def predict(self, frame: "pd.DataFrame", params: Mapping[str, Any] | None = None) -> "pd.DataFrame":
        """See `Served`."""
        import pandas as pd

        read = np.asarray(self.predictor.windows_)[_horizon_index(self.predictor, frame)]
        loads = frame[self.columns].to_numpy(np.float64)
        loads = np.where(np.arange(len(self.columns)) < read[:, None], loads, -np.inf)
        return pd.DataFrame({"load_gpus": loads.max(axis=1)}, index=frame.index)


class ServedJobDuration:
    """One row a job: how many of the last finished jobs of each group fell into each duration bin.

    Columns are named `GROUP BIN`: `tag <=5min` counts finished jobs of the same tag that took up to 5 minutes;
    groups as in `features.durations.GROUPS`. Answers a probability for each bin, the forecast `bin`, and
    `duration_s`, the run time that stands for it.
    """

    def __init__(self, predictor: JobDuration) -> None:
        self.predictor = predictor
        self.bins = bin_labels(predictor.horizons_min)
        self.inputs = {f"{group} {label}": "long" for group in GROUPS for label in self.bins}
        self.outputs = {**dict.fromkeys(self.bins, "double"), "bin": "string", "duration_s": "double"}

    def example(self) -> "pd.DataFrame":
        """One job that is the first of its tag; ten have finished, all in the first bin."""
        import pandas as pd

        first = self.bins[0]
        counts = {column: 10 if column.endswith(f" {first}") else 0 for column in self.inputs}
        return pd.DataFrame([{**counts, f"{GROUPS[0]} {first}": 0}])

    def predict(self, frame: "pd.DataFrame", params: Mapping[str, Any] | None = None) -> "pd.DataFrame":
        """See `Served`."""
        import pandas as pd

        counts = frame[list(self.inputs)].to_numpy(np.int64).reshape(len(frame), len(GROUPS), len(self.bins))
        answers = pd.DataFrame(self.predictor.predict_proba(counts), columns=self.bins, index=frame.index)
        answers["bin"] = [self.bins[index] for index in self.predictor.predict(counts)]
        answers["duration_s"] = self.predictor.predict_duration_s(counts)
        return answers


SERVED: Mapping[str, Any] = {
    WillJobsArrive.name: ServedWillJobsArrive,
    NewLoad.name: ServedNewLoad,
    JobDuration.name: ServedJobDuration,
}
"""Served form of each predictor, by the predictor's name."""


def served(folder: Path) -> Served:
    """The served form of the predictor in a folder that is named after it."""
    from jobcast.models.predictors import load_predictor

    name = folder.name
    if name not in SERVED:
        raise RegistryError(f"{folder}: named after no predictor; choose from {', '.join(SERVED)}")
    made: Served = SERVED[name](load_predictor(name, folder))
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
