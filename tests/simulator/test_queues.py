from math import inf

from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.jobs import Job
from jobcast.simulator.queues import COMPACT_AFTER, PendingQueue, Run

ADDED = st.tuples(st.just("add"), st.integers(0, 3), st.integers(1, 3), st.integers(-2, 2))
TAKEN = st.tuples(st.just("take"), st.integers(0, 30), st.just(0), st.just(0))
ASKED = st.tuples(st.just("ask"), st.integers(0, 3), st.integers(0, 4), st.integers(0, 5))


def job(seq, gpus=1):
    return Job(seq, f"j{seq}", "p", 0.0, gpus)


@given(st.lists(st.one_of(ADDED, TAKEN, ASKED), max_size=80), st.booleans())
def test_a_queue_answers_as_a_plain_list_does(steps, fifo):
    queue, plain = PendingQueue(), []  # plain: (key, seq, lane, job)
    for seq, (kind, a, b, c) in enumerate(steps):
        if kind == "add":
            key = 0.0 if fifo else float(c)
            queue.add(job(seq, b), a, key)
            plain.append((key, seq, a, job(seq, b)))
        elif kind == "take" and plain:
            key, _, lane, taken = plain.pop(a % len(plain))
            assert queue.remove(taken) == (lane, key)
            if a % 3 == 0:  # stopped: filed again where it was
                queue.add(taken, lane, key)
                plain.append((key, taken.seq, lane, taken))
        plain.sort(key=lambda row: row[:2])
        skip = {row[1] for row in plain[:c]} if kind == "ask" else set()
        left = [row for row in plain if row[1] not in skip]
        fitting = [row for row in left if row[2] <= a and row[3].gpus <= b]
        assert queue.head(skip) == (left[0][3] if left else None)
        assert queue.first(b, a, skip) == (fitting[0][3] if fitting else None)
        assert (len(queue), queue.gpus) == (len(plain), sum(row[3].gpus for row in plain))
        assert all(row[3] in queue and queue.key(row[3]) == row[:2] for row in plain)


def test_taking_heads_frees_memory():
    run = Run()
    entries = [(0.0, seq, job(seq)) for seq in range(10 * COMPACT_AFTER)]
    for entry in entries:
        run.add(entry)
    for entry in entries[:-1]:
        run.remove(entry)
    assert len(run) == 1
    assert len(run._entries) <= 2 * COMPACT_AFTER
    assert run.first(set()) == entries[-1]


def test_an_empty_queue_has_nothing():
    queue = PendingQueue()
    assert queue.head() is None
    assert queue.first(inf, inf) is None
    assert job(0) not in queue
