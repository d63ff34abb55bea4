"""Jobs that run for so many epochs on nodes of unlike GPUs, and go on from their last snapshot. ANDREAS, section 3."""

from array import array
from collections.abc import Callable, Sequence
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from jobcast.domain import tolerance
from jobcast.domain.arrays import Floats
from jobcast.domain.elastic import ElasticJobs, ElasticView
from jobcast.domain.energy import EnergyCluster, EpochsDone, EpochTimes
from jobcast.domain.errors import ConfigError
from jobcast.domain.jobs import Job
from jobcast.domain.law import EPOCHS
from jobcast.domain.policy import Grant, Service
from jobcast.domain.training import Goodputs
from jobcast.simulator.cluster import Placer, Starts
from jobcast.simulator.elastic.state import OVERDUE_S
from jobcast.simulator.laws.run_time import Regimed
from jobcast.simulator.laws.separable import Contention, column

if TYPE_CHECKING:
    from jobcast.simulator.engine import Simulation

Columns = TypeVar("Columns", bound=NamedTuple)
SHOWN = ("work", "rate", "since_s", "lost_s", "base", "starts")
"""Columns of which policies are told."""
PATIENCE = 1_000
"""Decisions in a row in which no job gets further than it ever was, while none is to come: three days of periods."""
PATIENT_SNAPSHOTS = 10.0
"""Where jobs run all the same, it must before that take so many times as long as from a start to a snapshot."""


class Epochs(Regimed):
    """Work is epochs. A job gets on by the time of one on all GPUs that it holds, of one or several nodes of a kind.

    On more GPUs than any time is known for it is as fast as on the most that one is.

    Parameters
    ----------
    times : in truth, by row of the workload, for any number of GPUs; infinite where a job cannot run
    cluster : its nodes are the workload's servers; kind 0 has the reference type
    known_s : seconds an epoch as policies know them, the true ones by default
    snapshot_epochs : whole epochs between two snapshots; what was done after the last one a stop or a move loses. None:
        jobs save what they did whenever they are stopped
    restart_s : seconds that a job holds its GPUs without getting on whenever it starts but for the first time
    """

    name = EPOCHS
    patience = PATIENCE

    def __init__(
        self,
        times: EpochTimes,
        cluster: EnergyCluster,
        known_s: Floats | None = None,
        snapshot_epochs: int | None = 1,
        restart_s: float = 0.0,
    ) -> None:
        if snapshot_epochs is not None and (snapshot_epochs < 1 or snapshot_epochs != int(snapshot_epochs)):
            raise ConfigError(f"snapshot_epochs is {snapshot_epochs:g}; it must be a whole number, at least 1")
        if not 0.0 <= restart_s < np.inf:
            raise ConfigError(f"restart_s is {restart_s:g}; it must be at least 0 s")
        self.every, self.restart_s, self.true = float(snapshot_epochs or 0.0), restart_s, times
        # Policies are given these very arrays.
        self.known = _read_only(times if known_s is None else times._replace(epoch_s=known_s))
        self.cluster = _read_only(cluster._replace(tariff=_read_only(cluster.tariff)))

    def bind(self, run: "Simulation") -> None:
        """Make room for a run's jobs. Raises ConfigError and TraceError for what cannot be run."""
        super().bind(run)
        self.cluster.check()
        self.true.check(run.workload.jobs, self.known.epoch_s, self.cluster)
        count, epochs, epoch_s = len(run.workload.jobs), self.true.epochs, self.true.epoch_s
        self.unit_s, self.lost, self.furthest, self.base = (column(count) for _ in range(4))
        # Replaces the lists of the base class.
        for name in SHOWN:  # at every decision: arrays are copied in one go
            setattr(self, name, array("q" if name == "starts" else "d", getattr(self, name)))
        self.contention = Contention(count)
        self._elastic: ElasticJobs | None = None
        self.nodes: dict[int, NDArray[np.int64]] = {}
        self.on_s = -inf
        self.flat_s = _flat(epoch_s)
        self.placer = Placer(self.cluster.kind_of, self.cluster.reference)
        # The longest way from one snapshot to the next: patience must cover it.
        longest_s = np.where(np.isfinite(epoch_s), epoch_s, 0.0).max(axis=(1, 2)) * np.minimum(epochs, self.every)
        self.patience_s = PATIENT_SNAPSHOTS * (float(longest_s.max()) + self.restart_s)

    def epoch_s(self, run: "Simulation", job: Job, gpus: float) -> Floats:
        """(n_kinds,) true seconds an epoch on so many GPUs."""
        return self.flat_s[run.stream.row(job), :, max(1, min(int(gpus), self.flat_s.shape[2])) - 1]

    def arrive(self, run: "Simulation", job: Job) -> None:
        """Its epochs are before it."""
        seq, epochs = job.seq, float(self.true.epochs[run.stream.row(job)])
        unit_s = float(self.epoch_s(run, job, job.gpus)[0])
        self.unit_s[seq] = unit_s if isfinite(unit_s) else run.stream.outcomes[seq].duration_s / epochs
        self.aim(run, job, epochs, self.unit_s[seq])
        self.contention.arrive(run, seq)
        self.on_s = run.now_s

    def count(self, run: "Simulation") -> None:
        """An event."""
        self.contention.count(run)

    def why_not(self, run: "Simulation", job: Job, grant: Grant) -> str | None:
        """A job runs on whole GPUs of nodes of one kind, where an epoch ends."""
        nodes = [cell.server for cell in grant.cells if 0 <= cell.server < len(self.cluster.kind_of)]
        kinds = {int(self.cluster.kind_of[node]) for node in nodes}
        # In this order: later checks index by whole GPUs of known nodes.
        if grant.gpus % 1:
            return f"it runs on whole GPUs, it is given {grant.gpus:g}"
        if len(kinds) > 1:
            return f"nodes {', '.join(map(str, nodes))} are not of one kind"
        if kinds and not isfinite(self.epoch_s(run, job, grant.gpus)[kinds.pop()]):
            return f"it cannot run on {grant.gpus:g} GPUs of node {nodes[0]}"
        return None

    def place(self, run: "Simulation", starts: Starts) -> Starts:
        """Starts that name no nodes are given some; what does not fit is left out."""
        # Policies that place jobs themselves skip the placer.
        if all(grant.cells for _, grant in starts):
            return starts

        def able(job: Job, gpus: float) -> NDArray[np.bool_]:
            return np.isfinite(self.epoch_s(run, job, gpus))

        return self.placer.complete(starts, np.array(run.cluster.free_on), able, self.nodes)

    def change(self, run: "Simulation", job: Job, old: Grant | None, new: Grant | None) -> None:
        """A stop or a move goes back to the last snapshot; a start costs its time, but for the first."""
        seq, now_s = job.seq, run.now_s
        self.contention.change(run, seq, old)
        if old is not None:
            done = self.done(seq, now_s)
            # Read before the job is halted, which wipes its rate.
            saved = float(self.saved(done, self.rate[seq], self.base[seq]))
            self.halt(seq, now_s)
            self.work[seq] = self.base[seq] = saved
            self.lost[seq] += done - saved
            counted = self.stops if new is None else self.moves
            counted[seq] += 1
        if new is not None:
            # The first start is free: there is no snapshot to load.
            lost_s = self.restart_s if self.starts[seq] else 0.0
            self.begin(seq)
            self.nodes[seq] = np.array([cell.server for cell in new.cells])
            kind = self.cluster.kind_of[new.cells[0].server]
            self.go_on(seq, now_s, 1.0 / float(self.epoch_s(run, job, new.gpus)[kind]), lost_s)

    def saved(self, done: Any, rate: Any, base: Any) -> Any:
        """Epochs at the last snapshot, or those it started from, `base`, if these are more: numbers or columns."""
        # Without snapshots all is kept.
        if not self.every:
            return done
        # Times are known to a fraction of tolerance.EVENT_S: an epoch missed by less than that is over.
        reached = np.floor((done + tolerance.EVENT_S * rate) / self.every) * self.every
        return np.minimum(done, np.maximum(reached, base))

    def leave(self, run: "Simulation", job: Job, held: Grant | None) -> None:
        """A job is over."""
        super().leave(run, job, held)
        self.nodes.pop(job.seq, None)
        self.contention.leave(run, job.seq, held)
        self.on_s = run.now_s

    def got_on(self, run: "Simulation") -> bool:
        """Whether a job is further than it ever was; until that has taken very long, whether any runs."""
        for seq in run.cluster.running:
            # Compared with the furthest ever: going back to snapshots again and again is no progress.
            done = self.done(seq, run.now_s)
            if done > self.furthest[seq] + tolerance.EPOCHS:
                self.furthest[seq], self.on_s = done, run.now_s
        return len(run.cluster.running) > 0 and run.now_s - self.on_s <= self.patience_s

    def service(self, run: "Simulation", job: Job) -> Service:
        """What an active job has received by now."""
        result = super().service(run, job)
        saved = float(self.saved(result.done, self.rate[job.seq], self.base[job.seq]))
        return result._replace(run_s=result.done * self.unit_s[job.seq], saved=saved)

    def facts(self, run: "Simulation", kind: type[Any]) -> Any:
        """`EpochTimes` as policies know them, `EpochsDone` and `Goodputs`, by seq, the `EnergyCluster`, `ElasticView`.

        Goodput is the speedup that elastic rules see: batch sizes are the job's own here, and all epochs worth as much.
        """
        if kind is EnergyCluster:
            return self.cluster
        if kind is ElasticView and not run.workload.closed:
            return self._as_elastic(run)
        if kind is Goodputs and not run.workload.closed:
            jobs, table = run.cluster.active, self._as_elastic(run).jobs.speedup
            return Goodputs({seq: tuple(table[seq, 0, 1 : job.gpus + 1].tolist()) for seq, job in jobs.items()})
        if kind is EpochsDone:
            work, rate, since_s, lost_s, base, starts = (np.array(getattr(self, name)) for name in SHOWN)
            done = work + rate * np.maximum(0.0, run.now_s - since_s - lost_s)
            return EpochsDone(done, self.saved(done, rate, base), starts.astype(np.float64))
        if kind is not EpochTimes:
            return super().facts(run, kind)
        # In an open loop seq is the row of the tables.
        if not run.workload.closed:
            return self.known
        rows = [run.stream.row(job) for job in run.jobs]
        known = {name: one[rows] for name, one in self.known._asdict().items() if one is not None}
        return EpochTimes(**known)

    def _as_elastic(self, run: "Simulation") -> ElasticView:
        if self._elastic is None:
            self._elastic = elastic_jobs(run.jobs, self.known, self.cluster.reference)
        jobs, active = self._elastic, np.fromiter(run.cluster.active, dtype=np.int64)
        left_s, contention, gpu_s = np.zeros((3, len(jobs.size_s)))
        for seq in active.tolist():
            # Beyond its declared epochs a little is left, for rules divide by it.
            left = 1.0 - self.done(seq, run.now_s) / self.known.epochs[seq]
            left_s[seq] = max(left * jobs.size_s[seq], 0.0) or OVERDUE_S
            contention[seq], gpu_s[seq] = self.contention.of(seq), self.contention.gpu_s(run, seq)
        now_s, capacity = run.now_s - run.origin_s, np.array([float(run.cluster.total_gpus)])
        return ElasticView(now_s, capacity, active, len(active), jobs, left_s, jobs.most, gpu_s, contention)

    def report(self, run: "Simulation") -> dict[str, Any]:
        """Stops, moves, what they lost, and what counts against lateness."""
        count = len(run.jobs)
        columns = {
            "due_s": np.array([job.due_s for job in run.jobs]),
            "weight": np.array([job.weight for job in run.jobs], dtype=np.float64),
            "migrations": np.array(self.moves[:count], dtype=np.float64),
            "lost_epochs": np.array(self.lost[:count]),
        }
        return {**super().report(run), "columns": columns}

    def believe(self, run: "Simulation", believed_s: Callable[[Job], float]) -> None:
        """Epochs take as long as they are believed to; jobs run as many as they declare, at the batch sizes of now."""
        self.true, self.flat_s = self.known, _flat(self.known.epoch_s)
        for seq in self.regimes:
            self.end_at(run, seq, float(self.true.epochs[run.stream.row(run.jobs[seq])]))
        for seq, held in run.cluster.running.items():
            job, kind = held.job, self.cluster.kind_of[held.cells[0].server]
            # What is still to be waited of a restart.
            lost_s = max(0.0, self.since_s[seq] + self.lost_s[seq] - run.now_s)
            self.work[seq] = self.done(seq, run.now_s)
            self.go_on(seq, run.now_s, 1.0 / float(self.epoch_s(run, job, held.grant.gpus)[kind]), lost_s)

    def fork(self) -> Self:
        """A copy that goes its own way."""
        copy = super().fork()
        for name in ("unit_s", "lost", "furthest", "base"):
            setattr(copy, name, getattr(self, name)[:])
        copy.nodes, copy.contention = dict(self.nodes), self.contention.fork()
        return copy


def _flat(epoch_s: Floats) -> Floats:
    """Times by number of GPUs; beyond the most of which one is known, that one.

    >>> _flat(np.array([[[np.inf, 5.0, np.inf]]])).tolist()
    [[[inf, 5.0, 5.0]]]
    """
    most = epoch_s.shape[2]
    widest = most - 1 - np.isfinite(epoch_s)[:, :, ::-1].argmax(axis=2)[:, :, None]
    return np.take_along_axis(epoch_s, np.minimum(np.arange(most), widest), axis=2)


def elastic_jobs(jobs: Sequence[Job], times: EpochTimes, reference: NDArray[np.bool_]) -> ElasticJobs:
    """Jobs of epochs as elastic rules see them: speedups from the times of an epoch on GPUs of the reference type.

    One that cannot shrink has none below its width, and is told to have no least: the rule may grant a part, which
    gets it nowhere. Beyond what a job asks for it is no faster. Where no time on one GPU is known, its fewest are held
    to be as many times as fast as that.
    """
    here, gpus = np.arange(len(jobs)), np.array([job.gpus for job in jobs])
    times = times._replace(epoch_s=_flat(times.epoch_s))
    least = np.array([job.min_gpus for job in jobs], dtype=np.float64)
    of_type = np.where(reference[:, None], times.epoch_s, np.inf).min(axis=1)
    epoch_s = np.where(np.isfinite(of_type).any(axis=1)[:, None], of_type, times.epoch_s.min(axis=1))
    counts = np.arange(1, epoch_s.shape[1] + 1)
    fewest_of = np.minimum(np.where(least > 0.0, least, gpus), len(counts))  # no time is known on more
    able = np.isfinite(epoch_s) & (counts >= fewest_of[:, None])
    fewest = able.argmax(axis=1)
    one_s = np.where(np.isfinite(epoch_s[:, 0]), epoch_s[:, 0], epoch_s[here, fewest] * (fewest + 1))
    up = np.maximum.accumulate(np.where(able, one_s[:, None] / epoch_s, 0.0), axis=1)
    up = np.minimum(up, up[here, np.minimum(gpus, len(counts)) - 1, None])
    table = np.zeros((len(jobs), 2, len(counts) + 1))
    table[:, :, 1:] = up[:, None]
    return ElasticJobs(
        submit_s=np.array([job.submit_s - jobs[0].submit_s for job in jobs]),
        size_s=times.epochs * one_s,
        least=least,
        most=gpus.astype(np.float64),
        model=here,
        stage_of=np.arange(len(jobs) + 1),
        stage_end=np.ones(len(jobs)),
        stage_most=gpus.astype(np.float64),
        speedup=table,
        speed=np.ones((len(jobs), 1)),
    )


def _read_only(columns: Columns) -> Columns:
    """The same columns, over the same memory; arrays refuse to be written to."""
    shown = {name: one.view() for name, one in columns._asdict().items() if isinstance(one, np.ndarray)}
    for one in shown.values():
        one.flags.writeable = False
    return columns._replace(**shown)
