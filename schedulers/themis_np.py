"""Themis without leases: idle GPUs go to the jobs that are treated worst, and stay theirs. SIA, section 6.1."""

from heapq import heappop, heappush
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.forecasts import Forecasts
from jobcast.domain.jobs import Job
from jobcast.domain.policy import NOTHING, Decision, View
from jobcast.domain.rounding import rounded_all
from jobcast.schedulers.packing import most_valuable
from jobcast.schedulers.tentative_allocation import Placed

# Share of the jobs that idle GPUs are offered to: 1 - f with the fairness knob f = 0.8 of Themis (NSDI 2020).
FILTER = 0.2
COLUMNS = [("seq", np.int64), ("gpus", np.int64), ("submit_s", np.float64), ("duration_s", np.float64)]
# Pending jobs that there is room for at first; it doubles when they are more.
FIRST_ROOM = 1024


class ThemisNp(Placed):
    """Auction off the idle GPUs of all pools among the pending jobs of the worst finish-time fairness.

    Themis (NSDI 2020) as SIA compares with it, Themis*: what has started runs to its end, and run times are known. Who
    waits holds nothing, so that a pending job's fairness is rho = (now - submission + run time) / run time: its
    completion time if it started now, over that on GPUs of its own. At each event:

    1. The idle GPUs are offered to the share `filter` of the pending jobs with the largest rho, at least to one; equal
       ones go by submission.
    2. Among those the winners maximise the product of valuations, 1 / rho, over the sets that fit: Themis's partial
       allocation. Not to win delays a completion until GPUs are auctioned again, at the next completion of a running
       job (where none runs, after the shortest run time that is pending), so that a job's gain is
       log((completion + delay) / completion). The best set is a knapsack, solved exactly.
    3. What they leave goes to all others, largest rho first, to any that fit.

    Hidden payments and leases are left out: nobody bids untruly here, and nothing started is taken back.

    Parameters
    ----------
    forecasts : tells run times
    filter : share of the pending jobs that idle GPUs are offered to
    """

    name = "themis_np"

    def __init__(self, forecasts: Forecasts, filter: float = FILTER) -> None:
        self._forecasts = forecasts
        self._filter = filter
        self._pending = _Pending()
        self._chosen: list[int] = []  # places of the last winners
        self._ends: list[tuple[float, int]] = []  # heap of (forecast end, seq) of jobs that were started

    def key(self, job: Job) -> float:
        """All alike; the job is noted down with its run time."""
        self._pending.add(job, self._forecasts.duration_s(job))
        return 0.0

    def decide(self, view: View) -> Decision:
        """One auction of all that idles."""
        draft, pending = self.placer.draft(view), self._pending
        self._forget_started(view)
        if not draft.free:
            return NOTHING
        self._chosen = chosen = self._auction(view, int(draft.free))
        for seq, duration_s in zip(
            pending["seq"][chosen].tolist(), pending["duration_s"][chosen].tolist(), strict=True
        ):
            if draft.start(view.active[seq]):
                heappush(self._ends, (view.now_s + duration_s, seq))
        return draft.decision()

    def _forget_started(self, view: View) -> None:
        """Drop those who won the last auction, but for who found no place for all its GPUs."""
        pending, places = self._pending, np.array(self._chosen, dtype=np.int64)
        # Where a run begins amid things some hold GPUs that won no auction.
        if len(pending) - len(places) > len(view.active) - len(view.running):
            places = np.arange(len(pending))
        started = [seq in view.running or seq not in view.active for seq in pending["seq"][places].tolist()]
        pending.remove(places[started].tolist())
        self._chosen = []

    def _auction(self, view: View, free: int) -> list[int]:
        """Places of the jobs to start, winners first."""
        pending = self._pending
        gpus, completion_s = pending["gpus"], view.now_s - pending["submit_s"] + pending["duration_s"]
        # All fit: nobody has to be chosen.
        if gpus.sum() <= free:
            return list(range(len(pending)))
        rho = rounded_all(completion_s / pending["duration_s"])
        # Those too wide for what idles drop out after the filter: the offer was made to them.
        offered = _largest(rho, ceil(self._filter * len(pending)))
        chosen = self._winners(offered[gpus[offered] <= free], completion_s, self._delay_s(view), free)
        free -= int(gpus[chosen].sum())
        others = gpus <= free
        # The rest, offered or not, compete for the leftovers alike.
        others[chosen] = False
        return chosen + _first_fit(np.flatnonzero(others), rho, gpus, free)

    def _winners(self, offered: Ints, completion_s: Floats, delay_s: float, free: int) -> list[int]:
        """The offered places of the greatest gain that fit together."""
        gains = rounded_all(np.log1p(delay_s / completion_s[offered]))
        widths = self._pending["gpus"][offered]
        if widths.sum() > free:
            useful = _useful(gains, widths, free)
            won = most_valuable(gains[useful].tolist(), widths[useful].tolist(), free)
            offered = offered[useful[won]]
        winners: list[int] = offered.tolist()
        return winners

    def _delay_s(self, view: View) -> float:
        """Seconds until GPUs are auctioned again; a job that has outrun its forecast may end at any moment or never."""
        ends = self._ends
        # A job past its forecast may end at any moment: it says nothing of when.
        while ends and (ends[0][0] <= view.now_s or ends[0][1] not in view.running):
            heappop(ends)
        return ends[0][0] - view.now_s if ends else float(self._pending["duration_s"].min())


class _Pending:
    """Pending jobs as rows of `COLUMNS`, in order of submission."""

    def __init__(self) -> None:
        self._room, self._count = np.empty(FIRST_ROOM, dtype=COLUMNS), 0

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, column: str) -> NDArray[Any]:
        return self._room[column][: self._count]

    def add(self, job: Job, duration_s: float) -> None:
        if self._count == len(self._room):
            self._room = np.resize(self._room, 2 * self._count)
        self._room[self._count] = (job.seq, job.gpus, job.submit_s, duration_s)
        self._count += 1

    def remove(self, places: list[int]) -> None:
        left = np.delete(self._room[: self._count], places)
        self._count = len(left)
        self._room[: self._count] = left


def _largest(values: Floats, count: int) -> Ints:
    """Places of the `count` largest, largest first; the first of equal ones."""
    # A partition, not a sort: the filter keeps a fifth of thousands.
    least = np.partition(values, len(values) - count)[len(values) - count]
    above = np.flatnonzero(values > least)
    equal = np.flatnonzero(values == least)[: count - len(above)]
    chosen = np.sort(np.concatenate([above, equal]))
    return chosen[np.argsort(-values[chosen], kind="stable")]


def _useful(values: Floats, widths: Ints, free: int) -> Ints:
    """Places, ascending, that a knapsack need look at: of each width the most valuable ones, no more than fit."""
    kept = []
    for width in np.unique(widths).tolist():
        places = np.flatnonzero(widths == width)
        kept.append(places[np.argsort(-values[places], kind="stable")[: free // width]])
    return np.sort(np.concatenate(kept))


def _first_fit(places: Ints, ranks: Floats, widths: Ints, free: int) -> list[int]:
    """Places to take, largest rank first, the first of equal ones; those are left out that do not fit."""
    left = places[np.argsort(-ranks[places], kind="stable")]
    taken: list[int] = []
    while len(left):
        used = np.cumsum(widths[left])
        fitting = int(np.searchsorted(used, free, side="right"))
        if fitting:
            taken += left[:fitting].tolist()
            free -= int(used[fitting - 1])
        # The one that did not fit is passed over, and all that are wider than what is left.
        left = left[fitting + 1 :]
        left = left[widths[left] <= free]
    return taken
