"""How many tasks depend on a task, directly or through others. Compiled."""

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.tasks import Bools, Floats, Ints, TaskJobs
from jobcast.schedulers.tasks.hosts import BOOLS, FLOATS, INTS, njit, types
from jobcast.schedulers.tasks.packing import plain

Words = NDArray[np.uint64]
WORD = 64
"""Tasks in a word of a set of bits."""
WORDS = types.Array(types.uint64, 2, "C")


@njit(types.float64(types.uint64), cache=True)
def bits(word: np.uint64) -> float:
    """How many bits of a word are set."""
    count = 0.0
    while word:
        word &= word - np.uint64(1)
        count += 1.0
    return count


@njit(types.void(INTS, INTS, BOOLS, types.int64, WORDS), cache=True)
def follow(edge_from: Ints, edge_to: Ints, is_server: Bools, begin: int, after: Words) -> None:
    """Fill `after` (n_tasks of the job, n_words) with the tasks that come after each, the last task first."""
    for edge in np.argsort(-edge_from, kind="mergesort"):
        if is_server[edge_from[edge]] or edge_to[edge] < edge_from[edge]:
            continue
        one, other = edge_from[edge] - begin, edge_to[edge] - begin
        after[one, other // WORD] |= np.uint64(1) << np.uint64(other % WORD)
        for word in range(after.shape[1]):
            after[one, word] |= after[other, word]


@njit(types.void(INTS, INTS, INTS, INTS, BOOLS, FLOATS), cache=True)
def count_descendants(
    task_of: Ints, edge_of: Ints, edge_from: Ints, edge_to: Ints, is_server: Bools, count: Floats
) -> None:
    """Fill `count` (n_tasks,)."""
    for job in range(len(task_of) - 1):
        begin, end = task_of[job], task_of[job + 1]
        after = np.zeros((end - begin, (end - begin + WORD - 1) // WORD), dtype=np.uint64)
        first, last = edge_of[job], edge_of[job + 1]
        follow(edge_from[first:last], edge_to[first:last], is_server, begin, after)
        for task in range(end - begin):
            count[begin + task] = 0.0
            for word in range(after.shape[1]):
                count[begin + task] += bits(after[task, word])


def descendants(jobs: TaskJobs) -> Floats:
    """(n_tasks,) how many tasks wait for each task.

    What is exchanged at an iteration's end, sent to earlier tasks, is waited for by none within the same one.
    """
    count = np.zeros(len(jobs.job_of))
    edges = (jobs.task_of, jobs.edge_of, jobs.edge_from, jobs.edge_to, jobs.is_server)
    count_descendants(*(plain(column) for column in edges), count)
    return count
