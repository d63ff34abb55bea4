"""The damage itself: the same for the same seed, of bounded size, and really done."""

import random

import pytest

from tests.fuzz.mutations import HUGE_LINE, MUTATIONS, mutate, mutate_text

TABLE = b"job_id,pool,submit_time\n1,a,2017-11-06 00:00:00\n2,b,2017-11-07 00:00:00\n"


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_mutation_changes_a_table_and_takes_any_bytes(mutation):
    made = {mutation(TABLE, random.Random(seed)) for seed in range(20)}
    assert made - {TABLE}
    for data in (b"", b"\n", b"\0", b"PAR1\xff"):
        assert isinstance(mutation(data, random.Random(0)), bytes)


def test_the_same_seed_gives_the_same_bytes_and_another_one_others():
    first, again = ([mutate(TABLE, random.Random(seed)) for seed in range(200)] for _ in range(2))
    assert first == again
    assert len(set(first)) > 150


def test_what_comes_out_stays_small_enough_to_be_read_often():
    assert max(len(mutate(TABLE, random.Random(seed))) for seed in range(300)) < 8 * HUGE_LINE


def test_text_stays_text():
    assert mutate_text("slack=0.1", random.Random(3)) == mutate_text("slack=0.1", random.Random(3))
    assert len({mutate_text("slack=0.1", random.Random(seed)) for seed in range(50)}) > 25
