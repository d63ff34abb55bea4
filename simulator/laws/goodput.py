"""Jobs that scale: as fast as their goodput on the GPUs that they hold, phase by phase. Pollux (OSDI 2021)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.domain.law import GOODPUT
from jobcast.domain.policy import Grant, Policy
from jobcast.domain.training import Goodputs, Phase
from jobcast.simulator.engine import Meter, replay
from jobcast.simulator.laws.separable import Separable
from jobcast.simulator.log import RunLog
from jobcast.simulator.workload import Workload

if TYPE_CHECKING:
    from jobcast.simulator.engine import Simulation

RESTART_S = 30.0  # Pollux: time that a job stands still when its GPUs change
PATIENCE = 1_000
"""Rounds in a row in which all GPUs may idle while jobs wait."""


@dataclass(frozen=True, slots=True)
class ScalableWork:
    """A job and the truth about it.

    Attributes
    ----------
    submit_s : seconds from the epoch
    gpus : that its user asked for, what its exclusive run time counts with
    phases : its work, `until` ascending
    """

    submit_s: float
    gpus: int
    phases: tuple[Phase, ...]

    def exclusive_s(self) -> float:
        """Run time on the GPUs that it asked for, at the best batch sizes, seconds."""
        # A phase begins where the one before it ends.
        begins = (0.0, *(phase.until for phase in self.phases))
        return sum(
            (phase.until - begin) / phase.goodput[self.gpus - 1]
            for begin, phase in zip(begins[:-1], self.phases, strict=True)
        )

    def lasting(self, run_s: float) -> "ScalableWork":
        """As much work as takes so long on the GPUs that were asked for."""
        factor = run_s / self.exclusive_s()
        return replace(self, phases=tuple(replace(phase, until=phase.until * factor) for phase in self.phases))


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time in which a job ran unchanged: from, until (seconds), GPUs, batch size, work done."""

    begin_s: float
    end_s: float
    gpus: int
    batch_size: int
    work: float


class Goodput(Separable):
    """Work is samples, counted as those of the initial batch size are useful.

    Parameters
    ----------
    works : (n_jobs,) the truth, in the workload's order
    restart_s : seconds that a job stands still when its GPUs change, its first start included
    shown : (n_jobs,) works whose goodputs the policy is shown, phase by phase; None: the true ones

    Attributes
    ----------
    ran : by seq, what each job ran so far
    """

    name = GOODPUT
    patience = PATIENCE

    def __init__(
        self,
        works: Sequence[ScalableWork],
        restart_s: float = RESTART_S,
        shown: Sequence[ScalableWork] | None = None,
    ) -> None:
        self.works, self.restart_s, self.shown = works, restart_s, shown
        self.ran: dict[int, list[Stretch]] = {}
        self.phase: dict[int, int] = {}

    def arrive(self, run: "Simulation", job: Job) -> None:
        """The end of its first phase comes next."""
        self.phase[job.seq], self.ran[job.seq] = 0, []
        self.goal[job.seq] = self._phase(run, job).until

    def _phase(self, run: "Simulation", job: Job) -> Phase:
        return self.works[run.stream.row(job)].phases[self.phase[job.seq]]

    def reach(self, run: "Simulation", job: Job) -> bool:
        """Over, or at its next phase."""
        seq, works = job.seq, self.works[run.stream.row(job)]
        # Noted before the phase changes, with what is left to the goal exactly.
        self._note(run, job, done=self.goal[seq] - self.work[seq])
        self.work[seq] = self.goal[seq]
        if self.phase[seq] + 1 == len(works.phases):
            return True
        self.phase[seq] += 1
        phase = self._phase(run, job)
        self.goal[seq] = phase.until
        self.go_on(seq, run.now_s, phase.goodput[int(run.cluster.running[seq].grant.gpus) - 1])
        return False

    def stand(self, run: "Simulation", job: Job, done: float) -> None:
        """A job has done so much where the run begins, and is in the phase of that."""
        phases = self.works[run.stream.row(job)].phases
        self.phase[job.seq] = min(sum(phase.until <= done for phase in phases), len(phases) - 1)
        # Keeps the base class from reaching milestones: phases are set here.
        self.goal[job.seq] = inf
        super().stand(run, job, done)
        phase, held = self._phase(run, job), run.cluster.running.get(job.seq)
        self.goal[job.seq] = phase.until
        if held is not None:
            self.go_on(job.seq, run.now_s, phase.goodput[int(held.grant.gpus) - 1])

    def why_not(self, run: "Simulation", job: Job, grant: Grant) -> str | None:
        """A job uses whole GPUs, and no more than its goodput is known for."""
        most = len(self._phase(run, job).goodput)
        return None if grant.gpus in range(1, most + 1) else f"it can use 1 to {most} GPUs, it is given {grant.gpus:g}"

    def change(self, run: "Simulation", job: Job, old: Grant | None, new: Grant | None) -> None:
        """A change stands a job still."""
        seq = job.seq
        if old is not None:
            self._note(run, job, old)
            self.halt(seq, run.now_s)
            self.stops[seq] += 1
        if new is not None:
            self.begin(seq)
            self.go_on(seq, run.now_s, self._phase(run, job).goodput[int(new.gpus) - 1], self.restart_s)

    def _note(self, run: "Simulation", job: Job, held: Grant | None = None, done: float = 0.0) -> None:
        """Keep what a job ran since its GPUs or its phase changed."""
        seq = job.seq
        gpus = int((held or run.cluster.running[seq].grant).gpus)
        begin_s = self.since_s[seq] + self.lost_s[seq]
        # A stretch that a change cuts short before it began is none.
        if run.now_s > begin_s or done:
            done = done or min(self.done(seq, run.now_s), self.goal[seq]) - self.work[seq]
            size = self._phase(run, job).batch_size[gpus - 1]
            self.ran[seq].append(Stretch(min(begin_s, run.now_s), run.now_s, gpus, size, done))

    def facts(self, run: "Simulation", kind: type[Any]) -> Any:
        """Goodputs of the active jobs."""
        if kind is not Goodputs:
            return super().facts(run, kind)
        active = run.cluster.active.items()
        if self.shown is None:
            return Goodputs({seq: self._phase(run, job).goodput for seq, job in active})
        return Goodputs({seq: self.shown[run.stream.row(job)].phases[self.phase[seq]].goodput for seq, job in active})

    def report(self, run: "Simulation") -> Mapping[str, Any]:
        """Changes of GPUs, and run times alone on the GPUs asked for."""
        alone_s = np.array([self.works[run.stream.row(job)].exclusive_s() for job in run.jobs])
        return {**super().report(run), "duration_s": alone_s}

    def believe(self, run: "Simulation", believed_s: Callable[[Job], float]) -> None:
        """Jobs declare their work, and go on doing as well on each number of GPUs as they do in their phase."""
        # The run's own list stays as it is.
        works = list(self.works)
        for seq, job in run.cluster.active.items():
            row, now = run.stream.row(job), self.phase[seq]
            phases = works[row].phases
            self.overdue(run, seq, phases[-1].until)
            phase = replace(phases[now], until=self.goal[seq])
            works[row] = replace(works[row], phases=(*phases[:now], phase))
        self.works = works

    def fork(self) -> Self:
        """A copy that goes its own way."""
        copy = super().fork()
        copy.ran = {seq: list(ran) for seq, ran in self.ran.items()}
        copy.phase = dict(self.phase)
        return copy


def replay_goodput(
    works: Sequence[ScalableWork],
    policy: Policy,
    pool: Pool,
    restart_s: float = RESTART_S,
    progress: Callable[[int, int], None] | None = None,
    meters: Sequence[Meter] = (),
    shown: Sequence[ScalableWork] | None = None,
) -> tuple[RunLog, list[list[Stretch]]]:
    """Run jobs that scale to completion in one pool; the log, and what each job ran. Raises as `engine.replay`.

    Parameters
    ----------
    works : in order of submission
    policy : shares the GPUs out
    pool : whose GPUs they are
    restart_s : seconds that a change costs
    progress, meters : see `engine.replay`
    shown : see `Goodput`
    """
    jobs = [
        Job(seq, f"{seq:09}", pool.name, work.submit_s, min(work.gpus, pool.quota), preemptible=True)
        for seq, work in enumerate(works)
    ]
    law = Goodput(works, restart_s, shown)
    workload = Workload(jobs, [Outcome(work.exclusive_s()) for work in works], [pool])
    log = replay(workload, policy, progress=progress, law=law, meters=meters)
    asked = np.array([work.gpus for work in works], dtype=np.int64)
    return replace(log, gpus=asked), [law.ran[seq] for seq in range(len(works))]
