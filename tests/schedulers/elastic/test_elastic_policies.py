"""The registry: names, settings, and what is refused in one line."""

import json
import subprocess
import sys

import pytest

from jobcast.domain.errors import ConfigError
from jobcast.schedulers.elastic.policies import ELASTIC_POLICIES, find_elastic


def test_all_names_make_a_policy_of_that_name():
    assert list(ELASTIC_POLICIES) == ["pcs", "fifo", "srsf", "las", "afs", "themis", "fair"]
    assert [factory().name for factory in ELASTIC_POLICIES.values()] == list(ELASTIC_POLICIES)


def test_unknown_names_are_refused():
    with pytest.raises(ConfigError, match=r"^unknown elastic policy 'drf'; choose from pcs, fifo, srsf, las, afs"):
        find_elastic("drf")


@pytest.mark.parametrize(
    ("name", "settings", "told"),
    [
        ("fifo", {"lease_s": "5"}, "policy fifo: unknown setting lease_s; known settings: pending_lease, preempt_s"),
        ("themis", {"lease_s": "0"}, "policy themis: setting lease_s must be a positive number of seconds, got 0"),
        ("afs", {"preempt_s": "-1"}, "policy afs: setting preempt_s must be a number >= 0, got -1"),
        ("pcs", {"caps": "first"}, "policy pcs: setting caps must be crossing or monotone, got first"),
        ("fair", {"whole_gpus": "2"}, "policy fair: setting whole_gpus must be true or false, got 2"),
        ("pcs", {"config": ""}, "policy pcs: setting config must be the path of a configuration file, got nothing"),
    ],
)
def test_wrong_settings_are_refused_in_one_line(name, settings, told):
    with pytest.raises(ConfigError) as error:
        ELASTIC_POLICIES[name](settings)
    assert str(error.value) == told


def test_settings_reach_the_policy():
    assert ELASTIC_POLICIES["themis"]().lease_s == 600.0
    assert ELASTIC_POLICIES["themis"]({"lease_s": "60"}).lease_s == 60.0
    assert not ELASTIC_POLICIES["fair"]().integral
    assert ELASTIC_POLICIES["fair"]({"whole_gpus": "true"}).integral
    assert ELASTIC_POLICIES["pcs"]({"whole_gpus": "true", "preempt_s": "3"}).integral


def test_pcs_reads_its_configuration(tmp_path):
    """Two queues, weights 3 and 1 for either type but 1 and 1 for b."""
    path = tmp_path / "config.json"
    told = {"class_thresholds": [10, "inf"], "class_rates": [3, {"frac": "1/1"}], "type_rates": {"b": [1, 1]}}
    path.write_text(json.dumps({**told, "clip_demand_factor": 0.5, "delta": 0.2}))
    policy = ELASTIC_POLICIES["pcs"]({"config": str(path), "caps": "monotone"}, ("a", "b"))
    assert policy.numbers.tolist() == [2, 0.5, 0.2, 0, 1, 10, float("inf"), 3, 1, 1, 1]


def test_a_missing_configuration_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"none\.json: cannot be read"):
        ELASTIC_POLICIES["pcs"]({"config": tmp_path / "none.json"})


def test_the_engine_is_told_what_a_change_costs():
    factory = ELASTIC_POLICIES["themis"]
    assert factory.mechanism() == {"preempt_s": 0.0, "pending_lease": True}
    told = {"preempt_s": "30", "pending_lease": "no", "lease_s": "60"}
    assert factory.mechanism(told) == {"preempt_s": 30.0, "pending_lease": False}


def test_names_are_known_without_the_compiler():
    code = "import sys; import jobcast.schedulers.elastic.policies; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
