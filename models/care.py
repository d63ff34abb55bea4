"""How careful the three predictors of a scheduler are, together: what fits where history is long is bold where not."""

from collections.abc import Mapping
from dataclasses import dataclass

from jobcast.models.duration_booster import UNDER_COST
from jobcast.models.load_data import LENDING_COVERAGE

MISS_SHARE = 0.05
RESPECTS: Mapping[str, str] = {
    "will-jobs-arrive": "miss_share",
    "new-load": "lending_coverage",
    "job-duration": "under_cost",
}
"""Predictor -> the respect in which it is careful."""


@dataclass(frozen=True, slots=True)
class Care:
    """One level of care.

    Attributes
    ----------
    miss_share : of the windows with arrivals that the gate may miss
    lending_coverage : of the load windows that a scheduler's reservation shall reach
    under_cost : what an hour of overstaying on all lenders' GPUs costs, in duration bins too long
    """

    miss_share: float = MISS_SHARE
    lending_coverage: float = LENDING_COVERAGE
    under_cost: float = UNDER_COST

    def of(self, predictor: str) -> float:
        """How careful a predictor is.

        >>> Care(under_cost=2.0).of("job-duration")
        2.0
        """
        value: float = getattr(self, RESPECTS[predictor])
        return value

    def covers(self, other: "Care") -> bool:
        """Whether it is at least as careful as another in every respect.

        >>> Care(0.01, 0.9, 200.0).covers(Care()), Care(0.01, 0.9, 40.0).covers(Care())
        (True, False)
        """
        return (
            self.miss_share <= other.miss_share
            and self.lending_coverage >= other.lending_coverage
            and self.under_cost >= other.under_cost
        )


LADDER: tuple[Care, ...] = (
    Care(under_cost=10.0),
    Care(under_cost=30.0),
    Care(under_cost=100.0),
    Care(under_cost=400.0),
    Care(0.03, 0.75, 200.0),
    Care(0.01, 0.9, 100.0),
    Care(under_cost=800.0),
    Care(0.03, 0.75, 400.0),
    Care(0.01, 0.95, 100.0),
    Care(0.01, 0.9, 400.0),
    Care(under_cost=1600.0),
    Care(0.03, 0.75, 1600.0),
    Care(under_cost=6400.0),
)
"""What is tried, the boldest first. Errors of few pools do not even out: both reservations and bins must be more
careful there, the less the more of either."""
