"""MLF-C by hand. MLFS, section 3.5."""

import numpy as np
import pytest
from hypothesis import given

from jobcast.domain.tasks import ALL_ITERATIONS, OPT_STOP, QUEUED, TARGET_ONLY
from jobcast.schedulers.registry import make_policy
from jobcast.schedulers.tasks.mlf_h import (
    LoadControl,
    MlfH,
    is_overloaded,
    jobs_to_end,
    options_now,
    overload_degree,
)
from jobcast.schedulers.tasks.mlf_rl import MlfRl
from jobcast.schedulers.tasks.mlfs_settings import ControlSettings
from jobcast.schedulers.tasks.network import networks_of
from tests.schedulers.tasks.test_task_network import arrays
from tests.simulator.tasks.task_cases import TaskJob, arrays_of, checked, cluster_of, jobs_of, task_views, view_of


def half_way(*rows, busy=False, mean=None, sd=None, gpus=8):
    """Jobs half done, at 0.699 of accuracy (0.9 (1 - e^-1.5)), all on GPUs; where busy one more waits."""
    rows = (*rows, *([TaskJob(gpu=1.0)] * busy))
    done = [50.0] * (len(rows) - busy) + [0.0] * busy
    gpu_of = [*range(len(rows) - busy)] + [QUEUED] * busy
    known = {"final_mean": mean, "final_sd": sd}
    fields = {
        name: np.array(list(values) + [np.nan] * busy, dtype=float)
        for name, values in known.items()
        if values is not None
    }
    return view_of(jobs_of(*rows), cluster_of(1, gpus), gpu_of=gpu_of, done=done, **fields)


def ends(view, **rule):
    return jobs_to_end(view, ControlSettings(**rule)).tolist()


def test_the_overload_degree_is_the_mean_length_of_utilisations():
    """(0.3, 0.4, 0, 0) is 0.5 long, (1, 1, 1, 1) is 2: they may exceed 1."""
    view = view_of(jobs_of(TaskJob()), cluster_of(2, 4), gpu_of=[0])
    view = view._replace(load=np.array([[0.3, 0.4, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]]) * view.cluster.capacity)
    assert overload_degree(view) == pytest.approx(1.25)
    assert is_overloaded(view, 1.2)
    assert not is_overloaded(view, 1.25)  # at the limit, but for rounding


def test_a_queued_task_makes_the_system_overloaded_but_only_an_active_job_s():
    view = half_way(TaskJob(), busy=True)
    assert is_overloaded(view, 2.0)
    assert not is_overloaded(view._replace(active=np.array([0])), 2.0)


def test_options_change_as_far_as_users_allow_and_only_under_overload():
    view = half_way(
        TaskJob(option=ALL_ITERATIONS, may_become=ALL_ITERATIONS),
        TaskJob(option=ALL_ITERATIONS, may_become=OPT_STOP),
        TaskJob(option=ALL_ITERATIONS, may_become=TARGET_ONLY),
        TaskJob(option=OPT_STOP, may_become=TARGET_ONLY),
        TaskJob(option=TARGET_ONLY, may_become=ALL_ITERATIONS),
    )
    assert options_now(view, False).tolist() == [ALL_ITERATIONS] * 3 + [OPT_STOP, TARGET_ONLY]
    assert options_now(view, True).tolist() == [ALL_ITERATIONS, OPT_STOP] + [TARGET_ONLY] * 3


@pytest.mark.parametrize(("target", "over"), [(0.69, [0]), (0.7, [])])
def test_who_wants_the_target_only_ends_when_it_is_reached(target, over):
    assert ends(half_way(TaskJob(option=TARGET_ONLY, target=target))) == over


def test_all_iterations_run_however_busy_the_cluster_unless_the_user_allows_less():
    kept, eased = (TaskJob(target=0.5, may_become=may) for may in (ALL_ITERATIONS, TARGET_ONLY))
    assert ends(half_way(kept, eased)) == []
    assert ends(half_way(kept, eased, busy=True)) == [1]


@pytest.mark.parametrize(
    ("mean", "earlier", "over"),
    [
        (0.705, 0.695, [0]),  # 0.6992 + 0.0070 of tolerance are above the median, and above the gain of 0.0042
        (0.708, 0.695, []),
        (0.705, 0.690, []),
        (0.705, np.nan, []),
    ],
)
def test_optstop_ends_what_will_hardly_improve(mean, earlier, over):
    view = half_way(TaskJob(option=OPT_STOP), mean=[mean], sd=[0.01])._replace(earlier=np.array([earlier]))
    assert ends(view) == over


@pytest.mark.parametrize(("mean", "sd", "over"), [(0.8, 0.026, [0]), (0.8, 0.028, []), (0.91, 0.001, [])])
def test_optstop_gives_up_a_target_that_is_out_of_reach_with_confidence(mean, sd, over):
    """0.8 + 3.719 x 0.026 is 0.8967, below the target of 0.9; with 0.028 it is 0.9041."""
    view = half_way(TaskJob(option=OPT_STOP, target=0.9), mean=[mean], sd=[sd])
    assert ends(view) == over
    assert ends(view, give_up=False) == []


def test_optstop_waits_for_a_forecast():
    assert ends(half_way(TaskJob(option=OPT_STOP, target=0.5))) == []


def test_a_reached_target_ends_optstop_only_where_it_may_become_the_aim():
    rows = [TaskJob(option=OPT_STOP, may_become=may, target=0.5) for may in (OPT_STOP, TARGET_ONLY)]
    assert ends(half_way(*rows, busy=True, mean=[0.9, 0.9], sd=[0.01, 0.01])) == [1]


def test_jobs_that_end_are_limited_to_what_is_done_and_the_policy_does_not_place_them():
    rows = [TaskJob(option=TARGET_ONLY, target=0.5), TaskJob(gpu=1.0)]
    view = view_of(jobs_of(*rows), cluster_of(1, 2), done=[50.5, 0.0])
    decided = arrays_of(LoadControl(MlfH(), "mlf_c").place(view))
    assert (decided.limited.tolist(), decided.limits.tolist()) == ([0], [50.5])
    assert decided.tasks.tolist() == [1]


def test_mlfs_runs_the_learned_policy_where_there_is_one_and_else_the_heuristic():
    assert isinstance(make_policy("mlfs", networks_of(arrays(1)), {}).policy, MlfRl)
    assert isinstance(make_policy("mlfs").policy, MlfH)


def test_settings_reach_the_rule():
    control = make_policy("mlf_c", None, {"h_s": "1.2", "confidence": "0.9", "tolerance": "0.02", "give_up": "no"})
    assert control.settings == ControlSettings(h_s=1.2, confidence=0.9, tolerance=0.02, give_up=False)


@given(task_views())
def test_only_active_jobs_whose_users_allow_it_end(view):
    policy = LoadControl(MlfH(), "mlf_c")
    decided = arrays_of(policy.place(view))
    checked(view, decided)
    allowed = np.maximum(view.jobs.option, view.jobs.may_become)
    assert (allowed[decided.limited] > ALL_ITERATIONS).all()
    assert not np.isin(view.jobs.job_of[decided.tasks], decided.limited).any()
