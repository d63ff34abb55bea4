"""HiGHS: a programme in, values and bounds out."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from jobcast.schedulers.milp.instance import Floats
from jobcast.schedulers.milp.programme import Programme

RELATIVE_GAP = 1e-6
"""Below which HiGHS calls a solution optimal."""
SEEDS = 2**31 - 1
"""Seeds that HiGHS knows."""


@dataclass(frozen=True, slots=True)
class Relaxed:
    """The linear programme's optimum: its cost, the columns' values and the rows' prices (0 or less for capacities)."""

    cost: float
    values: Floats
    prices: Floats


@dataclass(frozen=True, slots=True)
class Solved:
    """What branch and bound came to.

    Attributes
    ----------
    accepted : whether HiGHS took the schedule that it was handed: what it holds is feasible and costs no more
    values : (n_columns,) of the best solution, None where there is none
    bound : no solution of the programme costs less
    proved : whether the best solution is optimal
    """

    accepted: bool
    values: Floats | None
    bound: float
    proved: bool


def relax(programme: Programme, time_limit_s: float) -> Relaxed | None:
    """Solve the linear programme on one core; None when time is up."""
    import highspy

    solver = _solver(programme, time_limit_s, 0)
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    solution = solver.getSolution()
    cost = float(solver.getInfo().objective_function_value)
    return Relaxed(cost, np.asarray(solution.col_value), np.asarray(solution.row_dual))


def branch_and_bound(programme: Programme, incumbent: Floats, time_limit_s: float, seed: int) -> Solved:
    """Solve the programme in whole numbers on one core from an incumbent, the values of its starts (n_starts,).

    HiGHS takes a feasible one however little time it is given.
    """
    import highspy

    solver = _solver(programme, time_limit_s, seed, whole=True)
    start = highspy.HighsSolution()
    start.col_value = np.concatenate([incumbent, _alphas(programme, incumbent)]).tolist()
    solver.setSolution(start)
    solver.run()
    info = solver.getInfo()
    found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    most = float(programme.cost @ np.asarray(start.col_value))
    accepted = found and info.objective_function_value <= most + RELATIVE_GAP * max(1.0, most)
    proved = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    values = np.asarray(solver.getSolution().col_value) if found else None
    return Solved(accepted, values, float(info.mip_dual_bound), proved)


def _alphas(programme: Programme, incumbent: Floats) -> Floats:
    """The least alphas that a schedule allows, (n_segments,); none without fairness."""
    count = len(programme.cost) - programme.starts
    alphas = np.zeros(count)
    if count:
        rows = slice(len(programme.high) - len(programme.share_of), None)
        quotas = -programme.matrix[rows, programme.starts :].sum(axis=1)
        used = programme.matrix[rows, : programme.starts] @ incumbent
        np.maximum.at(alphas, programme.share_of[:, 0], used / quotas)
    return alphas


def _solver(programme: Programme, time_limit_s: float, seed: int, whole: bool = False) -> Any:
    import highspy

    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    options = {
        "output_flag": False,
        "threads": 1,
        "random_seed": seed % SEEDS,
        "mip_rel_gap": RELATIVE_GAP,
        "time_limit": max(0.0, time_limit_s),
    }
    for option, value in options.items():
        solver.setOptionValue(option, value)
    count, matrix = len(programme.cost), programme.matrix
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = count, len(programme.high)
    model.col_cost_, model.row_lower_, model.row_upper_ = programme.cost, programme.low, programme.high
    model.col_lower_ = np.zeros(count)
    model.col_upper_ = np.concatenate([np.ones(programme.starts), np.full(count - programme.starts, np.inf)])
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_, model.a_matrix_.index_ = matrix.indptr, matrix.indices
    model.a_matrix_.value_ = matrix.data
    if whole:
        binary, free = highspy.HighsVarType.kInteger, highspy.HighsVarType.kContinuous
        model.integrality_ = [binary] * programme.starts + [free] * (count - programme.starts)
    solver.passModel(model)
    return solver
