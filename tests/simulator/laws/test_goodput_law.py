import pytest

from jobcast.domain.elastic import ElasticView
from jobcast.domain.errors import DecisionError
from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.domain.policy import Decision, Grant, Trigger
from jobcast.domain.training import Goodputs, Phase
from jobcast.simulator.engine import Simulation, Stand
from jobcast.simulator.laws.goodput import Goodput, ScalableWork, Stretch, replay_goodput
from jobcast.simulator.workload import Workload

PAIR = Pool("all", 2)


class Fixed:
    """Allocations by round, the last one for good, cut to the jobs that are there."""

    name = "fixed"
    trigger = Trigger(on_events=False, period_s=60.0)

    def __init__(self, *plans):
        self._plans = list(plans)

    def decide(self, view):
        plan = self._plans.pop(0) if len(self._plans) > 1 else self._plans[0]
        wanted = {seq: Grant(plan[seq]) if plan[seq] else None for seq in view.active}
        return Decision({seq: grant for seq, grant in wanted.items() if grant is not None or seq in view.running})


TWO = ScalableWork(0.0, 2, (Phase(100.0, (1.0, 2.0), (8, 16)), Phase(300.0, (2.0, 4.0), (16, 32))))


def test_exclusive_time_goes_through_the_phases():
    assert TWO.exclusive_s() == pytest.approx(100 / 2 + 200 / 4)


def test_work_that_lasts_half_as_long():
    shorter = TWO.lasting(50.0)
    assert [phase.until for phase in shorter.phases] == [50.0, 150.0]
    assert shorter.exclusive_s() == pytest.approx(50.0)


def test_a_job_alone_by_hand():
    # 30 s to start; 1 GPU: 30 s of work until 60; then 2 GPUs: 30 s of restart, 30 s at 2 a second until 120: 90 done;
    # from 120 on 10 more at 2, then 200 at 4 a second: 5 + 50 s
    log, ran = replay_goodput([TWO], Fixed([1], [2]), PAIR)
    assert (log.start_s.tolist(), log.end_s.tolist()) == ([0.0], [175.0])
    assert log.preemptions.tolist() == [1]
    assert log.spans.gpu_s.tolist() == [60.0, 2 * 115.0]
    spans = log.spans
    assert list(zip(spans.job, spans.from_s, spans.until_s, spans.gpus, spans.node, strict=True)) == [
        (0, 0.0, 60.0, 1.0, -1),
        (0, 60.0, 175.0, 2.0, -1),
    ]
    assert ran == [
        [
            Stretch(30.0, 60.0, 1, 8, 30.0),
            Stretch(90.0, 125.0, 2, 16, 70.0),
            Stretch(125.0, 175.0, 2, 32, pytest.approx(200.0)),
        ]
    ]
    assert (log.law, log.pools, log.gpus.tolist(), log.duration_s.tolist()) == ("goodput", (PAIR,), [2], [100.0])


@pytest.mark.parametrize(("done", "left_s"), [(0.0, 50.0 + 50.0), (40.0, 30.0 + 50.0), (100.0, 50.0), (180.0, 30.0)])
def test_a_run_that_begins_amid_a_phase_goes_on_at_its_goodput(done, left_s):
    """On 2 of 3 GPUs, of which all would do better and one worse: 2 a second up to 100, then 4 up to 300."""
    work = ScalableWork(
        0.0, 3, (Phase(100.0, (1.0, 2.0, 3.0), (8, 16, 24)), Phase(300.0, (2.0, 4.0, 5.0), (8, 16, 24)))
    )
    jobs, pool = [Job(0, "a", "all", 0.0, 3, preemptible=True)], Pool("all", 3)
    run = Simulation(Workload(jobs, [Outcome(0.0)], [pool]), Fixed([2]), law=Goodput([work]))
    run.begin(1000.0, {0: Stand(done, Grant(2), 0.0)})
    assert run.cluster.facts(Goodputs) == {0: work.phases[int(done >= 100.0)].goodput}
    with pytest.raises(LookupError, match="a world of goodput knows no ElasticView"):
        run.cluster.facts(ElasticView)
    assert run.run().end_s(0) == 1000.0 + left_s


def test_phases_that_end_at_one_instant_are_asked_about_once_arrivals_one_by_one():
    asked = []

    class Each(Fixed):
        trigger = Trigger(each_event=True)

        def decide(self, view):
            asked.append(view.now_s)
            return super().decide(view)

    replay_goodput([TWO, TWO], Each([2, 2]), Pool("all", 4))
    assert asked == [0.0, 0.0, 80.0]  # arrivals, first phases from 30 s on; at the ends nobody is left


def test_each_stretch_tells_its_own_work():
    """30 on one GPU until 60 s; 60 on two from 90 to 120 s; the last 10 of the phase from 150 s on, then 200 at 2."""
    log, ran = replay_goodput([TWO], Fixed([1], [2], [1]), PAIR)
    assert [(one.begin_s, one.end_s, one.gpus, one.work) for one in ran[0]] == [
        (30.0, 60.0, 1, 30.0),
        (90.0, 120.0, 2, 60.0),
        (150.0, 160.0, 1, 10.0),
        (160.0, 260.0, 1, 200.0),
    ]
    assert (log.end_s.tolist(), log.preemptions.tolist()) == ([260.0], [2])


def test_a_stretch_that_a_change_ends_before_it_begins_is_none():
    _, ran = replay_goodput([TWO], Fixed([1], [2]), PAIR, restart_s=60.0)
    assert ran[0][0] == Stretch(120.0, 170.0, 2, 16, 100.0)


def test_patience_begins_anew_once_a_job_got_on():
    """It runs until 60 s, and gives its GPUs back for good; a thousand rounds in vain may follow."""
    with pytest.raises(DecisionError, match=r"policy fixed at 60120\.000000 s: 1 jobs are pending"):
        replay_goodput([TWO], Fixed([1], [0]), PAIR)


def test_freed_gpus_idle_until_the_next_round_and_later_jobs_wait():
    short = ScalableWork(0.0, 1, (Phase(10.0, (1.0,), (8,)),))
    late = ScalableWork(5.0, 1, (Phase(10.0, (1.0,), (8,)),))
    log, _ = replay_goodput([short, late], Fixed([1, 1]), PAIR)
    assert log.start_s.tolist() == [0.0, 60.0]
    assert log.end_s.tolist() == [40.0, 100.0]
    assert log.spans.gpu_s.tolist() == [40.0, 40.0]


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ([3, 0], "policy fixed at 0.000000 s: cannot start job 000000000: it can use 1 to 2 GPUs, it is given 3"),
        ([2, 2], "policy fixed at 0.000000 s: cannot start job 000000001: it needs 2 GPUs, 1 are free"),
        ([0, 0], "policy fixed at 60000.000000 s: 2 jobs are pending, job 000000000 first, while none gets on"),
    ],
)
def test_impossible_answers_are_refused(plan, message):
    with pytest.raises(DecisionError, match=message):
        replay_goodput([TWO, TWO], Fixed(plan), Pool("all", 3))


def test_phases_too_short_for_the_clock_pass():
    # instants of today are told to 0.2 microseconds; the second phase takes a tenth of that
    begin_s, brief = 1.7e9, 1.0 + 2e-8
    work = ScalableWork(begin_s, 1, (Phase(1.0, (1.0,), (8,)), Phase(brief, (1.0,), (8,)), Phase(2.0, (1.0,), (8,))))
    told = []
    log, ran = replay_goodput([work], Fixed([1]), Pool("all", 1), progress=lambda *counts: told.append(counts))
    assert log.end_s[0] - begin_s == pytest.approx(32.0, abs=1e-5)
    assert sum(stretch.work for stretch in ran[0]) == pytest.approx(2.0)
    assert told == [(1, 1)]


def test_a_phase_of_no_length_is_over_at_once():
    class Starting:
        name, asked = "starting", ()

        def decide(self, view):
            self.asked = (*self.asked, view.now_s)
            return Decision({seq: Grant(1) for seq in view.active if seq not in view.running})

    work = ScalableWork(0.0, 1, tuple(Phase(until, (1.0,), (8,)) for until in (1.0, 1.0, 2.0)))
    policy = Starting()
    log, _ = replay_goodput([work], policy, Pool("all", 1))
    assert (policy.asked, log.end_s.tolist()) == ((0.0, 31.0), [32.0])


def test_no_jobs():
    log, ran = replay_goodput([], Fixed([]), PAIR)
    assert (len(log), len(log.spans), ran) == (0, 0, [])
