"""What a QOS tells of who changed it, and that one process of a home applies."""

import pytest

from jobcast.domain.errors import ConfigError
from jobcast.live.claims import alone, before, claimants, claimed, new_name, place_of
from jobcast.live.slurm import Qos


@pytest.mark.parametrize("told", ["", "gpus of vision", "a | b", "jobcast by=", "jobcast by=x before=1 and more"])
@pytest.mark.parametrize(("lends", "was"), [(True, 8), (True, None), (False, ()), (False, ("lent_a", "x"))])
def test_a_claim_is_taken_off_as_it_was_put_on(told, lends, was):
    qos = Qos(was, told=told) if lends else Qos(4, was, told=told)
    claim = claimed(qos, "n1-3fa2", lends)
    now = Qos(16, told=claim) if lends else Qos(4, ("lent_b",), told=claim)
    assert before(now, lends) == qos
    # What it was before the first change counts.
    assert claimed(now, "n1-3fa2", lends) == claim
    assert claimants({"a": now, "b": Qos(None, told=told)}) == {"n1-3fa2"}


def test_what_nobody_claims_stays():
    assert before(Qos(8, told="jobcast by= before=1"), True) is None


def test_names_are_what_slurm_keeps_of_them(tmp_path, monkeypatch):
    monkeypatch.setattr("socket.gethostname", lambda: "Login 1.example")
    place = place_of(tmp_path / "A home")
    name = new_name(place)
    assert name == name.lower()
    assert name.split() == [name]
    assert name.startswith("login1.example-")
    assert new_name(place) != name


def test_a_place_is_a_host_and_a_path(tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to(tmp_path)
    here = place_of(tmp_path / "x")
    assert place_of(tmp_path / "link" / "x") == here
    assert place_of(tmp_path / "y") != here
    monkeypatch.setattr("socket.gethostname", lambda: "elsewhere")
    assert place_of(tmp_path / "x") != here


def test_one_process_of_a_home_applies(tmp_path):
    with (
        alone(tmp_path),
        pytest.raises(ConfigError, match="another `jobcast advise` of this home applies"),
        alone(tmp_path),
    ):
        pass
    with alone(tmp_path), alone(tmp_path / "other"):
        pass
