"""What happened, replayed: each job starts when the trace says that it did. docs/backfill.md."""

from bisect import bisect_right, insort
from math import inf, isnan
from operator import itemgetter

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
        due_s, changes = view.now_s + tolerance.EVENT_S, dict[int, Grant | None]()
        due = bisect_right(self._waiting, due_s, key=itemgetter(0))
        # Who was started stays until it is seen to run: where nodes matter there may have been no place for it.
        late = [one for one in self._waiting[:due] if one[1] in view.active and one[1] not in view.running]
        free = view.free_gpus
        for _, seq, job in late:
            if job.gpus > free:
                break
            changes[seq] = Grant(job.gpus)
            free -= job.gpus
        self._waiting = late + self._waiting[due:]
        # Who is late waits for an end, of which the policy is told.
        return Decision(changes, self._waiting[len(late)][0] if len(late) < len(self._waiting) else inf)
