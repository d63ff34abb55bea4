"""Who is compared with MLFS, by what the registry holds."""

import types

import pytest

from jobcast.domain.errors import RegistryError
from papers.mlfs.rows import BY_EARLIER, EXACT, MLFS_EXACT, MLFS_HOPEFUL, MLFS_STRANGE, rows_of


@pytest.fixture
def registered(monkeypatch):
    """Makes a registry with champions: predictor -> (version, whether it was measured to be better)."""

    def holds(champions):
        def resolve(name):
            if name not in champions:
                raise RegistryError(f"no {name}")
            return types.SimpleNamespace(version=champions[name][0])

        registry = types.SimpleNamespace(resolve=resolve)
        monkeypatch.setattr("jobcast.models.registry.open_registry", lambda home: registry)
        monkeypatch.setattr(
            "jobcast.pipelines.experiments.sources.loaded_version",
            lambda home, name, version: types.SimpleNamespace(better_=champions[name][1]),
        )

    return holds


def test_without_learned_policies_their_rows_are_left_out_and_mlfs_runs_without(tmp_path):
    found, notes = rows_of(tmp_path)
    titles = [row.title for row in found]
    assert titles[:5] == ["MLFS", MLFS_EXACT, MLFS_STRANGE, MLFS_HOPEFUL, "MLF-H"]
    assert "RL" not in titles
    told = [note.partition(":")[0] for note in notes]
    assert told == ["MLF-RL is left out", "RL is left out", "MLFS schedules by MLF-H"]
    assert "`jobcast train mlf-policy`" in notes[0]
    assert [row.forecasts for row in found[:2]] == [BY_EARLIER, EXACT]


def test_a_better_policy_is_run_by_mlfs(registered, tmp_path):
    registered({"mlf-policy": (3, True), "device-rl": (2, False)})
    found, notes = rows_of(tmp_path)
    versions = {row.title: row.versions for row in found}
    assert versions["MLFS"] == versions["MLF-RL"] == (("mlf-policy", 3),)
    assert versions["RL"] == (("device-rl", 2),)
    assert versions["MLF-H"] == versions["MLF-H with MLF-C"] == ()
    assert notes == ()
