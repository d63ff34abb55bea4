"""When a private cluster's places are free again, by hand."""

from jobcast.domain.jobs import Job
from jobcast.schedulers.cells.private import PrivateSchedule


def test_a_job_that_was_stopped_and_whose_end_is_told_late_gives_back_when_it_ended():
    """Of 100 s it ran 40 on spare GPUs; its turn came at 50, it went on at 200, and had ended at 260."""
    queue = PrivateSchedule([1], 1)
    stopped, waiting = (Job(seq, str(seq), "a", 0.0, 1) for seq in range(2))
    queue.submit(stopped)
    queue.started_early(stopped)
    assert [job for job, _ in queue.turns(50.0)] == [stopped]
    queue.stopped(stopped, 10.0, 50.0)
    queue.submit(waiting)
    queue.ended(stopped, 200.0, 300.0, 100.0)
    assert queue.next_s == 260.0
