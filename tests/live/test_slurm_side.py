"""What a server tells of a Slurm that it looks at: advice with its age, nothing where it is old, no words of errors."""

from jobcast.live.slurm_side import STALE_S, SlurmSide
from tests.live.test_advisor import advisor_of, busy


def test_advice_and_leases_with_their_age(tmp_path):
    slurm = busy()
    side = SlurmSide(advisor_of(slurm, tmp_path), lambda: slurm.now_s, 5.0, lambda: None)
    assert side.advice()["degraded"] == ["nothing was seen of Slurm yet"]
    side.look()
    slurm.pass_time(4.0)
    told = side.advice()
    assert ([one["job_id"] for one in told["actions"] if one["do"] == "lend"], told["age_s"]) == (["b2", "b3"], 4.0)
    assert (side.leases(), slurm.done) == ([], [])
    slurm.pass_time(STALE_S)
    assert side.advice()["actions"] == []


def test_a_slurm_that_does_not_answer_is_told_without_its_words(tmp_path, caplog):
    slurm = busy()
    side = SlurmSide(advisor_of(slurm, tmp_path), lambda: slurm.now_s, 5.0, lambda: None)
    slurm.fails.add("look")
    for _ in range(3):
        side.look()
    assert side.advice()["degraded"] == ["Slurm cannot be read; the server's log tells more"]
    assert [record.getMessage() for record in caplog.records] == ["look: Slurm says: no"]
    slurm.fails.clear()
    side.look()
    assert side.advice()["degraded"] == []
