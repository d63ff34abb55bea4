"""Versions of processes that die, and of processes that register at once."""

import json
import os
import shutil
import signal
import sqlite3
import zipfile
from dataclasses import replace

import pytest

from jobcast.domain.errors import RegistryError
from jobcast.models.registry import open_registry
from jobcast.models.registry.folders import CARD_FILE
from jobcast.models.registry.home import database_file
from jobcast.models.registry.runs import Swept, sweep_store
from jobcast.models.registry.store import OWNER_TAG
from jobcast.models.registry.store_lock import lock_file, locked
from jobcast.traces.owners import Owner
from tests.models.registry_servers import one_alias_only, registering


@pytest.fixture
def other(saved, tmp_path):
    """A predictor whose files nobody has registered."""
    folder = shutil.copytree(saved["new-load"], tmp_path / "other" / "new-load")
    file = folder / "metadata.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "note": 1}))
    return folder


def statuses(registry):
    with sqlite3.connect(database_file(registry.home)) as connection:
        return [status for (status,) in connection.execute("SELECT status FROM runs ORDER BY start_time")]


def models(registry):
    return sorted(path.name for path in (registry.home / "mlruns/artifacts/new-load/models").iterdir())


def test_a_run_killed_before_its_version_is_ended_and_its_model_removed(registry, other):
    before, stood = registry.list(), models(registry)
    process = registering(registry.home, other, "create_model_version")
    assert process.wait(100) == -signal.SIGKILL
    assert statuses(registry)[-1] == "RUNNING"
    assert len(models(registry)) == 2
    swept = sweep_store(registry.home)
    assert swept.runs == 1
    assert statuses(registry) == ["FINISHED"] * 3 + ["KILLED"]
    assert models(registry) == stood
    assert registry.list() == before
    assert sweep_store(registry.home) == Swept(0, 0)
    assert not lock_file(registry.home).exists()


def test_a_run_killed_after_its_version_gets_its_aliases(registry, other):
    process = registering(registry.home, other, "set_registered_model_alias")
    assert process.wait(100) == -signal.SIGKILL
    assert registry.resolve("new-load", 2).aliases == ()
    sweep_store(registry.home)
    assert registry.resolve("new-load", 2).aliases == ("challenger",)
    assert registry.resolve("new-load").version == 1
    assert statuses(registry) == ["FINISHED"] * 4


def test_models_promoted_together_all_are_whatever_ends_it_half_way(registry, variant, card, monkeypatch):
    for name in ("new-load", "job-duration"):
        registry.register(variant(name, 8), card(name=name, seed=8))
    wanted = [registry.resolve(name, registry.show(name).versions[0].version) for name in ("new-load", "job-duration")]
    champions = [registry.resolve(version.name).version for version in wanted]
    with one_alias_only(monkeypatch):
        registry.promote_together(wanted)
    sweep_store(registry.home)
    assert [registry.resolve(version.name).version for version in wanted] == [version.version for version in wanted]
    assert [registry.rollback(version.name).version for version in wanted] == champions
    assert sweep_store(registry.home) == Swept(0, 0)


def test_a_run_that_somebody_still_writes_is_left_alone(registry):
    with sqlite3.connect(database_file(registry.home)) as connection:
        run_id = registry.resolve("new-load").run_id
        connection.execute("UPDATE runs SET status = 'RUNNING' WHERE run_uuid = ?", (run_id,))
    assert sweep_store(registry.home) == Swept(0, 0)  # of this process
    with sqlite3.connect(database_file(registry.home)) as connection:
        abroad = str(replace(Owner.here(), machine="00000000"))
        connection.execute("UPDATE tags SET value = ? WHERE run_uuid = ? AND key = ?", (abroad, run_id, OWNER_TAG))
    assert sweep_store(registry.home) == Swept(0, 0)  # of a process that cannot be seen from here
    assert "RUNNING" in statuses(registry)


def test_of_processes_that_register_the_same_at_once_one_does(registry, other):
    said = [process.communicate(timeout=110) for process in [registering(registry.home, other) for _ in range(2)]]
    assert sorted(out for out, _ in said) == ["2 False\n", "2 True\n"], said
    assert len(registry.show("new-load").versions) == 2


def test_a_lock_of_a_dead_process_is_taken_over(registry):
    file = lock_file(registry.home)
    file.write_text(str(replace(Owner.here(), start="1")))
    with locked(registry.home):
        assert file.read_text().strip() == str(Owner.here())
    assert not file.exists()


def test_a_lock_that_is_held_for_long_names_who_holds_it(registry, monkeypatch):
    from jobcast.models.registry import store_lock

    monkeypatch.setattr(store_lock, "PATIENCE_S", 0.1)
    with locked(registry.home):
        line = f"held for 0 s by process {os.getpid()}; wait for that command or end it"
        with pytest.raises(RegistryError, match=line), locked(registry.home):
            pass
    with locked(registry.home):
        pass


def test_code_lies_once_beside_the_versions_and_is_covered_by_them(registry, variant, card, tmp_path):
    registry.register(variant("new-load", 4), card(seed=4))
    versions = registry.list()
    (sha256,) = {version.tags["code_sha256"] for version in versions}
    assert [path.name for path in registry.store.code("").parent.iterdir()] == [f"{sha256}.zip"]
    for version in versions:
        folder = registry.folder(version)
        assert json.loads((folder / CARD_FILE).read_text())["code_sha256"] == sha256
        beside = [path for path in folder.rglob("*") if path.is_file() and "data" not in path.parts]
        assert sum(path.stat().st_size for path in beside) < 300_000
    first = registry.resolve("new-load", 1)
    exported = registry.export(first, tmp_path / "exported")
    assert (exported / "code" / "jobcast" / "models" / "pyfunc.py").is_file()


@pytest.mark.parametrize("damage", ["gone", "garbage", "changed", "added"])
def test_code_that_differs_from_what_was_registered_leaves_the_store_by_no_door(registry, tmp_path, damage):
    version = registry.resolve("new-load")
    archive = registry.store.code(version.tags["code_sha256"])
    with zipfile.ZipFile(archive) as packed:
        files = {name: packed.read(name) for name in packed.namelist()}
    if damage == "gone":
        archive.unlink()
    elif damage == "garbage":
        archive.write_bytes(b"no archive")
    else:
        name = "jobcast/models/pyfunc.py" if damage == "changed" else "jobcast/../../evil.py"
        with zipfile.ZipFile(archive, "w") as packed:
            for one, data in {**files, name: b"import evil"}.items():
                packed.writestr(one, data)
    with pytest.raises(RegistryError, match="restore it from a copy"):
        registry.export(version, tmp_path / "out" / "exported")
    assert list((tmp_path / "out").iterdir()) == []
    assert registry.load(version).name == "new-load"  # by the code that is installed


@pytest.mark.parametrize("name", ["MLmodel", CARD_FILE, "requirements.txt"])
def test_the_digest_covers_what_mlflow_reads(registry, name):
    version = registry.resolve("new-load")
    file = registry.folder(version) / name
    file.write_text(file.read_text().replace("new-load", "new-laod").replace("numpy", "numpi").replace("models", "m"))
    with pytest.raises(RegistryError, match=r"differs from what was registered|damaged|no jobcast\.json"):
        registry.load(version)


def test_a_version_with_its_code_inside_as_older_stores_hold_it_still_loads(registry, tmp_path):
    version = registry.resolve("new-load")
    whole = registry.export(version, tmp_path / "whole")
    folder = registry.folder(version)
    shutil.rmtree(folder)
    shutil.copytree(whole, folder)
    card = json.loads((folder / CARD_FILE).read_text())
    for key in ("files", "code_sha256", "version", "created_s"):
        del card[key]
    (folder / CARD_FILE).write_text(json.dumps(card))
    with sqlite3.connect(database_file(registry.home)) as connection:
        connection.execute("DELETE FROM model_version_tags WHERE key IN ('card_sha256', 'code_sha256')")
    older = open_registry(registry.home)
    assert older.load(older.resolve("new-load")).name == "new-load"
    again = older.export(older.resolve("new-load"), tmp_path / "again")
    assert (again / "code" / "jobcast" / "models" / "pyfunc.py").is_file()
