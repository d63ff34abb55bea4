"""The oracle as a policy: everything is planned at the first decision, and carried out. SIA, section 4.1."""

from collections.abc import Mapping
from math import inf
from typing import Any

from jobcast.domain.errors import ConfigError
from jobcast.domain.forecasts import Forecasts
from jobcast.domain.jobs import Job, Pool
from jobcast.domain.policy import Decision, Grant, View
from jobcast.schedulers.milp.solve import Plan, Settings, plan


class Milp:
    """Start each job when the plan says. A job counts as dedicated where it fits its pool's unused quota.

    Parameters
    ----------
    forecasts : tells all jobs of the run and their run times: `domain.forecasts.JobForecasts`, which only the oracle is
    settings : of `pool_policies.MilpSettings`; all submissions and run times must lie on the grid of `grid_s` seconds

    Raises
    ------
    ConfigError
        The forecasts do not know every job, here; a job does not lie on the grid, at the first decision.
    """

    name = "milp"

    def __init__(self, forecasts: Forecasts, **settings: Any) -> None:
        jobs = getattr(forecasts, "jobs", None)
        if jobs is None:
            raise ConfigError("policy milp needs every single job's future; pass --forecasts oracle")
        self._jobs: tuple[Job, ...] = tuple(jobs)
        self._forecasts = forecasts
        self._settings = Settings(**settings)
        self._plan: Plan | None = None
        self._due_s: list[float] = []
        self._order: list[int] = []
        self._next = 0

    def decide(self, view: View) -> Decision:
        """Start what is due, and be woken for the next."""
        if self._plan is None:
            self._make_plan(view)
        starts: dict[int, Grant] = {}
        dedicated = {pool.name: pool.dedicated for pool in view.pools.values()}
        free = view.free_gpus
        while self._next < len(self._order):
            job = self._jobs[self._order[self._next]]
            if self._due_s[job.seq] > view.now_s or job.gpus > free:  # no room: an end is late by a float's dust
                break
            # Counted along: several jobs of a pool may start in one decision.
            own = job.gpus <= view.pools[job.pool].quota - dedicated[job.pool]
            dedicated[job.pool] += job.gpus if own else 0
            free -= job.gpus
            starts[job.seq] = Grant(job.gpus, (), own)
            self._next += 1
        if self._next == len(self._order):
            return Decision(starts)
        due_s = self._due_s[self._order[self._next]]
        # Due but without room: an end of this very instant will ask again.
        return Decision(starts, due_s if due_s > view.now_s else inf)

    def figures(self) -> Mapping[str, float]:
        """Size, seconds and bound of the programme, and what its incumbents were; empty before the first decision."""
        if self._plan is None:
            return {}
        return {
            "milp_gap": self._plan.gap,
            "milp_wait_s": self._plan.total_wait_s,
            "milp_objective_s": self._plan.objective_s,
            "milp_bound_s": self._plan.bound_s,
            "milp_incumbent_s": self._plan.incumbent_s,
            "milp_solve_s": self._plan.solve_s,
            "milp_variables": float(self._plan.variables),
            "milp_rows": float(self._plan.rows),
        }

    def _make_plan(self, view: View) -> None:
        pools = [Pool(pool.name, pool.quota) for pool in view.pools.values()]
        durations_s = [self._forecasts.duration_s(job) for job in self._jobs]
        self._plan = plan(self._jobs, durations_s, pools, self._settings)
        self._due_s = [max(start_s, job.submit_s) for start_s, job in zip(self._plan.start_s, self._jobs, strict=True)]
        self._order = sorted(range(len(self._jobs)), key=lambda seq: (self._due_s[seq], seq))
