"""Jobs that run for so many seconds on the GPUs that they asked for, training jobs through regimes of batch sizes.

SIA, section 4; Shockwave, section 5.
"""

from typing import TYPE_CHECKING

from jobcast.domain.jobs import Job
from jobcast.domain.law import RUNTIME
from jobcast.domain.policy import Grant
from jobcast.simulator.laws.regimes import Regimed

if TYPE_CHECKING:
    from jobcast.simulator.engine import Simulation


class RunTime(Regimed):
    """Work is seconds of run time.

    Parameters
    ----------
    restart_s : seconds that a job loses at every start, for loading its model and data
    resume_s : seconds more that it loses at a start after it was stopped
    """

    name = RUNTIME

    def __init__(self, restart_s: float = 0.0, resume_s: float = 0.0) -> None:
        self.restart_s, self.resume_s = restart_s, resume_s

    def arrive(self, run: "Simulation", job: Job) -> None:
        """Its run time, or its first change of batch size, comes next."""
        self.aim(run, job, run.stream.outcomes[job.seq].duration_s)

    def why_not(self, run: "Simulation", job: Job, grant: Grant) -> str | None:
        """A job runs on as many GPUs as it asked for, no more and no fewer."""
        return None if grant.gpus == job.gpus else f"it needs {job.gpus} GPUs, it is given {grant.gpus:g}"

    def change(self, run: "Simulation", job: Job, old: Grant | None, new: Grant | None) -> None:
        """A start costs its time; work done is kept."""
        seq, now_s = job.seq, run.now_s
        if old is not None:
            self.halt(seq, now_s)
            self.stops[seq] += 1
        if new is not None:
            self.begin(seq)
            lost_s = self.restart_s + self.resume_s if self.stops[seq] else self.restart_s
            self.go_on(seq, now_s, 1.0, lost_s)
