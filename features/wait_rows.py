"""Pending jobs at instants, and how long they went on waiting as far as was known: what waits are learnt from."""

from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Bools, Floats, Ints
from jobcast.features.queue_state import GROUPS, LEAST_S, Queue, queue_columns, queue_rows
from jobcast.traces.table import Trace

MOST_ROWS, MOST_INSTANTS = 150_000, 500
"""Of a whole trace: its grid of instants is no finer, so that a training takes minutes."""
FINEST_S = 300.0
ACCOUNT = GROUPS.index("account")


@dataclass(frozen=True, slots=True, eq=False)
class WaitRows:
    """Rows, (n,) each, by instant.

    A job that is asked about at several instants has a row each; of a table of snapshots it has one.

    Attributes
    ----------
    X : (n, F) float32, see `queue_state.queue_columns`
    job : row of the trace
    at_s, start_s : the instant, and when the job started, infinite where it never did; seconds from the epoch
    account : number of its account's group
    weight : one over the root of how many rows its account has at the instant: jobs of one script wait together
    """

    X: NDArray[np.float32]
    job: Ints
    at_s: Floats
    start_s: Floats
    account: Ints
    weight: Floats

    @classmethod
    def of(cls, trace: Trace, from_s: float, until_s: float) -> Self:
        """Rows at the instants of [from_s, until_s); see `instants`."""
        queue = Queue.of(trace)
        parts = [_at(queue, at_s, trace.is_snapshots) for at_s in instants(queue, trace.is_snapshots, from_s, until_s)]
        if not parts:
            none, nobody = np.empty(0), np.empty(0, np.int64)
            return cls(np.empty((0, len(queue_columns())), np.float32), nobody, none, none, nobody, none)
        return cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def __len__(self) -> int:
        return len(self.job)

    def among(self, mask: Bools | Ints) -> Self:
        """Some of the rows."""
        return replace(self, **{one.name: getattr(self, one.name)[mask] for one in fields(self)})

    def between(self, from_s: float, until_s: float) -> Self:
        """Rows of the instants of [from_s, until_s)."""
        return self.among((self.at_s >= from_s) & (self.at_s < until_s))

    def started(self, known_s: float) -> Bools:
        """(n,) whether the start was known at an instant."""
        return self.start_s <= known_s

    def log_wait(self, known_s: float = np.inf) -> Floats:
        """(n,) log10 of the seconds from the instant to the start, or of those until then where it had not started."""
        wait_s: Floats = np.minimum(self.start_s, known_s) - self.at_s
        return np.log10(np.maximum(wait_s, LEAST_S))


def instants(queue: Queue, snapshots: bool, from_s: float, until_s: float) -> Floats:
    """When is asked: at the snapshots, else on a grid; ascending.

    The grid is of the jobs that were known by `until_s` and no finer than `MOST_ROWS`, `MOST_INSTANTS`, `FINEST_S`.
    """
    if snapshots:
        return np.unique(queue.seen_s[(queue.seen_s >= from_s) & (queue.seen_s < until_s)])
    waited_s = np.clip(queue.start_s, None, until_s) - np.clip(queue.submit_s, from_s, until_s)
    step_s = max(FINEST_S, (until_s - from_s) / MOST_INSTANTS, float(np.maximum(waited_s, 0.0).sum()) / MOST_ROWS)
    return np.arange(np.ceil(from_s / step_s) * step_s, until_s, step_s)


def _at(queue: Queue, at_s: float, snapshots: bool) -> tuple[NDArray[Any], ...]:
    """Columns of `WaitRows` at an instant."""
    asked = queue.pending(at_s)
    # What its snapshot tells of a job's place holds then alone.
    if snapshots:
        asked = asked[queue.seen_s[asked] == at_s]
    account = queue.groups[asked, ACCOUNT]
    _, place, count = np.unique(account, return_inverse=True, return_counts=True)
    when = np.full(len(asked), at_s)
    return queue_rows(queue, at_s, asked), asked, when, queue.start_s[asked], account, 1.0 / np.sqrt(count[place])
