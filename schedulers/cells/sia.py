"""SIA with locality: quotas in cells, reservations as cells given to nobody. SIA, section 5.5, Figures 7 and 8."""

from math import inf

from jobcast.domain.cells import Cell
from jobcast.domain.forecasts import Forecasts
from jobcast.domain.jobs import Job
from jobcast.domain.policy import Decision, View
from jobcast.domain.switches import ALL_SHARE, Switches
from jobcast.schedulers.cells.cell_draft import CellDraft
from jobcast.schedulers.cells.private import PrivateSchedule
from jobcast.schedulers.cells.quotas import NO_CELLS, Cells
from jobcast.schedulers.cells.shared import SharedCells
from jobcast.schedulers.cells.window import Window


class CellSia:
    """Give each job its place by its turn in its pool's private cluster; lend cells that no turn will need in time.

    A job starts on dedicated cells when its turn comes in the schedule that its pool would have without sharing, which
    is kept along (`PrivateSchedule`), or before that on spare cells, if it ends within a window for which all cells
    are reserved that pools may need. With exact coarse forecasts, and widths that are powers of two or whole servers,
    no job starts later than without sharing. A pool of which a job is slowed catches up: its jobs that started early
    are left out of its schedule from then on.

    Parameters
    ----------
    forecasts : tells arrivals, loads and duration bins; its horizons are the windows, and jobs of the bin beyond the
        last never run on spare GPUs
    tick_s : be asked again after so many seconds while jobs are pending and GPUs idle; None: at events alone
    switches : where sharing is off for a pool and window, all of the pool's cells are reserved for that window
    apart : what spare jobs keep away from, beside cells that may be needed: `buddy` of each dedicated job the buddy of
        its cell, the whole `cell` of the quota that a dedicated job runs in, or `none`
    follow : whether a pool whose jobs started early keeps to its private schedule; if not, dedicated jobs alone count
        against its quota, as in section 5.3: more jobs start early, and some are slowed although forecasts are exact
    cells : the quotas as cells; pools that are not told are split as `quotas.default_cells` does
    """

    name = "sia"

    def __init__(
        self,
        forecasts: Forecasts,
        tick_s: float | None = None,
        switches: Switches = ALL_SHARE,
        apart: str = "buddy",
        follow: bool = True,
        cells: Cells = NO_CELLS,
    ) -> None:
        self._forecasts, self._switches, self._given, self._tick_s = forecasts, switches, cells, tick_s
        self._apart, self._follow = apart, follow
        self._horizons_s = [60.0 * horizon for horizon in forecasts.horizons_min]
        self._shared: SharedCells | None = None
        self._schedules: dict[str, PrivateSchedule] = {}
        self._submitted: list[Job] = []
        self._due: dict[int, tuple[Job, tuple[Cell, ...]]] = {}

    def lane(self, job: Job) -> int:
        """The bin of its duration."""
        return self._forecasts.duration_bin(job)

    def key(self, job: Job) -> float:
        """All alike: ties go by submission. The job joins its pool's private queue."""
        self._submitted.append(job)
        return 0.0

    def decide(self, view: View) -> Decision:
        """AllocateResources, Figure 7, with cells."""
        shared = self._shared
        if shared is None:
            shared = self._shared = SharedCells(view, self._given)
            self._schedules = {name: PrivateSchedule(mine, shared.server_gpus) for name, mine in shared.own.items()}
        draft = CellDraft(view)
        self._note_ends(view, shared)
        self._note_arrivals()
        self._dedicate(draft, view, shared)
        for lane, horizon_s in enumerate(self._horizons_s):
            self._lend(draft, view, shared, lane, horizon_s)
        return draft.decision(self._wake_s(draft, view))

    def _note_ends(self, view: View, shared: SharedCells) -> None:
        for held in shared.ended(view):
            self._schedules[held.job.pool].ended(held.job, held.start_s, view.now_s)

    def _note_arrivals(self) -> None:
        for job in self._submitted:
            self._schedules[job.pool].submit(job)
        self._submitted.clear()
        if not self._follow:
            for schedule in self._schedules.values():
                schedule.forget_early()

    def _dedicate(self, draft: CellDraft, view: View, shared: SharedCells) -> None:
        """AllocateDedicatedResources; again where a pool that is behind can catch up."""
        behind = True
        while behind:
            for schedule in self._schedules.values():
                self._due.update(
                    {job.seq: (job, own) for job, own in schedule.turns(view.now_s) if self._is_pending(job, view)}
                )
            self._start_due(draft, view, shared)
            late = {job.pool for job, _ in self._due.values()}
            behind = sum(self._schedules[pool].forget_early() for pool in sorted(late)) > 0

    def _is_pending(self, job: Job, view: View) -> bool:
        return job.seq in view.active and job.seq not in view.running

    def _start_due(self, draft: CellDraft, view: View, shared: SharedCells) -> None:
        """Jobs whose turn has come, those of the pool with the smallest share first."""
        left = dict(self._due)
        while left and draft.free > 0:
            _, _, seq = min((draft.share(view.pools[job.pool]), job.pool, seq) for seq, (job, _) in left.items())
            job, own = left.pop(seq)
            if job.gpus <= draft.free and (
                shared.dedicate(draft, view.now_s, job, own) or self._squeeze_in(draft, view, shared, job)
            ):
                del self._due[seq]

    def _squeeze_in(self, draft: CellDraft, view: View, shared: SharedCells, job: Job) -> bool:
        """Start a job that spare ones keep from its place: elsewhere in its quota, beside them, or anywhere idle."""
        schedule = self._schedules[job.pool]
        for own in schedule.cluster.places(job):
            if shared.dedicate(draft, view.now_s, job, own, crowded=True):
                schedule.move(job, own)
                return True
        beside = shared.dedicate(draft, view.now_s, job, schedule.cluster.cells[job.seq], crowded=True)
        return beside or shared.dedicate_anywhere(draft, view.now_s, job)

    def _lend(self, draft: CellDraft, view: View, shared: SharedCells, lane: int, horizon_s: float) -> None:
        """AllocateSpareResources for one window, Figure 8; nothing is lent where a reservation cannot be met."""
        window = Window(horizon_s, self._future_gpus, self._apart)
        while draft.first_spare(draft.free, lane) is not None:
            due = {(job.pool, cell.server) for job, own in self._due.values() for cell in own}
            reserved = shared.floor.reserve(window.needs(draft, view, shared, self._schedules, due))
            if reserved is None:
                return
            parts = window.parts(draft, view, shared, self._schedules)
            job = draft.first_spare(max(shared.floor.room(shared.server_gpus), parts.largest), lane)
            if job is not None:
                parts.start(draft, view.now_s, shared, job)
                self._schedules[job.pool].started_early(job)
                self._due.pop(job.seq, None)
            shared.floor.clear(reserved)
            if job is None:
                return

    def _future_gpus(self, pool: str, horizon_s: float, now_s: float) -> float:
        """TotalNewLoad, section 5.4.1; without bound where sharing is switched off."""
        if not self._switches.shares(pool, horizon_s, now_s):
            return inf
        arrives = self._forecasts.will_jobs_arrive(pool, horizon_s)
        return self._forecasts.new_load(pool, horizon_s) if arrives else 0.0

    def _wake_s(self, draft: CellDraft, view: View) -> float:
        """The next turn that no event brings, or the next tick."""
        wake_s = min((schedule.next_s for schedule in self._schedules.values()), default=inf)
        if self._tick_s is not None and draft.free > 0 and draft.waiting():
            wake_s = min(wake_s, view.now_s + self._tick_s)
        return wake_s
