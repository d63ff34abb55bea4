"""Life of the predictors of run times."""

from typing import ClassVar

import numpy as np
import polars as pl

from jobcast.domain.horizons import bin_labels
from jobcast.models.evaluation import evaluate_durations
from jobcast.models.evaluation.durations import tag_ablation
from jobcast.models.job_duration import JobDuration
from jobcast.pipelines.lifecycle.evaluation_data import Scoring
from jobcast.pipelines.lifecycle.predictors.life import Told
from jobcast.pipelines.lifecycle.predictors.traces import TraceLife
from jobcast.pipelines.report.predictor_plots import CurvePoints
from jobcast.traces.history import TraceHistory
from jobcast.traces.table import Trace


class Durations(TraceLife[JobDuration]):
    """How long will a job run? SIA, section 5.4.2."""

    ablates: ClassVar[bool] = True

    def rows(self, known: Trace, at_s: float) -> pl.DataFrame:
        """Bins of the jobs that have not ended, from what had ended by the instant."""
        model, labels = self.model_, bin_labels(self.model_.horizons_min)
        history = TraceHistory(known, at_s)
        tracker = model.tracker()
        tracker.catch_up(history)
        asked = history.active
        rows = tracker.rows(asked)
        bins, shares = model.predict(rows), model.predict_proba(rows)
        keys = {"job_id": [job.job_id for job in asked], "pool": [job.pool for job in asked]}
        told = {"bin": [labels[int(b)] for b in bins], **dict(zip(labels, np.transpose(shares), strict=True))}
        return pl.DataFrame(keys | told, schema_overrides={"job_id": pl.String, "pool": pl.String, "bin": pl.String})

    def told(self, rows: pl.DataFrame) -> Told:
        """`jobs`: id -> pool, likeliest bin, probabilities."""
        jobs = {}
        for row in rows.iter_rows(named=True):
            job_id, pool, likeliest = (row.pop(name) for name in ("job_id", "pool", "bin"))
            jobs[job_id] = {"pool": pool, "bin": likeliest, "probabilities": row}
        return {"jobs": jobs}

    def measured(self, trace: Trace, from_s: float, until_s: float, pools: tuple[str, ...]) -> Told:
        """See `TraceLife`."""
        return evaluate_durations(self.model_, trace, from_s, until_s, pools, draws=0)

    def figures(self, data: Scoring) -> tuple[Told, CurvePoints]:
        """See `TraceLife`."""
        model, window = self.model_, (data.from_s, data.until_s)
        figures = evaluate_durations(model, data.trace, *window, data.pools, draws=data.wishes.draws)
        if data.wishes.without:
            fewer = evaluate_durations(model, data.trace, *window, data.others, draws=0)
            figures["without"] = {"pools": list(data.wishes.without), **fewer}
        if data.wishes.ablation:
            figures["ablation"] = tag_ablation(model, data.trace, *window, data.pools)
        return figures, CurvePoints()
