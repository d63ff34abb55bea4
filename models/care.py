"""How careful the three predictors of a scheduler are, together: what fits where history is long is bold where not."""

from dataclasses import dataclass

from jobcast.models.duration_costs import UNDER_COST
from jobcast.models.job_duration import JobDuration
from jobcast.models.load_demand import LENDING_COVERAGE
from jobcast.models.new_load import NewLoad
from jobcast.models.will_jobs_arrive import WillJobsArrive

MISS_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Care:
    """One level of care.

    Attributes
    ----------
    miss_share : of the windows with arrivals that the gate may miss
    lending_coverage : of the load windows that a scheduler's reservation shall reach
    under_cost : what a duration bin too short costs, in bins too long, a GPU of the job
    """

    miss_share: float = MISS_SHARE
    lending_coverage: float = LENDING_COVERAGE
    under_cost: float = UNDER_COST

    def teach(self, arrivals: WillJobsArrive, loads: NewLoad, durations: JobDuration) -> None:
        """Make predictors that have just been fitted this careful."""
        arrivals.choose_gate(self.miss_share)
        loads.choose_lending(self.lending_coverage)
        durations.under_cost = self.under_cost


LADDER: tuple[Care, ...] = (
    Care(),
    Care(under_cost=2.0),
    Care(lending_coverage=0.7, under_cost=4.0),
    Care(lending_coverage=0.8, under_cost=8.0),
    Care(0.02, 0.9, 8.0),
    Care(0.01, 0.95, 16.0),
)
"""From the boldest to the most careful."""
