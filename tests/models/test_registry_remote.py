"""The registry on a real MLflow server and a real PostgreSQL: the whole life, clients elsewhere, nobody there."""

import logging
import re
import shutil
import signal
import socket
import time

import pytest
import requests
from mlflow.exceptions import MlflowException, RestException

from jobcast.domain.errors import RegistryError
from jobcast.models.registry import load_exported, open_registry, remote_store, stores
from jobcast.models.registry.cards import summary_of
from jobcast.models.registry.evaluations import BacktestRecord, last_backtests, log_backtest
from jobcast.models.registry.home import Address, registry_address
from jobcast.models.registry.runs import Swept, sweep_store
from jobcast.models.registry.store import UnfinishedRun
from tests.models.registry_servers import free_port, mlflow_server, one_alias_only, postgres, registering
from tests.shared import refused

pytestmark = pytest.mark.xdist_group("remote")  # its servers are started once
NAME = "new-load"


@pytest.fixture(scope="module", params=["http", pytest.param("postgres", marks=pytest.mark.slow)])
def shared(request, tmp_path_factory):
    """A server that all clients of this module share."""
    made = mlflow_server(tmp_path_factory.mktemp("server")) if request.param == "http" else postgres()
    with made as found:
        yield found


@pytest.fixture
def client(shared, tmp_path, monkeypatch):
    """A registry without versions of its own, as a client with an empty home sees it; call it for another client."""
    for name, value in shared.environ.items():
        monkeypatch.setenv(name, value)

    def there(home="home"):
        stores._remote.cache_clear()
        return open_registry(tmp_path / home)

    yield there
    registry = there()
    with registry.store.client() as mlflow:
        for name in registry.store.names():
            mlflow.delete_registered_model(name)


def test_the_whole_life_and_a_client_elsewhere(client, saved, variant, card, predictors, tmp_path, monkeypatch):
    import mlflow.pyfunc

    registry = client()
    assert registry.list() == ()
    first = registry.register(saved[NAME], card())
    assert (first.version, first.aliases, first.is_new) == (1, ("challenger", "champion"), True)
    second = registry.register(variant(NAME, 4), card(seed=4))
    assert (second.version, second.aliases) == (2, ("challenger",))
    assert not registry.register(saved[NAME], card(seed=9)).is_new
    assert first.created_s == pytest.approx(time.time(), abs=1e4)
    assert registry.show(NAME).description == summary_of(predictors[NAME])
    registry.register(saved["job-duration"], card(name="job-duration"))

    elsewhere = client("another machine")
    assert [str(one) for one in elsewhere.list()] == ["job-duration:1", "new-load:2", "new-load:1"]
    assert elsewhere.load(elsewhere.resolve(NAME)).rule_.windows_ == predictors[NAME].rule_.windows_
    assert elsewhere.metrics(first)["horizons/5min/by_pool/busy/coverage"] == 0.96
    assert elsewhere.parameters(first)["coverage"] == "0.95"
    assert elsewhere.promote(NAME, 2).aliases == ("challenger", "champion")
    assert client().rollback(NAME).version == 1
    client().promote_together([second, registry.resolve("job-duration")])
    assert client().resolve(NAME).version == 2
    assert sweep_store(registry.home) == Swept(0, 0)

    gain = {"label": "sia", "policy": "sia", "against": "fcfs", "ratio": 2.5, "low": 2.0, "high": 3.0}
    log_backtest(registry.home, BacktestRecord("week", "7" * 64, "a", "b", [(second, [gain])]))
    assert last_backtests(client().resolve(NAME))[0]["gains"] == [gain]

    folder = elsewhere.export(elsewhere.resolve(NAME, 1), tmp_path / "exported")
    assert (folder / "code" / "jobcast" / "models" / "pyfunc.py").is_file()
    assert load_exported(folder).name == NAME
    monkeypatch.setenv("MLFLOW_TRACKING_URI", registry.store._uri)
    model = mlflow.pyfunc.load_model(f"models:/{NAME}@champion")
    assert len(model.predict(model.input_example))


def test_what_was_last_seen_answers_while_nobody_does(client, saved, card, monkeypatch, caplog):
    registry = client()
    registry.register(saved[NAME], card())
    registry.load(registry.resolve(NAME))
    refused(RegistryError, "no model 'nobody'", registry.resolve, "nobody")
    assert registry.staleness() == {}
    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr(socket, "create_connection", _refuse)
        later = client()
        assert later.pinned(NAME, 1).version == 1
        assert later.staleness() == {}  # of what never changes nobody is asked
        version = later.resolve(NAME)
        assert (version.version, later.load(version).name) == (1, NAME)
        assert later.list() == (version,)
        told = later.staleness()["registry"]
        assert told["place"] == later.store.place
        assert 0.0 <= told["age_s"] < 600.0
        assert len(caplog.messages) == 1
        assert re.search(r"going on with what was last seen of it, \d+ s ago", caplog.text)
        with pytest.raises(RegistryError, match=r"cannot be reached .*; start it, or change"):
            later.promote(NAME, "challenger", alias="shadow")
        refused(RegistryError, "cannot be reached", lambda: client("never seen").resolve(NAME))
    assert client().staleness() == {}
    assert client().resolve(NAME, "challenger").version == 1


def test_runs_that_nobody_ended_tell_what_they_made_and_files_that_are_gone_are_missed(client, saved, card):
    registry = client()
    version, store = registry.register(saved[NAME], card()), registry.store
    made = version.run_id
    tags = {"jobcast_version": "1", "jobcast.owner": "somebody", "jobcast.aliases": "champion,challenger"}
    with store.client() as mlflow:
        bare = mlflow.create_run(store.experiment(mlflow, NAME), tags=tags).info.run_id
        mlflow.update_run(made, status="RUNNING")
        found = {run.run_id: run for run in store.unfinished_runs()}
        for run_id in (bare, made):
            mlflow.set_terminated(run_id)
    began_s = pytest.approx(time.time(), abs=1e4)
    assert found[bare] == UnfinishedRun(bare, began_s, "somebody", ("champion", "challenger"), None)
    assert found[made].made == (NAME, 1)
    assert store.unfinished_runs() == []
    store.discard(version.location)
    with pytest.raises(RegistryError, match=r"new-load:1: its files are missing at .*; restore them or train"):
        client("another machine").load(version)


def _refuse(*_args, **_kwargs):
    raise ConnectionRefusedError(111, "Connection refused")


@pytest.mark.parametrize(
    ("uri", "place"),
    [
        ("http://models", ("models", 80)),
        ("https://models", ("models", 443)),
        ("HTTP://models:5000", ("models", 5000)),
        ("postgresql+psycopg://me@models/x", ("models", 5432)),
        ("postgres://models/x", ("models", 5432)),
    ],
)
def test_who_does_not_answer_is_asked_again_after_half_a_minute(tmp_path, monkeypatch, uri, place):
    asked, now_s = [], [0.0]

    def refuse(where, timeout):
        asked.append(where)
        _refuse()

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(remote_store.time, "monotonic", lambda: now_s[0])
    store = remote_store.RemoteStore(Address(uri, "JOBCAST_REGISTRY"), tmp_path)
    for proxies, after_s, times in (({}, 0.0, 1), ({}, 29.9, 1), ({}, 30.0, 2), ({"ftp": "there"}, 70.0, 3)):
        monkeypatch.setattr(remote_store, "getproxies", lambda proxies=proxies: proxies)
        now_s[0] = 1000.0 + after_s
        refused(RegistryError, "cannot be reached", store._knock)
        assert asked == [place] * times
    now_s[0] = 1200.0
    scheme = uri.partition(":")[0].partition("+")[0].lower()
    monkeypatch.setattr(remote_store, "getproxies", lambda: {scheme: "there"})
    store._knock()  # the proxy may reach it
    assert len(asked) == 3
    monkeypatch.setattr(remote_store, "proxy_bypass", lambda host: host == "models")
    refused(RegistryError, "cannot be reached", store._knock)


AWAY, ASKED = "; start it, or change JOBCAST_REGISTRY", "; set MLFLOW_TRACKING_USERNAME and"


@pytest.mark.parametrize(
    ("error", "from_database", "remedies"),
    [
        (MlflowException("API request to http://models failed with exception: no route"), False, [AWAY]),
        (MlflowException("API request to /models failed with error code 502"), False, [AWAY]),
        (MlflowException("Model new-load not found"), False, []),
        (MlflowException("anything"), True, [AWAY]),
        # What the server itself says, whatever its words are like.
        (RestException({"error_code": "INVALID_STATE", "message": "too many 5 GB files"}), False, []),
        (RestException({"error_code": "TEMPORARILY_UNAVAILABLE", "message": "later"}), False, [AWAY]),
        (requests.ConnectionError("refused"), False, [AWAY]),
        # Who is asked for a password is told how to give one.
        (MlflowException("API request to /models failed with error code 401"), False, [ASKED]),
        (MlflowException("API request to /models failed with error code 403"), False, [ASKED]),
        (RestException({"error_code": "UNAUTHENTICATED", "message": "who?"}), False, [ASKED]),
    ],
)
def test_only_who_did_not_answer_counts_as_away(tmp_path, error, from_database, remedies):
    store = remote_store.RemoteStore(Address("http://models", "JOBCAST_REGISTRY"), tmp_path)
    told = store.explained(error, from_database)
    assert isinstance(told, remote_store.UnreachableError) == (remedies == [AWAY])
    assert [remedy for remedy in (AWAY, ASKED) if remedy in str(told)] == remedies


@pytest.mark.parametrize(("seconds", "told"), [(0.4, "0 s"), (599.0, "599 s"), (600.0, "0.2 h"), (5400.0, "1.5 h")])
def test_ages_for_people(seconds, told):
    assert remote_store._age(seconds) == told


@pytest.mark.slow
def test_killed_before_or_after_its_version_leaves_nothing_half_registered(client, saved, variant, card):
    registry = client()
    registry.register(saved[NAME], card())
    assert registering(registry.home, variant(NAME, 4), "create_model_version").wait(400) == -signal.SIGKILL
    assert [one.version for one in client().list()] == [1]
    assert sweep_store(registry.home).runs == 1
    assert registering(registry.home, variant(NAME, 4), "set_registered_model_alias").wait(400) == -signal.SIGKILL
    assert client().resolve(NAME, 2).aliases == ()
    assert sweep_store(registry.home).runs == 1
    assert client().resolve(NAME, "challenger").version == 2
    assert client().resolve(NAME).version == 1
    assert sweep_store(registry.home) == Swept(0, 0)


def test_models_promoted_together_all_are_whoever_comes_next(client, saved, card, monkeypatch):
    registry = client()
    versions = [registry.register(saved[name], card(name=name)) for name in (NAME, "job-duration")]
    with one_alias_only(monkeypatch):
        registry.promote_together(versions, alias="served")
    elsewhere = client("another machine")
    sweep_store(elsewhere.home)
    assert [elsewhere.resolve(one.name, "served").version for one in versions] == [1, 1]
    assert not any("jobcast.promoting" in elsewhere.show(one.name).tags for one in versions)


@pytest.mark.slow
def test_clients_that_register_at_once_all_get_their_versions(client, saved, variant, card, tmp_path):
    registry = client()
    registry.register(saved[NAME], card())
    folders = [variant(NAME, 4), variant(NAME, 5), shutil.copytree(variant(NAME, 5), tmp_path / "same" / NAME)]
    processes = [registering(tmp_path / f"machine-{number}", folder) for number, folder in enumerate(folders)]
    said = [process.communicate(timeout=400) for process in processes]
    assert all(process.returncode == 0 for process in processes), said
    numbers = [int(out.split()[0]) for out, _ in said]
    found = {one.version: one.content_sha256 for one in client().list()}
    assert set(numbers) <= set(found)
    assert len({found[number] for number in numbers}) == 2
    assert len(set(found.values())) == len(found)  # equal files, registered at once, are one version
    assert client().resolve(NAME).version == 1
    assert client().resolve(NAME, "challenger").version == max(found)


@pytest.mark.parametrize(
    ("uri", "line"),
    [
        ("file:./mlruns", "JOBCAST_REGISTRY=file:./mlruns: no registry of jobcast's"),
        ("ftp://me:secret@models", r"ftp://me:\*\*\*@models: no registry of jobcast's"),
        ("http://", "no registry of jobcast's"),
        (
            "http://me:secret@127.0.0.1:{port}",
            r"http://me:\*\*\*@127.0.0.1:\d+: cannot be reached \(Connection refused",
        ),
        ("postgresql://me:secret@127.0.0.1:{port}/x", r"me:\*\*\*@127.0.0.1:\d+/x: cannot be reached"),
    ],
)
def test_an_address_that_cannot_be_used_is_one_line_without_its_password(tmp_path, monkeypatch, uri, line):
    monkeypatch.setenv("JOBCAST_REGISTRY", uri.format(port=free_port()))
    assert "secret" not in refused(RegistryError, line, lambda: open_registry(tmp_path).list())


def test_a_wrong_password_is_told_at_once(shared, tmp_path, monkeypatch):
    if not shared.uri.startswith("postgresql"):
        pytest.skip("the server asks for none")
    monkeypatch.setenv("JOBCAST_REGISTRY", shared.uri.replace("secret", "wrong-one"))
    assert "wrong-one" not in refused(
        RegistryError, "password authentication failed", lambda: open_registry(tmp_path).list()
    )


def test_ours_wins_and_a_store_of_ours_is_taken(tmp_path, monkeypatch):
    monkeypatch.setenv("JOBCAST_REGISTRY", "http://ours:1/")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://theirs:2")
    assert registry_address().uri == "http://ours:1"
    monkeypatch.delenv("JOBCAST_REGISTRY")
    assert registry_address().variable == "MLFLOW_TRACKING_URI"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlruns/mlflow.db")
    assert registry_address() == tmp_path
    monkeypatch.setenv("MLFLOW_TRACKING_URI", " ")
    assert registry_address() is None
