"""The state of a run of elastic jobs: all that a copy needs in order to be played forward from here."""

from typing import NamedTuple

import numpy as np

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.elastic import ElasticJobs

ROOM = 4
"""Changes a job and place that there is room for at first."""
OVERDUE_S = 1e-3
"""Work left that is assumed of a job that runs on beyond its declared size, seconds on one GPU: it may end any time."""


class Clock(NamedTuple):
    """Positions in `State.clock`, seconds where nothing else is said."""

    now: int
    lease_at: int
    seen: int  # sum over events of the number of active jobs before each


class Count(NamedTuple):
    """Positions in `State.count`."""

    arrived: int
    active: int
    events: int
    culprit: int  # job behind a status other than DONE
    changes: int  # rows of State.changes that hold


CLOCK = Clock(*range(len(Clock._fields)))
COUNT = Count(*range(len(Count._fields)))


class State(NamedTuple):
    """Arrays by job, of which only those of jobs that arrived hold anything.

    Attributes
    ----------
    clock : (3,) see `Clock`
    count : (5,) see `Count`
    active : (n_jobs,) ids of active jobs in order of submission, the first count[active] hold
    done_s : (n_jobs,) work done, seconds on one GPU
    stage : (n_jobs,) the stage that each is in, an index of `ElasticJobs.stage_end`
    most : (n_jobs,) GPUs that each can use in its stage
    gpus : (n_jobs, n_types) held now
    rate : (n_jobs,) work done a second, until the end
    stalled_until_s : (n_jobs,) no progress before this instant
    start_s, end_s : (n_jobs,) first GPUs and completion, NaN before
    gpu_s : (n_jobs,) GPU-seconds held
    preemptions : (n_jobs,) times that GPUs were taken away from a job that had not finished
    seen_first : (n_jobs,) active jobs at submission, itself included
    seen_before, events_before : (n_jobs,) clock[seen] and count[events] right after its submission
    contention : (n_jobs,) mean of active jobs over events since submission; up to the end for finished jobs
    on_node : (n_jobs, n_nodes) GPUs held by node, no column without nodes
    locality : (n_jobs,) 1 where a job lies on more nodes than it needs
    changes : (n_rows, 4) whenever a job held another number of GPUs: instant, job, place, GPUs from then on; places are
        nodes, or the only one where jobs are not placed. No row where changes are not recorded, so never in forecasts
    recorded : (n_jobs, n_places) GPUs as `changes` has them, no column where it has no row
    """

    clock: Floats
    count: Ints  # type: ignore[assignment]
    active: Ints
    done_s: Floats
    stage: Ints
    most: Floats
    gpus: Floats
    rate: Floats
    stalled_until_s: Floats
    start_s: Floats
    end_s: Floats
    gpu_s: Floats
    preemptions: Ints
    seen_first: Floats
    seen_before: Floats
    events_before: Ints
    contention: Floats
    on_node: Floats
    locality: Ints
    changes: Floats
    recorded: Floats


STATE_INTS = ("count", "active", "stage", "preemptions", "events_before", "locality")
SQUARES = ("gpus", "on_node", "changes", "recorded")
"""Columns of the state that hold whole numbers, and those that are tables; all others are rows of floats."""


class World(NamedTuple):
    """What a run plays out in, and does not change; all but the rule, which compiled code takes apart.

    Attributes
    ----------
    numbers, lease_s : see `ElasticPolicy`
    jobs : what is known of them, all that the rule sees
    size_s : (n_jobs,) the work that they really are, seconds on one GPU
    capacity : (n_types,) GPUs
    preempt_s : seconds without progress after a change of a started job's GPUs
    node_type, node_gpus : (n_nodes,), both empty where jobs are not placed
    left_s : (n_jobs,) room for the rule's view
    """

    numbers: Floats
    lease_s: float
    jobs: ElasticJobs
    size_s: Floats
    capacity: Floats
    preempt_s: float
    node_type: Ints
    node_gpus: Floats
    left_s: Floats


def empty_state(jobs: ElasticJobs, types: int, nodes: int, *, record: bool = False) -> State:
    """An empty cluster at second 0, before the first of `jobs` is submitted; with `types` of GPUs on `nodes`.

    `record` : whether changes of what jobs hold are
    """
    n = len(jobs.submit_s)
    # Without nodes all GPUs are one place.
    places = max(nodes, 1) if record else 0
    columns = {name: np.zeros(n) for name in State._fields}
    columns |= {
        "clock": np.where(np.arange(len(CLOCK)) == CLOCK.lease_at, np.inf, 0.0),  # no lease runs yet
        "gpus": np.zeros((n, types)),
        "stalled_until_s": np.full(n, -np.inf),
        "start_s": np.full(n, np.nan),
        "end_s": np.full(n, np.nan),
        "on_node": np.zeros((n, nodes)),
        "changes": np.zeros((ROOM * n * places, 4)),
        "recorded": np.zeros((n, places)),
    }
    ints = {name: np.zeros(len(COUNT) if name == "count" else n, dtype=np.int64) for name in STATE_INTS}
    return State(**{**columns, **ints})  # type: ignore[arg-type]


def with_room(state: State) -> State:
    """The same state with twice the room for changes, and for an event at least that changes what all jobs hold."""
    more = max(len(state.changes), state.recorded.size)
    return state._replace(changes=np.concatenate([state.changes, np.zeros((more, state.changes.shape[1]))]))
