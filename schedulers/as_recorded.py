"""What happened, replayed: each job starts when the trace says that it did. docs/backfill.md."""

from bisect import insort
from math import inf, isnan

from jobcast.domain import tolerance
from jobcast.domain.forecasts import JobForecasts
from jobcast.domain.jobs import Job
from jobcast.domain.policy import Decision, Grant, View


class AsRecorded:
    """Start jobs at their recorded starts; one that has none at its submission.

    Quotas do not bind, for they did not bind the trace. Where not even the cluster has room, a job starts as soon as
    there is some, those with earlier starts first.

    Parameters
    ----------
    forecasts : tells recorded starts
    """

    name = "as_recorded"

    def __init__(self, forecasts: JobForecasts) -> None:
        self._forecasts = forecasts
        self._waiting: list[tuple[float, int, Job]] = []

    def key(self, job: Job) -> float:
        """Note a submission."""
        start_s = self._forecasts.recorded_start_s(job)
        insort(self._waiting, (job.submit_s if isnan(start_s) else start_s, job.seq, job))
        return 0.0

    def decide(self, view: View) -> Decision:
        """Those whose time has come, and when the next one's comes."""
        changes: dict[int, Grant | None] = {}
        free, waiting, due = view.free_gpus, self._waiting, 0
        while due < len(waiting) and waiting[due][0] <= view.now_s + tolerance.EVENT_S and waiting[due][2].gpus <= free:
            job = waiting[due][2]
            changes[job.seq] = Grant(job.gpus)
            free -= job.gpus
            due += 1
        self._waiting = waiting[due:]
        next_s = self._waiting[0][0] if self._waiting else inf
        # Who is late waits for an end, of which the policy is told.
        return Decision(changes, next_s if next_s > view.now_s + tolerance.EVENT_S else inf)
