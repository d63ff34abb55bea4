"""Which batch size follows which, by mode of adaptation, and how many regimes a job may run through.

Shockwave, section 5: the rules of adaptation have deterministic transitions, only the durations are random.

Rules that forecast regimes without learning: restatement, a standard Bayesian estimate, the batch size of now.

What forecasts of regimes need of a job.

The restatement rule. Shockwave, section 5.

The standard Bayesian update, which takes epochs for independent draws. Shockwave, section 5.

The greedy rule: the present batch size to the end, as reactive schedulers believe. Shockwave, section 5.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from jobcast.domain.errors import RegistryError
from jobcast.domain.jobs import Job
from jobcast.domain.training import Progress, Regime, Training

ACCORDION_REGIMES = 2
"""Accordion knows two sizes; how often it goes back is not known before."""
GNS_FACTOR = 2


class Adaptation(Protocol):
    """A rule by which a batch size changes; users may bring their own."""

    def most_regimes(self, training: Training) -> int:
        """How many regimes a job may run through where its user declares nothing, at least 1."""

    def following(self, training: Training, sizes: Sequence[int]) -> int | None:
        """The batch size after those run so far (at least one, the last one running); None where nothing follows."""


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
        # The other of its two sizes is the last one that was not the present.
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


ADAPTATIONS: Mapping[str, Adaptation] = {"static": Static(), "accordion": Accordion(), "gns": Gns()}
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
        # The rule ends before as many regimes as were asked for.
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


def training_of(job: Job) -> Training:
    """What the job trains; RegistryError for one that trains nothing."""
    if job.training is None:
        raise RegistryError(f"job {job.job_id}: is no training job, it has no regimes; give the trace's throughputs")
    return job.training


class Rule:
    """Says what is left of a training job by a rule.

    Parameters
    ----------
    rules : adaptation by mode
    """

    def __init__(self, rules: Mapping[str, Adaptation] = ADAPTATIONS) -> None:
        self.rules = rules

    def regimes(self, job: Job, progress: Progress) -> tuple[Regime, ...]:
        """What is left; see `domain.forecasts.RegimeForecasts`."""
        return self.left(training_of(job), progress)

    def left(self, training: Training, progress: Progress) -> tuple[Regime, ...]:
        """What is left of a job, the rest of the running regime first."""
        raise NotImplementedError

    def trajectory(self, training: Training, progress: Progress) -> tuple[Regime, ...]:
        """All regimes from the beginning on, completed ones as observed."""
        return whole(progress, self.left(training, progress))


class Restatement(Rule):
    """Completed regimes as observed; the running one and those ahead split the rest of the epochs evenly.

    After k - 1 completed regimes of m_1, ..., m_{k-1} epochs the posterior is Dir(m_1, ..., m_{k-1}, S, ..., S) with
    S = (N - m_1 - ... - m_{k-1}) / (K - k + 1), and its mean the forecast. The running regime is at least as long as
    observed; what it takes beyond S, those ahead lose evenly.
    """

    def left(self, training: Training, progress: Progress) -> tuple[Regime, ...]:
        """What is left of a job, the rest of the running regime first.

        >>> job = Training("LM", 10, 40, "gns", {10: 60.0, 20: 40.0})
        >>> Restatement().left(job, Progress(4.0, (Regime(10, 4.0),)))
        (Regime(batch_size=10, epochs=16.0), Regime(batch_size=20, epochs=20.0))
        """
        ahead = ahead_of(training, progress, self.rules)
        left, now = epochs_left(training, progress), progress.regimes[-1]
        # The running regime's epochs belong to what is split.
        share = (left + now.epochs) / (len(ahead) + 1)
        rest = max(0.0, share - now.epochs) if ahead else left
        each = (left - rest) / max(1, len(ahead))
        return (Regime(now.batch_size, rest), *(Regime(size, each) for size in ahead))


class StandardBayes(Rule):
    """Dirichlet counts: the prior Dir(N/K, ..., N/K) and one for each observed epoch.

    The posterior's mean of regime i is (N/K + m_i) / (N + epochs done) of the epochs, also where the regime is
    completed and was of another length: the weakness that the restatement rule mends.
    """

    def left(self, training: Training, progress: Progress) -> tuple[Regime, ...]:
        """What is left of a job, the rest of the running regime first.

        The mean of the running regime less what it has run, never below nothing, and the means of those ahead, scaled
        so that they fill the epochs left.
        """
        ahead = ahead_of(training, progress, self.rules)
        left, now = epochs_left(training, progress), progress.regimes[-1]
        even = training.epochs / (len(progress.regimes) + len(ahead))
        scale = training.epochs / (training.epochs + progress.epochs)
        rest = max(0.0, scale * (even + now.epochs) - now.epochs) if ahead else left
        total = rest + len(ahead) * scale * even
        # Posterior means do not add up to what is left; scaled so that they do.
        fill = left / total if total > 0 else 0.0
        return (Regime(now.batch_size, rest * fill), *(Regime(size, scale * even * fill) for size in ahead))

    def trajectory(self, training: Training, progress: Progress) -> tuple[Regime, ...]:
        """All regimes from the beginning on: the mean of the posterior, completed regimes too."""
        ahead = ahead_of(training, progress, self.rules)
        even = training.epochs / (len(progress.regimes) + len(ahead))
        scale = training.epochs / (training.epochs + progress.epochs)
        seen = (Regime(regime.batch_size, scale * (even + regime.epochs)) for regime in progress.regimes)
        return (*seen, *(Regime(size, scale * even) for size in ahead))


class Greedy(Rule):
    """Nothing ever changes from now on."""

    def left(self, training: Training, progress: Progress) -> tuple[Regime, ...]:
        """What is left: all of it at the present batch size."""
        return (Regime(progress.batch_size, epochs_left(training, progress)),)
