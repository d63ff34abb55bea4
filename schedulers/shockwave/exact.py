"""Equation 11 as a mixed-integer programme, improved and bounded by HiGHS from an incumbent."""

from typing import Any

import numpy as np

from jobcast.domain.arrays import Bools, Floats, Ints
from jobcast.domain.rounding import ERROR, rounded_all
from jobcast.schedulers.highs import model_of, solver_of
from jobcast.schedulers.shockwave.programme import Programme

# Starts beyond the fewest possible that are told apart; more are charged as so many, so that the bound holds.
PIECES = 3


def improve(
    programme: Programme, incumbent: Bools, gap: float, nodes: int, time_limit_s: float
) -> tuple[Bools, float] | None:
    """A timetable (n, rounds), and what none exceeds, by branch and bound from an incumbent to a relative gap.

    Columns: x, a job runs in a round (binary); s, it starts there; y, it runs so many rounds in so many pieces (one of
    them a job); H, the makespan. Utility and time left belong to a y, so that equation 7 is exact, concave or not.
    Rows: capacity of each round; s_t >= x_t - x_(t-1); sum x, at most sum s, as y says; H at least the mean load and
    each job's time left. None where HiGHS found no timetable.
    """
    import highspy

    columns = _Columns(programme)
    options = {"mip_rel_gap": gap, "mip_max_nodes": nodes, "time_limit": time_limit_s}
    solver = solver_of(options)
    if solver.passModel(_model(programme, columns)) == highspy.HighsStatus.kError:
        return None  # numbers beyond what it reckons with; running it all the same would end the process
    start = highspy.HighsSolution()
    start.col_value = columns.values_of(incumbent).tolist()
    solver.setSolution(start)
    solver.run()
    info = solver.getInfo()
    if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return None
    cells = programme.jobs * programme.rounds
    found = np.rint(solver.getSolution().col_value[:cells]).reshape(programme.jobs, programme.rounds)
    # Coefficients were rounded: the bound holds for the exact ones with this much added.
    rounding = ERROR * float(np.abs(columns.welfare).max(axis=1).sum())
    return found.astype(np.bool_), rounding - float(info.mip_dual_bound)


class _Columns:
    """Where columns lie, and what each y stands for."""

    def __init__(self, programme: Programme) -> None:
        rounds = programme.rounds
        extra = min(PIECES, (rounds + 1) // 2)
        self._programme = programme
        self.cells = programme.jobs * rounds
        self.options = (rounds + 1) * (extra + 1)
        self.first_y = 2 * self.cells
        self.last = self.first_y + programme.jobs * self.options
        self.counts: Ints = np.repeat(np.arange(rounds + 1), extra + 1)
        more = np.tile(np.arange(extra + 1), rounds + 1)
        # Nobody has more pieces than rounds.
        self.starts: Ints = np.minimum(more[None, :] + ~programme.running[:, None], self.counts[None, :])
        self.extra = extra
        # The last option stands for any number of further pieces.
        self.allowed: Ints = np.where(more[None, :] == extra, self.counts[None, :], self.starts)
        counts = np.broadcast_to(self.counts, self.starts.shape)
        self.welfare: Floats = rounded_all(programme.welfare_of(counts, self.starts))
        self.left_s: Floats = programme.held_left_s(counts, self.starts)

    def values_of(self, runs: Bools) -> Floats:
        """All columns for a timetable."""
        programme = self._programme
        values = np.zeros(self.last + 1)
        before = np.column_stack([programme.running, runs[:, :-1]])
        values[: self.cells] = runs.ravel()
        values[self.cells : 2 * self.cells] = (runs & ~before).ravel()
        counts, starts = runs.sum(axis=1), programme.starts(runs)
        # The first start of who did not run before is not counted; who never runs has none.
        more = np.clip(starts - ~programme.running, 0, self.extra)
        option = counts * (self.extra + 1) + more
        values[self.first_y + np.arange(programme.jobs) * self.options + option] = 1.0
        values[-1] = programme.makespan_s(programme.held_left_s(counts, starts))
        return values


def _rows(programme: Programme, columns: _Columns) -> tuple[Any, Floats, Floats]:
    """The matrix by columns, and the least and the greatest value of each row."""
    from scipy.sparse import bmat, csc_array, csr_array, diags_array, eye_array, kron

    jobs, rounds, gpus = programme.jobs, programme.rounds, float(programme.gpus)
    widths = programme.widths.astype(np.float64)
    each = kron(eye_array(jobs), np.ones((1, rounds)))
    step = kron(eye_array(jobs), diags_array([1.0, -1.0], offsets=[0, -1], shape=(rounds, rounds)))
    one = kron(eye_array(jobs), np.ones((1, columns.options)))
    counted = kron(eye_array(jobs), columns.counts[None, :])
    started = _by_job(columns.allowed.astype(np.float64))
    left = _by_job(columns.left_s)
    load = csr_array(programme.loads[None, :]) @ left
    rows = bmat(
        [
            [kron(widths[None, :], eye_array(rounds)), None, None, None],
            [step, -eye_array(columns.cells), None, None],
            [None, None, one, None],
            [each, None, -counted, None],
            [None, each, -started, None],
            [None, None, -left, csr_array(np.ones((jobs, 1)))],
            [None, None, -load, csr_array(np.ones((1, 1)))],
        ],
        format="csc",
    )
    ran_before = np.zeros((jobs, rounds))
    ran_before[:, 0] = programme.running
    open_below = np.full(rounds + columns.cells, -np.inf)
    low = np.concatenate([open_below, np.ones(jobs), np.zeros(jobs), np.full(jobs, -np.inf), np.zeros(jobs + 1)])
    once = np.concatenate([np.ones(jobs), np.zeros(2 * jobs)])
    high = np.concatenate([np.full(rounds, gpus), ran_before.ravel(), once, np.full(jobs + 1, np.inf)])
    return csc_array(rows), low, high


def _model(programme: Programme, columns: _Columns) -> Any:
    rows, low, high = _rows(programme, columns)
    cost = np.zeros(columns.last + 1)
    cost[columns.first_y : -1] = -columns.welfare.ravel()
    cost[-1] = programme.makespan_price
    # Starts and the makespan follow from the rest, so that only x and y need be whole.
    whole = np.ones_like(cost, dtype=np.bool_)
    whole[columns.cells : columns.first_y] = whole[-1] = False
    return model_of(cost, rows, low, high, np.concatenate([np.ones(columns.last), [np.inf]]), whole)


def _by_job(options: Floats) -> Any:
    """(n, n x options) with each job's options in its own columns."""
    from scipy.sparse import csr_array

    jobs, count = options.shape
    starts = count * np.arange(jobs + 1)
    return csr_array((options.ravel(), np.arange(jobs * count), starts), (jobs, jobs * count))
