"""What every predictor is, in scikit-learn's manner: it is fitted on what was known, predicts, is scored, and is kept.

A `Model` is what was learned and what the registry keeps. A `Predictor` is a model's life: how it comes out of a trace
and the tables beside it, what it answers at an instant, and how good its answers were.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeAlias

from jobcast.domain.errors import TraceError
from jobcast.domain.forecasts import Question

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from jobcast.traces.table import Trace

Frame: TypeAlias = "pd.DataFrame"
"""As MLflow gives and takes tables. Pandas is imported where one is made: policies import models, and need none."""


class Model(Protocol):
    """What the registry keeps: it knows its name, its question and what it has seen, and can be a folder.

    Attributes
    ----------
    name : of the predictor, lower case with hyphens
    answers : its question
    algorithms : by which it can be trained, the default first
    trained_from_s_, trained_until_s_ : what it has seen, seconds from the epoch; both 0 where that has no calendar
    """

    name: ClassVar[str]
    answers: ClassVar[Question]
    algorithms: ClassVar[Sequence[str]]
    trained_from_s_: float
    trained_until_s_: float

    def save(self, folder: Path) -> None:
        """Write to a folder; equal models give equal bytes."""

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what `save` wrote. Raises RegistryError for a folder of another model, or of another schema."""


@dataclass(frozen=True, slots=True)
class Known:
    """A trace, the tables beside it, and the stretch of time that is looked at.

    Both may reach past `until_s`: a predictor reads nothing of that, so that it can be checked.

    Attributes
    ----------
    trace : None where tables alone are learnt from
    tables : facts beside the trace, by what they are: `training`, `curves`, `profiles`, `step_times`, `tasks`
    from_s, until_s : seconds from the epoch; None leaves a side open
    """

    trace: "Trace | None" = None
    tables: Mapping[str, Any] = field(default_factory=dict)
    from_s: float | None = None
    until_s: float | None = None

    @property
    def jobs(self) -> "Trace":
        """The trace. Raises TraceError where there is none."""
        if self.trace is None:
            raise TraceError("a trace of jobs is needed here, and there is none")
        return self.trace

    def between(self, from_s: float | None, until_s: float | None) -> "Known":
        """The same of another stretch of time."""
        return replace(self, from_s=from_s, until_s=until_s)


class Predictor(Protocol):
    """The life of a model, the same for all.

    Attributes
    ----------
    name : under which versions are registered
    answers : its question
    needs : what it is fitted on: `trace`, `waits` where it must tell starts, tables by the names of `Known.tables`
    algorithms : the default first
    model_ : what was learned, once it was fitted or loaded
    """

    name: str
    answers: Question
    needs: Sequence[str]
    algorithms: Sequence[str]
    model_: Any

    def fit(self, known: Known) -> Self:
        """Learn from what was known before `known.until_s`. Raises TrainingError where that tells too little."""

    def predict(self, known: Known) -> "pl.DataFrame":
        """Answers as of `known.until_s`, a row each: a pool and horizon, a job, a run."""

    def evaluate(self, known: Known) -> dict[str, Any]:
        """Figures of forecasts made in [known.from_s, known.until_s) against what came, beside simple rules."""

    def save(self, folder: Path) -> None:
        """Write the model; equal models give equal bytes."""

    def load(self, folder: Path) -> Self:
        """Take over what `save` wrote. Raises RegistryError for a folder of another model, or of another schema."""


class ServedModel:
    """What our forms for MLflow share; see `models.pyfunc.Served`.

    Attributes
    ----------
    inputs, outputs : MLflow type by column, in order
    shown : a valid table of a few rows, by column
    """

    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    shown: Mapping[str, Sequence[Any]]

    def __init__(self, predictor: Any) -> None:
        self.predictor = predictor

    def example(self) -> Frame:
        """A valid table of a few rows."""
        import pandas as pd

        return pd.DataFrame(dict(self.shown))

    def predict(self, frame: Frame, params: Mapping[str, Any] | None = None) -> Frame:
        """See `models.pyfunc.Served`."""
        import pandas as pd

        columns = zip(self.outputs, self.answer(frame, params or {}), strict=True)
        return pd.DataFrame(dict(columns), index=frame.index)

    def answer(self, frame: Frame, params: Mapping[str, Any]) -> Iterable[Any]:
        """Columns of `outputs`, a value for each row of the table."""
        raise NotImplementedError
