"""What happened in a replay of jobs of tasks: all that figures are computed from."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from jobcast.domain.tasks import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class TaskLog:
    """A finished run. Arrays have shape (n_jobs,), in order of submission; times in seconds from the epoch.

    Attributes
    ----------
    policy, job_ids : names
    submit_s, start_s, end_s : submission, first time that all tasks were on GPUs (NaN: never), completion
    deadline_s, urgency, target : as the user gave them; infinite and NaN where there is no deadline or target
    iterations, done : that the job would run, and that it ran
    waited_s, ran_s : seconds in which none of its tasks were on a GPU, and in which all were
    gpu_s : GPU-seconds used, a GPU never by more than it has
    accuracy, deadline_accuracy : at the end of the latest epoch finished by its end, and by its deadline where that
        comes before; before the first epoch that before training
    edge_mb, moved_mb : MB sent between servers by iterations, and by tasks that moved
    migrations, preemptions : tasks moved from GPU to GPU, times that the job was stopped
    gpus : of the cluster
    overloads : servers with an overloaded resource after a decision, summed over decisions
    decisions : that were asked for
    decision_s : seconds of CPU that the policy took for them; differs from run to run
    """

    policy: str
    job_ids: Sequence[str]
    submit_s: Floats
    start_s: Floats
    end_s: Floats
    deadline_s: Floats
    urgency: Floats
    target: Floats
    iterations: Floats
    done: Floats
    waited_s: Floats
    ran_s: Floats
    gpu_s: Floats
    accuracy: Floats
    deadline_accuracy: Floats
    edge_mb: Floats
    moved_mb: Floats
    migrations: Ints
    preemptions: Ints
    gpus: int
    overloads: int
    decisions: int
    decision_s: float

    def __len__(self) -> int:
        return len(self.submit_s)

    @property
    def jct_s(self) -> Floats:
        """Job completion times: end - submission, (n_jobs,) seconds."""
        return self.end_s - self.submit_s

    def after(self, from_s: float) -> "TaskLog":
        """Of the jobs submitted at or after an instant alone; what counts the whole run stays."""
        kept = self.submit_s >= from_s
        arrays = {
            one.name: getattr(self, one.name)[kept]
            for one in fields(self)
            if isinstance(getattr(self, one.name), np.ndarray)
        }
        return replace(self, job_ids=[name for name, stays in zip(self.job_ids, kept, strict=True) if stays], **arrays)
