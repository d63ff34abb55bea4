"""The predictor `completion-time`: what `predict jct` draws futures from, and how far its intervals must reach."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.forecasts import Question
from jobcast.models.completion.intervals import LEVELS, Interval, IntervalTracker, Position
from jobcast.models.completion.job_completions import SizeDraws, SizeForecaster, SizeSample
from jobcast.models.completion.known_jobs import FEWEST, KnownJobs
from jobcast.models.metadata import JsonModel
from jobcast.models.predictor import Frame, ServedModel
from jobcast.traces.table import Trace

FUTURES = 30
"""Drawn of each job that intervals are calibrated on, and of each that is asked about without a policy."""
CALIBRATED = 100
"""Jobs at the end of training that intervals are calibrated on, each from those before it."""
UNSEEN, RUNNING, AGED = 0, 1, 2
"""What draws of different kinds begin their seeds with."""


class CompletionTime(JsonModel):
    """Futures of a queue: run times of jobs that ended before, arrivals in blocks, intervals calibrated by outcomes.

    Under a policy futures are replays of it, so that waiting is forecast too (`jobcast predict jct`); without one,
    jobs that run are forecast to go on as long as others did.

    Attributes
    ----------
    settings_ : how run times of others count
    past_ : the jobs that are drawn from where a trace holds none before the run
    tails_ : by level, the shares of futures below and above its interval, as the end of training moved them
    trained_from_s_, trained_until_s_ : the window that it has seen, seconds from the epoch
    """

    name: ClassVar[str] = "completion-time"
    answers: ClassVar[Question] = Question.COMPLETIONS
    algorithm: ClassVar[str] = "futures"
    algorithms: ClassVar[Sequence[str]] = (algorithm,)

    def fit(self, trace: Trace, from_s: float, until_s: float) -> Self:
        """Learn from the jobs of [from_s, until_s), of which nothing later is read. Raises as `KnownJobs.enough`."""
        self.past_ = past = KnownJobs.enough(trace, from_s, until_s)
        self.trained_from_s_, self.trained_until_s_ = from_s, until_s
        ended = past.ended
        self.settings_ = SizeForecaster().fit(past.run_s[ended], past.most[ended])
        self.known_ = self._calibrated()
        return self

    def _calibrated(self) -> list[Position]:
        """Positions of the last jobs of training that ended, each forecast at its submission by what was known then."""
        past, tracker = self.past_, IntervalTracker()
        rows = np.flatnonzero(past.ended)
        # The last ones: earlier jobs know of too few others, and the queue has changed since.
        rows = rows[rows >= FEWEST][-CALIBRATED:]
        futures = [self._at_submission(int(row)) for row in rows]
        known = [place for place, drawn in enumerate(futures) if drawn is not None]
        if known:
            rows = rows[known]
            tracker.track(past.submit_s[rows], past.run_s[rows], [futures[place] for place in known])  # type: ignore[misc]
        return tracker.known

    def _at_submission(self, row: int) -> Floats | None:
        """(FUTURES,) run times of a job of the past, from jobs before it; None where none had ended."""
        past, now_s = self.past_, float(self.past_.submit_s[row])
        ended = past.known_s[:row] <= now_s
        if not ended.any():
            return None
        # Of those that had not ended, end of training (0) less the time run.
        started_s = np.minimum(past.known_s, 0.0)[:row] - past.run_s[:row]
        # As of then: what ran on later is not known yet.
        so_far_s = np.where(ended, past.run_s[:row], np.clip(now_s - started_s, 0.0, past.run_s[:row]))
        sample = self.settings_.sample(so_far_s, ended, past.most[:row])
        (found,) = drawn(sample, past.most[row : row + 1], np.zeros(1), (UNSEEN, row))
        return np.asarray(found)

    def sample(self) -> SizeSample:
        """Run times as they were known when training ended."""
        return self.settings_.sample(self.past_.run_s, self.past_.ended, self.past_.most)

    def tracker(self) -> IntervalTracker:
        """Intervals that go on from where training left them."""
        return IntervalTracker(known=self.known_)

    def running(
        self, sample: SizeSample, width: Ints, done_s: Floats, at_s: Floats | None = None, seed: int = 0
    ) -> list[tuple[float, tuple[Interval, ...]]]:
        """Of jobs that go on as they do: the median and the intervals of the time that is left, seconds.

        Parameters
        ----------
        sample : run times that are known
        width, done_s : (n_jobs,) GPUs, and seconds that each has run
        at_s : (n_jobs,) when each is asked about, seconds from the epoch; None: when training ended
        seed : of the draws
        """
        left_s = drawn(sample, width, done_s, (RUNNING, seed)) - done_s[:, None]
        return self._told(left_s, np.zeros(len(left_s)) if at_s is None else self._unseen(at_s))

    def submitted(self, width: Ints, at_s: Floats, seed: int = 0) -> list[tuple[float, tuple[Interval, ...]]]:
        """Of jobs at their submissions, from what was known when training ended: see `running`.

        Recent jobs have as much of their weight as they would beside all that came since: what is not known of those is
        drawn from all jobs alike.
        """
        settings, past, unseen = self.settings_, self.past_, self._unseen(at_s)
        even = replace(self.sample(), weight=np.full(len(past), 1.0 / len(past)))
        near, far = (drawn(one, width, np.zeros(len(width)), (RUNNING, seed)) for one in (self.sample(), even))
        still = np.exp(-unseen / settings.recency_)[:, None]
        is_near = np.random.default_rng((AGED, seed)).uniform(size=near.shape) < still
        return self._told(np.where(is_near, near, far), unseen)

    def _told(self, left_s: Floats, unseen: Floats) -> list[tuple[float, tuple[Interval, ...]]]:
        """Medians and intervals of futures, (n_jobs, FUTURES) seconds that are left."""
        tracker = self.tracker()
        # Intervals are of logarithms, and a job that runs is not over.
        left_s = np.maximum(left_s, 1.0)
        return [
            (float(np.median(row)), tracker.intervals(row, unseen=count))
            for row, count in zip(left_s, unseen.tolist(), strict=True)
        ]

    def _unseen(self, at_s: Floats) -> Floats:
        """(n,) how many outcomes there were between the end of training and some instants, at the pace of training.

        What the last jobs of training taught holds for those behind them, whose queue and experiments are the same. It
        wears off as fast as where it is learnt on and on; else one burst would narrow or widen intervals for good.
        """
        jobs_per_s = len(self.past_) / -float(self.past_.submit_s[0])
        return np.maximum(at_s - self.trained_until_s_, 0.0) * jobs_per_s

    def as_dict(self) -> dict[str, Any]:
        """See `JsonModel`."""
        return {
            "settings": self.settings_.as_dict(),
            "past": self.past_.as_dict(),
            "known": [list(one) for one in self.known_],
        }

    @classmethod
    def read(cls, saved: Mapping[str, Any]) -> Self:
        """See `JsonModel`."""
        model = cls()
        model.settings_, model.past_ = SizeForecaster.read(saved["settings"]), KnownJobs.read(saved["past"])
        model.known_ = [Position(*one) for one in saved["known"]]
        return model


def drawn(sample: SizeSample, width: Ints, done_s: Floats, seed: Sequence[int]) -> Floats:
    """(n_jobs, FUTURES) run times, in each future drawn together."""
    # A generator a future: more jobs asked at once do not change a future's weights.
    draws = [SizeDraws(sample, np.random.default_rng((*seed, number))) for number in range(FUTURES)]
    return np.array([one.draw(width, done_s) for one in draws]).reshape(FUTURES, len(width)).T


def tracker_of(learned: CompletionTime | None, warmed: Sequence[Position] = ()) -> IntervalTracker:
    """Intervals that go on from where a model's training left them, and from what a replay of the past has shown."""
    return IntervalTracker(known=[*([] if learned is None else learned.known_), *warmed])


class ServedCompletionTime(ServedModel):
    """One row a running job: its GPUs and how long it has run; answers the time that is left with intervals.

    `params`: `at`, the instant that is asked about, seconds from the epoch, by default the end of training: what the
    last jobs of training taught wears off with time.
    """

    inputs: Mapping[str, str] = {"gpus": "long", "done_s": "double"}
    outputs: Mapping[str, str] = dict.fromkeys(
        ("left_s", *(f"{end}_{level:.0%}_s".replace("%", "") for level in LEVELS for end in ("low", "high"))), "double"
    )

    params: Mapping[str, tuple[str, Any, tuple[int, ...] | None]] = {"at": ("double", None, None)}
    """Name -> MLflow type, default, shape."""
    shown: Mapping[str, Sequence[Any]] = {"gpus": [1, 8], "done_s": [0.0, 60.0]}
    predictor: CompletionTime

    def answer(self, frame: Frame, params: Mapping[str, Any]) -> Iterable[Any]:
        """See `ServedModel`."""
        model = self.predictor
        width, done_s = frame["gpus"].to_numpy(np.int64), frame["done_s"].to_numpy(np.float64)
        at_s = params.get("at")
        when = None if at_s is None or np.isnan(at_s) else np.full(len(width), at_s)
        result = model.running(model.sample(), width, done_s, when)
        rows = [(median, *(end for one in ends for end in (one.low_s, one.high_s))) for median, ends in result]
        return list(zip(*rows, strict=True)) or [()] * len(self.outputs)
