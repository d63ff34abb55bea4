"""The data of an evaluation on a window of a trace."""

from dataclasses import dataclass

from jobcast.domain.errors import ConfigError
from jobcast.domain.questions import Question
from jobcast.features.corpus import STEP_S
from jobcast.models.evaluation.smoothing import need_statsforecast
from jobcast.models.predictors import answers_of
from jobcast.models.registry import Registry
from jobcast.models.registry.cards import ModelVersion
from jobcast.pipelines.lifecycle.predictors.life import Wishes
from jobcast.pipelines.report.console import Step
from jobcast.pipelines.report.formatting import iso
from jobcast.traces.table import Trace

LATE_START_S = 86400.0
"""A trace that begins so much later than the training time does not hold it."""
ABLATED = ("will-jobs-arrive", "job-duration")
"""Ours that learn from features or tags that can be taken away, for messages."""


@dataclass(frozen=True, slots=True)
class Scoring:
    """The data of an evaluation: a trace until the window's end, the window, and the pools that count.

    `registry` holds the other predictors, where a predictor is also scored together with one.
    """

    trace: Trace
    version: ModelVersion
    from_s: float
    until_s: float
    pools: tuple[str, ...]
    wishes: Wishes
    train_step_s: float = STEP_S
    progress: Step | None = None
    registry: Registry | None = None

    @property
    def training(self) -> Trace:
        """Jobs of the version's training time."""
        return self.trace.between(self.version.train_from_s, self.version.train_until_s)

    @property
    def others(self) -> tuple[str, ...]:
        """Pools that are left with `--without`."""
        return tuple(pool for pool in self.pools if pool not in self.wishes.without)

    @property
    def holds_training(self) -> bool:
        """Whether the trace holds the training time, so that a twin can learn from the same jobs."""
        begins_s = float(self.trace.submit_s[0])
        return len(self.training) > 0 and begins_s <= self.version.train_from_s + LATE_START_S

    def check(self, ablates: bool) -> None:
        """Raise a ConfigError for wishes that cannot be granted.

        Parameters
        ----------
        ablates : whether twins of this predictor can learn from less
        """
        without = self.wishes.without
        unknown = [pool for pool in without if pool not in self.pools]
        if unknown:
            raise ConfigError(f"--without {unknown[0]}: is no pool that is scored; there is {', '.join(self.pools)}")
        if without and not self.others:
            raise ConfigError(f"--without {', '.join(without)}: leaves no pool to score; leave out fewer")
        if self.wishes.ablation:
            self._check_ablation(ablates)
        if self.wishes.smoothing:
            if answers_of(self.version.name) not in (Question.ARRIVALS, Question.LOADS):
                raise ConfigError(f"--smoothing: {self.version.name} has no series of counts; leave it out")
            need_statsforecast()

    def _check_ablation(self, ablates: bool) -> None:
        version, source = self.version, self.trace.source
        if not ablates:
            raise ConfigError(f"--ablation: {version.name} has none; it is for {' and '.join(ABLATED)}")
        if not self.holds_training:
            raise ConfigError(
                f"{source.path}: --ablation trains anew on {iso(version.train_from_s)} to {iso(version.train_until_s)} "
                f"of {version.trace_name}, which this trace does not hold; give the trace that {version} learnt from"
            )
