"""What a policy asked its forecasts and was told: kept beside a run, so that its decisions can be explained."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import nan
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.jobs import Job
from jobcast.domain.tasks import AccuracyForecast
from jobcast.domain.training import Progress, Regime
from jobcast.simulator.log import RunLog

ARRIVES, LOAD, PROBABILITY, QUANTILE = "arrives", "load", "probability", "quantile"
"""Questions about a pool and a horizon."""
OF_POOLS = {
    "will_jobs_arrive": ARRIVES,
    "new_load": LOAD,
    "arrival_probability": PROBABILITY,
    "load_quantile": QUANTILE,
}
"""Methods of `domain.forecasts.Forecasts` and `UncertainForecasts` -> the question that they ask."""

Question = tuple[str, str, float, float]
"""(question, pool, horizon in seconds, level of a quantile or 0)."""


DURATION, LEFT, BIN, LIKELIEST = "duration_s", "left_s", "duration_bin", "likeliest_bin"
ACCURACY, EPOCH_TIME = "final_accuracy", "epoch_s"
"""Questions about a job: its run time, what is left of it, its duration bin (the likeliest one where only chances were
told), its accuracy after all iterations, seconds an epoch."""
NEWS = 0.01
"""A forecast of a run time is news where that differs from the last one's by more than this share of it."""
MOST_A_JOB = 100
"""Answers that are kept of a job; the others are counted."""


class JobAnswer(NamedTuple):
    """What was forecast of a job.

    Attributes
    ----------
    job_id, question : whose, and one of those above
    at_s : when, seconds from the epoch; NaN where that is not known
    of : what the answer is about or made of: epochs seen, batch sizes and epochs, GPUs; may be empty
    answer, spread : seconds or an accuracy, and its standard deviation, NaN where none was told
    truth : what it ought to have been, NaN where the run alone tells
    done_s : seconds of a run time that had passed
    """

    job_id: str
    question: str
    at_s: float
    of: str
    answer: float
    spread: float = nan
    truth: float = nan
    done_s: float = 0.0


class JobAnswers:
    """Keeps what was forecast of jobs: the first answer to each question, and where it is full those with news.

    Parameters
    ----------
    full : whether rows are kept

    Attributes
    ----------
    now_s : the instant, seconds from the epoch; NaN where nobody tells
    rows : answers, in the order in which they were given
    left_out : how many more there were
    """

    def __init__(self, full: bool = False) -> None:
        self.full = full
        self.now_s = nan
        self.rows: list[JobAnswer] = []
        self.left_out = 0
        self._first: defaultdict[str, dict[str, float]] = defaultdict(dict)
        self._last: dict[str, float] = {}
        self._kept: Counter[str] = Counter()

    def first(self, question: str) -> Mapping[str, float]:
        """The first answer by job id; of what is left of a run time, that run time."""
        return self._first.get(question, {})

    def bins(self) -> dict[str, float]:
        """The first duration bin by job id, the likeliest where only chances were told."""
        return {**self.first(LIKELIEST), **self.first(BIN)}

    def lacks(self, question: str, job_id: str) -> bool:
        """Whether an answer would be looked at."""
        return self.full or job_id not in self._first[question]

    def keep_first(self, question: str, job_id: str, answer: float) -> None:
        """Keep an answer that makes no row if it is the first one."""
        self._first[question].setdefault(job_id, answer)

    def keep(self, kept_answer: JobAnswer) -> None:
        """Keep an answer if it is the first one, or news."""
        # What is left shrinks as a job runs: news is when the whole run time changes.
        whole = kept_answer.answer + kept_answer.done_s
        self._first[kept_answer.question].setdefault(kept_answer.job_id, whole)
        # Without a record the first answer is all that errors are told by.
        if not self.full or (kept_answer.question in (DURATION, LEFT) and not self._is_news(kept_answer.job_id, whole)):
            return
        self._kept[kept_answer.job_id] += 1
        if self._kept[kept_answer.job_id] > MOST_A_JOB:
            self.left_out += 1
        else:
            self.rows.append(kept_answer)

    def _is_news(self, job_id: str, whole_s: float) -> bool:
        last_s = self._last.get(job_id)
        # Against the last row kept, so that slow drifts add up to news.
        if last_s is not None and abs(whole_s - last_s) <= NEWS * abs(last_s):
            return False
        self._last[job_id] = whole_s
        return True


class Asked:
    """Passes every question on, and keeps what is answered about jobs: what errors of forecasts are told by.

    It can tell what its source can, and no more.

    Parameters
    ----------
    source : answers; what it answers is never changed
    factor : by which the policy is set to take run times that are left for longer, a job

    Attributes
    ----------
    of_jobs : what was answered
    """

    def __init__(self, source: Any, factor: Callable[[Job], float] | None = None, *, full: bool = False) -> None:
        self._source, self._factor = source, factor
        self.of_jobs = JobAnswers(full)
        self._keepers: dict[str, Callable[..., None]] = {
            "duration_s": self._keep_duration,
            "duration_bin": self._keep_bin,
            "duration_probabilities": self._keep_likeliest,
            "regimes": self._keep_regimes,
        }

    @property
    def unheard(self) -> Any:
        """The source itself: what it is asked there is not kept."""
        return self._source

    def bins(self) -> dict[str, int]:
        """The bin forecast for each job by id, the likeliest where only probabilities were asked for."""
        return {job_id: int(described) for job_id, described in self.of_jobs.bins().items()}

    def __getattr__(self, name: str) -> Any:
        """What the source can tell; methods are looked up once."""
        # Else an unfinished object would look for its own source for ever.
        if name.startswith("_"):
            raise AttributeError(name)
        result = getattr(self._source, name)
        if not callable(result):
            return result
        # Nothing is kept of what is asked about pools here: those go straight to the source.
        keep = self._keepers.get(name)

        def ask(*asked: Any, **named: Any) -> Any:
            answer = result(*asked, **named)
            keep(answer, *asked, **named)  # type: ignore[misc]
            return answer

        # Next time Python finds it without coming here: policies ask in their hot loops.
        self.__dict__[name] = result if keep is None else ask
        return self.__dict__[name]

    def _keep_duration(self, answer: float, job: Job) -> None:
        # Most answers are asked again and again: nothing is worked out for those.
        if self.of_jobs.lacks(DURATION, job.job_id):
            self.of_jobs.keep(JobAnswer(job.job_id, DURATION, self.of_jobs.now_s, "", answer * self._lengthened(job)))

    def _keep_bin(self, answer: int, job: Job) -> None:
        # Bins make no rows of a table: they are a column of the log.
        self.of_jobs.keep_first(BIN, job.job_id, answer)

    def _keep_likeliest(self, answer: Sequence[float], job: Job) -> None:
        if self.of_jobs.lacks(LIKELIEST, job.job_id):
            self.of_jobs.keep_first(LIKELIEST, job.job_id, int(np.argmax(answer)))

    def _keep_regimes(self, answer: Sequence[Regime], job: Job, progress: Progress) -> None:
        if job.training is None or not self.of_jobs.lacks(LEFT, job.job_id):
            return
        # Epochs have no length of their own: they are told by the time that they take.
        left_s = job.training.run_time_s(tuple(answer)) * self._lengthened(job)
        done_s = job.training.run_time_s(progress.regimes)
        # Regimes of no epochs are over: nobody needs to read them.
        of = ", ".join(f"{one.batch_size} x {one.epochs:.4g}" for one in answer if one.epochs > 0)
        self.of_jobs.keep(JobAnswer(job.job_id, LEFT, self.of_jobs.now_s, of, left_s, done_s=done_s))

    def _lengthened(self, job: Job) -> float:
        return 1.0 if self._factor is None else self._factor(job)


class Recording(Asked):
    """Keeps what was answered about pools too, and all news of jobs.

    About pools one row is kept whenever an answer differs from the last one to the same question.

    Parameters
    ----------
    source, factor : as above

    Attributes
    ----------
    questions : those that were asked about pools; rows refer to them by position
    """

    def __init__(self, source: Any, factor: Callable[[Job], float] | None = None) -> None:
        super().__init__(source, factor, full=True)
        of_pools = {name: partial(self._keep_changed, question) for name, question in OF_POOLS.items()}
        self._keepers |= {**of_pools, "load_quantiles": self._keep_levels}
        self.questions: list[Question] = []
        self._known: dict[Question, int] = {}
        self._last: dict[Question, float] = {}
        # Plain arrays: there may be millions of rows.
        self._at_s, self._question, self._answer = array("d"), array("q"), array("d")

    def advance(self, now_s: float) -> None:
        """Move to an instant, and the source with it where instants matter to it."""
        self.of_jobs.now_s = now_s
        if hasattr(self._source, "advance"):
            self._source.advance(now_s)

    def _keep_changed(self, name: str, answer: float, pool: str, horizon_s: float, level: float = 0.0) -> None:
        question = (name, pool, horizon_s, level)
        # A row a change: policies ask the same at every event.
        if self._last.get(question) == answer:
            return
        self._last[question] = answer
        if question not in self._known:
            self._known[question] = len(self.questions)
            self.questions.append(question)
        self._at_s.append(self.of_jobs.now_s)
        self._question.append(self._known[question])
        self._answer.append(answer)

    def _keep_levels(self, answer: Sequence[float], pool: str, horizon_s: float, levels: Sequence[float]) -> None:
        for gpus, level in zip(answer, levels, strict=True):
            self._keep_changed(QUANTILE, gpus, pool, horizon_s, level)

    def answers(self) -> tuple[Floats, Ints, Floats]:
        """Instants in seconds from the epoch, ascending; positions in `questions`; answers. (n_rows,) each.

        Whether jobs arrive is 1 or 0, loads and their quantiles are GPUs.
        """
        return (
            np.array(self._at_s, dtype=np.float64),
            np.array(self._question, dtype=np.int64),
            np.array(self._answer, dtype=np.float64),
        )


ROWS = {name: pl.String if name in ("job_id", "question", "of") else pl.Float64 for name in JobAnswer._fields}
COLUMNS = tuple(name for name in ROWS if name != "done_s")
"""Of a table of answers; see `JobAnswer`."""
PERCENT = 100.0


def forecast_columns(
    answers: JobAnswers,
    log: RunLog,
    job_ids: Sequence[str],
    *,
    horizons_min: Sequence[float] = (),
    final: Floats | None = None,
) -> dict[str, Floats]:
    """Columns of a log from the first answers of a run; those of what was not asked are left out.

    `horizons_min`: edges of duration bins; `final`: (n_jobs,) true accuracies after all epochs.
    """
    columns: dict[str, Floats] = {}
    # A training job is asked by what is left; that answer tells more than a bare run time.
    if run_times := {**answers.first(DURATION), **answers.first(LEFT)}:
        columns["forecast_duration_s"] = _column(run_times, job_ids)
    if bins := answers.bins():
        # Bins are numbered by how many horizons a run time passes.
        right = np.searchsorted(60.0 * np.asarray(horizons_min), log.duration_s)
        columns["bins_off"] = right - _column(bins, job_ids)
    if (accuracies := answers.first(ACCURACY)) and final is not None:
        columns |= {"forecast_accuracy": _column(accuracies, job_ids), "final_accuracy": final}
    return columns


def _column(known: Mapping[str, float], job_ids: Sequence[str]) -> Floats:
    return np.array([known.get(job_id, np.nan) for job_id in job_ids], dtype=np.float64)


def keep_sizes(answers: JobAnswers, job_ids: Sequence[str], submit_s: Floats, declared_s: Floats) -> None:
    """Run times alone by the sizes that jobs declare, at their submissions."""
    for job_id, at_s, alone_s in zip(job_ids, submit_s.tolist(), declared_s.tolist(), strict=True):
        answers.keep(JobAnswer(job_id, DURATION, at_s, "", alone_s))


def keeping_accuracies(
    answers: JobAnswers, forecast: AccuracyForecast, job_ids: Sequence[str], final: Floats
) -> AccuracyForecast:
    """A source that keeps what it forecasts; `final`: (n_jobs,) the true accuracies after all epochs."""

    def ask(jobs: Ints, seen: Floats, at: Ints, epochs: Ints) -> tuple[Floats, Floats]:
        mean, spread = forecast(jobs, seen, at, epochs)
        for job, epoch, answer, sd in zip(jobs.tolist(), at.tolist(), mean.tolist(), spread.tolist(), strict=True):
            if np.isfinite(answer):  # nothing is forecast where a model answered what cannot be
                answers.keep(
                    JobAnswer(job_ids[job], ACCURACY, np.nan, f"epoch {epoch}", answer, max(sd, 0.0), float(final[job]))
                )
        return mean, spread

    return ask


def epoch_time_columns(believed_s: Floats, true_s: Floats) -> dict[str, Floats]:
    """`epoch_time_err_pct` of a log, from seconds an epoch, (n_jobs, n_kinds, most_gpus), infinite where none run."""
    # Where no job can run there is nothing to err about.
    known = np.isfinite(true_s) & np.isfinite(believed_s)
    # Only where both are known: infinite over infinite would be NaN, and warn.
    error = np.abs(np.divide(believed_s, true_s, out=np.ones_like(true_s), where=known) - 1.0)
    cells = known.sum(axis=(1, 2))
    return {"epoch_time_err_pct": PERCENT * np.where(cells, error.sum(axis=(1, 2)) / np.maximum(cells, 1), np.nan)}


def keep_epoch_times(
    answers: JobAnswers,
    job_ids: Sequence[str],
    submit_s: Floats,
    gpu_types: Sequence[str],
    believed_s: Floats,
    true_s: Floats,
) -> None:
    """Seconds an epoch by GPU type and number, at the jobs' submissions; see `epoch_time_columns`."""
    for job, kind, gpus in np.argwhere(np.isfinite(believed_s) & np.isfinite(true_s)).tolist():
        answer, truth = float(believed_s[job, kind, gpus]), float(true_s[job, kind, gpus])
        of = f"{gpu_types[kind]} x {gpus + 1}"
        answers.keep(JobAnswer(job_ids[job], EPOCH_TIME, float(submit_s[job]), of, answer, truth=truth))


def job_answer_table(answers: JobAnswers, job_ids: Sequence[str], log: RunLog) -> pl.DataFrame:
    """Rows of `COLUMNS`, in the order in which answers were given; truths of run times are the log's."""
    rows = pl.DataFrame(answers.rows, schema=ROWS, orient="row")
    lasted = pl.DataFrame({"job_id": job_ids, "lasted_s": log.duration_s}, schema_overrides={"job_id": pl.String})
    truth = pl.when(pl.col("question").is_in([DURATION, LEFT])).then(pl.col("lasted_s") - pl.col("done_s"))
    # The order of the answers is the order of the run: it must survive the join.
    joined = rows.join(lasted, on="job_id", how="left", maintain_order="left")
    told_at_last = joined.with_columns(truth=truth.otherwise(pl.col("truth"))).select(COLUMNS)
    return told_at_last.with_columns(pl.col(pl.Float64).fill_nan(None))
