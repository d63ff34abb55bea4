"""Life of the predictors of goodput."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl

from jobcast.domain.errors import TrainingError
from jobcast.models.fitted_goodput import FittedGoodput, score_steps
from jobcast.models.predictor import Known
from jobcast.pipelines.lifecycle.predictors.life import (
    EVALUATE,
    PREDICT,
    TRAIN,
    Fitted,
    Told,
    VersionAndData,
    Wishes,
    told_by,
)
from jobcast.pipelines.lifecycle.predictors.tables import TableLife, told_of_table
from jobcast.pipelines.report.console import Step
from jobcast.pipelines.report.model_tables import card_of_table, made_from
from jobcast.pipelines.report.predictor_plots import CurvePoints
from jobcast.traces.goodput_tables import StepTable, read_step_table
from jobcast.traces.table import Trace

LEARNT = (
    "{} of {} steps are of configurations that it learnt from: each was forecast by a fit without its configuration, "
    "those on one GPU by the fit itself; the width of intervals was chosen on such forecasts"
)
NO_CALENDAR = "step times have no calendar, a trace of jobs with step times has one"


class Goodputs(TableLife[FittedGoodput]):
    """How much progress do more GPUs bring? Pollux (OSDI 2021)."""

    table: ClassVar[str] = "step_times"
    read = staticmethod(read_step_table)
    read_of_jobs = staticmethod(read_step_table)
    says: ClassVar[Mapping[str, str]] = told_by("report.figure_lines")
    beside_trace: ClassVar[Collection[str]] = (TRAIN,)
    reads: ClassVar[Mapping[str, Collection[str]]] = {TRAIN: ("seed",), EVALUATE: ("seed",), PREDICT: ("seed",)}
    why: ClassVar[Mapping[str, str]] = {"from_s": NO_CALENDAR, "until_s": NO_CALENDAR}

    @classmethod
    def of_jobs(cls, jobs: Trace, table: StepTable) -> StepTable:
        """The applications that jobs were of."""
        # Steps have no time of their own: an application counts as soon as one of its jobs was over.
        names = set(jobs.values("model"))
        times = {app: one for app, one in table.times.items() if app in names}
        return replace(table, path=jobs.source.path, sha256=jobs.source.sha256, times=times, notes=jobs.notes)

    def fitted(self, known: Known, progress: Step | None) -> Fitted:
        """On all step times; figures are of configurations that twins did not see."""
        table = self.table_of(known)
        kind: Any = self.model
        model: FittedGoodput = kind().fit(table)
        # Of twins within: each configuration is forecast by a fit without it.
        validation = score_steps(model, table.times)
        apps = ", ".join(table.times)
        card = card_of_table(
            table,
            model,
            self.settings.seed,
            algorithm=self.algorithm,
            parameters={"apps": apps},
            metrics={"validation": {name: value for name, value in validation.items() if name != "by_app"}},
            description=f"{self.algorithm}, fitted on {table.rows} step times of {Path(table.path).stem} ({apps}); "
            "metrics are of configurations left out",
        )
        result = {
            "training": {"rows": table.rows, "apps": list(table.times)},
            "validation": validation,
            **made_from(table, table.notes),
        }
        return Fitted(model, card, result)

    def measured(self, table: StepTable, wishes: Wishes) -> Told:
        """Errors of step times; a configuration that it learnt from is forecast by a twin without it.

        Raises TrainingError where it knows none of the applications.
        """
        # Other applications cannot be forecast at all, which is told by `scored`.
        known = {app: times for app, times in table.times.items() if app in self.model_.throughputs_}
        if not known:
            raise TrainingError(f"{table.path}: holds none of {', '.join(self.model_.throughputs_)}; give their steps")
        return score_steps(self.model_, known)

    def scored(self, case: VersionAndData) -> tuple[Told, CurvePoints]:
        """See `Life`."""
        table = self.table_of(case.known)
        unknown = [app for app in table.times if app not in self.model_.throughputs_]
        notes = [f"not learnt, so not scored: {', '.join(unknown)}"] if unknown else []
        figures = self.measured(table, case.wishes)
        if learnt := self.model_.learnt_of(table.times):
            notes.append(LEARNT.format(learnt, figures["n"]))
        return {**figures, **told_of_table(case.version, table, notes, False)}, CurvePoints()

    def predict(self, known: Known) -> pl.DataFrame:
        """Seconds a step with 90 % intervals, of the table's applications, batch sizes a GPU and configurations."""
        table, parts = self.table_of(known), []
        for app, times in table.times.items():
            if app not in self.model_.throughputs_:
                continue
            # Configurations that were measured; all batch sizes on each of them.
            places = sorted(set(zip(times.nodes.tolist(), times.gpus.tolist(), strict=True)))
            sizes = np.unique(times.local_batch_size).tolist()
            nodes, gpus, local = np.array([(*place, size) for place in places for size in sizes]).T
            result = self.model_.forecast(app, nodes, gpus, local)
            keys = {"app": [app] * len(nodes), "nodes": nodes, "gpus": gpus, "local_batch_size": local}
            parts.append(pl.DataFrame({**keys, **result._asdict()}))
        return pl.concat(parts) if parts else pl.DataFrame()

    def answered(self, case: VersionAndData, asked: Mapping[str, Any]) -> Told:
        """Seconds a step of the table's configurations."""
        table = self.table_of(case.known)
        rows = self.predict(case.known)
        # By content: a copy of the file that was learnt from overlaps as well.
        overlap = case.version.trace_sha256 == table.sha256
        return {"steps": rows.to_dicts(), "overlap": overlap, **made_from(table, table.notes)}
