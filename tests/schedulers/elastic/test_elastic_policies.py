"""The registry: names, settings, and what is refused in one line."""

import json
import subprocess
import sys

import pytest

from jobcast.domain.errors import ConfigError
from jobcast.schedulers.policies import split_settings
from jobcast.schedulers.registry import find_policy, make_policy


def test_rules_deal_out_whole_gpus_at_events_and_under_fifo_alone_nobody_is_delayed():
    srsf, fifo = make_policy("srsf"), make_policy("elastic_fifo")
    assert (srsf.integral, srsf.lease_s, srsf.preemptive) == (True, 0.0, True)
    assert not fifo.preemptive


def test_promises_are_kept_unless_renewed():
    assert make_policy("pcs").keep
    assert not make_policy("pcs", None, {"promises": "renew"}).keep


def test_pcs_reads_its_configuration(tmp_path):
    """Two queues, weights 3 and 1 for either type but 1 and 1 for b."""
    path = tmp_path / "config.json"
    told = {"class_thresholds": [10, "inf"], "class_rates": [3, {"frac": "1/1"}], "type_rates": {"b": [1, 1]}}
    path.write_text(json.dumps({**told, "clip_demand_factor": 0.5, "delta": 0.2}))
    policy = make_policy("pcs", ("a", "b"), {"config": str(path), "caps": "monotone"})
    assert policy.numbers.tolist() == [2, 0.5, 0.2, 0, 1, 10, float("inf"), 3, 1, 1, 1]


def test_a_missing_configuration_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"none\.json: cannot be read"):
        make_policy("pcs", None, {"config": tmp_path / "none.json"})


def test_the_engine_is_told_what_a_change_costs():
    spec = find_policy("elastic_themis")
    assert dict(split_settings(spec).mechanism) == {"preempt_s": 0.0, "pending_lease": True}
    told = {"preempt_s": "30", "pending_lease": "no", "lease_s": "60"}
    assert dict(split_settings(spec, told).mechanism) == {"preempt_s": 30.0, "pending_lease": False}


def test_names_are_known_without_the_compiler():
    code = "import sys; import jobcast.schedulers.registry; sys.exit(bool({'numba', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
