"""Versions of processes that die, and of processes that register at once."""

import hashlib
import json
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

import jobcast
from jobcast.domain.errors import RegistryError
from jobcast.models.registry import open_registry
from jobcast.models.registry.cards import ModelVersion, RegisteredModel, digest
from jobcast.models.registry.folders import CARD_FILE, unpack_code
from jobcast.models.registry.home import database_file
from jobcast.models.registry.promotions import INTENT_TAG, end_moves, half_moved
from jobcast.models.registry.runs import Swept, point_aliases, provenance, sweep_store
from jobcast.models.registry.store import OWNER_TAG, UnfinishedRun
from jobcast.models.registry.store_lock import lock_file, locked
from jobcast.traces.owners import Owner
from tests.models.registry_servers import one_alias_only, registering
from tests.shared import refused


@pytest.fixture
def other(variant):
    """A predictor whose files nobody has registered."""
    return variant("new-load", 1)


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
    assert half_moved(registry.store) == []
    end_moves(None, registry.store, ["new-load", "nobody"])  # nothing is written down there


def test_what_was_deleted_is_not_promoted(registry):
    meant = {"alias": "champion", "versions": {"nobody": 1, "new-load": 99}}
    with registry.store.client() as client:
        client.set_registered_model_tag("job-duration", INTENT_TAG, json.dumps(meant))
    assert half_moved(registry.store) == ["job-duration"]
    sweep_store(registry.home)
    assert half_moved(registry.store) == []
    assert registry.resolve("new-load").version == 1


class Told:
    """A client that keeps the aliases it is told, and a store that answers with one model after the other."""

    def __init__(self, *numbers, aliases=()):
        versions = [ModelVersion("m", number, (), "r", "l", 0.0, {"content_sha256": str(number)}) for number in numbers]
        # Newest first; what is registered meanwhile is there at the second look.
        self.models = [RegisteredModel("m", "", {}, dict.fromkeys(aliases, 1), tuple(versions[::-1]))]
        self.calls = []

    def then(self, *numbers):
        self.models += Told(*numbers).models
        return self

    def model(self, name):
        return self.models.pop(0) if len(self.models) > 1 else self.models[0]

    def set_registered_model_alias(self, name, alias, number):
        self.calls.append((alias, number))


BOTH = ("champion", "challenger")


@pytest.mark.parametrize(
    ("told", "number", "aliases", "calls"),
    [
        (Told(1), 1, BOTH, [("champion", "1"), ("challenger", "1")]),
        (Told(1, 2), 1, BOTH, [("champion", "1")]),  # a newer one is there
        (Told(1, 2), 2, BOTH, [("challenger", "2")]),
        (Told(1, aliases=["champion"]), 1, BOTH, [("challenger", "1")]),
        (Told(1), 1, ("challenger",), [("challenger", "1")]),
        (Told(1), 1, ("champion",), [("champion", "1")]),
        (Told(1).then(1, 2), 1, ("challenger",), [("challenger", "1"), ("challenger", "2")]),  # registered meanwhile
    ],
)
def test_aliases_of_a_new_version(told, number, aliases, calls):
    point_aliases(told, told, "m", number, aliases)
    assert told.calls == calls


def test_where_there_is_no_store_nothing_is_swept(tmp_path):
    assert sweep_store(tmp_path / "fresh") == Swept(0, 0)
    assert not (tmp_path / "fresh").exists()


def test_a_run_that_somebody_still_writes_is_left_alone(registry):
    with sqlite3.connect(database_file(registry.home)) as connection:
        run_id = registry.resolve("new-load").run_id
        connection.execute("UPDATE runs SET status = 'RUNNING' WHERE run_uuid = ?", (run_id,))
        # It may be of another worker, who made the registry.
        here = (str(Owner.here()), run_id, OWNER_TAG)
        connection.execute("UPDATE tags SET value = ? WHERE run_uuid = ? AND key = ?", here)
    assert sweep_store(registry.home) == Swept(0, 0)
    began_s = pytest.approx(time.time(), abs=1e5)
    run = UnfinishedRun(run_id, began_s, str(Owner.here()), ("champion", "challenger"), ("new-load", 1))
    assert registry.store.unfinished_runs() == [run]
    with sqlite3.connect(database_file(registry.home)) as connection:
        abroad = str(replace(Owner.here(), machine="00000000"))
        connection.execute("UPDATE tags SET value = ? WHERE run_uuid = ? AND key = ?", (abroad, run_id, OWNER_TAG))
    assert sweep_store(registry.home) == Swept(0, 0)  # of a process that cannot be seen from here
    assert "RUNNING" in statuses(registry)


def test_drafts_of_dead_processes_are_counted_wherever_they_lie(registry):
    dead = replace(Owner.here(), start="1")
    for folder in (registry.home / "mlruns", registry.store.code("").parent):
        (folder / f".mlflow.db.{dead}.abcd1234").mkdir()
    assert sweep_store(registry.home) == Swept(0, 2)
    assert sweep_store(registry.home) == Swept(0, 0)


@pytest.mark.slow
def test_of_processes_that_register_the_same_at_once_one_does(registry, other):
    said = [process.communicate(timeout=110) for process in [registering(registry.home, other) for _ in range(2)]]
    assert sorted(out for out, _ in said) == ["2 False\n", "2 True\n"], said
    assert len(registry.show("new-load").versions) == 2


def test_a_lock_of_a_dead_process_is_taken_over(registry):
    file = lock_file(registry.home)
    file.write_text(str(replace(Owner.here(), start="1" * 40)))
    with locked(registry.home):
        assert file.read_text().strip() == str(Owner.here())
    assert not file.exists()


def test_a_lock_that_is_held_for_long_names_who_holds_it(registry, monkeypatch):
    from jobcast.models.registry import store_lock

    pauses_s = []
    monkeypatch.setattr(store_lock, "PATIENCE_S", 0.1)
    monkeypatch.setattr(store_lock.time, "sleep", pauses_s.append)
    with locked(registry.home):
        line = f"held for 0 s by process {os.getpid()}; wait for that command or end it"
        with pytest.raises(RegistryError, match=line), locked(registry.home):
            pass
        assert len(pauses_s) > 1
        assert max(pauses_s) <= 0.1
        assert not stat.S_IMODE(lock_file(registry.home).stat().st_mode) & 0o111
    with locked(registry.home):
        pass


def test_a_lock_that_is_waited_for_is_told_of_once(registry, monkeypatch, caplog):
    from jobcast.models.registry import store_lock

    pauses = []  # how long each was, and whether there was a word before
    monkeypatch.setattr(store_lock, "PATIENCE_S", 4.0)
    monkeypatch.setattr(store_lock.time, "sleep", lambda pause_s: pauses.append((pause_s, len(caplog.messages))))
    with locked(registry.home), pytest.raises(RegistryError), locked(registry.home):
        pass
    place = f"{lock_file(registry.home)}: held by process {os.getpid()}"
    assert caplog.messages == [f"note: {place}; waiting for it, 4 s at most"]
    assert sum(pause_s for pause_s, told in pauses if not told) == pytest.approx(2.0)


def _knows_no_locks(*_args):
    raise OSError("no locks available")


def test_where_there_are_no_locks_everybody_gets_one(tmp_path, monkeypatch):
    import fcntl

    home = tmp_path / "a" / "new" / "home"
    monkeypatch.setattr(fcntl, "flock", _knows_no_locks)
    with locked(home):
        assert lock_file(home).exists()
    monkeypatch.setitem(sys.modules, "fcntl", None)  # as on Windows
    with locked(home):
        assert lock_file(home).exists()


def test_a_lock_whose_file_was_removed_meanwhile_is_none(tmp_path, monkeypatch):
    from jobcast.models.registry import store_lock

    tries = []

    def late(number):
        if not tries:
            lock_file(tmp_path).unlink()
        tries.append(number)
        return True

    monkeypatch.setattr(store_lock, "lock_now", late)
    with locked(tmp_path):
        assert (len(tries), lock_file(tmp_path).exists()) == (2, True)


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
    refused(RegistryError, "restore it from a copy", registry.export, version, tmp_path / "out" / "exported")
    assert list((tmp_path / "out").iterdir()) == []
    assert registry.load(version).name == "new-load"  # by the code that is installed


@pytest.mark.parametrize("name", ["evil.py", "jobcast/../evil.py"])
def test_code_lies_inside_the_package_whatever_its_hash(tmp_path, name):
    with zipfile.ZipFile(tmp_path / "code.zip", "w") as packed:
        packed.writestr(name, b"import evil")
    with pytest.raises(RegistryError, match="differs from the code that was registered"):
        unpack_code(tmp_path / "code.zip", digest([(name, b"import evil")]), tmp_path / "out")


@pytest.mark.parametrize("name", ["MLmodel", CARD_FILE, "requirements.txt"])
def test_the_digest_covers_what_mlflow_reads(registry, name):
    version = registry.resolve("new-load")
    file = registry.folder(version) / name
    file.write_text(file.read_text().replace("new-load", "new-laod").replace("numpy", "numpi").replace("models", "m"))
    refused(RegistryError, r"differs from what was registered|damaged|no jobcast\.json", registry.load, version)


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


USER = ("-c", "user.name=me", "-c", "user.email=me@example.org")


def git(*words):
    return subprocess.run(["git", *USER, *words], capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project that DVC knows; the working directory lies below."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    for name in ("dvc.yaml", "dvc.lock"):
        (tmp_path / name).write_text(name)
    return tmp_path


def test_the_commit_and_whether_the_files_are_those_of_it(project, monkeypatch):
    git("init", "-q", str(project))
    git("-C", str(project), "add", ".")
    git("commit", "-qm", "first")
    monkeypatch.setenv("DVC_EXP_NAME", "warm-fir")
    monkeypatch.setenv("DVC_EXP_BASELINE_REV", "")
    found = provenance()
    assert found.pop("mlflow.user", "me")
    commit = git("rev-parse", "HEAD")
    assert found == {
        "mlflow.source.name": "jobcast",
        "mlflow.source.type": "LOCAL",
        "mlflow.source.git.commit": commit,
        "git_commit": commit,
        "git_dirty": "false",
        "dvc_rev": hashlib.sha256(b"dvc.lock").hexdigest(),
        "dvc_experiment": "warm-fir",
    }
    (project / "new").touch()  # which git does not know
    assert provenance()["git_dirty"] == "false"
    (project / "dvc.lock").write_text("changed")
    assert provenance()["git_dirty"] == "true"


def test_without_git_nothing_is_told_of_it(project, capfd):
    assert not any("git" in tag for tag in provenance())
    assert capfd.readouterr() == ("", "")


def test_elsewhere_the_package_s_own_project_counts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own = Path(jobcast.__file__).resolve().parents[2] / "params.yaml"
    assert provenance()["params_sha256"] == hashlib.sha256(own.read_bytes()).hexdigest()
