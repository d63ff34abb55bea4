"""Which batch size follows which, by mode of adaptation, and how many regimes a job may run through.

Shockwave, section 5: the rules of adaptation have deterministic transitions, only the durations are random.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from jobcast.domain.errors import RegistryError
from jobcast.domain.training import Progress, Regime, Training

ACCORDION_REGIMES = 2
"""Accordion knows two sizes; how often it goes back is not known before."""
GNS_FACTOR = 2


class Adaptation(Protocol):
    """A rule by which a batch size changes; users may bring their own."""

    def most_regimes(self, training: Training) -> int:
        """How many regimes a job may run through where its user declares nothing, at least 1."""
        ...

    def following(self, training: Training, sizes: Sequence[int]) -> int | None:
        """The batch size after those run so far (at least one, the last one running); None where nothing follows."""
        ...


class Static:
    """The batch size never changes."""

    def most_regimes(self, training: Training) -> int:
        """One."""
        return 1

    def following(self, training: Training, sizes: Sequence[int]) -> None:
        """Nothing."""
        return


class Accordion:
    """Two sizes, both ways: the one that the job starts with and the largest profiled one. Agarwal et al., 2021."""

    def most_regimes(self, training: Training) -> int:
        """Two, or one for a job that starts with the largest size."""
        return ACCORDION_REGIMES if training.batch_size < largest(training) else 1

    def following(self, training: Training, sizes: Sequence[int]) -> int | None:
        """The other size: the last one seen beside the present, else the largest profiled."""
        now = sizes[-1]
        for size in reversed(sizes):
            if size != now:
                return size
        other = largest(training)
        return other if other != now else None


class Gns:
    """Doubles up to the largest profiled size, never shrinks. McCandlish et al., 2018."""

    def most_regimes(self, training: Training) -> int:
        """As many as there are profiled doublings, and the first."""
        size, count = training.batch_size, 1
        while size * GNS_FACTOR in training.epoch_s:
            size, count = size * GNS_FACTOR, count + 1
        return count

    def following(self, training: Training, sizes: Sequence[int]) -> int | None:
        """Twice the present size where it is profiled."""
        doubled = sizes[-1] * GNS_FACTOR
        return doubled if doubled in training.epoch_s else None


ADAPTATIONS: Mapping[str, Adaptation] = MappingProxyType({"static": Static(), "accordion": Accordion(), "gns": Gns()})
"""Rules by mode; a job of another mode keeps its batch size unless its rule is given beside these."""
UNKNOWN: Adaptation = Static()
POINTS = tuple(5 * step for step in range(20))
"""Progress in % of the epochs at which forecasts are looked at."""


def largest(training: Training) -> int:
    """The largest profiled batch size."""
    return max(training.epoch_s)


def expected_regimes(training: Training, rule: Adaptation, observed: int) -> int:
    """K: what the user declares, else what the rule allows; never fewer than observed.

    Parameters
    ----------
    training : what is known of the job
    rule : of its mode
    observed : regimes that it ran through so far, the running one among them
    """
    declared = training.max_regimes if training.max_regimes is not None else rule.most_regimes(training)
    return max(declared, observed)


def sizes_ahead(training: Training, rule: Adaptation, sizes: Sequence[int], regimes: int) -> tuple[int, ...]:
    """Batch sizes after the running one, as many as the rule goes on to, up to `regimes` in all.

    Raises
    ------
    RegistryError
        The rule goes on to a size that is not profiled.

    Examples
    --------
    >>> job = Training("LM", 10, 40, "gns", {10: 60.0, 20: 40.0, 40: 30.0})
    >>> sizes_ahead(job, Gns(), (10,), 3)
    (20, 40)
    """
    seen = list(sizes)
    while len(seen) < regimes:
        size = rule.following(training, seen)
        if size is None:
            break
        if size not in training.epoch_s:
            raise RegistryError(
                f"mode {training.mode}: goes on to batch size {size}, for which {training.model} has no throughput; "
                "profile it or correct the rule"
            )
        seen.append(size)
    return tuple(seen[len(sizes) :])


def ahead_of(training: Training, progress: Progress, rules: Mapping[str, Adaptation]) -> tuple[int, ...]:
    """Batch sizes that are expected after the running one."""
    rule = rules.get(training.mode, UNKNOWN)
    seen = progress.regimes
    regimes = expected_regimes(training, rule, len(seen))
    if regimes == len(seen):
        return ()
    return sizes_ahead(training, rule, [regime.batch_size for regime in seen], regimes)


def epochs_left(training: Training, progress: Progress) -> float:
    """Epochs still to run, never negative."""
    return max(0.0, training.epochs - progress.epochs)


def whole(progress: Progress, left: tuple[Regime, ...]) -> tuple[Regime, ...]:
    """The job's regimes from its beginning on: those completed, the running one to its expected end, those ahead."""
    *done, running = progress.regimes
    return (*done, Regime(running.batch_size, running.epochs + left[0].epochs), *left[1:])


def progress_at(regimes: Sequence[Regime], epochs: float) -> Progress:
    """What a job reports that has run so many epochs; a regime that is just complete counts as running.

    >>> progress_at((Regime(10, 4.0), Regime(20, 6.0)), 5.0)
    Progress(epochs=5.0, regimes=(Regime(batch_size=10, epochs=4.0), Regime(batch_size=20, epochs=1.0)))
    """
    seen: list[Regime] = []
    left = epochs
    for place, regime in enumerate(regimes):
        if left <= regime.epochs or place == len(regimes) - 1:
            return Progress(epochs, (*seen, Regime(regime.batch_size, left)))
        seen.append(regime)
        left -= regime.epochs
    raise ValueError("a job without regimes")
