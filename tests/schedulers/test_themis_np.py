from itertools import combinations
from math import ceil, log1p

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.jobs import Job, Pool
from jobcast.domain.policy import Grant
from jobcast.schedulers.themis_np import FIRST_ROOM, ThemisNp
from jobcast.simulator.cluster import ClusterState
from jobcast.simulator.engine import replay
from jobcast.simulator.forecast_sources import Oracle
from tests.schedulers.events_driver import starts, workloads


class Checked:
    """Passes decisions on after comparing them with all that the rule allows; of equal sets any will do."""

    name = "checked"

    def __init__(self, workload, filter):
        self._policy = ThemisNp(Oracle(workload), filter)
        self._durations_s = [outcome.duration_s for outcome in workload.outcomes]
        self._filter = filter
        self.auctions = 0
        self.key = self._policy.key

    def decide(self, view):
        decision = self._policy.decide(view)
        found = frozenset(decision.change)
        assert found in self._allowed(view)
        return decision

    def _allowed(self, view):
        pending = [job for seq, job in view.active.items() if seq not in view.running]
        if not pending:
            return {frozenset()}
        now, durations_s = view.now_s, self._durations_s
        completion = {job.seq: now - job.submit_s + durations_s[job.seq] for job in pending}
        worst = sorted(pending, key=lambda job: (-completion[job.seq] / durations_s[job.seq], job.seq))
        offered = worst[: ceil(self._filter * len(worst))]
        ends = [run.start_s + durations_s[seq] for seq, run in view.running.items()]
        ends = [end for end in ends if end > now]
        delay = min(ends) - now if ends else min(durations_s[job.seq] for job in pending)
        sets = [
            chosen
            for size in range(len(offered) + 1)
            for chosen in combinations(offered, size)
            if sum(job.gpus for job in chosen) <= view.free_gpus
        ]
        gains = [sum(log1p(delay / completion[job.seq]) for job in chosen) for chosen in sets]
        self.auctions += len(sets) > 1
        best = max(gains)
        return {
            frozenset(self._with_others(chosen, worst, view.free_gpus))
            for chosen, gain in zip(sets, gains, strict=True)
            if gain >= best * (1 - 1e-12)
        }

    def _with_others(self, chosen, worst, free):
        taken = [job.seq for job in chosen]
        free -= sum(job.gpus for job in chosen)
        for job in worst:
            if job.seq not in taken and job.gpus <= free:
                taken.append(job.seq)
                free -= job.gpus
        return taken


@given(workloads(max_jobs=16), st.sampled_from([0.01, 0.2, 0.5, 1.0]))
def test_every_decision_is_one_that_the_rule_allows(workload, filter):
    policy = Checked(workload, filter)
    replay(workload, policy)
    assert policy.auctions > 0


def by_id(made, filter):
    found = starts(made, lambda source: ThemisNp(source, filter))
    return {job.job_id: at / 60 for job, at in zip(made.jobs, found, strict=True)}


def test_the_worst_treated_first(workload):
    # At 10 rho is (9 + 9) / 9 = 2 for b, (8 + 2) / 2 = 5 for c, (6 + 3) / 3 = 3 for d; at 12 d has 11 / 3, b 20 / 9.
    jobs = [("a", "p", 0, 10, 4), ("b", "p", 1, 9, 4), ("c", "p", 2, 2, 4), ("d", "p", 4, 3, 4)]
    assert by_id(workload(jobs, {"p": 4}), 0.2) == {"a": 0, "c": 10, "d": 12, "b": 15}


def test_among_the_offered_those_that_gain_the_most_together(workload):
    # At 6 rho is 9 / 4 for b, 10 / 5 for c and d; nothing runs, the delay is 4. Of all that are offered the GPUs, c and
    # d together gain 2 log(14 / 10) > log(13 / 9) of b, whom nothing but the narrowest share would have let win.
    jobs = [("a", "p", 0, 6, 2), ("b", "p", 1, 4, 2), ("c", "p", 1, 5, 1), ("d", "p", 1, 5, 1)]
    made = workload(jobs, {"p": 2})
    assert by_id(made, 1.0) == {"a": 0, "c": 6, "d": 6, "b": 11}
    assert by_id(made, 0.2) == {"a": 0, "b": 6, "c": 10, "d": 10}


def test_what_winners_leave_goes_to_others_that_fit(workload):
    # At 6 b is offered 3 GPUs and takes 2; c, treated worse than d, needs 2 as well; d fits.
    jobs = [("a", "p", 0, 6, 3), ("b", "p", 1, 1, 2), ("c", "p", 2, 2, 2), ("d", "p", 3, 9, 1)]
    assert by_id(workload(jobs, {"p": 3}), 0.2) == {"a": 0, "b": 6, "c": 7, "d": 6}


def test_leftovers_pass_over_who_does_not_fit(workload):
    # At 10 rho is 12 for w, the one that is offered GPUs, then 6, 5, 4 and 1.3: beside w x fits, y no more, z just so.
    jobs = [("a", "p", 0, 10, 8), ("w", "p", 0, 1, 2), ("x", "p", 1, 2, 3), ("y", "p", 2, 2, 5), ("z", "p", 4, 2, 3)]
    jobs += [("long", "p", 5, 20, 1)]
    assert by_id(workload(jobs, {"p": 8}), 0.2) == {"a": 0, "w": 10, "x": 10, "z": 10, "y": 12, "long": 11}


WAITED = [("b", "p", 4, 7, 2), ("c", "p", 4, 17, 1), ("d", "p", 4, 17, 1)]
"""At 6 for two GPUs, with completion times of 9, 19 and 19: 10/9 > (20/19)^2, but 16/9 < (26/19)^2."""


@pytest.mark.parametrize(
    ("held", "told_min", "b_first"),
    [
        ([("r", "p", 0, 7, 1)], 7, True),  # GPUs are auctioned again in 1 min
        ([("r", "p", 0, 40, 1)], 6, False),  # from here on what has outrun its forecast tells nothing: b's 7 min
        ([("r", "p", 0, 40, 1)], 5, False),
        ([("r", "p", 0, 3, 1), ("e", "p", 1, 37, 1)], 7, False),  # r is gone already, e ends in 34 min
    ],
)
def test_who_gains_most_hangs_on_when_gpus_are_auctioned_again(workload, held, told_min, b_first):
    made = workload([*held, ("a", "p", 0, 6, 2), *WAITED], {"p": 3})

    class Misled(Oracle):
        def duration_s(self, job):
            return 60.0 * told_min if job.job_id == "r" else super().duration_s(job)

    source = Misled(made)
    found = starts(made, lambda _: ThemisNp(source, 1.0), source)
    at = {job.job_id: start_s / 60 for job, start_s in zip(made.jobs, found, strict=True)}
    assert (at["b"] == 6, at["c"] == 6) == (b_first, not b_first)


def test_what_runs_already_is_not_auctioned_for(workload):
    # r holds GPUs as the run begins, having won no auction.
    jobs = [Job(seq, name, "p", 0.0, 1) for seq, name in enumerate("rst")]
    state = ClusterState([Pool("p", 2)])
    policy = ThemisNp(Oracle(workload([(job.job_id, "p", 0, 1, 1) for job in jobs], {"p": 2})))
    for job in jobs:
        state.submit(job, lane=0, key=policy.key(job))
    state.start(jobs[0], Grant(1))
    assert policy.decide(state).change == {1: Grant(1)}


def test_where_all_fit_they_start_in_order_of_submission(workload):
    made = workload([("a", "p", 0, 9, 1), ("b", "p", 0, 1, 3)], {"p": 4})
    assert by_id(made, 0.2) == {"a": 0, "b": 0}
    # An hour later b, with the larger rho, would be first if there were too few GPUs.
    state, policy = ClusterState([Pool("p", 4)]), ThemisNp(Oracle(made))
    for job in made.jobs:
        state.submit(job, lane=0, key=policy.key(job))
    state.advance(3600.0)
    assert list(policy.decide(state).change) == [0, 1]


def test_more_jobs_may_wait_than_there_was_room_for_at_first(workload):
    count = FIRST_ROOM + 2
    found = by_id(workload([(f"{index:04}", "p", 0, 1, 1) for index in range(count)], {"p": count - 1}), 0.2)
    assert [name for name, at in found.items() if at > 0] == [f"{count - 1:04}"]
