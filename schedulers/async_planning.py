"""Planning beside the round that runs: a policy of rounds whose answers come one round later.

Shockwave, section 7, lets its solver work while jobs run: a round begins by a plan that was made in the one before.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from jobcast.domain.jobs import Job
from jobcast.domain.rounds import ActiveJob, RoundPolicy, RoundState
from jobcast.schedulers.packing import first_fit
from jobcast.schedulers.rounds import figures_of

# Share of its epochs that a job is expected to have done, at most, while nobody has seen it end.
UNFINISHED = 1.0 - 1e-9

Fill = Callable[[RoundState], Sequence[Job]]


class OneRoundLate:
    """Runs in each round what was chosen from the state at the beginning of the round before.

    The policy is shown that state as it is expected to be a round later (`expected`): who runs is settled by then, and
    without their progress a plan would take all that runs for a round more urgent than it is. Jobs that finish
    meanwhile leave; jobs that arrive wait for the next plan, unless they fill GPUs that stay free. Where a plan has
    nobody left to run, at first and after idle times, the policy is asked at once, and its answer serves the next
    round too.

    Parameters
    ----------
    policy : chooses the jobs; asked once a round
    fill : chooses among the jobs that a plan leaves out, on the GPUs that it leaves free, from the present state; it
        must take an instant and leave nothing behind. None leaves those GPUs idle
    """

    def __init__(self, policy: RoundPolicy, fill: Fill | None = None) -> None:
        self._policy, self._fill = policy, fill
        self._planned: Sequence[Job] = ()

    def choose(self, state: RoundState) -> Sequence[Job]:
        """The jobs planned in the round before that are still there, and beside them whoever fills what is free."""
        here = {one.job.seq for one in state.active}
        chosen = first_fit((job for job in self._planned if job.seq in here), state.total_gpus)
        # At first, and after idle times, no plan is there: the one round is planned as if it took no time.
        if not chosen:
            chosen = list(self._policy.choose(state))
            self._planned = chosen
            return chosen
        chosen += self._filling(state, chosen)
        later = expected(state, chosen)
        # Policies divide by GPUs and jobs, and are not asked where there is neither.
        self._planned = self._policy.choose(later) if later.active and later.total_gpus > 0 else ()
        return chosen

    def figures(self) -> dict[str, float]:
        """What the policy says of its own work."""
        return figures_of(self._policy)

    def _filling(self, state: RoundState, chosen: Sequence[Job]) -> Sequence[Job]:
        taken = {job.seq for job in chosen}
        left = [one for one in state.active if one.job.seq not in taken]
        free_gpus = state.total_gpus - sum(job.gpus for job in chosen)
        if self._fill is None or not left or free_gpus <= 0:
            return ()
        return self._fill(replace(state, active=left, total_gpus=free_gpus))


def expected(state: RoundState, chosen: Sequence[Job]) -> RoundState:
    """The state a round later if these jobs run and nothing happens: no arrival, no end, no other batch size.

    Jobs that may not be stopped are left out once they run, and so are their GPUs.
    """
    runs = {job.seq: job.gpus for job in chosen}
    kept = {job.seq: job.gpus for job in chosen if not job.preemptible}
    active = [
        _advanced(one, state, runs[one.job.seq]) if one.job.seq in runs else replace(one, running=False, gpus=0)
        for one in state.active
        if one.job.seq not in kept
    ]
    return replace(
        state,
        now_s=state.now_s + state.round_s,
        index=state.index + 1,
        total_gpus=state.total_gpus - sum(kept.values()),
        active=active,
    )


def _advanced(one: ActiveJob, state: RoundState, gpus: int) -> ActiveJob:
    # Who starts, or goes on with other GPUs, pays the restart out of the round, as the law will charge it.
    run_s = state.round_s if one.holds == gpus else max(0.0, state.round_s - state.restart_s)
    run_s *= one.speeds.get(gpus, 1.0)
    training, progress = one.job.training, one.progress
    if training is not None and progress is not None:
        epoch_s, last = training.epoch_s[progress.batch_size], progress.regimes[-1]
        # Nobody has seen it end: a forecast of a job past its end would have no regime left.
        epochs = min(run_s / epoch_s, max(0.0, training.epochs * UNFINISHED - progress.epochs))
        run_s = epochs * epoch_s
        now = replace(last, epochs=last.epochs + epochs)
        progress = replace(progress, epochs=progress.epochs + epochs, regimes=(*progress.regimes[:-1], now))
    held_s, run_s = one.held_s + state.round_s, one.run_s + run_s
    return replace(one, held_s=held_s, run_s=run_s, running=True, progress=progress, gpus=gpus)
