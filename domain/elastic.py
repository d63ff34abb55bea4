"""Elastic jobs: any number of GPUs between a least and a most, decided afresh whenever something happens.

Columns instead of objects: rules and the engine of `simulator.elastic` are compiled, and a completion time is forecast
by playing the whole cluster forward. PCS, sections 3 and 4.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jobcast.domain import tolerance
from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.policy import ANYWHERE, Cell, Decision, Grant, Trigger, View


class ElasticJobs(NamedTuple):
    """What anybody may know of elastic jobs; arrays by job, in order of submission.

    Attributes
    ----------
    submit_s : (n_jobs,) seconds from the run's beginning, ascending
    size_s : (n_jobs,) work as declared, seconds on one GPU
    least, most : (n_jobs,) GPUs; with fewer than `least` a job waits, beyond `most` it gains nothing
    model : (n_jobs,) row of `speedup` and `speed`
    stage_of : (n_jobs + 1,) stages of job j are stage_of[j] .. stage_of[j + 1] - 1
    stage_end : (n_stages,) share of the job's work done at a stage's end, the job's last one 1
    stage_most : (n_stages,) the most GPUs that it uses in that stage (trials alive, for successive halving)
    speedup : (n_models, 2, most + 1) speed over one GPU by locality (0: on the fewest nodes, 1: spread) and GPUs
    speed : (n_models, n_types) speed of one GPU by type, over the first type
    """

    submit_s: Floats
    size_s: Floats
    least: Floats
    most: Floats
    model: Ints
    stage_of: Ints
    stage_end: Floats
    stage_most: Floats
    speedup: NDArray[np.float64]
    speed: NDArray[np.float64]


class ElasticView(NamedTuple):
    """The cluster when a rule is asked; arrays by job, of which only those of active jobs are to be read.

    Attributes
    ----------
    now_s : seconds from the run's beginning
    capacity : (n_types,) GPUs by type
    active : ids of jobs submitted and not finished, in order of submission; the first `count` hold
    count : how many are active
    jobs : what is known of them
    left_s : (n_jobs,) work left as declared, seconds on one GPU, more than 0
    most : (n_jobs,) the most GPUs that each can use now, in its stage
    held_gpu_s : (n_jobs,) GPU-seconds that each has held so far
    contention : (n_jobs,) mean number of active jobs over the events since each was submitted
    """

    now_s: float
    capacity: Floats
    active: Ints
    count: int  # type: ignore[assignment]
    jobs: ElasticJobs
    left_s: Floats
    most: Floats
    held_gpu_s: Floats
    contention: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Promises:
    """What a rule can promise.

    Attributes
    ----------
    worst_case : compiled, worst_case(view, numbers, position, preempt_s, spread, told_s): fills told_s, seconds from
        now to the latest completion of an active job whatever arrives later; other than 0 where there is none
    reasons : why there is none, by what `worst_case` returns
    joined : numbers under which jobs submitted from an instant on go by other numbers, and those before keep theirs:
        joined(numbers, from_s, later)
    """

    worst_case: Any
    reasons: tuple[str, ...]
    joined: Callable[[Floats, float, Floats], Floats]


class Preference(NamedTuple):
    """Numbers that a policy is to go by from an instant on, seconds from the epoch. PCS, section 3.2."""

    from_s: float
    numbers: Floats


@dataclass(frozen=True, slots=True, eq=False)
class ElasticPolicy:
    """A compiled rule that shares all GPUs among the active jobs at every event.

    Attributes
    ----------
    name : its paper's
    rule : compiled with `elastic_kernels.RULE`: rule(view, numbers, gpus) fills gpus (n_jobs, n_types) of active jobs,
        which are all 0 when it is called
    numbers : its settings as the rule reads them
    lease_s : it is asked again when so long nothing happened, 0: never
    integral : whether jobs hold whole GPUs only
    preemptive : whether jobs that come later can delay those that are there
    promises : what it can promise; None: nothing
    later : changes of its numbers, in order of time; runs of elastic jobs alone carry them out
    keep : whether jobs that are there at a change keep the numbers that they were promised; else they change, too
    """

    name: str
    rule: Any
    numbers: Floats
    lease_s: float = 0.0
    integral: bool = True
    preemptive: bool = True
    promises: Promises | None = None
    later: tuple[Preference, ...] = ()
    keep: bool = True

    def __deepcopy__(self, memo: dict[int, object]) -> "ElasticPolicy":
        """Itself, since it keeps nothing: to copy compiled code is to write it out and read it in."""
        return self

    @property
    def trigger(self) -> Trigger:
        """Asked at every single event, and after a lease."""
        return Trigger(each_event=True, lease_s=self.lease_s or inf)

    def decide(self, view: View) -> Decision:
        """Who holds something else from now on."""
        seen = view.facts(ElasticView)
        # Rules only ever add: they count on zeros.
        gpus = np.zeros((len(seen.left_s), len(seen.capacity)))
        self.rule(seen, self.numbers, gpus)
        # Dust that solvers of shares leave is nothing, as in the compiled twin, whoever counts it.
        gpus[abs(gpus) < tolerance.GPUS] = 0.0
        return Decision({seq: granted(gpus[seq]) for seq in view.active if _differs(view, seq, gpus[seq])})


def granted(gpus: Floats) -> Grant | None:
    """What a job holds of each type, (n_types,) GPUs; None where that is nothing.

    >>> granted(np.array([0.0, 2.0]))
    Grant(gpus=2.0, cells=(Cell(server=1, first=-1, gpus=2.0),), dedicated=True)
    """
    parts = [(kind, part) for kind, part in enumerate(gpus.tolist()) if part >= tolerance.GPUS]
    # Types of GPUs stand in for servers in the worlds of elastic jobs.
    cells = tuple(Cell(kind, ANYWHERE, part) for kind, part in parts)  # of shares a fraction
    return Grant(float(gpus.sum()), cells) if cells else None


def _differs(view: View, seq: int, gpus: Floats) -> bool:
    """Whether a job would hold more or fewer GPUs of any type than it does."""
    held = np.zeros(len(gpus))
    run = view.running.get(seq)
    # A job that waits has no entry: it holds nothing of any type.
    for cell in run.cells if run is not None else ():
        held[cell.server] = cell.gpus
    return bool((abs(held - gpus) > tolerance.GPUS).any())
