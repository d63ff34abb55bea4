"""Switches of sharing: the newest one counts, and where there is none a pool shares."""

import pickle

from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.switches import Switch, Switches

INSTANTS = st.integers(0, 20).map(float)
ROWS = st.builds(Switch, st.sampled_from("ab"), st.sampled_from((5, 60)), INSTANTS, st.booleans())


@given(st.lists(ROWS, max_size=8), st.sampled_from("abc"), st.sampled_from((5, 60, 720)), INSTANTS)
def test_shares_is_what_its_words_say(rows, pool, horizon_min, now_s):
    mine = [row for row in rows if (row.pool, row.horizon_min) == (pool, horizon_min) and row.from_s <= now_s]
    latest = [row for row in mine if row.from_s == max(other.from_s for other in mine)]
    assert Switches(tuple(rows)).shares(pool, 60.0 * horizon_min, now_s) == all(row.sharing for row in latest)


@given(st.lists(ROWS, max_size=8))
def test_order_does_not_matter_and_switches_can_be_sent_to_workers(rows):
    one, other = Switches(tuple(rows)), Switches(tuple(reversed(rows)))
    questions = [(pool, 60.0 * k, at / 2) for pool in "ab" for k in (5, 60) for at in range(40)]
    answers = [one.shares(*question) for question in questions]
    assert [other.shares(*question) for question in questions] == answers
    assert [pickle.loads(pickle.dumps(one)).shares(*question) for question in questions] == answers
