"""What happened in a replay of jobs with due dates on unlike nodes: all that figures are computed from."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from jobcast.domain.energy import HOUR_S, Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """The Gantt chart: stretches in which a job held GPUs of a node, by job, then by time; all of shape (n,).

    Attributes
    ----------
    job, node, gpus : which, where, and how many
    from_s, until_s : seconds from the epoch
    """

    job: Ints
    node: Ints
    gpus: Ints
    from_s: Floats
    until_s: Floats

    def __len__(self) -> int:
        return len(self.job)

    @property
    def gpu_s(self) -> Floats:
        """GPU-seconds held, (n,)."""
        held: Floats = self.gpus * (self.until_s - self.from_s)
        return held


def merged(segments: Segments) -> Segments:
    """The same stretches by job and time, those that follow one another on the same GPUs in one, empty ones left out.

    >>> two = Segments(*(np.array(column) for column in ([0, 0], [1, 1], [2, 2], [5.0, 0.0], [9.0, 5.0])))
    >>> one = merged(two)
    >>> one.from_s.tolist(), one.until_s.tolist()
    ([0.0], [9.0])
    """
    columns = [getattr(segments, each.name) for each in fields(segments)]
    kept = segments.until_s > segments.from_s
    job, node, gpus, from_s, until_s = (column[kept] for column in columns)
    order = np.lexsort((from_s, job))
    job, node, gpus, from_s, until_s = (column[order] for column in (job, node, gpus, from_s, until_s))
    goes_on = from_s[1:] == until_s[:-1]
    for column in (job, node, gpus):
        goes_on &= column[1:] == column[:-1]
    first, last = np.concatenate([[True], ~goes_on]), np.concatenate([~goes_on, [True]])
    if not len(job):
        first = last = np.zeros(0, dtype=np.bool_)
    return Segments(job[first], node[first], gpus[first], from_s[first], until_s[last])


@dataclass(frozen=True, slots=True, eq=False)
class EnergyLog:
    """A finished run. Arrays have shape (n_jobs,), in order of submission, unless it is said; times in seconds.

    Attributes
    ----------
    policy, job_ids : names
    submit_s, start_s, end_s : submission, first start, completion; from the epoch
    due_s, weight : as the user gave them; infinite where there is no due date; EUR an hour
    epochs : that the job ran; what was lost and done again is not among them
    run_s, gpu_s : seconds in which it held GPUs, restarts too, and GPU-seconds
    energy_kwh, energy_eur : its share, by GPUs held, of what its nodes drew (without PUE), and its cost (with PUE)
    preemptions : times that it was stopped and left waiting
    migrations : times that it was stopped and started elsewhere, or with other GPUs, at once
    lost_epochs : done after its last snapshot when it was stopped, and done again
    segments : the Gantt chart
    gpus : of the cluster
    node_energy_kwh, node_energy_eur : (n_nodes,) from the first submission to the last completion, as the engine added
        them up from event to event; where idle nodes draw power, jobs' shares add up to less
    decisions : that were asked for
    decision_s, decision_max_s : seconds of CPU that the policy took for all of them, and for the longest; differ from
        run to run
    """

    policy: str
    job_ids: Sequence[str]
    submit_s: Floats
    start_s: Floats
    end_s: Floats
    due_s: Floats
    weight: Floats
    epochs: Floats
    run_s: Floats
    gpu_s: Floats
    energy_kwh: Floats
    energy_eur: Floats
    preemptions: Ints
    migrations: Ints
    lost_epochs: Floats
    segments: Segments
    gpus: int
    node_energy_kwh: Floats
    node_energy_eur: Floats
    decisions: int
    decision_s: float
    decision_max_s: float

    def __len__(self) -> int:
        return len(self.submit_s)

    @property
    def jct_s(self) -> Floats:
        """Job completion times: end - submission, (n_jobs,) seconds."""
        return self.end_s - self.submit_s

    @property
    def tardiness_s(self) -> Floats:
        """tau_j: by how much jobs end after their due dates, (n_jobs,) seconds; 0 without a due date."""
        return np.maximum(0.0, self.end_s - self.due_s)

    @property
    def tardiness_eur(self) -> Floats:
        """omega_j tau_j: what being late costs, (n_jobs,) EUR. ANDREAS, equation 1."""
        return self.weight * (self.tardiness_s / HOUR_S)
