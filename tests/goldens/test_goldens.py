"""What whole runs decide is what they decided: starts, ends, preemptions, moves, figures, through the command line.

`record.py` renews what is expected, and says when that may be done.
"""

import pytest

from tests.goldens.cases import CASES, Case
from tests.goldens.runs import Bench, differences, read_goldens

pytestmark = pytest.mark.xdist_group("goldens")  # what they share is made once
SHOWN = 10


@pytest.fixture(scope="session")
def bench(tmp_path_factory):
    return Bench(tmp_path_factory.mktemp("goldens"))


@pytest.fixture(scope="session")
def goldens():
    return read_goldens()


def marked(case: Case):
    return pytest.param(case, id=case.name, marks=pytest.mark.slow if case.slow else ())


@pytest.mark.parametrize("case", [marked(case) for case in CASES])
def test_a_run_decides_what_it_decided(case, bench, goldens):
    if lack := bench.lacks(case):
        pytest.skip(lack)
    moved = differences(goldens[case.name], bench.outcome(case), case.topic.close)
    assert not moved, "\n".join([f"jobcast {case.words}", f"{len(moved)} values moved:", *moved[:SHOWN]])


def test_every_case_has_its_golden_and_every_golden_its_case(goldens):
    assert list(goldens) == [case.name for case in CASES]


@pytest.mark.parametrize(
    ("column", "golden", "found", "moves"),
    [
        ("start_time", "1000000us", "1000001us", False),
        ("start_time", "1000000us", "1000002us", True),
        ("start_time", "1000000us", "None", True),
        ("end_time", "None", "1000000us", True),
        ("preemptions", "1", "2", True),
        ("nodes", "0+3", "0+4", True),
        ("makespan_s", "120.0", "120.0000005", False),
        ("makespan_s", "120.0", "120.00001", True),
        ("rounds", "45.0", "45", False),
        ("worst_ftf", "1.25", "1.2500000001", False),
        ("worst_ftf", "1.25", "1.25001", True),
        ("worst_ftf", "1.25", "nan", True),
    ],
)
def test_what_counts_as_moved(column, golden, found, moves):
    assert bool(differences({("jobs", "1", column): golden}, {("jobs", "1", column): found})) == moves


def test_what_is_gone_has_moved_and_what_is_new_has_not():
    here = {("figures", "", "jobs"): "3"}
    assert differences(here, {**here, ("figures", "", "hours_saved"): "7"}) == []
    assert differences(here, {}) == ["figures  jobs: is gone, was 3"]
