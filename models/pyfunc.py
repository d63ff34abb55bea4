"""Predictors as MLflow serves them: a table in, a table out, for users who have neither a trace nor jobcast at hand.

MLflow calls `_load_pyfunc` with the folder that a predictor's `save` wrote. Imports nothing of MLflow's.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from jobcast.domain.clock import MINUTE_S
from jobcast.domain.errors import RegistryError, TraceError
from jobcast.domain.history import PoolHistory
from jobcast.domain.horizons import bin_labels, horizon_label
from jobcast.features.arrivals import arrival_features
from jobcast.models.job_duration import JobDuration
from jobcast.models.load_quantile import LEVELS
from jobcast.models.new_load import load_quantiles
from jobcast.models.predictor import Frame, ServedModel
from jobcast.traces.history import TraceHistory, pool_histories
from jobcast.traces.table import Trace

EVENTS: Mapping[str, str] = {
    "job_id": "string",
    "pool": "string",
    "submit_time": "double",
    "gpus": "long",
    "start_time": "double",
    "end_time": "double",
    "user": "string",
    "tag": "string",
    "known_time": "double",
}
"""Columns of a table of events, as in a canonical trace: a row a job, times in seconds from the epoch, UTC."""
NEEDED = frozenset({"job_id", "pool", "submit_time", "gpus", "start_time", "end_time"})
"""Those of `EVENTS` that a table must have; a start or end that has not come is empty."""
TIMES = ("submit_time", "start_time", "end_time")
EXAMPLE: Mapping[str, list[Any]] = {
    "job_id": ["1", "2", "3", "4"],
    "pool": ["a", "b", "a", "a"],
    "submit_time": [0.0, 600.0, 3000.0, 7200.0],
    "gpus": [1, 8, 2, 1],
    "start_time": [30.0, 600.0, 3060.0, np.nan],
    "end_time": [2400.0, np.nan, 6660.0, np.nan],
    "user": ["u", "v", "u", "u"],
    "tag": ["t", "", "t", "t"],
    "known_time": [2400.0, np.nan, 6720.0, np.nan],
}
"""At the last event, job 4 waits, job 2 runs, the others have ended."""


class Served(Protocol):
    """A predictor behind MLflow's generic interface.

    Attributes
    ----------
    inputs, outputs : MLflow type by column, in order
    """

    inputs: Mapping[str, str]
    outputs: Mapping[str, str]

    def example(self) -> Frame:
        """A valid table of a few rows."""

    def predict(self, frame: Frame, params: Mapping[str, Any] | None = None) -> Frame:
        """Answers about the table. RegistryError or TraceError names what cannot be answered."""


class ServedEvents(ServedModel):
    """What predictors of a cluster's queues share: they read a table of its recent jobs, with the code of training.

    The table is that of `EVENTS`: jobs that ended, run or wait, as far back as features look (100 times the longest
    horizon, of jobs by tag and user as far as there is). Times are seconds from the epoch; a start or end that has not
    come is empty. `params`: `at`, the instant that is asked about, seconds from the epoch, by default that of the
    table's last event; what the table tells of later is not read.
    """

    inputs: Mapping[str, str] = EVENTS
    optional: frozenset[str] = frozenset(EVENTS) - NEEDED
    params: Mapping[str, tuple[str, Any, tuple[int, ...] | None]] = {"at": ("double", None, None)}
    """Name -> MLflow type, default, shape."""
    shown: Mapping[str, Sequence[Any]] = EXAMPLE

    @staticmethod
    def known(frame: Frame, params: Mapping[str, Any] | None) -> tuple[Trace, float]:
        """The jobs that had been submitted by the instant, and the instant."""
        missing = sorted(NEEDED - set(frame.columns))
        if missing or not len(frame):
            what = f"columns {', '.join(missing)} missing" if missing else "no jobs"
            raise TraceError(f"events: {what}; give a row a job, with the columns {', '.join(EVENTS)}")
        columns = {name: frame[name].to_numpy() for name in EVENTS if name in frame}
        # Through lists: pandas columns of missing values have kinds that polars reads differently.
        events = pl.DataFrame({name: pl.Series(values.tolist(), strict=False) for name, values in columns.items()})
        numbers = [pl.col(name).cast(pl.Float64).fill_nan(None) for name in (*TIMES, "known_time") if name in columns]
        events = events.with_columns(numbers).with_columns(
            duration=pl.when(pl.col("end_time").is_not_null()).then(pl.col("end_time") - pl.col("start_time"))
        )
        at_s = (params or {}).get("at")
        if at_s is None or np.isnan(at_s):
            # `known_time` is left out: it says when accounting told of an event, not that one happened.
            at_s = np.nanmax(events.select(TIMES).to_numpy().astype(np.float64))
        trace = Trace.from_frame(events, name="events").on_gpus
        # The end is exclusive, and what happens at the instant itself is known.
        known = trace.between(None, float(np.nextafter(at_s, np.inf)))
        if not len(known):
            raise TraceError(f"events: no job on GPUs was submitted by {at_s:.0f} s; choose a later `at`")
        return known, float(at_s)


class ServedOfPools(ServedEvents):
    """Answers a row a pool and horizon: pools by name, horizons as asked by `params`' `horizons`, minutes."""

    def __init__(self, predictor: Any) -> None:
        super().__init__(predictor)
        horizons = [float(k) for k in predictor.horizons_min_]
        self.params = {**ServedEvents.params, "horizons": ("double", horizons, (-1,))}

    def _asked(self, params: Mapping[str, Any] | None) -> tuple[list[float], list[int]]:
        """Horizons that are asked about, and their positions among the predictor's."""
        position = {float(k): index for index, k in enumerate(self.predictor.horizons_min_)}
        result = (params or {}).get("horizons")
        asked = list(position) if result is None else [float(k) for k in result]
        unknown = sorted(set(asked) - set(position))
        if unknown:
            have = ", ".join(horizon_label(k) for k in self.predictor.horizons_min_)
            raise RegistryError(f"{self.predictor.name} knows the horizons {have}, not {horizon_label(unknown[0])}")
        return asked, [position[k] for k in asked]

    def predict(self, frame: Frame, params: Mapping[str, Any] | None = None) -> Frame:
        """See `Served`."""
        import pandas as pd

        asked, columns = self._asked(params)
        trace, at_s = self.known(frame, params)
        histories = pool_histories(trace)
        pools, answers = list(histories), self._answers(list(histories.values()), at_s, columns)
        keys = {"pool": np.repeat(np.array(pools, dtype=object), len(asked)), "horizon_min": [*asked] * len(pools)}
        return pd.DataFrame(keys | {name: of.ravel() for name, of in answers.items()})

    def _answers(self, histories: Sequence[PoolHistory], at_s: float, columns: list[int]) -> dict[str, NDArray[Any]]:
        """By name, of shape (n_pools, n_asked), from the predictor's columns of the horizons asked about."""
        raise NotImplementedError


class ServedWillJobsArrive(ServedOfPools):
    """Answers `probability` of any arrival in (at, at + horizon], and `will_arrive`: whether it reaches the threshold
    that guards a scheduler (`thresholds_gate_`)."""

    outputs: Mapping[str, str] = {
        "pool": "string",
        "horizon_min": "double",
        "probability": "double",
        "will_arrive": "boolean",
    }

    def _answers(self, histories: Sequence[PoolHistory], at_s: float, columns: list[int]) -> dict[str, NDArray[Any]]:
        horizons_s = [MINUTE_S * k for k in self.predictor.horizons_min_]
        rows = [arrival_features(history, [at_s], horizons_s) for history in histories]
        probability = self.predictor.predict_proba(np.concatenate(rows))[:, columns]
        gates = self.predictor.thresholds_gate_[columns]
        return {"probability": probability, "will_arrive": probability >= gates}


class ServedNewLoad(ServedOfPools):
    """Answers `load_gpus`, the GPUs that may be asked for in (at, at + horizon], `lent_gpus`, what a scheduler
    reserves where jobs are forecast to arrive, and quantiles of the load, `load_gpus_q50` and on."""

    outputs: Mapping[str, str] = {
        "pool": "string",
        "horizon_min": "double",
        "load_gpus": "double",
        "lent_gpus": "double",
        **{f"load_gpus_q{100 * level:g}": "double" for level in LEVELS},
    }

    def _answers(self, histories: Sequence[PoolHistory], at_s: float, columns: list[int]) -> dict[str, NDArray[Any]]:
        rows = np.concatenate([self.predictor.rows(history, [at_s]) for history in histories])
        quantiles = load_quantiles(self.predictor, rows, LEVELS)[:, columns]
        return {
            "load_gpus": self.predictor.predict_rows(rows)[:, columns],
            "lent_gpus": self.predictor.lend_rows(rows)[:, columns],
            **{f"load_gpus_q{100 * level:g}": quantiles[:, :, i] for i, level in enumerate(LEVELS)},
        }


class ServedJobDuration(ServedEvents):
    """Answers a row a job that waits or runs at the instant: a probability for each bin, the likeliest `bin`, `chosen`,
    the bin to tell a scheduler, and `duration_s`, the run time that stands for the likeliest bin."""

    def __init__(self, predictor: JobDuration) -> None:
        super().__init__(predictor)
        self.bins = bin_labels(predictor.horizons_min)
        self.outputs = {
            "job_id": "string",
            "pool": "string",
            **dict.fromkeys(self.bins, "double"),
            "bin": "string",
            "chosen": "string",
            "duration_s": "double",
        }

    def predict(self, frame: Frame, params: Mapping[str, Any] | None = None) -> Frame:
        """See `Served`."""
        import pandas as pd

        history = TraceHistory(*self.known(frame, params))
        tracker = self.predictor.tracker()
        tracker.catch_up(history)
        jobs = history.active
        answers = pd.DataFrame({"job_id": [job.job_id for job in jobs], "pool": [job.pool for job in jobs]}, dtype=str)
        rows = tracker.rows(jobs)
        # Without jobs there are no rows to give the columns their kinds.
        if not len(jobs):
            return answers.reindex(columns=list(self.outputs))
        answers[self.bins] = self.predictor.predict_proba(rows)
        answers["bin"] = [self.bins[index] for index in self.predictor.predict(rows)]
        answers["chosen"] = [self.bins[index] for index in self.predictor.choose(rows)]
        answers["duration_s"] = self.predictor.predict_duration_s(rows)
        return answers


def served(folder: Path) -> Served:
    """The served form of the predictor in a folder that is named after it."""
    from jobcast.models.predictors import PREDICTORS, load_predictor, served_form

    # MLflow hands over the folder alone, whose name is all that tells the predictor.
    name = folder.name
    if name not in PREDICTORS:
        raise RegistryError(f"{folder}: named after no predictor; choose from {', '.join(PREDICTORS)}")
    made: Served = served_form(name)(load_predictor(name, folder))
    return made


def _load_pyfunc(data_path: str) -> Served:
    """MLflow's entry point."""
    return served(Path(data_path))
