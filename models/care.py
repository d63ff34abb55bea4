"""How careful the three predictors of a scheduler are, together: what fits where history is long is bold where not."""

from dataclasses import dataclass

from jobcast.models.duration_booster import UNDER_COST
from jobcast.models.load_data import LENDING_COVERAGE

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

    def covers(self, other: "Care") -> bool:
        """Whether it is at least as careful as another in every respect.

        >>> Care(0.01, 0.9, 2.0).covers(Care()), Care(0.01, 0.9, 0.5).covers(Care())
        (True, False)
        """
        return (
            self.miss_share <= other.miss_share
            and self.lending_coverage >= other.lending_coverage
            and self.under_cost >= other.under_cost
        )


LADDER: tuple[Care, ...] = (
    Care(),
    Care(under_cost=1.5),
    Care(under_cost=2.0),
    Care(0.03, 0.75, 1.5),
    Care(0.01, 0.9, 1.0),
    Care(under_cost=3.0),
    Care(0.03, 0.75, 2.0),
    Care(0.01, 0.95, 1.0),
    Care(0.01, 0.9, 2.0),
    Care(under_cost=4.0),
    Care(0.03, 0.75, 4.0),
    Care(under_cost=8.0),
)
"""What is tried, the boldest, which is the default, first. On a small cluster one GPU lent too long is a large share of
a pool, and errors of few pools do not even out: both reservations and bins must be more careful there, the less the
more of either."""
