"""Priority, accounts, QOS and limits of a cluster file."""

from math import inf

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobcast.domain.errors import PoolsError
from jobcast.domain.hardware import Cluster, NodeGroup
from jobcast.domain.scheduling_rules import NO_RULES, Account, Limits, PriorityWeights, Qos, SchedulingRules
from jobcast.traces.cluster_file import read_cluster, write_cluster
from tests.shared import refused

NODE = "nodes: [{gpus: 4}]\n"
WHOLE = """
priority: {age: 10, fairshare: 2.5, half_life_s: 0, favor_small: true}
accounts:
  lab: {shares: 3, grp_gpus: 8, users: {ann: 2}, accounts: {theory: {user_jobs: 4, accounts: {deep: }}}}
  guests: {}
qos: {high: {priority: 100, user_gpus: 2}, low: }
partitions: {gpu: 10}
"""


def read(tmp_path, text):
    path = tmp_path / "cluster.yaml"
    path.write_text(NODE + text)
    return read_cluster(path).rules


def test_all_sections(tmp_path):
    rules = read(tmp_path, WHOLE)
    assert rules.weights == PriorityWeights(age=10.0, fairshare=2.5, half_life_s=inf, favor_small=True)
    assert rules.accounts == {
        "lab": Account("", 3.0, {"ann": 2.0}, Limits(grp_gpus=8.0)),
        "theory": Account("lab", 1.0, {}, Limits(user_jobs=4.0)),
        "deep": Account("theory"),
        "guests": Account(),
    }
    assert rules.qos == {"high": Qos(100.0, Limits(user_gpus=2.0)), "low": Qos()}
    assert rules.partitions == {"gpu": 10.0}
    assert (rules.above("deep"), rules.above("new"), rules.above("")) == (("deep", "theory", "lab"), ("new",), ())
    assert (rules.limited, rules.weights.any) == (True, True)


def test_a_file_without_them_has_no_rules(tmp_path):
    rules = read(tmp_path, "")
    assert rules == NO_RULES
    assert (rules.limited, rules.weights.any) == (False, False)


NAMES = ("a", "b", "c d", "ä")
NUMBER = st.floats(0.0, 1e6)
LIMITS = st.builds(Limits, *[NUMBER | st.just(inf)] * 4)


@st.composite
def rules(draw):
    accounts, parents = {}, [""]
    for name in draw(st.lists(st.sampled_from(NAMES), unique=True)):
        users = draw(st.dictionaries(st.sampled_from(NAMES), NUMBER, max_size=2))
        accounts[name] = Account(draw(st.sampled_from(parents)), draw(NUMBER), users, draw(LIMITS))
        parents.append(name)
    weights = st.builds(PriorityWeights, *[NUMBER] * 5, *[st.floats(0.1, 1e9)] * 3, st.booleans())
    qos = st.dictionaries(st.sampled_from(NAMES), st.builds(Qos, NUMBER, LIMITS), max_size=2)
    return SchedulingRules(draw(weights), accounts, draw(qos), draw(st.dictionaries(st.sampled_from(NAMES), NUMBER)))


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rules=rules())
def test_what_is_written_is_read_back(tmp_path, rules):
    write_cluster(Cluster((NodeGroup("", 4, (), ("n",)),), rules=rules), tmp_path / "written.yaml")
    assert read_cluster(tmp_path / "written.yaml").rules == rules


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("priority: {agee: 1}", "priority: agee is not known; did you mean age? known are age, fairshare"),
        ("priority: {agee: 1}", "did you mean age?"),
        ("priority: {age: -1}", "priority, age: must be a number >= 0, got -1"),
        ("priority: {period_s: 0}", "priority, period_s: must be a number > 0, got 0"),
        ("priority: {favor_small: 1}", "priority, favor_small: must be true or false, got 1"),
        ("priority: [1]", "priority: age, fairshare"),
        ("accounts: {a: {accounts: {a: {}}}}", "accounts, a, accounts, a: there are two accounts of that name"),
        ("accounts: {7: {}}", "accounts: names with what each is are expected"),
        ("accounts: {a: 5}", "accounts, a: shares, users, accounts, grp_gpus"),
        ("accounts: {a: {users: [ann]}}", "accounts, a, users: names with what each is are expected"),
        ("accounts: {a: {grp_gpu: 5}}", "did you mean grp_gpus?"),
        ("qos: {a: {priority: high}}", "qos, a, priority: must be a number >= 0, got 'high'"),
        ("partitions: {a: {}}", "partitions, a: must be a number >= 0, got {}"),
    ],
)
def test_what_means_nothing_is_refused_in_one_line(tmp_path, text, line):
    assert line in refused(PoolsError, "", read, tmp_path, text)
