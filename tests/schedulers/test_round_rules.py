"""Rules of rounds by hand; all of them keep capacity, idle no GPU in vain (the driver checks both), starve nobody."""

from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from jobcast.schedulers.gavel import Gavel
from jobcast.schedulers.ossp import OpenShop
from jobcast.schedulers.policies import RoundMechanism
from jobcast.schedulers.round_policies import by_rounds
from jobcast.schedulers.round_rules import (
    EPOCHS,
    STEPS,
    AlloX,
    GandivaFair,
    LeastAttained,
    LongestThenSrpt,
    MaxSumThroughput,
    ShortestRemaining,
    ThemisFilter,
    attained_share,
    fractional_knapsack,
    queue_places,
)
from jobcast.schedulers.shockwave import Shockwave
from jobcast.simulator.engine import replay
from tests.schedulers.rounds_driver import (
    Equal,
    Following,
    InOrder,
    Known,
    active,
    drive,
    gangs,
    job,
    seqs,
    state,
    trained,
    workloads,
)

RULES = {
    "allox": AlloX,
    "allox filtered": lambda known: AlloX(known, filter=0.3),
    "gandiva_fair": lambda known: GandivaFair(),
    "gandiva_fair equal": lambda known: GandivaFair(tickets="equal"),
    "gandiva_fair lottery": lambda known: GandivaFair(lottery=True, seed=3),
    "las": lambda known: LeastAttained(),
    "longest_then_srpt": LongestThenSrpt,
    "ossp": lambda known: OpenShop(known, window=3),
    "shockwave": lambda known: Shockwave(known, window=3),
    "shockwave lazy": lambda known: Shockwave(known, window=3, mode="lazy"),
    "srpt": ShortestRemaining,
    "srpt by GPU time": lambda known: ShortestRemaining(known, gpu_time=True),
    "themis_filter": ThemisFilter,
    "themis_filter all": lambda known: ThemisFilter(known, filter=1.0),
    "gavel": lambda known: Following(Gavel()),
    "gavel by water": lambda known: Following(Gavel(fill="water")),
    "mst": lambda known: Following(MaxSumThroughput()),
    "gandiva_fair shares": lambda known: Following(GandivaFair()),
}


@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow])
@given(work=workloads())
def test_every_job_ends_and_no_gpu_idles_in_vain(rule, work):
    jobs, run_s, gpus = work
    log = drive(RULES[rule](Known(run_s)), jobs, run_s, gpus)
    assert set().union(*log) == set(run_s)


@pytest.mark.parametrize("rule", RULES)
def test_nobody_is_there(rule):
    assert seqs(RULES[rule](Known({})).choose(state([], 4))) == []


BESIDE = {
    **dict.fromkeys(("allox", "las", "longest_then_srpt", "srpt", "themis_filter"), 120.0),
    "shares": 120.0,
    "ossp": 240.0,
    "in order": 240.0,
}


@pytest.mark.parametrize("rule", BESIDE)
def test_who_keeps_nothing_between_rounds_or_has_shares_fills_gpus_beside_a_plan(rule):
    """Others, who are asked once a round, leave free GPUs to their next plan."""
    # The first ends at 70 s; the plan for 120 s was made with it at 0 s, before the third came.
    rows = [(0, 50, 1), (0, 300, 1), (10, 50, 1)]
    known = Known({seq: float(length) for seq, (_, length, _) in enumerate(rows)})
    made = {"shares": Equal(), "in order": InOrder()}.get(rule) or RULES[rule](known)
    log = replay(gangs(rows, 2), by_rounds(made, rule, RoundMechanism(solve="beside")))
    assert log.start_s.tolist() == [0.0, 0.0, BESIDE[rule]]


def _fixed():
    widths = [1, 2, 4, 1, 8, 2, 1, 4, 2, 1]
    jobs = [job(seq, gpus, 100.0 * seq) for seq, gpus in enumerate(widths)]
    return jobs, {seq: 400.0 + 170.0 * (seq % 4) for seq in range(len(widths))}, 8


@pytest.mark.parametrize("rule", RULES)
def test_jobs_of_no_weight_end_and_come_after_those_that_have_some(rule):
    """To a weight that is 0 shares and service cannot be held in proportion; traces may hold such weights."""
    jobs, run_s, gpus = _fixed()
    assert set().union(*drive(RULES[rule](Known(run_s)), [replace(one, weight=0.0) for one in jobs], run_s, gpus)) == {
        *run_s
    }
    if rule in ("las", "gavel", "gavel by water", "gandiva_fair", "gandiva_fair equal"):
        two = [active(0, held_s=100.0, weight=0.0), active(1, held_s=1000.0)]
        assert seqs(RULES[rule](Known({0: 900.0, 1: 900.0})).choose(state(two, 1))) == [1]


def test_least_gpu_time_first():
    # 400, 300 and 360 GPU-seconds
    jobs = [active(0, 4, held_s=100.0), active(1, 1, held_s=300.0), active(2, 2, held_s=180.0)]
    assert seqs(LeastAttained().choose(state(jobs, 4))) == [1, 2]


def test_weight_divides_and_ties_go_to_the_running():
    jobs = [active(0, held_s=100.0), active(1, held_s=190.0, weight=2.0), active(2, held_s=95.0, running=True)]
    assert seqs(LeastAttained().choose(state(jobs, 2))) == [2, 1]


LEFT = Known({0: 900.0, 1: 500.0, 2: 600.0, 3: 600.0})


def test_least_left_first_and_what_fits_behind():
    jobs = [active(0, 2), active(1, 2), active(2, 4), active(3, 1)]
    assert seqs(ShortestRemaining(LEFT).choose(state(jobs, 4))) == [1, 3]
    assert seqs(ShortestRemaining(LEFT).choose(state(jobs, 6))) == [1, 2]


def test_by_gpu_time_a_narrow_job_is_short():
    # 1800, 1000, 2400 and 600 GPU-seconds
    jobs = [active(0, 2), active(1, 2), active(2, 4), active(3, 1)]
    assert seqs(ShortestRemaining(LEFT, gpu_time=True).choose(state(jobs, 3))) == [3, 1]


def test_run_time_counts_and_ties_go_to_the_running():
    jobs = [active(0, held_s=700.0), active(2), active(3, running=True)]
    assert seqs(ShortestRemaining(LEFT).choose(state(jobs, 2))) == [0, 3]


def test_equal_shares_whatever_the_width():
    jobs = [active(seq, gpus) for seq, gpus in enumerate([1, 2, 4, 8])]
    assert GandivaFair().shares(state(jobs, 3)) == [0.75] * 4
    assert GandivaFair().shares(state(jobs, 32)) == [1.0] * 4


def test_the_stride_runs_the_smallest_pass():
    # passes by width: 100, 200, 50; by equal tickets: 400, 200, 50
    jobs = [active(0, 4, held_s=100.0), active(1, 1, held_s=200.0), active(2, 1, held_s=50.0)]
    policy = GandivaFair()
    policy.choose(state([active(0, 4), active(1), active(2)], 5))
    assert seqs(policy.choose(state(jobs, 5))) == [2, 0]
    equal = GandivaFair(tickets="equal")
    equal.choose(state([active(0, 4), active(1), active(2)], 5))
    assert seqs(equal.choose(state(jobs, 2))) == [2, 1]


def test_who_arrives_neither_catches_up_nor_waits():
    policy = GandivaFair()
    policy.choose(state([active(0), active(1)], 1))
    later = [active(0, held_s=600.0), active(1, held_s=480.0), active(2)]
    assert set(seqs(policy.choose(state(later, 2)))) == {1, 2}
    # the newcomer began at 480: after 240 s it stands at 720 and has its turn behind the others
    even_later = [active(0, held_s=600.0), active(1, held_s=600.0), active(2, held_s=240.0)]
    assert set(seqs(policy.choose(state(even_later, 2)))) == {0, 1}


@pytest.mark.parametrize(("lottery", "tolerance"), [(False, 0.02), (True, 0.06)])
def test_time_goes_by_weight(lottery, tolerance):
    policy, held = GandivaFair(lottery=lottery, seed=1), Counter()
    for index in range(900):
        jobs = [active(0, held_s=120.0 * held[0]), active(1, held_s=120.0 * held[1], weight=2.0)]
        held.update(seqs(policy.choose(state(jobs, 1, now_s=120.0 * index))))
    assert held[1] / 900 == pytest.approx(2 / 3, abs=tolerance)


def test_by_width_gangs_get_the_time_of_singles_and_by_equal_tickets_its_part():
    # a gang of 2 and two singles on 2 GPUs: half of the time each by width; a third of the GPU time each by tickets
    for tickets, gang in (("width", 1 / 2), ("equal", 1 / 3)):
        policy, held = GandivaFair(tickets=tickets), Counter()
        for index in range(600):
            jobs = [active(seq, gpus, held_s=120.0 * held[seq]) for seq, gpus in enumerate([2, 1, 1])]
            held.update(seqs(policy.choose(state(jobs, 2, now_s=120.0 * index))))
        assert held[0] / 600 == pytest.approx(gang, abs=0.02)


def test_seeds_settle_ties_and_draws():
    jobs = [active(seq) for seq in range(40)]
    for lottery in (False, True):
        picks = [seqs(GandivaFair(lottery=lottery, seed=seed).choose(state(jobs, 5))) for seed in (1, 1, 2)]
        assert picks[0] == picks[1] != picks[2]


# At 600 s with 3 jobs on 1 GPU the contention is 3. Fairness (Shockwave, equation 9):
# 0: (600 + 3 x 300) / (3 x 600) = 0.83; 1: (600 + 3 x 600) / (3 x 600) = 1.33; 2: (600 + 3 x 1000) / (3 x 1000) = 1.2
KNOWN = Known({0: 600.0, 1: 600.0, 2: 1000.0})
JOBS = [active(0, held_s=300.0), active(1), active(2)]


@pytest.mark.parametrize(
    ("share", "chosen"),
    [
        (1 / 3, 1),  # the worst treated alone is offered the round
        (2 / 3, 1),  # of 1 and 2 the one of the earlier completion gains more: 2400 s before 3600 s
        (1.0, 0),  # of all it is job 0, 1500 s
    ],
)
def test_the_filter_offers_and_the_gain_decides(share, chosen):
    assert seqs(ThemisFilter(KNOWN, filter=share).choose(state(JOBS, 1, now_s=600.0))) == [chosen]


def test_the_filter_offers_to_a_fifth_where_nothing_is_told():
    """One of three, the worst treated."""
    assert seqs(ThemisFilter(KNOWN).choose(state(JOBS, 1, now_s=600.0))) == [1]


def test_fairness_counts_from_submission():
    """Two jobs on a GPU: (600 + 2 x 600) / (2 x 600) = 1.5, and since 400 s (200 + 2 x 300) / (2 x 300) = 1.33."""
    jobs = [active(0), active(1, submit_s=400.0)]
    assert seqs(ThemisFilter(Known({0: 600.0, 1: 300.0})).choose(state(jobs, 1, now_s=600.0))) == [0]


def test_without_contention_sharing_slows_nobody():
    """Two jobs on 3 GPUs: fairness (600 + 450) / 600 = 1.75 and (600 + 1000) / 1000 = 1.6.

    If each had half of the time, (600 + 900) / 1200 = 1.25 and (600 + 2000) / 2000 = 1.3, and the other would be first.
    """
    jobs = [active(0, 2, held_s=150.0), active(1, 2)]
    assert seqs(ThemisFilter(Known({0: 600.0, 1: 1000.0})).choose(state(jobs, 3, now_s=600.0))) == [0]


def test_the_winners_are_the_best_set_that_fits():
    # gains fall with the completion: 3 GPUs for 500 s against 2 + 2 GPUs for 600 s each
    known = Known({0: 500.0, 1: 600.0, 2: 600.0})
    jobs = [active(0, 3), active(1, 2), active(2, 2)]
    assert seqs(ThemisFilter(known, filter=1.0).choose(state(jobs, 4))) == [1, 2]


def test_what_the_winners_leave_goes_to_the_worst_treated():
    # offered: job 1 alone; on 3 GPUs the contention is 1, and fairness 1.5, 2 and 1.6
    jobs = [active(0, held_s=300.0), active(1), active(2, 2)]
    assert seqs(ThemisFilter(KNOWN, filter=1 / 3).choose(state(jobs, 3, now_s=600.0))) == [1, 2]


@given(times=st.lists(st.integers(1, 50), min_size=1, max_size=6), gpus=st.integers(1, 3))
def test_the_matching_has_the_least_sum_of_completion_times(times, gpus):
    places = queue_places(np.array(times, dtype=float), gpus)
    assert all((places == place).sum() <= gpus for place in places)

    def total(assigned):
        queues = [sorted(t for t, queue in zip(times, assigned, strict=True) if queue == gpu) for gpu in range(gpus)]
        return sum(sum(np.cumsum(queue)) for queue in queues)

    assert places @ np.array(times) == min(total(assigned) for assigned in product(range(gpus), repeat=len(times)))


def test_heads_of_queues_first_and_gangs_by_gpu_time():
    # GPU-seconds with the restart of 20 s: 4 x 120, 320, 220, 2 x 520
    known = Known({0: 100.0, 1: 300.0, 2: 200.0, 3: 500.0})
    jobs = [active(0, 4), active(1), active(2), active(3, 2)]
    assert seqs(AlloX(known).choose(state(jobs, 2))) == [2, 1]
    assert seqs(AlloX(known).choose(state(jobs, 6))) == [2, 1, 0]


def test_a_running_job_saves_its_restart():
    known = Known({0: 100.0, 1: 115.0})
    assert seqs(AlloX(known).choose(state([active(0), active(1)], 1))) == [0]
    chosen = AlloX(Known({0: 100.0, 1: 235.0})).choose(state([active(0), active(1, held_s=120.0, running=True)], 1))
    assert seqs(chosen) == [1]
    # 81 + 20 s to go, and 100.5 without a restart
    chosen = AlloX(Known({0: 81.0, 1: 220.5})).choose(state([active(0), active(1, held_s=120.0, running=True)], 1))
    assert seqs(chosen) == [1]


def test_what_a_job_might_have_had_counts_from_its_submission_by_its_weight():
    assert attained_share(active(0, held_s=60.0, submit_s=300.0, weight=2.0), 600.0) == 60.0 / 600.0
    assert attained_share(active(0, held_s=0.25, submit_s=599.5), 600.0) == 0.5
    assert attained_share(active(0, submit_s=600.0), 600.0) == 0.0


def test_the_filter_keeps_those_that_had_least():
    known = Known({0: 700.0, 1: 900.0, 2: 800.0})
    jobs = [active(0, held_s=600.0), active(1, held_s=60.0), active(2, held_s=300.0)]
    now = state(jobs, 1, now_s=600.0)
    assert [attained_share(one, 600.0) for one in jobs] == [1.0, 0.1, 0.5]
    assert seqs(AlloX(known).choose(now)) == [0]
    assert seqs(AlloX(known, filter=2 / 3).choose(now)) == [2]
    assert seqs(AlloX(known, filter=1 / 3).choose(now)) == [1]


def sized(job, samples):
    """The job with a data set of so many samples."""
    training = replace(job.job.training, samples=samples)
    return replace(job, job=replace(job.job, training=training))


@given(
    items=st.lists(st.tuples(st.integers(0, 9), st.sampled_from([1, 2, 4])), min_size=1, max_size=10),
    gpus=st.integers(1, 16),
)
def test_the_knapsack_is_the_optimum_of_the_programme(items, gpus):
    values, widths = (np.array(column, dtype=float) for column in zip(*items, strict=True))
    shares = fractional_knapsack(values, widths, float(gpus))
    best = -linprog(-values, [widths], [gpus], bounds=[(0, 1)] * len(items)).fun
    assert values @ shares == pytest.approx(best)
    assert widths @ shares == pytest.approx(min(gpus, widths.sum()))


def test_rates_follow_the_batch_size_of_the_moment():
    # epochs a second a GPU: 1/60, 1/40 (it has grown), 1/50 over 2 GPUs
    jobs = [
        trained(0, "LM", 10, {10: 60.0}),
        trained(1, "LM", 10, {10: 60.0, 20: 40.0}, at=20),
        trained(2, "LM", 10, {10: 50.0}, gpus=2),
    ]
    assert MaxSumThroughput().shares(state(jobs, 1)) == [0.0, 1.0, 0.0]
    assert MaxSumThroughput().shares(state(jobs, 3)) == [1.0, 1.0, 0.5]


def test_in_steps_a_large_data_set_counts():
    # 1000 / 10 steps in 100 s = 1 a second; 400 / 10 in 50 s = 0.8; 1/100 and 1/50 epochs a second
    jobs = [sized(trained(0, "A", 10, {10: 100.0}), 1000), sized(trained(1, "B", 10, {10: 50.0}), 400)]
    assert MaxSumThroughput(STEPS).shares(state(jobs, 1)) == [1.0, 0.0]
    assert MaxSumThroughput().shares(state(jobs, 1)) == [0.0, 1.0]
    grown = sized(trained(0, "A", 10, {10: 100.0, 40: 50.0}, at=40), 1000)
    assert [MaxSumThroughput(unit).rate(grown) for unit in (STEPS, EPOCHS)] == [1000 / 40 / 50.0, 1 / 50.0]


def test_rates_differ_by_their_share_however_small_they_are():
    assert fractional_knapsack(np.array([2e-7, 1e-7]), np.ones(2), 1.0).tolist() == [1.0, 0.0]
    assert fractional_knapsack(np.array([1.0, 1.0 - 1e-12]), np.ones(2), 1.0).tolist() == [0.5, 0.5]


def test_without_jobs_there_are_no_shares():
    assert MaxSumThroughput().shares(state([], 4)) == []


def test_without_a_rate_a_job_gets_what_is_left():
    jobs = [active(0), trained(1, "A", 10, {10: 100.0}), active(2)]
    assert MaxSumThroughput().shares(state(jobs, 2)) == [0.5, 1.0, 0.5]
    small, unknown = sized(trained(0, "A", 10, {10: 100.0}), 1), trained(1, "A", 10, {10: 1.0})
    assert MaxSumThroughput(STEPS).shares(state([unknown, small], 1)) == [0.0, 1.0]


def chosen(left_s, gpus, share=0.8, widths=None, running=()):
    actives = [active(seq, (widths or [1] * len(left_s))[seq], running=seq in running) for seq in range(len(left_s))]
    return seqs(LongestThenSrpt(Known(dict(enumerate(left_s))), share).choose(state(actives, gpus)))


def test_short_jobs_go_first_where_the_load_leaves_time():
    # Mean load (300 + 400 + 900 + 1000) / 2 = 1300 s: nobody has .8 of it left.
    assert chosen([900.0, 400.0, 1000.0, 300.0], 2) == [3, 1]


def test_jobs_that_bind_the_makespan_go_first_the_longest_before_the_others():
    # .8 x 1000 s are binding: 1000 s, then 900 s; 300 s behind them.
    assert chosen([900.0, 400.0, 1000.0, 300.0], 3) == [2, 0, 3]
    assert chosen([900.0, 400.0, 1000.0, 300.0], 3, share=0.95) == [2, 3, 1]


def test_gangs_are_packed_by_first_fit():
    assert chosen([1000.0, 900.0, 100.0], 4, widths=[3, 2, 1]) == [0, 2]


@pytest.mark.parametrize("running", [0, 1])
def test_ties_go_to_who_runs(running):
    assert chosen([500.0, 500.0, 900.0], 1, share=1.0, running=[running]) == [running]


def test_a_long_job_is_not_left_to_the_end():
    """A job of 10 rounds and eight of 2 on two GPUs: 13 rounds of work; the shortest first would take 18."""
    run_s = {0: 10 * 120.0 - 20.0} | dict.fromkeys(range(1, 9), 220.0)
    jobs = [job(seq) for seq in run_s]
    assert len(drive(LongestThenSrpt(Known(run_s)), jobs, run_s, 2)) == 14
    assert len(drive(ShortestRemaining(Known(run_s)), jobs, run_s, 2)) == 18
