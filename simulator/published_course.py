"""When the published round mechanism notices that a job's batch size changes. Shockwave's simulator (NSDI 2023)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from types import MappingProxyType

from jobcast.domain.jobs import Job, Outcome
from jobcast.domain.training import Training

ACCORDION, GNS = "accordion", "gns"


@dataclass(frozen=True, slots=True)
class Windows:
    """Critical epochs of a model, in which Accordion trains at the batch size that the job starts with.

    Attributes
    ----------
    largest : batch size in all other epochs
    first : batch size at the start -> length of the first window, where it is not `usual`
    usual : length of a window
    later : where further windows begin
    period : epochs after which the windows come again, None = never
    """

    largest: int
    first: Mapping[int, int] = field(default_factory=dict)
    usual: int = 10
    later: tuple[int, ...] = ()
    period: int | None = None

    def batch_size(self, first: int, epoch: int) -> int:
        """The batch size of an epoch of a job that starts with another.

        >>> WINDOWS["ResNet-50"].batch_size(32, 39), WINDOWS["ResNet-50"].batch_size(32, 40)
        (32, 128)
        """
        at = epoch % self.period if self.period else epoch
        critical = at < self.first.get(first, self.usual) or any(0 <= at - begin < self.usual for begin in self.later)
        return first if critical else self.largest


WINDOWS: Mapping[str, Windows] = MappingProxyType(
    {
        "ResNet-18": Windows(256, later=(150, 250)),
        "ResNet-50": Windows(128, period=30),
        "LM": Windows(80),
        "Recommendation": Windows(8192, first={512: 30, 1024: 30, 2048: 40}),
    }
)
"""Accordion as that simulator executes it, by model."""


class Course:
    """The batch sizes that a job is told to change to.

    The truth says nothing of the epoch after the last, at which that simulator looks too when a job's last epoch has
    begun: there it is Accordion's windows that count, for the models that it has.

    Parameters
    ----------
    job, outcome : a training job and its regimes
    """

    def __init__(self, job: Job, outcome: Outcome) -> None:
        assert job.training is not None  # the caller has looked
        self._training: Training = job.training
        self._sizes = [regime.batch_size for regime in outcome.regimes] or [job.training.batch_size]
        self._ends = list(accumulate(regime.epochs for regime in outcome.regimes)) or [float(job.training.epochs)]

    def wanted(self, batch_size: int, epochs: int) -> int | None:
        """The batch size to change to for a job at `batch_size` that has begun `epochs` epochs; None = keep it.

        GNS looks one epoch further and doubles the batch size once.
        """
        if self._training.mode == GNS:
            return 2 * batch_size if self._batch_size(epochs + 1) > batch_size else None
        size = self._batch_size(epochs)
        return size if size != batch_size else None

    def _batch_size(self, epoch: int) -> int:
        training = self._training
        if epoch >= training.epochs and training.mode == ACCORDION and training.model in WINDOWS:
            return WINDOWS[training.model].batch_size(training.batch_size, epoch)
        return next((size for size, end in zip(self._sizes, self._ends, strict=True) if epoch < end), self._sizes[-1])
