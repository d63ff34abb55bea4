"""Training jobs whose batch size changes: what is known of them, how far they are, and the regimes that they run in.

And jobs that run on any number of GPUs: how well they do on each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Regime:
    """A stretch of epochs at one batch size. Shockwave, section 5.

    Attributes
    ----------
    batch_size : samples a step, over all GPUs
    epochs : how long it lasts; may be fractional in forecasts and while it runs
    """

    batch_size: int
    epochs: float


@dataclass(frozen=True, slots=True)
class Training:
    """What anybody may know of a training job from its submission on.

    Attributes
    ----------
    model : what is trained
    batch_size : the one that it starts with
    epochs : in all
    mode : rule by which the batch size changes: static, accordion, gns, or a rule of the user's own
    epoch_s : batch size -> seconds an epoch takes on the GPUs that the job asks for (profiled), sizes ascending
    max_regimes : how many regimes its user expects at most; None where nothing was declared
    samples : of its data set, an epoch's; None where that is not known
    """

    model: str
    batch_size: int
    epochs: int
    mode: str
    epoch_s: Mapping[int, float]
    max_regimes: int | None = None
    samples: int | None = None

    def run_time_s(self, regimes: tuple[Regime, ...]) -> float:
        """Seconds that regimes take on the GPUs that the job asks for.

        >>> Training("LM", 10, 4, "gns", {10: 60.0, 20: 40.0}).run_time_s((Regime(10, 1.0), Regime(20, 3.0)))
        180.0
        """
        return sum(regime.epochs * self.epoch_s[regime.batch_size] for regime in regimes)

    def epochs_in(self, regimes: Sequence[Regime], run_s: float) -> float:
        """Epochs that are done after so many seconds of progress; what lies beyond is not looked at.

        >>> Training("LM", 10, 4, "gns", {10: 60.0, 20: 40.0}).epochs_in((Regime(10, 1.0), Regime(20, 3.0)), 80.0)
        1.5
        """
        done = 0.0
        for regime in regimes:
            lasts_s = regime.epochs * self.epoch_s[regime.batch_size]
            # At the edge the regime that ends counts: both give the same epochs.
            if run_s <= lasts_s:
                return done + run_s / self.epoch_s[regime.batch_size]
            done, run_s = done + regime.epochs, run_s - lasts_s
        return done


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job is, as it reports itself.

    Attributes
    ----------
    epochs : done so far
    regimes : run so far, the last one still running with the epochs done in it; one of 0 epochs before the first start
    """

    epochs: float
    regimes: tuple[Regime, ...]

    @property
    def batch_size(self) -> int:
        """The batch size that it runs at, or will start with."""
        return self.regimes[-1].batch_size


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of a job's work in which its goodput does not change. Goodput: Pollux (OSDI 2021).

    Attributes
    ----------
    until : work done at its end, in samples as useful as those of the initial batch size
    goodput : by GPUs, from one on, work a second at the best batch size
    batch_size : by GPUs, that batch size
    """

    until: float
    goodput: tuple[float, ...]
    batch_size: tuple[int, ...]


class Goodputs(dict[int, tuple[float, ...]]):
    """By `seq` of active jobs: goodput by GPUs, from one on, as measured at the moment, up to the most they can use."""
