"""What a policy of rounds asks about run times; it never learns who answers."""

from typing import Protocol

from jobcast.domain.rounds import ActiveJob


class Estimates(Protocol):
    """Run times of active jobs on the GPUs that they ask for."""

    def remaining_s(self, active: ActiveJob) -> float:
        """Seconds that a job still has to run."""
        ...

    def total_s(self, active: ActiveJob) -> float:
        """Seconds that it runs in all: those run so far and those that remain."""
        ...
