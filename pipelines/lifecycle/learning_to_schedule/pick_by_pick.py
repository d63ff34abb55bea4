"""One decision of MLF-RL built pick by pick; see `schedulers.tasks.mlf_rl` for what a pick is."""

from collections.abc import Generator, Mapping

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.rounding import rounded_all
from jobcast.domain.tasks import QUEUED, TaskView
from jobcast.pipelines.lifecycle.learning_to_schedule.courses import Choice, Picks
from jobcast.schedulers.tasks.features import (
    HOST_FEATURES,
    JOB_FEATURES,
    hold_row,
    job_rows,
    jobs_with_queued_tasks,
    plain_view,
    some_job_runs,
    told_of,
)
from jobcast.schedulers.tasks.host_selection import EVEN, Room, ideal_host
from jobcast.schedulers.tasks.learned_hosts import fitting, host_rows, settle, sheet_of
from jobcast.schedulers.tasks.mlf_rl import make_room, tasks_leaving
from jobcast.schedulers.tasks.mlfs_settings import HeuristicSettings
from jobcast.schedulers.tasks.packing import Wants, limits_of, nearness, placement, put, room_of, waiting, wants_of
from jobcast.schedulers.tasks.priorities import job_order, task_priorities

JOBS, HOSTS = "jobs", "hosts"
"""Which network picks."""
FEATURES: Mapping[str, int] = {JOBS: len(JOB_FEATURES), HOSTS: len(HOST_FEATURES)}
"""Columns by head."""
HEADS = tuple(FEATURES)
Steps = Generator[Choice, int, None]


class Picking:
    """What is taught is what MLF-H would pick.

    Parameters
    ----------
    view : the cluster
    settings : as of MLF-H
    """

    def __init__(self, view: TaskView, settings: HeuristicSettings) -> None:
        self._view, self._seen, self._settings = view, plain_view(view), settings
        self._room: Room = room_of(view)
        self._wants: Wants = wants_of(view)
        self._limits = limits_of(settings.h_r, settings.h_r)
        self._ranks: Ints | None = None
        # One sheet for all rows of hosts: a decision shows hundreds of them.
        self._sheet = sheet_of(len(self._room.least))
        self._waiting = 0

    def picks(self) -> Picks:
        """See `courses.Picks`; the decision is what was picked, and who gives way after it."""
        yield from self._choices()
        if self._waiting:
            make_room(self._view, self._room, self._wants, self._settings)
        return placement(self._view, self._room)

    def _choices(self) -> Steps:
        self._waiting = len(jobs_with_queued_tasks(self._seen))
        for task in tasks_leaving(self._view, self._settings):
            # A job that was sent back to the queue meanwhile took this task with it.
            if self._room.place[task] != QUEUED:
                yield from self._host(int(task))
        self._seen = self._seen._replace(gpu_of=self._room.place.copy())
        every = left = jobs_with_queued_tasks(self._seen)
        self._waiting = len(left)
        # With nobody running, holding back all jobs might go on for ever.
        held = hold_row(self._seen, len(left)) if some_job_runs(self._seen) else np.empty((0, len(JOB_FEATURES)))
        rows: Floats | None = None
        while len(left := fitting(self._room, self._limits, self._wants, left)):
            picked = 0
            if len(left) + len(held) > 1:
                # Made once, when first asked for: picks of this decision change none of what they tell.
                rows = job_rows(self._seen, every) if rows is None else rows
                shown = rows[np.searchsorted(every, left)]
                picked = yield Choice(JOBS, np.concatenate([shown, held]), self._first_of(left))
            if picked == len(left):
                return
            yield from self._place(int(left[picked]))
            left = np.delete(left, picked)

    def _place(self, job: int) -> Steps:
        """Hosts for all queued tasks of a job, or for none."""
        tasks = waiting(self._room, self._wants, job)
        for number, task in enumerate(tasks):
            yield from self._host(int(task))
            if self._room.place[task] == QUEUED:
                for other in tasks[:number]:
                    put(self._room, self._wants, other, QUEUED)
                return

    def _host(self, task: int) -> Steps:
        """A server for a task; none where none can take it."""
        room, wants, sheet = self._room, self._wants, self._sheet
        facts = told_of(self._seen, int(wants.job_of[task]), self._waiting)
        count = host_rows(room, self._limits, wants, task, facts, sheet.rows, sheet.servers)
        if not count:
            return
        servers, picked = sheet.servers[:count].copy(), 0
        if count > 1:
            picked = yield Choice(HOSTS, sheet.rows[:count].copy(), self._ideal(task, servers))
        settle(room, wants, task, int(servers[picked]))

    def _ideal(self, task: int, servers: Ints) -> int:
        """Which of the servers, or the queue, MLF-H would choose."""
        room, near, asked = self._room, np.empty(len(self._room.least)), self._settings
        nearness(room, self._wants, task, near)
        origin = int(room.server_of[room.place[task]]) if room.place[task] != QUEUED else -1
        best = ideal_host(room, self._limits, self._wants.use[task], near, origin, asked.bandwidth, EVEN)
        # A task moves only where it is no farther from what it talks to; else it stays, or is evicted.
        if origin >= 0 and (
            best < 0 or best == origin or (not asked.part and near[best] < near[origin] - tolerance.LOADS)
        ):
            best = QUEUED if asked.evict == "queue" else origin
        return int(np.flatnonzero(servers == best)[0])

    def _first_of(self, jobs: Ints) -> int:
        """Which of the jobs comes first for MLF-H."""
        if self._ranks is None:
            rank = rounded_all(task_priorities(self._view, self._settings))
            order = job_order(self._view, rank)
            self._ranks = np.full(len(self._view.jobs.submit_s), len(order), dtype=np.int64)
            self._ranks[order] = np.arange(len(order))
        return int(np.argmin(self._ranks[jobs]))
