"""How networks learn to choose. MLFS, section 3.4; Schulman et al. 2017, equation 7."""

import builtins
import os
import subprocess
import sys

import numpy as np
import pytest

from jobcast.domain.errors import ConfigError
from jobcast.models.scheduling.learner import Learner
from jobcast.models.scheduling.policy import picks_of
from tests.shared import refused


@pytest.fixture(autouse=True)
def _torch(request):
    if "without" not in request.node.name:
        pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'jobcast[rl]'")


def largest_first(count, seed=0):
    """Choices of the row whose first column is largest."""
    rng = np.random.default_rng(seed)
    rows = [rng.normal(size=(rng.integers(2, 6), 4)) for _ in range(count)]
    return picks_of(rows, [int(each[:, 0].argmax()) for each in rows], 4)


NONE = picks_of([], [], 3)


def taught(steps=150, **settings):
    learner = Learner({"jobs": 4, "hosts": 3}, **settings)
    picks = largest_first(300)
    for _ in range(steps):
        learner.imitate({"jobs": picks, "hosts": NONE}, 1e-2)
    return learner


@pytest.mark.slow
def test_choices_are_imitated_on_rows_that_were_not_shown():
    assert taught().fit_of("jobs", largest_first(100, seed=1)).accuracy > 0.9
    assert taught(steps=0).fit_of("jobs", largest_first(100, seed=1)).accuracy < 0.7


PRINTED = "from tests.models.scheduling import test_learner as it; print(it.taught(20).arrays()['jobs.first'].tolist())"


def test_weights_do_not_go_by_the_kernels_of_the_processor():
    """Asked for others, as another processor would choose them: the last digits of weights moved."""
    made = [
        subprocess.run([sys.executable, "-c", PRINTED], env=os.environ | more, capture_output=True, check=True).stdout
        for more in ({}, {"MKL_CBWR": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"})
    ]
    assert made[0] == made[1] != b""


def test_a_blank_column_is_not_read():
    learner = taught(steps=40, blank=(0,))
    assert not learner.arrays()["jobs.first"][0].any()
    assert learner.fit_of("jobs", largest_first(100, seed=1)).accuracy < 0.7


def test_log_chances_of_a_choice_add_up_to_one():
    rows = np.random.default_rng(0).normal(size=(3, 4))
    logs = taught(steps=20).log_chances("jobs", picks_of([rows] * 3, [0, 1, 2], 4))
    assert np.isclose(np.exp(logs).sum(), 1.0)


def test_what_went_better_than_expected_becomes_likelier():
    rows = np.random.default_rng(0).normal(size=(3, 4))
    picks = picks_of([rows, rows], [1, 2], 4)
    learner = Learner({"jobs": 4, "hosts": 3})
    before = learner.log_chances("jobs", picks)
    for _ in range(10):
        learner.improve(
            {"jobs": picks, "hosts": NONE},
            {"jobs": before, "hosts": np.empty(0)},
            {"jobs": np.array([1.0, -1.0]), "hosts": np.empty(0)},
            1e-3,
        )
    after = learner.log_chances("jobs", picks)
    assert after[0] > before[0]
    assert after[1] < before[1]


def test_ratios_beyond_the_clip_change_nothing():
    rows = np.random.default_rng(0).normal(size=(2, 4))
    picks = picks_of([rows, rows], [0, 1], 4)
    learner = Learner({"jobs": 4, "hosts": 3})
    now, start = learner.log_chances("jobs", picks), learner.arrays()
    for clipped, moves in ((0.5, False), (0.0, True)):
        learner.assign(start)
        # The first is already likelier than before by exp(0.5), the second less likely by the same.
        learner.improve(
            {"jobs": picks, "hosts": NONE},
            {"jobs": now - np.array([clipped, -clipped]), "hosts": np.empty(0)},
            {"jobs": np.array([100.0, -100.0]), "hosts": np.empty(0)},
            1e-3,
        )
        shift = learner.log_chances("jobs", picks)[0] - now[0]
        assert (shift > 1e-3) == moves


def test_equal_seeds_learn_equal_weights():
    first, second, third = taught(steps=5, seed=3), taught(steps=5, seed=3), taught(steps=5, seed=4)
    for name, values in first.arrays().items():
        np.testing.assert_array_equal(values, second.arrays()[name])
    assert any((values != third.arrays()[name]).any() for name, values in first.arrays().items())


def test_a_restored_learner_goes_on_as_if_it_had_not_stopped(tmp_path):
    picks, learner = largest_first(50), taught(steps=5)
    learner.save(tmp_path / "learner.pt")
    other = Learner({"jobs": 4, "hosts": 3}, seed=9)
    other.restore(tmp_path / "learner.pt")
    for each in (learner, other):
        each.imitate({"jobs": picks, "hosts": NONE}, 1e-2)
    for name, values in learner.arrays().items():
        np.testing.assert_array_equal(values, other.arrays()[name])


def test_without_pytorch_one_line_says_what_to_install(monkeypatch):
    found = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name == "torch":
            raise ImportError(name)
        return found(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    refused(ConfigError, r"needs the extra rl: pip install 'jobcast\[rl\]'", Learner, {"jobs": 4, "hosts": 3})
