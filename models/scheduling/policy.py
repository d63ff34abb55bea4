"""MlfPolicy and DevicePolicy: networks that schedule tasks, as the registry keeps them. MLFS, sections 3.4 and 4.1.

Choices that a scheduler made, one row for each thing that it could have chosen. As MLflow serves them: rows of waiting
jobs in, scores out.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.forecasts import Question
from jobcast.models.metadata import JsonModel
from jobcast.models.predictor import Frame, ServedModel


@dataclass(frozen=True, slots=True, eq=False)
class Picks:
    """Choices by one network.

    Attributes
    ----------
    rows : (n_rows, n_features) what was read of each thing to choose from, choices one after another
    begins : (n + 1,) where the rows of a choice begin
    chosen : (n,) which of a choice's rows was taken, from 0
    """

    rows: Floats
    begins: Ints
    chosen: Ints

    def __len__(self) -> int:
        return len(self.chosen)

    @property
    def sizes(self) -> Ints:
        """How many things there were to choose from, (n,)."""
        return np.diff(self.begins)

    def take(self, which: Ints) -> "Picks":
        """Some of the choices, in the order given."""
        sizes = self.sizes[which]
        begins = _begins(sizes)
        # Position of each row within its choice.
        inside = np.arange(begins[-1]) - np.repeat(begins[:-1], sizes)
        return Picks(self.rows[np.repeat(self.begins[:-1][which], sizes) + inside], begins, self.chosen[which])


def _begins(sizes: Sequence[int] | Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def picks_of(rows: Sequence[Floats], chosen: Sequence[int], features: int) -> Picks:
    """Choices from the rows of each.

    >>> picks_of([np.zeros((2, 1)), np.ones((3, 1))], [0, 2], 1).begins.tolist()
    [0, 2, 5]
    """
    sizes = [len(each) for each in rows]
    return Picks(
        np.concatenate(rows) if rows else np.empty((0, features)),
        _begins(sizes),
        np.array(chosen, dtype=np.int64),
    )


def joined(parts: Iterable[Picks], features: int) -> Picks:
    """Choices of several runs, one run after another."""
    listed = list(parts)
    sizes = np.concatenate([part.sizes for part in listed]) if listed else np.empty(0, dtype=np.int64)
    return Picks(
        np.concatenate([part.rows for part in listed]) if listed else np.empty((0, features)),
        _begins(sizes),
        np.concatenate([part.chosen for part in listed]) if listed else np.empty(0, dtype=np.int64),
    )


@dataclass(frozen=True, slots=True)
class Measured:
    """What a policy reached on workloads that it had not seen, as a change against MLF-H on the same ones.

    Attributes
    ----------
    workloads : how many were compared
    means : mean change by name, such as `mean_jct` as a share, `deadline_ratio` as a difference
    lows, highs : the ends of its confidence interval of 95 %
    """

    workloads: int
    means: Mapping[str, float]
    lows: Mapping[str, float]
    highs: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Training:
    """What a policy was trained with: reward weights, rounds, seed, servers; how well MLF-H was imitated; and the
    reward of checks on workloads kept apart, by iteration."""

    seed: int
    iterations: int
    betas: tuple[float, ...]
    servers: int
    jobs: int
    imitation: Mapping[str, float] = field(default_factory=dict)
    checks: tuple[tuple[int, float], ...] = ()


class SchedulingPolicy(JsonModel):
    """Weights of two scoring networks, what they read, and whether they were measured to be better than MLF-H.

    Attributes
    ----------
    arrays_ : weights by name, `jobs.first` to `hosts.last`
    columns_ : by head, the names of what it reads, in order
    training_ : what it was trained with
    measured_ : the comparison with MLF-H; None where there was none
    better_ : whether it was measured to be better; `mlfs` uses it only then
    trained_from_s_, trained_until_s_ : submissions of the jobs that the workloads were drawn from
    """

    name: ClassVar[str]
    answers: ClassVar[Question]
    algorithm: ClassVar[str] = "ppo"
    algorithms: ClassVar[Sequence[str]] = (algorithm,)

    def set(
        self,
        arrays: Mapping[str, Floats],
        columns: Mapping[str, tuple[str, ...]],
        training: Training,
        measured: Measured | None = None,
        better: bool = False,
        from_s: float = 0.0,
        until_s: float = 0.0,
    ) -> Self:
        """Take over what training gave; see the attributes."""
        self.arrays_ = {name: np.asarray(values, dtype=np.float64) for name, values in arrays.items()}
        self.columns_ = {head: tuple(names) for head, names in columns.items()}
        self.training_, self.measured_, self.better_ = training, measured, better
        self.trained_from_s_, self.trained_until_s_ = from_s, until_s
        return self

    def as_dict(self) -> dict[str, Any]:
        """See `JsonModel`."""
        return {
            "weights": {name: values.tolist() for name, values in self.arrays_.items()},
            "columns": {head: list(names) for head, names in self.columns_.items()},
            "training": asdict(self.training_),
            "measured": None if self.measured_ is None else asdict(self.measured_),
            "better": self.better_,
        }

    @classmethod
    def read(cls, saved: Mapping[str, Any]) -> Self:
        """See `JsonModel`."""
        training, measured = saved["training"], saved["measured"]
        return cls().set(
            {name: np.array(values) for name, values in saved["weights"].items()},
            {head: tuple(names) for head, names in saved["columns"].items()},
            Training(**(training | {name: _tuples(training.get(name, ())) for name in ("betas", "checks")})),
            None if measured is None else Measured(**measured),
            saved["better"],
            saved["trained_from_s"],
            saved["trained_until_s"],
        )


def _tuples(listed: Any) -> Any:
    """Lists, as JSON has them, as tuples."""
    return tuple(_tuples(one) for one in listed) if isinstance(listed, list | tuple) else listed


class MlfPolicy(SchedulingPolicy):
    """MLF-RL: reads deadlines, urgency and accuracy as well; reward 7.

    Its weights are corrections of MLF-H: `ranks`, `hosts` and `limits`. See `schedulers.tasks.learned_priorities`.
    """

    name: ClassVar[str] = "mlf-policy"
    algorithm: ClassVar[str] = "pgpe"
    algorithms: ClassVar[Sequence[str]] = (algorithm,)
    answers: ClassVar[Question] = Question.TASK_ORDER


class DevicePolicy(SchedulingPolicy):
    """Device RL: completion times alone, and no column that tells of accuracy, deadlines or urgency. Section 4.1."""

    name: ClassVar[str] = "device-rl"
    answers: ClassVar[Question] = Question.DEVICE_ORDER


JOBS, QUEUE = "jobs", "queue"


def scores(arrays: Mapping[str, Floats], rows: Floats, queue: int = 0) -> Floats:
    """Score of each row (n, n_features) of a job, (n,): two hidden layers with tanh, or a correction of MLF-H.

    `queue` is the column by whose length a correction's weights move.
    """
    if "ranks" in arrays:
        return np.asarray(rows @ arrays["ranks"][0] + rows[:, queue] * (rows @ arrays["ranks"][1]))
    low = np.tanh(rows @ arrays["jobs.first"] + arrays["jobs.first_bias"])
    high = np.tanh(low @ arrays["jobs.second"] + arrays["jobs.second_bias"])
    return np.asarray(high @ arrays["jobs.last"])


class ServedSchedulingPolicy(ServedModel):
    """One row a waiting job, with the columns that the policy reads of it (`columns_["jobs"]`).

    Answers `score`, and `probability`: that the policy picks the job first out of those of the table, while it learns.
    A correction's score is the power of e by which MLF-H's priority is multiplied, its probability the share of that.
    """

    outputs: Mapping[str, str] = {"score": "double", "probability": "double"}

    def __init__(self, predictor: SchedulingPolicy) -> None:
        super().__init__(predictor)
        self.inputs = dict.fromkeys(predictor.columns_[JOBS], "double")
        self.shown = {name: [0.0, 0.0] for name in self.inputs}

    def answer(self, frame: Frame, params: Mapping[str, Any]) -> Iterable[Any]:
        """See `ServedModel`."""
        queue = list(self.inputs).index(QUEUE) if QUEUE in self.inputs else 0
        found = scores(self.predictor.arrays_, frame[list(self.inputs)].to_numpy(np.float64), queue)
        # initial: an empty table has no maximum.
        weights = np.exp(found - found.max(initial=-np.inf))
        return found, weights / weights.sum()
