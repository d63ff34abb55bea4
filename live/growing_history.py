"""The past of a running cluster, which grows with what is known of it and is made anew only where that changes it."""

from collections.abc import Mapping, Sequence

from jobcast.domain.jobs import Pool
from jobcast.live.event_log import CHANGE, END, REQUEUE, START, SUBMIT, Event
from jobcast.live.recorded_jobs import ClusterRecord
from jobcast.simulator.history import Ahead, Happening, RunHistory

OF_HISTORY = frozenset({"pool", "gpus", "user", "tag"})
"""Facts of a job that its past is told by."""


class GrowingHistory:
    """A history of a record, moved from look to look; at every instant equal to one that is made from all events.

    Attributes
    ----------
    history : the last one; another object where it was made anew
    """

    def __init__(self) -> None:
        self.history: RunHistory | None = None
        self._pools: tuple[str, ...] = ()
        self._seen = 0
        self._place: dict[str, int] = {}
        self._next: dict[str, str] = {}  # by job, what may happen to it next: a start, or an end

    def at(self, record: ClusterRecord, pools: Sequence[Pool], now_s: float) -> RunHistory:
        """The past at an instant, not before the last one; seconds from the epoch."""
        names = tuple(sorted(pool.name for pool in pools))
        new = record.taken[self._seen :]
        self._seen = len(record.taken)
        ahead = None if self.history is None or names != self._pools else self._ahead(new, record, self.history.now_s)
        if self.history is None or ahead is None:
            self._pools, self.history = names, self._made(record, names)
        else:
            self.history.expect(ahead)
        self.history.advance(now_s)
        return self.history

    def _made(self, record: ClusterRecord, names: Sequence[str]) -> RunHistory:
        jobs = record.recorded()
        self._place = {job.job_id: job.seq for job in jobs.jobs}
        self._next = {name: _next(record, name) for name in self._place if not record.jobs[name].over}
        return RunHistory(names, jobs)

    def _ahead(self, new: Sequence[Event], record: ClusterRecord, after_s: float) -> list[Ahead] | None:
        """What lies ahead of the history; None where something is known now that would have changed its past."""
        result: list[Ahead] = []
        for event in new:
            if event.kind == CHANGE and not OF_HISTORY & event.facts.keys():
                continue
            if event.kind in (CHANGE, REQUEUE):
                return None
            if event.kind not in (SUBMIT, START, END):
                continue
            at_s = event.known_s if event.kind == END else event.at_s
            if at_s <= after_s or not self._due(event):
                return None
            job, run_s = record.job(event.job_id), 0.0
            if job is None:
                return None
            if event.kind == END:
                run_s = record.run_s(event.job_id)
                if run_s != run_s:  # it never ran
                    continue
            who = (True, self._place.setdefault(event.job_id, len(self._place)))
            result.append((at_s, HAPPENING[event.kind], who, job, run_s))
        return result

    def _due(self, event: Event) -> bool:
        """Whether an event is what may come next of its job."""
        name = event.job_id
        if event.kind == SUBMIT:
            self._next[name] = START
            return name not in self._place
        if event.kind == START:
            due = self._next.get(name) == START
            self._next[name] = END
            return due
        return self._next.pop(name, None) is not None


HAPPENING: Mapping[str, Happening] = {
    SUBMIT: Happening.ARRIVAL,
    START: Happening.START,
    END: Happening.END,
}


def _next(record: ClusterRecord, name: str) -> str:
    return START if record.jobs[name].start is None else END
