from itertools import pairwise

from jobcast.features.arrivals import feature_names
from jobcast.features.feature_sets import FEATURE_SETS, PAPER_SETS, REST, TABLE_9, feature_sets


def test_sets_are_cumulative_and_end_with_all_columns():
    sets = list(FEATURE_SETS.values())
    for smaller, larger in pairwise(sets):
        assert set(smaller) < set(larger)
    assert sets[-1] == feature_names()


def test_the_first_four_are_table_9_with_its_fourteen_columns():
    # SIA, Table 9: 6 periodic, 3 of recent arrivals, 3 of recent completions, 2 of future completions.
    assert tuple(FEATURE_SETS)[:4] == PAPER_SETS
    assert [len(FEATURE_SETS[label]) for label in PAPER_SETS] == [6, 9, 12, 14]
    assert FEATURE_SETS["+ future completions"] == TABLE_9
    assert not any("expected" in name for name in FEATURE_SETS["+ recent completions"])


def test_columns_that_no_set_names_come_last_and_nothing_is_lost():
    sets = feature_sets(("something_new", "arrivals_1h_ago"))
    assert sets == {"periodic": ("arrivals_1h_ago",), REST: ("something_new", "arrivals_1h_ago")}
    assert feature_sets(()) == {}
