"""By rounds: whoever has waited longest runs."""

from collections.abc import Sequence

from jobcast.domain.jobs import Job
from jobcast.domain.rounds import ActiveJob, RoundState
from jobcast.schedulers.packing import first_fit
from jobcast.schedulers.policies import ROUNDS, PolicySpec


class LongestWaiting:
    """Each round goes to the jobs that have held no GPUs for the longest time in all."""

    def choose(self, state: RoundState) -> Sequence[Job]:
        """The jobs of a round."""

        def rank(one: ActiveJob) -> tuple[int, int]:
            return round(one.held_s - (state.now_s - one.job.submit_s)), one.job.seq

        return first_fit((one.job for one in sorted(state.active, key=rank)), state.total_gpus)


policy = PolicySpec(
    name="longest_waiting",
    kind=ROUNDS,
    make=lambda forecasts, settings: LongestWaiting(),
    summary="whoever has waited longest",
)
