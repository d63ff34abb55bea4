"""Tables found beside a trace."""

import json

import pytest

from jobcast.domain.errors import TraceError
from jobcast.traces.enrich.columns import EnrichConfig
from jobcast.traces.enrich.enrichment import enrich, write_enriched
from jobcast.traces.facts import assumptions_beside, facts_beside, sentences
from jobcast.traces.table import Trace
from tests.scenarios import frame_of
from tests.shared import refused


@pytest.fixture
def folder(tmp_path):
    trace = Trace.from_frame(frame_of([0], gpus=2), name="t")
    write_enriched(enrich(trace, ("speedups", "epochs", "due"), EnrichConfig(), 0), tmp_path / "made")
    return tmp_path / "made"


def test_tables_are_found_by_name(folder):
    found = facts_beside(folder / "jobs.parquet")
    assert found == {"speedups": folder / "speedups.csv", "profiles": folder / "profiles.csv"}
    assert facts_beside(folder / "jobs.parquet", ["profiles", "tasks"]) == {"profiles": folder / "profiles.csv"}


def test_a_plain_trace_has_none(folder):
    (folder / "other.parquet").write_bytes((folder / "jobs.parquet").read_bytes())
    assert facts_beside(folder / "other.parquet") == {}
    assert facts_beside(folder.parent / "jobs.parquet") == {}


def test_a_table_that_changed_is_told_when_it_is_asked_for(folder):
    with (folder / "speedups.csv").open("a") as file:
        file.write("x")
    assert facts_beside(folder / "jobs.parquet", ["profiles"])
    with pytest.raises(TraceError, match=r"speedups.csv: is not the table .* run jobcast trace enrich again"):
        facts_beside(folder / "jobs.parquet")
    (folder / "speedups.csv").unlink()
    refused(TraceError, r"speedups.csv: no such file", facts_beside, folder / "jobs.parquet")


@pytest.mark.parametrize(
    "change",
    [
        lambda told: "no json",
        lambda told: json.dumps([1]),
        lambda told: json.dumps(told | {"kind": "other"}),
        lambda told: json.dumps(told | {"files": {"speedups": {"file": "../speedups.csv", "sha256": "0"}}}),
        lambda told: json.dumps(told | {"files": {"unknown": {"file": "speedups.csv", "sha256": "0"}}}),
        lambda told: json.dumps(told | {"facts": {"due": {"says": "", "columns": [], "tables": []}}}),
        lambda told: json.dumps(told | {"facts": {"due": {"says": "Drawn.", "tables": []}}}),
    ],
)
def test_damaged_assumptions_are_refused(folder, change):
    path = folder / "assumptions.json"
    path.write_text(change(json.loads(path.read_text())))
    refused(TraceError, r"assumptions.json: not what jobcast trace enrich wrote", facts_beside, folder / "jobs.parquet")


def test_sentences_are_of_the_tables_in_use(folder):
    told = assumptions_beside(folder / "jobs.parquet")
    assert len(sentences(told)) == 3
    (said,) = sentences(told, {"profiles"})
    assert said.startswith("Profiles are assumed")
    alone = {"due": {"says": "Due dates are drawn.", "columns": ["deadline", "weight"], "tables": []}}
    assert sentences({"facts": alone}, {"weight", "tasks"}) == ["Due dates are drawn."]
    assert sentences({"facts": alone}, {"tasks"}) == []
