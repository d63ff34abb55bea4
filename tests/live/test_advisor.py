"""What is lent, what never is, and what a kill at any instant leaves behind."""

import shutil
from dataclasses import replace
from math import inf, nan

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobcast.domain.errors import ClusterError, ConfigError
from jobcast.live.advice import advice_figures
from jobcast.live.advisor import PATIENCE_S, Advisor, Rules
from jobcast.live.event_log import INTENT, LEASE, OVERSTAY, EventLog
from jobcast.live.forecasts import Asked
from jobcast.live.leases import leases_of
from jobcast.live.slurm import Qos
from jobcast.live.state import LogReader
from jobcast.schedulers.registry import make_policy
from jobcast.traces.table import Trace
from tests.live.imagined_slurm import Calm, ImaginedSlurm
from tests.shared import refused


def advisor_of(slurm, home, source=None, asked=None, **rules):
    asked = asked or Asked(source or Calm(), {"new-load": 3})
    make = lambda forecasts: make_policy("sia", forecasts)  # noqa: E731
    return Advisor(slurm, LogReader(EventLog(home)), lambda *_: asked, make, Rules(**rules))


def look(slurm, advisor, apply=True):
    slurm.pass_time(5.0)
    snapshot = advisor.look(slurm.now_s)
    advice = advisor.advise(snapshot)
    return advice, advisor.carry_out(advice, snapshot) if apply else []


def full():
    """Pool b has as much running as it may."""
    slurm = ImaginedSlurm()
    for number in range(2):
        slurm.submit(f"b{number}", "b", 8)
    return slurm


def busy():
    """Pool b has as much running as it may, and 3 jobs of 8 GPUs that wait; a is idle."""
    slurm = full()
    for number in range(2, 5):
        slurm.submit(f"b{number}", "b", 8)
    return slurm


@pytest.fixture
def slurm():
    return busy()


@pytest.fixture
def advisor(slurm, tmp_path):
    return advisor_of(slurm, tmp_path)


def done(advice, what):
    return [action.what for action in advice.actions if action.do == what]


def test_idle_gpus_are_lent_as_leases(slurm, advisor):
    advice, failed = look(slurm, advisor)
    assert (done(advice, "lend"), failed) == (["b2", "b3"], [])
    assert slurm.done == [("limit", "lent_b", 16), ("move", "b2", "lent_b"), ("move", "b3", "lent_b")]
    assert slurm.jobs["b2"].runs
    (first, second) = leases_of(slurm.look(slurm.now_s), "account")
    assert (first.job.job_id, first.pool, first.qos, first.versions) == ("b2", "b", "b", "new-load:3")
    assert first.until_s == slurm.now_s + 15 * 60
    assert first.name != second.name


def test_who_can_use_none_of_the_idle_nodes_leaves_them_to_others(tmp_path, monkeypatch):
    slurm, nodes = ImaginedSlurm(), ImaginedSlurm.nodes
    kinds = {"n0": "v100", "n1": "v100", "n2": "a100", "n3": "a100"}
    told = lambda self: {name: replace(one, names=frozenset((kinds[name],))) for name, one in nodes(self).items()}  # noqa: E731
    monkeypatch.setattr(ImaginedSlurm, "nodes", told)
    for number, kind in enumerate(("v100", "v100", "v100", "v100", "v100", "a100")):
        slurm.submit(f"b{number}", "b", 8, asks=(frozenset((kind,)),))
    advice, _ = look(slurm, advisor_of(slurm, tmp_path), apply=False)
    assert done(advice, "lend") == ["b5"]
    why = "no 1 node(s) that it may use with so many idle GPUs"
    assert advice.left == [("b2", why), ("b3", why)]


def test_nothing_is_done_without_apply(slurm, advisor, tmp_path):
    advice, _ = look(slurm, advisor, apply=False)
    assert done(advice, "lend") == ["b2", "b3"]
    assert slurm.done == []
    assert EventLog(tmp_path).file.exists()


def test_intent_is_kept_before_and_the_lease_after(slurm, advisor, tmp_path):
    look(slurm, advisor)
    kinds = [event.kind for _, event in EventLog(tmp_path).since(0) if event.kind in (INTENT, LEASE)]
    assert kinds == [INTENT, INTENT, LEASE, LEASE]


def test_a_limit_falls_when_its_lease_is_over_and_a_job_outlives_its_forecast(slurm, advisor, tmp_path):
    look(slurm, advisor)
    slurm.end("b2")
    slurm.submit("a0", "a", 8)
    slurm.pass_time(20 * 60.0)
    advice, _ = look(slurm, advisor)
    assert slurm.limits["lent_b"].gpus == 8
    assert slurm.jobs["b3"].runs  # it keeps its lease
    assert [lease.job.job_id for lease in advisor.overstayed(advice)] == ["b3"]
    advisor.overstayed(look(slurm, advisor)[0])
    assert [event.kind for _, event in EventLog(tmp_path).since(0)].count(OVERSTAY) == 1


@pytest.mark.parametrize("source", [Calm(arrives=True, load=16.0), Calm(lane=2)])
def test_what_is_expected_or_too_long_is_not_lent(slurm, tmp_path, source):
    advice, _ = look(slurm, advisor_of(slurm, tmp_path, source))
    assert advice.actions == []


def test_where_nobody_can_be_asked_nothing_new_is_lent_and_it_is_said(slurm, advisor, tmp_path):
    look(slurm, advisor)
    after = advisor_of(slurm, tmp_path, asked=Asked(None, {}, ("the registry cannot be asked",)))
    slurm.end("b0"), slurm.end("b1")
    advice, _ = look(slurm, after)
    assert list(advice.degraded) == ["the registry cannot be asked"]
    assert done(advice, "lend") == []
    assert {lease.job.job_id for lease in advice.leases} == {"b2", "b3"}
    assert advice_figures(advice)["degraded"] == ["the registry cannot be asked"]


def test_rules_bound_what_is_lent(tmp_path):
    slurm = busy()
    advice, _ = look(slurm, advisor_of(slurm, tmp_path / "x", max_lent=8))
    assert done(advice, "lend") == ["b2"]
    assert dict(advice.left) == {"b3": "its pool would have more than 8 GPUs on lease"}
    slurm = busy()
    advisor = advisor_of(slurm, tmp_path / "y", per_minute=1)
    assert done(look(slurm, advisor)[0], "lend") == ["b2"]
    assert done(look(slurm, advisor)[0], "lend") == []
    slurm.pass_time(60.0)
    assert done(look(slurm, advisor)[0], "lend") == ["b3"]


def test_a_job_that_fits_no_node_is_left(slurm, advisor):
    slurm.up |= {"n2": 8, "n3": 0}
    for name in "cd":
        slurm.submit(f"a{name}", "a", 4)
    advice, _ = look(slurm, advisor)
    assert done(advice, "lend") == []


def test_a_grant_that_comes_to_nothing_goes_back_and_rests(slurm, advisor):
    slurm._start = lambda: None  # Slurm does not start it, for whatever reason
    look(slurm, advisor)
    look(slurm, advisor)
    slurm.pass_time(PATIENCE_S)
    advice, _ = look(slurm, advisor)
    assert done(advice, "return") == ["b2", "b3"]
    assert (slurm.jobs["b2"].qos, slurm.jobs["b2"].mark, slurm.limits["lent_b"].gpus) == ("b", "", 0)
    assert dict(look(slurm, advisor)[0].left)["b2"].startswith("a grant came to nothing")


def test_a_job_that_its_owner_stopped_goes_back(slurm, advisor):
    slurm.submit("noted", "b", 8, mark="by the admin")
    look(slurm, advisor)
    look(slurm, advisor)
    slurm.requeue("b2")
    advice, _ = look(slurm, advisor)
    (back,) = [action.why for action in advice.actions if action.do == "return"]
    assert back == "it was stopped, as by an owner, and waits again (BeginTime)"
    assert (slurm.jobs["b2"].qos, slurm.jobs["b2"].mark) == ("b", "")


def test_what_owners_take_back_is_told_with_what_was_lost(slurm, tmp_path):
    """Two jobs of 8 GPUs are stopped: one that ran for 35 s on its lease and waits again, one for good after 30 s."""
    advisor = advisor_of(slurm, tmp_path, preempt=True)
    look(slurm, advisor)
    assert look(slurm, advisor)[0].stopped == {"jobs": 0, "gpu_hours_lost": 0}
    slurm.pass_time(25.0)
    slurm.jobs["b3"] = replace(slurm.jobs["b3"], state="PREEMPTED", end_s=slurm.now_s)
    slurm.requeue("b2")
    told = look(slurm, advisor)[0]
    assert (told.stopped["jobs"], told.stopped["gpu_hours_lost"]) == (2, pytest.approx(8 * (35.0 + 30.0) / 3_600.0))
    assert advice_figures(told)["stopped_7d"] == told.stopped
    # By an advisor that comes after, too; and for 7 days.
    assert look(slurm, advisor_of(slurm, tmp_path))[0].stopped == told.stopped
    slurm.pass_time(7 * 86_400.0)
    assert look(slurm, advisor)[0].stopped["jobs"] == 0


def test_it_is_said_where_owners_can_take_nothing_back(slurm, tmp_path):
    advisor = advisor_of(slurm, tmp_path, preempt=True)
    assert look(slurm, advisor)[0].degraded == []
    slurm.by_qos = False
    told = "owners cannot stop jobs on lease: PreemptType of slurm.conf is not preempt/qos"
    assert look(slurm, advisor)[0].degraded == [told]
    assert look(slurm, advisor_of(slurm, tmp_path))[0].degraded == []


def test_a_job_that_waits_on_its_own_quota_and_is_requeued_cost_no_owner_anything(slurm, advisor):
    look(slurm, advisor, apply=False)
    slurm.requeue("b0")
    assert look(slurm, advisor, apply=False)[0].stopped["jobs"] == 0


@pytest.mark.parametrize(
    ("limit_s", "comment", "then_s"),
    [(86_400.0, "", 86_400.0), (86_400.0, "x jobcast=shorten", 900.0), (300.0, "jobcast=shorten", 300.0)],
)
def test_time_limits_are_shortened_to_the_forecast_for_who_asked_for_it_alone(tmp_path, limit_s, comment, then_s):
    slurm = full()
    slurm.submit("b2", "b", 8, limit_s=limit_s, comment=comment)
    look(slurm, advisor_of(slurm, tmp_path))
    assert (slurm.jobs["b2"].limit_s, "limit=" in slurm.jobs["b2"].mark) == (then_s, then_s < limit_s)


@pytest.mark.parametrize("limit_s", [86_400.0, inf])
@pytest.mark.parametrize("how", ["returned", "undone"])
def test_a_limit_that_was_cut_for_a_lease_that_came_to_nothing_is_whole_again(slurm, advisor, limit_s, how):
    slurm.jobs["b2"] = replace(slurm.jobs["b2"], limit_s=limit_s, comment="jobcast=shorten")
    slurm._start = lambda: None
    look(slurm, advisor)
    assert (slurm.jobs["b2"].limit_s, slurm.jobs["b2"].qos) == (900.0, "lent_b")
    if how == "undone":
        advisor.undo(slurm.now_s)
    else:
        look(slurm, advisor)
        slurm.pass_time(PATIENCE_S)
        look(slurm, advisor)
    assert (slurm.jobs["b2"].limit_s, slurm.jobs["b2"].qos, slurm.jobs["b2"].mark) == (limit_s, "b", "")
    assert slurm.jobs["b3"].limit_s == inf


def test_who_is_held_by_another_limit_once_lent_to_rests_and_others_come(tmp_path):
    """Slurm tells the quota of b2's own QOS first: that its user may hold no more it tells on the lease alone."""
    slurm, start = busy(), ImaginedSlurm._start

    def bounded():
        start(slurm)
        for name in ("b2", "b3"):
            reason = "AssocGrpCpuLimit" if slurm.jobs[name].qos == "lent_b" else "QOSGrpGRES"
            slurm.jobs[name] = replace(slurm.jobs[name], state="PENDING", reason=reason, start_s=nan)

    slurm._start = bounded
    advisor = advisor_of(slurm, tmp_path)
    assert done(look(slurm, advisor)[0], "lend") == ["b2", "b3"]
    advice, _ = look(slurm, advisor)
    assert (done(advice, "return"), done(advice, "lend")) == (["b2", "b3"], ["b4"])
    assert [look(slurm, advisor)[0].actions for _ in range(3)] == [[], [], []]
    assert slurm.jobs["b4"].runs


def test_what_administrators_wrote_stays(tmp_path):
    slurm = full()
    slurm.submit("b2", "b", 8, mark="ask Ada | first")
    advisor = advisor_of(slurm, tmp_path)
    look(slurm, advisor)
    assert slurm.jobs["b2"].mark.startswith("ask Ada | first | jobcast lease=")
    slurm.requeue("b2")
    look(slurm, advisor)
    assert slurm.jobs["b2"].mark == "ask Ada | first"


def test_undo_puts_limits_back(slurm, tmp_path):
    slurm.limits |= {"lent_a": Qos(4), "a": Qos(16, ("lent_x",))}
    before = dict(slurm.limits)
    advisor = advisor_of(slurm, tmp_path, preempt=True)
    look(slurm, advisor)
    assert slurm.limits["a"].preempts == ("lent_x", "lent_a", "lent_b")
    assert slurm.limits["lent_a"].gpus == 0
    assert advisor_of(slurm, tmp_path).undo(slurm.now_s)
    assert slurm.limits == before
    assert slurm.jobs["b2"].runs
    refused(ConfigError, "nothing to put back", advisor_of(slurm, tmp_path).undo, slurm.now_s)


def test_undo_needs_nothing_of_the_home_that_lent(slurm, tmp_path):
    slurm.limits |= {"lent_a": Qos(4), "lent_b": Qos(None, told="of b"), "a": Qos(16, ("lent_a",), told="x")}
    before = dict(slurm.limits)
    look(slurm, advisor_of(slurm, tmp_path / "lost", preempt=True))
    assert (slurm.limits["lent_b"].gpus, slurm.limits["b"].preempts) == (16, ("lent_a", "lent_b"))
    advisor_of(slurm, tmp_path / "new").undo(slurm.now_s)
    assert slurm.limits == before
    # Whoever lends from then on finds leases that run, and what was there before is that.
    look(slurm, advisor_of(slurm, tmp_path / "new"))
    assert slurm.limits["lent_b"].gpus == 16
    advisor_of(slurm, tmp_path / "newer").undo(slurm.now_s)
    assert slurm.limits == before


def test_a_second_advisor_is_refused_and_changes_nothing(slurm, tmp_path):
    first, second = advisor_of(slurm, tmp_path / "x"), advisor_of(slurm, tmp_path / "y")
    look(slurm, first)
    slurm.end("b2")
    done, limits, jobs = list(slurm.done), dict(slurm.limits), dict(slurm.jobs)
    with pytest.raises(ConfigError, match=r"another advisor, \S+, lends on this Slurm; end one of the two, or where"):
        look(slurm, second)
    assert (slurm.done, slurm.limits, slurm.jobs) == (done, limits, jobs)
    look(slurm, advisor_of(slurm, tmp_path / "x"))  # one that comes after the first goes on
    assert slurm.jobs["b4"].runs


def test_a_copy_of_a_home_is_another_advisor(slurm, tmp_path):
    """It brings along what the first is called; put back by its own `undo`, it lends alone."""
    look(slurm, advisor_of(slurm, tmp_path / "x"))
    shutil.copytree(tmp_path / "x", tmp_path / "copy")
    slurm.end("b2")
    refused(ConfigError, "another advisor", look, slurm, advisor_of(slurm, tmp_path / "copy"))
    advisor_of(slurm, tmp_path / "copy").undo(slurm.now_s)
    look(slurm, advisor_of(slurm, tmp_path / "copy"))
    refused(ConfigError, "another advisor", look, slurm, advisor_of(slurm, tmp_path / "x"))
    look(slurm, advisor_of(slurm, tmp_path / "copy"))


def test_of_two_that_begin_at_once_one_goes_on_and_the_bound_holds(slurm, tmp_path):
    """Both lend before either can see the other: to another job each, under one limit."""
    advisors = [advisor_of(slurm, tmp_path / name, max_lent=8) for name in "xy"]
    advisors[1]._attempts.rest_s["b2"] = inf
    snapshot = advisors[0].look(slurm.now_s)
    advisors[1].look(slurm.now_s)
    advice = [one.advise(snapshot) for one in advisors]
    assert [done(one, "lend") for one in advice] == [["b2"], ["b3"]]
    for one, told in zip(advisors, advice, strict=True):
        one.carry_out(told, snapshot)
    assert slurm.held("lent_b") == 8
    refused(ConfigError, "another advisor", look, slurm, advisors[0])
    for _ in range(10):
        look(slurm, advisors[1])
        assert slurm.held("lent_b") == 8


def test_no_more_is_on_lease_than_may_be_though_the_bound_was_higher(slurm, advisor, tmp_path):
    look(slurm, advisor)
    assert slurm.held("lent_b") == 16
    lower = advisor_of(slurm, tmp_path, max_lent=8)
    look(slurm, lower)
    assert slurm.limits["lent_b"].gpus == 8
    slurm.end("b2"), slurm.end("b3")
    look(slurm, lower)
    assert slurm.held("lent_b") == 8


def of_two_parts(second=8):
    """Pool b is full, of a job of two parts both wait, and a job of 8 GPUs behind it."""
    slurm = full()
    slurm.submit("7+0", "b", 8)
    slurm.submit("7+1", "b", second, nodes=second // 8)
    slurm.submit("9", "b", 8)
    return slurm


def test_parts_of_a_job_are_lent_to_together(tmp_path):
    slurm = of_two_parts()
    advice, _ = look(slurm, advisor_of(slurm, tmp_path))
    assert (done(advice, "lend"), advice.left) == (["7+0", "7+1"], [])


@pytest.mark.parametrize(("held", "second", "rules"), [(8, 8, {}), (0, 16, {}), (0, 8, {"max_lent": 8})])
def test_no_part_is_lent_to_while_the_quota_holds_another(tmp_path, held, second, rules):
    """8 GPUs are idle, or 24 are asked for where 16 are, or 8 may be lent: of use to who is behind alone."""
    slurm = of_two_parts(second)
    if held:
        slurm.submit("a0", "a", held)
    advice, _ = look(slurm, advisor_of(slurm, tmp_path, **rules))
    assert done(advice, "lend") == ["9"]
    why = "Slurm starts all parts of a job at once or none, and not all that its quota may hold can be lent to"
    assert dict(advice.left) == {"7+0": why, "7+1": why}


@pytest.mark.parametrize(
    ("second", "lent"),
    [
        ({"gpus": 0, "reason": "None"}, ["7+0", "9"]),
        ({"gpus": 16, "reason": "Resources"}, ["7+0", "9"]),
        ({"gpus": 16, "reason": "None"}, ["9"]),
        ({"gpus": 16, "reason": "Priority"}, ["9"]),
    ],
)
def test_a_part_is_lent_to_where_slurm_says_that_the_quota_holds_no_other(tmp_path, second, lent):
    """Of a part that has just come it has said nothing yet; of one that the quota does not hold "Resources"."""
    slurm = of_two_parts()
    slurm.jobs["7+1"] = replace(slurm.jobs["7+1"], **second)
    assert done(look(slurm, advisor_of(slurm, tmp_path))[0], "lend") == lent


def array_of_five(at_once=0):
    """Pool b is full, and of an array of 4 GPUs a task all wait."""
    slurm = full()
    for number in range(5):
        slurm.submit(f"7_{number}", "b", 4, at_once=at_once)
    return slurm


def test_of_an_array_no_more_tasks_are_granted_than_may_run_at_once(tmp_path):
    slurm = array_of_five(at_once=2)
    slurm.submit("8", "b", 8)
    advisor = advisor_of(slurm, tmp_path)
    advice, _ = look(slurm, advisor)
    # What the others cannot take goes to who came after them.
    assert done(advice, "lend") == ["7_0", "7_1", "8"]
    why = "its array runs 2 tasks at once, and no more"
    assert dict(advice.left) == {"7_2": why, "7_3": why}
    assert done(look(slurm, advisor)[0], "lend") == []
    slurm.end("7_0")
    assert done(look(slurm, advisor)[0], "lend") == ["7_2"]


@pytest.mark.parametrize(
    ("of_b", "rules"), [({"priority": 1}, {}), ({"preempts": ("lent_b",)}, {}), ({}, {"preempt": True})]
)
def test_tasks_that_slurm_would_pass_over_are_not_lent_to(tmp_path, of_b, rules):
    """A real Slurm left them waiting for as long as another task of their array waited for the quota."""
    slurm = array_of_five()
    slurm.limits["b"] = replace(slurm.limits["b"], **of_b)
    advisor = advisor_of(slurm, tmp_path, **rules)
    advice, _ = look(slurm, advisor)
    assert done(advice, "lend") == []
    told = "Slurm tries tasks of its array in b first, and then none of them in lent_b"
    assert dict(advice.left)["7_0"].startswith(told)
    for number in range(4):
        slurm.end(f"7_{number}")
    # The last one is in nobody's way.
    assert done(look(slurm, advisor)[0], "lend") == ["7_4"]


def test_undo_leaves_what_administrators_changed_since(slurm, tmp_path):
    slurm.limits |= {"a": Qos(16, ("lent_x",)), "c": Qos(4)}
    advisor = advisor_of(slurm, tmp_path, preempt=True)
    look(slurm, advisor)
    a, b = slurm.limits["a"], slurm.limits["b"]
    slurm.limits |= {"b": replace(b, gpus=24), "normal": Qos(2), "c": Qos(None, ("normal",))}
    slurm.limits |= {"a": replace(a, gpus=8, preempts=(*a.preempts, "normal")), "d": Qos(4), "lent_d": Qos(4)}
    assert advisor_of(slurm, tmp_path).undo(slurm.now_s)
    theirs = {"a": Qos(8, ("lent_x", "normal")), "b": Qos(24), "c": Qos(None, ("normal",)), "d": Qos(4)}
    lent = {"lent_a": Qos(0), "lent_b": Qos(0), "lent_d": Qos(4)}
    assert slurm.limits == {**theirs, **lent, "normal": Qos(2)}


def test_a_step_of_undo_that_fails_keeps_no_other_from_being_taken(slurm, tmp_path):
    slurm.limits |= {"lent_a": Qos(4), "lent_b": Qos(None)}
    look(slurm, advisor_of(slurm, tmp_path, preempt=True))
    slurm.fails = {"limit"}
    refused(ClusterError, r"2 of 4 steps failed, .*; ask again", advisor_of(slurm, tmp_path).undo, slurm.now_s)
    assert (slurm.limits["a"].preempts, slurm.limits["b"].preempts) == ((), ())
    slurm.fails = set()
    assert advisor_of(slurm, tmp_path).undo(slurm.now_s) == ["lent_a: 4 GPUs again", "lent_b: no limit again"]


@pytest.mark.parametrize("quota", [0, None])
def test_a_limit_falls_where_the_pool_lost_its_quota(slurm, advisor, quota):
    look(slurm, advisor)
    slurm.limits["b"] = Qos(quota)
    slurm.end("b2")
    look(slurm, advisor)
    assert slurm.limits["lent_b"].gpus == 8


def test_what_fails_is_told_and_what_hangs_on_it_is_left(slurm, advisor):
    slurm.fails.add("limit")
    _, failed = look(slurm, advisor)
    assert failed == ["limit: Slurm says: no"]
    assert slurm.jobs["b2"].qos == "b"


def test_what_was_done_is_told_though_it_cannot_be_read_back(slurm, advisor, monkeypatch):
    """A controller that dies right after a grant: the leases stand by their marks."""

    def dead():
        raise ClusterError("squeue: no answer within 20 s")

    monkeypatch.setattr(slurm, "queue", dead)
    advice, failed = look(slurm, advisor)
    assert (done(advice, "lend"), slurm.held("lent_b")) == (["b2", "b3"], 16)
    assert failed == ["grants cannot be read back: squeue: no answer within 20 s"]


def test_a_cluster_without_limits_is_refused(slurm, advisor):
    slurm.limits = {"normal": Qos(None), "lent_a": Qos(4)}
    refused(ClusterError, "limits the GPUs of no QOS", look, slurm, advisor)


def test_before_there_are_qos_for_leases_it_is_said_what_would_be_lent(slurm, advisor):
    slurm.limits = {name: qos for name, qos in slurm.limits.items() if not name.startswith("lent_")}
    advice, failed = look(slurm, advisor)
    assert (advice.actions, failed, slurm.done) == ([], [], [])
    assert dict(advice.left)["b2"] == "it would be lent to, but Slurm has no QOS lent_b"


class KilledError(BaseException):
    """As SIGKILL: nothing of ours runs any more."""


def killing(slurm, call):
    """From the given call on nothing reaches the cluster: the process is gone before it, or right after it."""
    whole, calls = {name: getattr(slurm, name) for name in ("limit", "move", "preempts")}, [0]

    def counted(name):
        def act(*given):
            calls[0] += 1
            if calls[0] == call:
                raise KilledError
            whole[name](*given)

        return act

    for name in whole:
        setattr(slurm, name, counted(name))
    return lambda: [setattr(slurm, name, one) for name, one in whole.items()]


@settings(max_examples=25, deadline=None)
@given(call=st.integers(1, 8), more=st.lists(st.sampled_from(["end", "submit", "look"]), max_size=6))
def test_a_kill_at_any_instant_leaves_no_lease_unaccounted(tmp_path_factory, call, more):
    home, slurm = tmp_path_factory.mktemp("home"), busy()
    mend = killing(slurm, call)
    advisor = advisor_of(slurm, home)
    number = 5
    for what in ["look", *more]:
        running = [name for name, job in slurm.jobs.items() if job.runs]
        if what == "end" and running:
            slurm.end(running[0])
        elif what == "submit":
            slurm.submit(f"b{number}", "b", 4)
            number += 1
        try:
            look(slurm, advisor)
        except KilledError:
            mend()
            advisor = advisor_of(slurm, home)
    look(slurm, advisor)
    leases = leases_of(slurm.look(slurm.now_s), "account")
    # Whoever is in a QOS of leases has a mark, and limits are what is on lease; never more than there is.
    there = {name: job.qos for name, job in slurm.jobs.items() if job.runs or job.waits}
    assert {one.job.job_id for one in leases} == {name for name, qos in there.items() if qos.startswith("lent_")}
    assert slurm.limits["lent_b"].gpus == sum(one.gpus for one in leases)
    assert slurm.held() <= 32


def test_what_came_and_ended_while_nobody_looked_is_read_from_the_accounting(tmp_path, monkeypatch):
    """Its run time is that of the accounting, though the controller has forgotten it."""
    slurm = ImaginedSlurm()
    slurm.submit("b0", "b", 8)
    look(slurm, advisor_of(slurm, tmp_path))
    began_s = slurm.now_s
    del slurm.jobs["b0"]
    jobs = {"job_id": ["b0", "b1"], "pool": "b", "gpus": [8, 4], "submit_time": [began_s - 5.0, began_s + 9.0]}
    jobs |= {"start_time": [began_s - 5.0, began_s + 10.0], "duration": [20.0, 30.0]}
    past, seen = Trace.from_frame(pl.DataFrame(jobs), name="sacct"), []
    monkeypatch.setattr(slurm, "history", lambda from_s, pool_by: seen.append(from_s) or past)
    slurm.pass_time(3600.0)
    advisor = advisor_of(slurm, tmp_path)
    look(slurm, advisor)
    assert seen == [began_s]
    earlier = advisor.state.record.recorded()
    assert ([job.job_id for job in earlier.jobs], earlier.duration_s.tolist()) == (["b0", "b1"], [20.0, 30.0])
    assert (earlier.start_s - began_s).tolist() == [-5.0, 10.0]
    # They were not known before.
    assert earlier.known_s.tolist() == [slurm.now_s] * 2
