"""What a server tells of a Slurm that it looks at: advice with its age, nothing where it is old, no words of errors."""

from dataclasses import replace

import pytest

from jobcast.live.event_log import SUBMIT, EventLog
from jobcast.live.slurm_side import HEARD_S, STALE_S, SlurmSide
from tests.live.test_advisor import advisor_of, busy


@pytest.fixture
def slurm():
    return busy()


@pytest.fixture
def side(slurm, tmp_path):
    return SlurmSide(advisor_of(slurm, tmp_path), lambda: slurm.now_s, 5.0, lambda: None)


def test_advice_and_leases_with_their_age(slurm, side):
    assert side.advice()["degraded"] == ["nothing was seen of Slurm yet"]
    side.look()
    slurm.pass_time(4.0)
    told = side.advice()
    assert ([one["job_id"] for one in told["actions"] if one["do"] == "lend"], told["age_s"]) == (["b2", "b3"], 4.0)
    assert (side.leases(), slurm.done) == ([], [])
    slurm.pass_time(STALE_S)
    assert side.advice()["actions"] == []


def test_who_waits_for_nodes_is_known_as_of_the_last_look(slurm, side):
    slurm.jobs["b3"] = replace(slurm.jobs["b3"], reason="Resources")
    assert side.waits_for("b3") == ""
    side.look()
    assert side.waits_for("b3").startswith("no nodes that it may use have room")
    assert side.waits_for("b2") == ""
    slurm.jobs["b3"] = replace(slurm.jobs["b3"], reason="QOSGrpGRES")
    side.look()
    assert side.waits_for("b3") == ""


def test_who_asks_for_one_of_several_types_of_gpus_is_told_how_many_are_held(slurm, side, monkeypatch):
    """Of the 4 nodes of 8 GPUs, 24 of which are held, three have A100 and one H100."""
    slurm.jobs["b3"] = replace(slurm.jobs["b3"], asks=(frozenset(["partition gpu"]), frozenset(["gpu a100"])))
    plain = slurm.nodes()
    held = [node.held for node in plain.values()]

    def nodes(last):
        types = dict.fromkeys(plain, "gpu a100") | {"n3": last}
        return {name: replace(node, names=frozenset(["partition gpu", types[name]])) for name, node in plain.items()}

    monkeypatch.setattr(slurm, "nodes", lambda: nodes("gpu h100"))
    side.look()
    told = f"it asks for a100, and {sum(held[:3])} of 24 GPUs of nodes with that are held; here any type would do, and"
    assert side.waits_for("b3") == f"{told} it may start later than told"
    assert side.waits_for("b2") == ""
    slurm.jobs["b3"] = replace(slurm.jobs["b3"], reason="Resources")
    side.look()
    assert side.waits_for("b3").endswith(
        "than told; no nodes that it may use have room, says Slurm; that is not reckoned with here"
    )
    # Where all are alike, it may have any.
    slurm.jobs["b3"] = replace(slurm.jobs["b3"], reason="QOSGrpGRES")
    monkeypatch.setattr(slurm, "nodes", lambda: nodes("gpu a100"))
    side.look()
    assert side.waits_for("b3") == ""


def test_a_slurm_that_does_not_answer_is_told_without_its_words(slurm, side, caplog):
    slurm.fails.add("look")
    for _ in range(3):
        side.look()
    assert side.advice()["degraded"] == ["Slurm cannot be read; the server's log tells more"]
    assert [record.getMessage() for record in caplog.records] == ["look: Slurm says: no"]
    slurm.fails.clear()
    side.look()
    assert side.advice()["degraded"] == []


def test_who_is_not_known_is_looked_for_and_not_again_and_again(slurm, side, tmp_path):

    def known():
        return {event.job_id for _, event in EventLog(tmp_path).since(0) if event.kind == SUBMIT}

    side.look()
    told, begun = side.advice(), known()
    slurm.submit("new1", "a", 1)
    side.hear()
    assert known() == begun
    slurm.pass_time(1.5 * HEARD_S)
    side.hear()
    assert known() - begun == {"new1"}
    # It decides nothing: advice is that of the last look.
    assert side.advice()["as_of"] == told["as_of"]


def test_a_slurm_that_hangs_or_fails_holds_up_nobody(slurm, side):
    with side._lock:  # a look that does not come back
        side.hear()
    assert side.advice()["degraded"] == ["nothing was seen of Slurm yet"]
    slurm.fails.add("look")
    side.look()
    slurm.fails.clear()
    slurm.pass_time(2.0 * HEARD_S)
    side.hear()
    assert side.advice()["degraded"] == ["Slurm cannot be read; the server's log tells more"]
