"""Learned schedulers as folders."""

import numpy as np
import pytest

from jobcast.domain.errors import RegistryError
from jobcast.models.registry.cards import content_sha256
from jobcast.models.scheduling.policy import DevicePolicy, Measured, MlfPolicy, Training

MEASURED = Measured(20, {"mean_jct": -0.2}, {"mean_jct": -0.3}, {"mean_jct": -0.1})
TRAINING = Training(seed=3, iterations=40, betas=(0.5, 0.55, 0.25, 0.15, 0.15), servers=20, jobs=70)


def policy(kind=MlfPolicy, seed=0, **changes):
    rng = np.random.default_rng(seed)
    arrays = {"jobs.first": rng.normal(size=(3, 2)), "jobs.last": rng.normal(size=2)}
    given = {"measured": MEASURED, "better": True, "from_s": 10.0, "until_s": 20.0} | changes
    return kind().set(arrays, {"jobs": ("a", "b", "c"), "hosts": ()}, TRAINING, **given)


@pytest.mark.parametrize("kind", [MlfPolicy, DevicePolicy])
@pytest.mark.parametrize("changes", [{}, {"measured": None, "better": False}])
def test_what_is_saved_is_loaded(tmp_path, kind, changes):
    saved = policy(kind, **changes)
    saved.save(tmp_path)
    loaded = kind.load(tmp_path)
    for name, values in saved.arrays_.items():
        np.testing.assert_array_equal(loaded.arrays_[name], values)
    for name in ("columns_", "training_", "measured_", "better_", "trained_from_s_", "trained_until_s_"):
        assert getattr(loaded, name) == getattr(saved, name)


def test_equal_policies_are_equal_bytes(tmp_path):
    for number, seed in enumerate((0, 0, 1)):
        policy(seed=seed).save(tmp_path / str(number))
    MlfPolicy.load(tmp_path / "0").save(tmp_path / "again")
    first, second, other, again = (content_sha256(tmp_path / name) for name in ("0", "1", "2", "again"))
    assert first == second == again != other


def test_a_folder_of_the_other_policy_is_refused(tmp_path):
    policy(DevicePolicy).save(tmp_path)
    with pytest.raises(RegistryError, match="holds 'device-rl', not 'mlf-policy'"):
        MlfPolicy.load(tmp_path)
