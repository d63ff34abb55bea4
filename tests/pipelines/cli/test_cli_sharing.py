"""`jobcast trace anonymise` and `jobcast trace twin`."""

import json
from pathlib import Path

import numpy as np
import pytest

from jobcast.traces.pools import read_pools
from jobcast.traces.readers import read_trace
from jobcast.traces.words import made_up_words

pytestmark = pytest.mark.usefixtures("untrained")
HEADER = "job_id,pool,submit_time,duration,gpus,user"


@pytest.fixture
def plain(shell, csv):
    rows = [f"j{at},{['north', 'south'][at % 2]},{9000 * at},{60 + at},{1 + at % 2},u{at % 12}" for at in range(240)]
    csv(*rows, name="plain.csv", header=HEADER)
    csv("north,4", "south,6", name="pools.csv", header="pool,gpus")
    return "plain.csv"


@pytest.mark.parametrize("kind", ["anonymise", "twin"])
def test_what_is_written_can_be_replayed(shell, plain, kind):
    words = ("trace", kind, plain, "--pools", "pools.csv", "--seed", 1)
    first = shell.works(*words, "--out", "a.parquet", "--pools-out", "a.csv")
    shell.works(*words, "--out", "b.parquet", "--pools-out", "b.csv")
    assert Path("a.parquet").read_bytes() == Path("b.parquet").read_bytes()
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
    assert sorted(quota.gpus for quota in read_pools("a.csv").quotas) == [4, 6]
    assert b"north" not in Path("a.parquet").read_bytes() + Path("a.csv").read_bytes()
    assert "membership, by weeks    AUC" in first.out
    figures = shell.json("simulate", "--trace", "a.parquet", "--pools", "a.csv", "--policy", "fcfs")
    assert figures["jobs"] == len(read_trace("a.parquet")) == 240


@pytest.mark.parametrize("kind", ["anonymise", "twin"])
def test_quotas_that_are_written_nowhere_are_told(shell, plain, kind):
    told = shell.works("trace", kind, plain, "--pools", "pools.csv", "--out", "a.csv").err
    assert "pools.csv: its quotas are written nowhere; add --pools-out FILE" in told


def test_an_audit_where_nobody_waited_tells_no_share_of_those_that_did(shell, plain):
    """The trace has no starts."""
    audit = shell.works("trace", "anonymise", plain, "--out", "a.csv").out
    assert "linkage, by wait        the trace tells of nobody who waited\n" in audit
    assert "of those that waited" not in audit


def test_an_export_that_gives_jobs_away_says_what_to_do(shell, plain):
    """Without jitter a row of a half is a row of the log."""
    told = shell.works(
        "trace", "anonymise", plain, "--out", "a.csv", "--jitter", 0, "--seed", 1, "--json", "a.json"
    ).out
    assert json.loads(Path("a.json").read_text())["membership"]["weeks"]["auc"] > 0.55
    assert "what to do              --jitter 3600 gives away less; so may a twin" in told


def test_the_key_is_written_for_its_owner_alone(shell, plain):
    words = ("trace", "anonymise", plain, "--out", "a.csv")
    shell.works(*words)
    assert sorted(path.name for path in Path().iterdir() if path.is_file()) == ["a.csv", "plain.csv", "pools.csv"]
    shell.works(*words, "--key", "key.json", "--json", "audit.json")
    assert Path("key.json").stat().st_mode & 0o777 == 0o600
    key, audit = json.loads(Path("key.json").read_text()), json.loads(Path("audit.json").read_text())
    assert set(key["words"]["pool"]) == {"north", "south"}
    assert str(key["seed"]) not in json.dumps(audit)
    assert audit["done"]["users"] == 12
    assert {"weeks", "users"} == set(audit["membership"])


def test_a_twin_gives_no_name_away_by_a_seed_that_everybody_knows(shell, plain):
    """By it the words in their order are those of the names in theirs."""
    told = json.loads(shell.works("trace", "twin", plain, "--out", "t.csv", "--audit", "-").out)
    known = made_up_words(["north", "south"], (), np.random.default_rng(0)).values()
    assert not set(known) & set(read_trace("t.csv").pools)
    shell.works("trace", "twin", plain, "--out", "again.csv", "--seed", told["seed"])
    assert Path("again.csv").read_bytes() == Path("t.csv").read_bytes()


def test_the_audit_of_a_twin(shell, plain):
    told = json.loads(shell.works("trace", "twin", plain, "--out", "t.csv", "--weeks", 2, "--audit", "-").out)
    assert told["left_out_columns"] == []
    assert told["membership"]["weeks"]["units"] == 4
