"""Life of the predictors of waits, which are asked about all pending jobs, with GPUs or without."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats
from jobcast.domain.bad_answers import BadAnswers
from jobcast.domain.clock import DAY_S
from jobcast.domain.errors import TraceError, TrainingError
from jobcast.features.queue_state import Queue, queue_rows
from jobcast.features.wait_rows import WaitRows
from jobcast.models.evaluation.queue_waits import LIGHTGBM_L1, POOL_MEDIAN, WaitScores, plain_l1, wait_figures
from jobcast.models.predictor import Known
from jobcast.models.promise_ledger import Promise
from jobcast.models.queue_wait import QueueWait, guarded_waits
from jobcast.pipelines.lifecycle.predictors.life import EVALUATE, PREDICT, TRAIN, Told, VersionAndData, Wishes, told_by
from jobcast.pipelines.lifecycle.predictors.traces import TraceLife, stretch_of, window_scored
from jobcast.pipelines.lifecycle.promises import WAITS_TOLD, starts_promised
from jobcast.pipelines.lifecycle.recipes.common import TrainingData
from jobcast.pipelines.report.console import Step
from jobcast.pipelines.report.formatting import iso, parse_time
from jobcast.pipelines.report.model_tables import made_from
from jobcast.pipelines.report.predictor_plots import CurvePoints
from jobcast.traces.table import Trace


class QueueWaits(TraceLife[QueueWait]):
    """How long will a pending job wait? From the queue of a whole trace, or from a table of snapshots."""

    needs: ClassVar[Sequence[str]] = ("trace", "waits")
    says: ClassVar[Mapping[str, str]] = told_by("report.figure_lines")
    reads: ClassVar[Mapping[str, Collection[str]]] = {
        TRAIN: ("from_s", "until_s", "algorithm", "seed", "retrain", "first_weeks", "window_days"),
        EVALUATE: ("from_s", "until_s", "retrain", "paper_recipe", "draws", "seed", "out", "log", "allow_overlap"),
        PREDICT: ("at_s", "seed", "no_ledger"),
    }

    def data(self, known: Known) -> TrainingData:
        """All jobs that were known in the window, of all pools; its rows are of the instants in it."""
        trace = _with_waits(known.jobs)
        begin, end = stretch_of(trace, known.from_s, known.until_s, float(trace.seen_s.min()), "train on", "widen it")
        seen = trace.between(None, end)
        return TrainingData(seen, begin, end, tuple(seen.pools))

    def scored(self, case: VersionAndData) -> tuple[Told, CurvePoints]:
        """See `TraceLife`; rows are of the instants of the window."""
        version, trace = case.version, _with_waits(case.known.jobs)
        begin, end, overlap = window_scored(case, trace, float(trace.seen_s.min()))
        window = version.train_from_s, version.train_until_s
        scores = _scores(self.model_, trace, window, (begin, end), case.wishes)
        trained = {"from": iso(window[0]), "until": iso(window[1]), "trace": version.trace_name}
        result = {"algorithm": version.algorithm, "trained": trained, "overlap_allowed": overlap}
        return {**_told(scores, trace, (begin, end), case.wishes), **result}, CurvePoints()

    def walked(self, known: Known, wishes: Wishes, progress: Step | None = None) -> Told:
        """Figures of models that are trained anew every `wishes.every_days`, on what was known then, and not kept.

        Raises TrainingError where the first has too little to learn from.
        """
        trace, days = _with_waits(known.jobs), wishes.every_days
        assert days is not None, "asked for by --retrain alone"
        first_s = float(trace.seen_s.min())
        begin, end = stretch_of(trace, known.from_s, known.until_s, first_s + FIRST_S, "score", "move the window")
        kind: Any = self.model
        starts, parts = np.arange(begin, end, DAY_S * days).tolist(), list[WaitScores]()
        for number, start_s in enumerate(starts):
            model = kind(seed=self.settings.seed).fit(trace, first_s, start_s)
            until_s = min(start_s + DAY_S * days, end)
            parts.append(_scores(model, trace, (first_s, start_s), (start_s, until_s), wishes))
            if progress:
                progress(number + 1, len(starts))
        trained = {"from": iso(first_s), "until": [iso(one) for one in starts], "trace": trace.name}
        result = {"algorithm": self.algorithm, "trained": trained, "overlap_allowed": False}
        return {**_told(WaitScores.joined(parts), trace, (begin, end), wishes), **result}

    def evaluate(self, known: Known) -> Told:
        """Of all instants of [from, until)."""
        trace = _with_waits(known.jobs)
        begin, end = stretch_of(trace, known.from_s, known.until_s, float(trace.seen_s.min()), "score", "give another")
        scores = _scores(self.model_, trace, None, (begin, end), Wishes(paper_recipe=False))
        return wait_figures(scores, begin, draws=0)

    @classmethod
    def promised(cls, result: Told) -> Sequence[Promise]:
        """The start of each job."""
        version, sha256 = f"{result['predictor']}:{result['version']}", result["inputs"]["trace"]["sha256"]
        return starts_promised(version, parse_time(result["from"]), result["jobs"], sha256)

    @staticmethod
    def seen(known: Known) -> Trace:
        """What was known of jobs, with GPUs or without. Raises TraceError where there is none."""
        trace, at_s = _with_waits(known.jobs), known.until_s
        found = trace if at_s is None else trace.as_of(at_s)
        if not len(found) or (at_s is not None and not (found.seen_s <= at_s).any()):
            raise TraceError(f"{trace.source.path}: no job was known by {iso(at_s)}; choose a later --at")
        return found

    def rows(self, known: Trace, at_s: float) -> pl.DataFrame:
        """Seconds from the instant on, of the jobs that wait; of a table from the last snapshot on, of its jobs."""
        return self._answers(known, Queue.of(known), at_s, BadAnswers())

    def _answers(self, known: Trace, queue: Queue, at_s: float, bad: BadAnswers) -> pl.DataFrame:
        asked_s, asked = asked_at(known, at_s), queue.pending(at_s)
        if known.is_snapshots:
            asked = asked[queue.seen_s[asked] == asked_s]
        result = guarded_waits(self.model_, queue_rows(queue, asked_s, asked), bad)
        jobs = known.jobs.select("job_id", "pool", "gpus", submitted=pl.Series(known.submit_s))[asked]
        return jobs.with_columns(pl.Series(*one, pl.Float64) for one in zip(WAITS_TOLD, result.T, strict=True))

    def answered(self, case: VersionAndData, asked: Mapping[str, Any]) -> Told:
        """By job, with the instant from which on the seconds count.

        `unanswered` counts jobs of a table that still wait since an earlier snapshot: what that told of their places
        is over, and the trace holds no later one.
        """
        at_s, source, bad = case.known.until_s, case.known.jobs, BadAnswers()
        assert at_s is not None  # see `TraceLife.known`
        seen = self.seen(case.known)
        queue = Queue.of(seen)
        rows = self._answers(seen, queue, at_s, bad)
        return {
            "at": iso(at_s),
            "from": iso(asked_at(seen, at_s)),
            **self.report(rows),
            "unanswered": len(queue.pending(at_s)) - len(rows),
            "bad_forecasts": bad.figures(),
            "overlap": case.version.train_until_s > at_s,
            **made_from(source.source, source.notes, source.dropped),
        }

    def report(self, rows: pl.DataFrame) -> Told:
        """`jobs`: id -> pool, GPUs, when it was submitted, and seconds."""
        jobs = (row | {"submitted": iso(row["submitted"])} for row in rows.iter_rows(named=True))
        return {"jobs": {row.pop("job_id"): row for row in jobs}}


FIRST_S = 21 * DAY_S
"""Training time before the first week that is scored where no beginning is named; as of walks."""


def asked_at(known: Trace, at_s: float) -> float:
    """From when on waits are told: the instant itself, of a table its last snapshot."""
    return float(known.seen_s[known.seen_s <= at_s].max()) if known.is_snapshots else at_s


def _with_waits(trace: Trace) -> Trace:
    """The trace, if it tells when jobs started. Raises TrainingError where it does not."""
    if "start_time" not in trace.jobs.columns:
        raise TrainingError(
            f"{trace.source.path}: column start_time missing, so that no wait is known; give a trace with starts, "
            "such as `jobcast simulate --out` writes, or a table of snapshots (`jobcast trace convert queue-snapshots`)"
        )
    return trace


def _scores(
    model: QueueWait, trace: Trace, trained: tuple[float, float] | None, window: tuple[float, float], wishes: Wishes
) -> WaitScores:
    """Rows of a window beside what came, and rules that learnt from the same training time, if the trace holds it."""
    rows = WaitRows.of(trace, *window)
    pools: NDArray[Any] = trace.jobs["pool"].to_numpy().astype(str)[rows.job]
    rules: dict[str, Floats] = {POOL_MEDIAN: model.pool_medians(pools)}
    if wishes.paper_recipe and trained is not None and trained[1] <= window[0]:
        known = WaitRows.of(trace, *trained)
        if known.started(trained[1]).any():
            rules[LIGHTGBM_L1] = plain_l1(known, trained[1], rows, wishes.seed)
    if not len(rows):
        raise TrainingError(f"{trace.source.path}: no job waits from {iso(window[0])} until {iso(window[1])}; widen it")
    return WaitScores.of(rows, guarded_waits(model, rows.X, BadAnswers()), trace, rules)


def _told(scores: WaitScores, trace: Trace, window: tuple[float, float], wishes: Wishes) -> Told:
    figures = wait_figures(scores, window[0], wishes.draws, wishes.seed)
    weeks = [{"from": iso(week.pop("from_s")), **week} for week in figures.pop("weeks")]
    return {
        **figures,
        "weeks": weeks,
        "window": {"from": iso(window[0]), "until": iso(window[1])},
        "bootstrap": {"draws": wishes.draws, "seed": wishes.seed, "confidence": 0.95, "block": "account and day"},
        "simulated": False,
        **made_from(trace.source, trace.notes, trace.dropped),
    }
