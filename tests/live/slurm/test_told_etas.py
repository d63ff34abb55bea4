"""What is counted of answers about starts and ends: by question, by job, and what is no question any more."""

from benchmarks.told_etas import eta_figures

CAME_S = {"a": (100.0, 200.0), "b": (150.0, 260.0), "c": (50.0, 90.0)}


def row(job_id, at_s, pending=True, status=200, slurm_s=None, **told):
    known = {"state": "pending" if pending else "running", "policy": "fcfs", "degraded": [], "why": ""}
    asked = {"job_id": job_id, "at_s": at_s, "pending": pending, "reason": "QOSGrpGRES", "slurm_s": slurm_s}
    return {**asked, "status": status, "ms": at_s, **(known if status == 200 else {}), **told}


def test_answers_are_counted_by_question_and_by_job():
    rows = [
        row("a", 10.0, start=[20.0, 90.0], end=[110.0, 210.0]),  # starts later than told
        row("a", 60.0, start=[60.0, 120.0], end=[150.0, 190.0], slurm_s=99.0),  # ends later
        row("a", 120.0, pending=False, end=[150.0, 250.0]),
        row("b", 20.0, status=404),
        row("b", 60.0, start=[150.9, 180.0], end=[200.0, 300.0]),  # within the second that Slurm tells
        row("b", 80.0),
        row("c", 60.0, start=[61.0, 62.0]),  # it had started before it was asked about
        row("strange", 10.0, start=[20.0, 30.0]),
    ]
    found = eta_figures(rows, CAME_S)
    pending = found["pending"]
    assert (found["jobs"], pending["jobs"], pending["jobs_told"]) == (3, 2, 2)
    assert (pending["questions"], pending["started_meanwhile"], pending["questions_unanswered"]) == (5, 1, 2)
    assert pending["unanswered"] == {"404 ": 1, "200 ": 1}
    assert (pending["jobs_with_slurms_own_start"], pending["questions_with_slurms_own_start"]) == (1, {"QOSGrpGRES": 1})
    shares = {kind: {by: tuple(one.values()) for by, one in found[kind].items()} for kind in ("start", "end")}
    assert shares["start"] == {"by_question": (3, 66.7, 0.0, 33.3), "by_job": (2, 50.0, 0.0, 50.0)}
    assert shares["end"] == {"by_question": (4, 75.0, 0.0, 25.0), "by_job": (2, 100.0, 0.0, 0.0)}
    assert found["policies"] == {"fcfs": 6}
