"""The predictor `goodput`: how much progress more GPUs bring, by throughput models that are fitted on step times."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats
from jobcast.domain.errors import RegistryError, TrainingError
from jobcast.domain.forecasts import Question
from jobcast.models.goodput import Throughput, fit_throughput
from jobcast.models.metadata import JsonModel
from jobcast.models.predictor import Frame, ServedModel
from jobcast.models.scores import mean, skill
from jobcast.traces.goodput_tables import StepTable, StepTimes

FOLDS = 3
"""Configurations are left out in so many turns."""
LEVEL = 0.9
"""Share of step times that intervals hold."""
DIGITS = 9
"""Of a fitted number that are kept; the search for it ends earlier."""


class StepForecast(NamedTuple):
    """Seconds a step, (n,) each, and the ends of an interval that holds 90 % of measurements."""

    step_s: Floats
    low_s: Floats
    high_s: Floats


class StepErrors(NamedTuple):
    """Forecasts of an application's measured steps by fits that had not seen their configurations, (n,) each.

    `error`, `rule_error`: shares of the time by which the model, and the time of one GPU, miss it; `covered`: whether
    the 90 % interval held it; `log_error`: of logarithms.
    """

    error: Floats
    rule_error: Floats
    covered: NDArray[np.bool_]
    log_error: Floats


class FittedGoodput(JsonModel):
    """Seconds a step of each application on any number of GPUs and nodes. Pollux (OSDI 2021), section 3.2.

    With the gradient noise that jobs report, this tells their goodput (`models.goodput.phases`).

    Attributes
    ----------
    throughputs_ : by application
    trained_ : the step times that it has seen, by application
    width_ : of 90 % intervals, in logarithms of the time, from configurations that had been left out
    trained_from_s_, trained_until_s_ : the window that it has seen, seconds from the epoch; step times have no calendar
    """

    name: ClassVar[str] = "goodput"
    answers: ClassVar[Question] = Question.GOODPUT
    algorithm: ClassVar[str] = "pollux"
    algorithms: ClassVar[Sequence[str]] = (algorithm,)

    def __init__(self) -> None:
        # By application and left-out rows: evaluation asks for the same folds again.
        self._twins: dict[tuple[str, bytes], Throughput] = {}

    def fit(self, table: StepTable) -> Self:
        """Learn from measured steps.

        Raises TrainingError for an application without a step on one GPU, and where all steps are on one.
        """
        if not table.times:
            raise TrainingError(f"{table.path}: holds no step of any application that jobs were of; measure some")
        for app, times in table.times.items():
            if not (times.gpus == 1).any():
                raise TrainingError(f"{table.path}: no step of {app} on one GPU; add one, its throughput hangs on it")
        # Steps on one GPU cannot be left out: figures of them alone would be those of what was learnt.
        if not any((times.gpus > 1).any() for times in table.times.values()):
            raise TrainingError(f"{table.path}: all steps are on one GPU; add some on more, which tell what more bring")
        self.trained_ = dict(table.times)
        self.trained_from_s_, self.trained_until_s_ = table.from_s, table.until_s
        self.throughputs_ = {app: _fitted(times) for app, times in table.times.items()}
        # `errors` reads it, and what it covers is not known yet.
        self.width_ = 0.0
        missed = [self.errors(app, times).log_error for app, times in table.times.items()]
        self.width_ = float(np.quantile(np.abs(np.concatenate(missed)), LEVEL))
        return self

    def throughput(self, app: str) -> Throughput:
        """Of an application. Raises RegistryError for one that it has not learnt."""
        if app not in self.throughputs_:
            known = ", ".join(self.throughputs_)
            raise RegistryError(f"{self.name}: has not learnt {app}, but {known}; train it on step times of {app}")
        return self.throughputs_[app]

    def forecast(self, app: str, nodes: Floats, gpus: Floats, local_batch_size: Floats) -> StepForecast:
        """Seconds a step of configurations, (n,) each. Raises RegistryError as `throughput`."""
        step_s, factor = self.throughput(app).step_s(nodes, gpus, local_batch_size), np.exp(self.width_)
        return StepForecast(step_s, step_s / factor, step_s * factor)

    def errors(self, app: str, times: StepTimes) -> StepErrors:
        """How far measured steps are missed; those of a configuration that was learnt by a fit without it."""
        step_s = np.empty(len(times))
        for rows in _folds(times):
            twin = self._without(app, times.at(rows))
            part = times.at(rows)
            step_s[rows] = twin.step_s(part.nodes, part.gpus, part.local_batch_size)
        alone = self.throughput(app).step_s(1, 1, times.local_batch_size)
        log_error = np.log(step_s / times.step_s)
        return StepErrors(
            np.abs(step_s / times.step_s - 1.0),
            np.abs(alone / times.step_s - 1.0),
            np.abs(log_error) <= self.width_ + 1e-12,
            log_error,
        )

    def learnt_of(self, times: Mapping[str, StepTimes]) -> int:
        """How many of some steps, by application, are of configurations that it learnt from."""
        both = ((one, self.trained_[app]) for app, one in times.items() if app in self.trained_)
        return sum(int(np.isin(_places(one), _places(seen)).sum()) for one, seen in both)

    def _without(self, app: str, part: StepTimes) -> Throughput:
        """The fit of an application without some configurations; one GPU's stay, for the others hang on them."""
        seen = self.trained_[app]
        # By configuration, so that other batch sizes on the same GPUs are left out as well.
        out = np.isin(_places(seen), _places(part)) & (seen.gpus > 1)
        if not out.any():
            return self.throughput(app)
        key = (app, out.tobytes())
        if key not in self._twins:
            self._twins[key] = _fitted(seen.at(~out))
        return self._twins[key]

    def as_dict(self) -> dict[str, Any]:
        """See `JsonModel`."""
        return {
            "throughputs": {app: asdict(one) for app, one in self.throughputs_.items()},
            "trained": {app: [column.tolist() for column in _columns(one)] for app, one in self.trained_.items()},
            "width": self.width_,
        }

    @classmethod
    def read(cls, saved: Mapping[str, Any]) -> Self:
        """See `JsonModel`."""
        model = cls()
        model.throughputs_ = {app: Throughput(**one) for app, one in saved["throughputs"].items()}
        model.trained_ = {app: StepTimes(*map(np.array, columns)) for app, columns in saved["trained"].items()}
        model.width_ = saved["width"]
        return model


def _fitted(times: StepTimes) -> Throughput:
    # Rounded, so that machines whose last bits differ keep equal models.
    return Throughput(*(float(f"{value:.{DIGITS}g}") for value in astuple(fit_throughput(times))))


def _columns(times: StepTimes) -> tuple[Floats, ...]:
    return times.nodes, times.gpus, times.local_batch_size, times.step_s, times.sync_s


def _places(times: StepTimes) -> NDArray[Any]:
    """(n,) configurations: nodes and GPUs."""
    return np.array([f"{nodes:g} x {gpus:g}" for nodes, gpus in zip(times.nodes, times.gpus, strict=True)])


def _folds(times: StepTimes) -> Iterator[NDArray[np.intp]]:
    """Rows by turns: whole configurations, by number of GPUs and nodes."""
    # Every third by size, so that each fold has small and large configurations.
    order = sorted(set(zip(times.gpus.tolist(), times.nodes.tolist(), strict=True)))
    turn = {pair: number % FOLDS for number, pair in enumerate(order)}
    turns = np.array([turn[pair] for pair in zip(times.gpus.tolist(), times.nodes.tolist(), strict=True)])
    for number in range(FOLDS):
        rows = np.flatnonzero(turns == number)
        if len(rows):
            yield rows


class ServedGoodput(ServedModel):
    """One row a configuration: app, nodes, GPUs and samples a GPU; answers seconds a step with a 90 % interval."""

    inputs: Mapping[str, str] = {"app": "string", "nodes": "long", "gpus": "long", "local_batch_size": "double"}
    outputs: Mapping[str, str] = dict.fromkeys(StepForecast._fields, "double")

    predictor: FittedGoodput

    def example(self) -> Frame:
        """A configuration of one GPU of the first application."""
        import pandas as pd

        app, times = next(iter(self.predictor.trained_.items()))
        size = float(times.local_batch_size[0])
        return pd.DataFrame({"app": [app], "nodes": [1], "gpus": [1], "local_batch_size": [size]})

    def answer(self, frame: Frame, params: Mapping[str, Any]) -> Iterable[Any]:
        """See `ServedModel`."""
        result = np.empty((len(frame), len(self.outputs)))
        for app in frame["app"].unique():
            mine = (frame["app"] == app).to_numpy()
            part = (frame.loc[mine, name].to_numpy(np.float64) for name in ("nodes", "gpus", "local_batch_size"))
            result[mine] = np.transpose(self.predictor.forecast(str(app), *part))
        return result.T


def score_steps(model: FittedGoodput, times: Mapping[str, StepTimes]) -> dict[str, Any]:
    """`mape`, the rule's, `skill` (the share of that which is saved), `coverage_90` over all steps; `mape` by app."""
    found = {app: model.errors(app, one) for app, one in times.items()}
    mine, rule, held = (
        np.concatenate([getattr(one, name) for one in found.values()]) for name in ("error", "rule_error", "covered")
    )
    ours, theirs = mean(mine), mean(rule)
    by_app = {app: mean(one.error) for app, one in found.items()}
    figures = {"mape": ours, "rule_mape": theirs, "skill": skill(ours, theirs), "coverage_90": mean(held)}
    return {"n": len(mine), **figures, "by_app": by_app}
