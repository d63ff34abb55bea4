"""What every rule of rounds keeps: capacity, no GPU idle in vain (both checked by the driver), nobody waits forever."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings

from jobcast.schedulers.allox import AlloX
from jobcast.schedulers.gavel import Gavel
from jobcast.schedulers.longest_then_srpt import LongestThenSrpt
from jobcast.schedulers.mst import MaxSumThroughput
from jobcast.schedulers.ossp import OpenShop
from jobcast.schedulers.round_rules import GandivaFair, LeastAttained, ShortestRemaining, ThemisFilter
from jobcast.schedulers.shockwave import Shockwave
from tests.schedulers.rounds_driver import Following, Known, active, drive, job, seqs, state, workloads

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
