"""What is registered, found, promoted, moved and refused."""

import shutil
import time

import numpy as np
import pytest
from mlflow import MlflowClient

from jobcast.domain.errors import RegistryError
from jobcast.models.registry import content_sha256, load_exported, mlflow_door, open_registry
from jobcast.models.registry.evaluations import BacktestRecord, last_backtests, log_backtest
from jobcast.models.registry.folders import CARD_FILE
from jobcast.models.registry.home import database_file, database_uri
from tests.shared import refused


def test_a_first_version_that_must_pass_a_gate_is_challenger_alone(registry, saved, card, variant):
    name = "new-load"
    registry_of = type(registry)(registry.home.parent / "gated")
    first, made = registry_of.register_once(saved[name], card(), first_is_champion=False)
    assert (first.aliases, made) == (("challenger",), True)
    with pytest.raises(RegistryError, match=r"new-load has no champion: none of its 1 versions .* promote new-load:V"):
        registry_of.resolve(name)
    second = registry_of.register(variant(name, 4), card(seed=4))  # by hand, but not the first: still nobody's champion
    assert (second.version, second.aliases) == (2, ("challenger",))
    assert registry_of.promote(name, 1).aliases == ("champion",)


def test_the_first_version_is_champion_and_challenger(registry):
    version = registry.resolve("new-load")
    assert (version.version, version.aliases) == (1, ("challenger", "champion"))
    assert registry.resolve("new-load", "challenger") == version == registry.resolve("new-load", 1)


def test_a_version_carries_what_it_was_trained_on(registry, saved):
    version = registry.resolve("new-load")
    assert version.content_sha256 == content_sha256(saved["new-load"])
    assert (version.trace_name, version.trace_sha256) == ("small", "5" * 64)
    assert version.train_until_s - version.train_from_s == 3 * 86400.0
    assert (version.algorithm, version.tags["seed"], version.tags["trace_rows"]) == ("sliding-max", "3", "360")
    assert registry.parameters(version) == {"algorithm": "sliding-max", "coverage": "0.95", "seed": "3"}
    assert registry.metrics(version) == {
        "horizons/5min/coverage": 0.97,
        "horizons/5min/by_pool/busy/coverage": 0.96,
    }


def test_a_later_version_is_challenger_only(registry, variant, card):
    second = registry.register(variant("new-load", 4), card(seed=4))
    assert (second.version, second.aliases) == (2, ("challenger",))
    assert registry.resolve("new-load").version == 1
    assert [str(version) for version in registry.list()] == [
        "job-duration:1",
        "new-load:2",
        "new-load:1",
        "will-jobs-arrive:1",
    ]


def test_promotions_are_taken_back_one_by_one(registry, variant, card):
    for seed in (4, 5):
        registry.register(variant("new-load", seed), card(seed=seed))
    registry.promote("new-load", 2)
    registry.promote("new-load", "challenger")
    assert registry.promote("new-load", 3).version == 3  # again: nothing to remember
    assert registry.resolve("new-load").version == 3
    assert [registry.rollback("new-load").version for _ in range(2)] == [2, 1]
    assert registry.resolve("new-load").version == 1
    refused(RegistryError, r"new-load: no earlier champion to go back to; .* promote", registry.rollback, "new-load")


def test_as_many_promotions_are_remembered_as_the_database_has_room_for(registry, variant, card):
    """A tag of a registered model holds 5,000 characters on PostgreSQL; the oldest go, none is cut in two."""
    registry.register(variant("new-load", 4), card(seed=4))
    client = MlflowClient(tracking_uri=database_uri(database_file(registry.home)))
    # As after some 1,300 promotions.
    client.set_registered_model_tag("new-load", "previous.champion", ",".join(["1111"] * 999 + ["1"] * 3))
    registry.promote("new-load", 2)
    tag = client.get_registered_model("new-load").tags["previous.champion"]
    assert len(tag) <= 5000
    assert (set(tag.split(",")), tag[-12:]) == ({"1111", "1"}, "1111,1,1,1,1")
    assert registry.rollback("new-load").version == 1


def test_a_rollback_after_an_interrupted_promotion_finds_the_one_before(registry, variant, card, monkeypatch):
    registry.register(variant("new-load", 4), card(seed=4))
    registry.register(variant("new-load", 5), card(seed=5))
    registry.promote("new-load", 2)
    from mlflow import MlflowClient

    with monkeypatch.context() as patch:
        patch.setattr(MlflowClient, "set_registered_model_alias", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            registry.promote("new-load", 3)
    assert registry.resolve("new-load").version == 2
    assert registry.rollback("new-load").version == 1


def _deleted(registry):
    uri = database_uri(database_file(registry.home))
    MlflowClient(tracking_uri=uri, registry_uri=uri).delete_model_version("new-load", "2")


def _without_files(registry):
    shutil.rmtree(registry.folder(registry.resolve("new-load", 2)))


@pytest.mark.parametrize("lose", [_deleted, _without_files])
def test_nobody_is_led_to_a_version_that_was_deleted_or_whose_files_are_gone(registry, variant, card, lose):
    for seed in (4, 5):
        registry.register(variant("new-load", seed), card(seed=seed))
    registry.promote("new-load", 2)
    registry.promote("new-load", 3)
    lose(registry)
    assert registry.rollback("new-load").version == 1
    refused(RegistryError, "", registry.promote, "new-load", 2)
    assert registry.resolve("new-load").version == 1


def test_any_alias_can_be_set(registry, variant, card):
    registry.register(variant("new-load", 4), card(seed=4))
    assert registry.set_alias("new-load", "shadow", 2).aliases == ("challenger", "shadow")
    assert registry.resolve("new-load", "shadow").version == 2


@pytest.mark.parametrize("alias", ["my alias", "", "latest", "V2", "3", "a/b", "x" * 256])
def test_what_can_be_no_alias_is_told_in_its_own_words(registry, alias):
    for move in (registry.set_alias, registry.promote):
        refused(RegistryError, f"^alias '{alias}': write letters, digits", move, "new-load", alias=alias, ref=1)


def test_equal_files_are_one_version(registry, saved, card, variant):
    sha256 = content_sha256(saved["new-load"])
    made = registry.register(variant("new-load", 4), card(seed=4))
    assert made.is_new
    assert registry.resolve("new-load", 2) == made  # which is the same version, though not made just now
    assert not registry.resolve("new-load", 2).is_new
    again = registry.register(saved["new-load"], card(seed=4))
    assert (again.version, again.is_new, again.aliases) == (1, False, ("champion",))
    assert registry.register_once(saved["new-load"], card(seed=4)) == (again, False)
    assert len(registry.show("new-load").versions) == 2
    assert registry.find_by_content("new-load", sha256).version == 1
    assert registry.find_by_content("new-load", "0" * 64) is None
    assert registry.find_by_content("nobody", sha256) is None


def test_a_run_shows_headlines_and_a_table_holds_the_rest(registry, variant, card):
    horizons = {f"{k}min": {"f1": 0.5, "n": k, "by_pool": {"busy": {"f1": 0.25}}} for k in range(40)}
    version = registry.register(variant("new-load", 4), card(metrics={"horizons": horizons}))
    shown = registry.store.run(version.run_id).metrics
    client = MlflowClient(tracking_uri=database_uri(database_file(registry.home)))
    (first,) = client.get_metric_history(version.run_id, "horizons/0min/f1")
    assert (first.step, first.timestamp) == (0, pytest.approx(1000.0 * time.time(), abs=1e6))
    assert version.created_s == pytest.approx(time.time(), abs=1e3)
    assert client.get_run(version.run_id).outputs.model_outputs[0].step == 0
    assert (registry.folder(version) / "figures.json").read_text().startswith('{\n  "horizons/0min/f1": 0.5,\n  ')
    assert len(shown) == 30
    assert set(shown) == {f"horizons/{k}min/f1" for k in range(30)}
    every = registry.metrics(version)
    assert len(every) == 120
    assert every["horizons/39min/by_pool/busy/f1"] == 0.25


def test_a_run_holds_more_than_one_call_of_mlflow_takes(registry, variant, card):
    many = {f"p{number}": number for number in range(200)}
    version = registry.register(variant("new-load", 4), card(parameters=many, series={"loss": (0.5,) * 1001}))
    assert registry.parameters(version) == {name: str(value) for name, value in many.items()} | {
        "algorithm": "sliding-max",
        "seed": "3",
    }
    client = MlflowClient(tracking_uri=database_uri(database_file(registry.home)))
    assert [one.step for one in client.get_metric_history(version.run_id, "loss")] == list(range(1001))


def test_a_version_has_a_card_for_people_and_says_where_it_comes_from(registry):
    client = MlflowClient(tracking_uri=database_uri(database_file(registry.home)))
    version = registry.resolve("new-load")
    text = (registry.folder(version) / "model_card.md").read_text()
    assert client.get_model_version("new-load", "1").description == text
    for line in (
        "# new-load: sliding-max",
        "- trace: small, 360 rows",
        "| horizons/5min/coverage | 0.97 |  |",
        "None yet: `jobcast backtest --forecasts registry` adds them.",
        "- horizons: 5, 60 minutes; no others",
        "- pools that it has learnt from: busy, calm",
    ):
        assert line in text.splitlines(), text
    assert registry.show("new-load").description in text
    assert registry.show("new-load").description
    tags = registry.store.run(version.run_id).tags
    assert {"mlflow.user", "mlflow.source.name"} <= set(tags)
    assert registry.origin(version).items() <= tags.items()


def test_a_backtest_is_kept_beside_its_versions(registry):
    version = registry.resolve("new-load")
    gain = {"label": "sia registry", "policy": "sia", "against": "fcfs", "ratio": 2.5, "low": 2.0, "high": 3.0}
    for day in range(1, 8):
        record = BacktestRecord("week", "7" * 64, f"2024-01-0{day}", "2024-01-09", [(version, [gain])])
        (run_id,) = log_backtest(registry.home, record).values()
        version = registry.resolve("new-load")
    last = last_backtests(version)
    assert [one["from"] for one in last] == [f"2024-01-0{day}" for day in (7, 6, 5, 4, 3)]
    assert (last[0]["run_id"], last[0]["trace_sha256"], last[0]["gains"]) == (run_id, "7" * 64, [gain])
    run = registry.store.run(run_id)
    assert run.metrics == {f"sia registry/against fcfs/{end}": gain[end] for end in ("ratio", "low", "high")}
    assert (run.tags["mlflow.parentRunId"], run.tags["model_version"]) == (version.run_id, "1")
    client = MlflowClient(tracking_uri=database_uri(database_file(registry.home)))
    text = client.get_model_version("new-load", "1").description
    assert text.count("| sia registry | fcfs | 2.5 | 2 to 3 | week |") == 5
    assert text.index("## Gains") < text.index("## Limits")
    assert registry.load(version).name == "new-load"


def test_a_description_is_no_longer_than_any_database_takes(registry, variant, card):
    many = {f"parameter_{number}": number for number in range(300)}
    version = registry.register(variant("new-load", 4), card(parameters=many))
    assert "- parameter_299: 299\n" in (registry.folder(version) / "model_card.md").read_text()
    gain = {"policy": "sia", "against": "fcfs", "ratio": 2.5}
    gains = [{**gain, "label": f"sia registry {number} {'of a long name' * 10}"} for number in range(30)]
    first = registry.resolve("new-load", 1)
    log_backtest(registry.home, BacktestRecord("week", "7" * 64, "2024-01-01", "2024-01-09", [(first, gains)]))
    client = MlflowClient(tracking_uri=database_uri(database_file(registry.home)))
    texts = [client.get_model_version("new-load", number).description for number in ("1", "2")]
    assert all(4500 < len(text) <= 5000 for text in texts)
    assert "| sia registry 0 " in texts[0]
    last = BacktestRecord("week", "7" * 64, "2024-01-02", "2024-01-09", [(first, [{**gain, "label": "short"}])])
    log_backtest(registry.home, last)
    text = client.get_model_version("new-load", "1").description
    # What the longer one had cut off is back where there is room for it.
    assert text.index("| short | fcfs | 2.5 |") < text.index("## Limits") < text.index("of another cluster")


def test_what_people_wrote_into_a_description_stays(registry):
    version = registry.resolve("new-load")
    client = MlflowClient(tracking_uri=database_uri(database_file(registry.home)))
    text = client.get_model_version("new-load", "1").description
    client.update_model_version("new-load", "1", f"Ask Ann first.\n\n{text}")
    gain = {"label": "sia", "policy": "sia", "against": "fcfs", "ratio": 2.5}
    log_backtest(registry.home, BacktestRecord("week", "7" * 64, "2024-01-01", "2024-01-09", [(version, [gain])]))
    assert client.get_model_version("new-load", "1").description.startswith("Ask Ann first.\n\n# new-load")


def test_a_loaded_predictor_answers_as_the_fitted_one(registry, predictors):
    arrivals = registry.load(registry.resolve("will-jobs-arrive"))
    rows = np.random.default_rng(0).uniform(0, 5, (20, 2, len(arrivals.feature_names_)))
    fitted = predictors["will-jobs-arrive"]
    assert np.array_equal(arrivals.predict_proba(rows), fitted.predict_proba(rows))
    assert registry.load(registry.resolve("will-jobs-arrive")) is arrivals  # read once
    assert registry.load(registry.resolve("new-load")).rule_.windows_ == predictors["new-load"].rule_.windows_


def test_a_moved_store_still_works(registry, variant, card, tmp_path):
    moved = tmp_path / "elsewhere" / "a home"
    moved.parent.mkdir()
    shutil.move(registry.home, moved)
    there = open_registry(moved)
    assert there.load(there.resolve("new-load")).name == "new-load"
    assert there.register(variant("new-load", 4), card(seed=4)).version == 2
    second = there.resolve("new-load", 2)
    assert there.folder(second).is_relative_to(moved)
    assert there.load(second).name == "new-load"
    assert not registry.home.exists()


def test_no_path_of_this_machine_is_written_down(registry, template_home, saved):
    machine = [str(path) for path in (registry.home, template_home, saved["new-load"].parent, template_home.parents[1])]
    files = [path for path in template_home.rglob("*") if path.is_file() and "code" not in path.parts]
    assert (template_home / "mlruns" / "mlflow.db") in files
    assert any(path.name == "MLmodel" for path in files)
    for file in files:
        found = [path for path in machine if path.encode() in file.read_bytes()]
        assert not found, f"{file} holds {found}"


def test_an_export_loads_without_the_store(registry, tmp_path, predictors):
    folder = registry.export(registry.resolve("new-load"), tmp_path / "out" / "exported")
    source = registry.folder(registry.resolve("new-load"))
    for name in ("requirements.txt", "conda.yaml"):  # as registered, but for the package, which lies in the folder
        lines = (source / name).read_text().splitlines()
        assert (folder / name).read_text().splitlines() == [line for line in lines if "jobcast==" not in line]
    shutil.rmtree(registry.home)
    assert load_exported(folder).rule_.windows_ == predictors["new-load"].rule_.windows_
    assert '"version": 1' in (folder / CARD_FILE).read_text()
    assert [path.name for path in folder.parent.iterdir()] == ["exported"]


def test_an_export_overwrites_nothing(registry, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    refused(RegistryError, "full: exists already", registry.export, registry.resolve("new-load"), tmp_path / "full")
    refused(RegistryError, r"no jobcast\.json there", load_exported, tmp_path / "full")


def test_a_model_that_is_not_there(registry, tmp_path):
    assert refused(RegistryError, "", registry.resolve, "regime") == (
        f"no model 'regime' in {registry.home / 'mlruns'}, there is: job-duration, new-load, will-jobs-arrive;"
        " run `jobcast train regime --trace FILE` first"
    )
    with pytest.raises(RegistryError, match="there is: none yet; run `jobcast train new-load --trace FILE` first"):
        open_registry(tmp_path / "fresh").resolve("new-load")
    assert not (tmp_path / "fresh").exists()  # reading makes no store


@pytest.mark.parametrize(
    ("ref", "line"),
    [
        ("shadow", "new-load has no alias 'shadow', it has: challenger, champion; set it with"),
        (7, "new-load has no version 7, it has: 1; see `jobcast models show new-load`"),
        ("7", "new-load has no version 7, it has: 1; see `jobcast models show new-load`"),
    ],
)
def test_an_alias_or_version_that_is_not_there(registry, ref, line):
    refused(RegistryError, "^" + line, registry.resolve, "new-load", ref)
    refused(RegistryError, "^" + line, registry.promote, "new-load", ref)
    if isinstance(ref, int):
        refused(RegistryError, "^" + line, registry.pinned, "new-load", ref)


@pytest.mark.parametrize("content", [b"this is no database" * 100, b""])
def test_a_store_that_cannot_be_read(registry, content):
    file = registry.home / "mlruns" / "mlflow.db"
    file.write_bytes(content)
    refused(RegistryError, r"cannot be read as jobcast's model store .*; restore it", registry.list)


def test_a_store_that_cannot_be_written(registry, saved, card):
    (registry.home / "mlruns" / "mlflow.db").write_bytes(b"this is no database" * 100)
    line = refused(RegistryError, "", registry.register, saved["new-load"], card())
    assert line.startswith(f"{registry.home / 'mlruns' / 'mlflow.db'}: cannot be read as jobcast's model store (")
    assert "file is not a database)" in line


def test_files_that_changed_or_went_away(registry):
    version = registry.resolve("new-load")
    file = registry.folder(version) / "data" / "new-load" / "metadata.json"
    file.write_text(file.read_text() + "\n")
    refused(RegistryError, "differs from what was registered", registry.load, version)
    shutil.rmtree(registry.folder(version))
    refused(RegistryError, r"new-load:1: its files are missing at .*artifacts", registry.load, version)


@pytest.mark.parametrize("damage", [shutil.rmtree, lambda folder: (folder / CARD_FILE).write_text("{}")])
def test_training_again_replaces_a_version_whose_files_went_away(registry, saved, card, variant, damage):
    name = "new-load"
    registry.register(variant(name, 4), card(seed=4))
    damage(registry.folder(registry.resolve(name, 1)))
    again, made = registry.register_once(saved[name], card())
    assert (made, again.version, again.instead_of, again.aliases) == (True, 3, 1, ("champion",))
    registry.load(registry.resolve(name))
    assert [version.aliases for version in registry.show(name).versions] == [("champion",), ("challenger",), ()]
    # Whole now: found as any other is.
    found, made = registry.register_once(saved[name], card())
    assert (found.version, made, found.instead_of) == (3, False, None)


def test_other_features_than_the_code_builds(registry, saved, card, tmp_path):
    other = shutil.copytree(saved["will-jobs-arrive"], tmp_path / "will-jobs-arrive")
    metadata = other / "metadata.json"
    metadata.write_text(metadata.read_text().replace('"weekend"', '"full_moon"'))
    version = registry.register(other, card(name="will-jobs-arrive"))
    refused(RegistryError, r"full_moon.* train the model again", registry.load, version)


def test_an_interrupt_leaves_the_versions_as_they_were(registry, variant, card, monkeypatch):
    from mlflow import MlflowClient

    before = registry.list()
    for step in ("log_model_artifacts", "create_model_version"):
        with monkeypatch.context() as patch:
            patch.setattr(MlflowClient, step, _interrupt)
            with pytest.raises(KeyboardInterrupt):
                registry.register(variant("new-load", 4), card(seed=4))
        assert registry.list() == before
    assert len(list((registry.home / "mlruns/artifacts/new-load/models").iterdir())) == 1  # of the version there is
    assert registry.register(variant("new-load", 4), card(seed=4)).version == 2


def test_an_interrupted_first_use_leaves_no_half_made_database(saved, card, tmp_path, monkeypatch, create_database):
    from mlflow.store.db import utils

    registry = open_registry(tmp_path / "new" / "home")
    with monkeypatch.context() as patch:
        patch.setattr(mlflow_door, "create_database", create_database)
        patch.setattr(utils, "_upgrade_db", _interrupt)  # some tables exist by then
        for _ in range(2):  # where no folder is, and where one was left
            with pytest.raises(KeyboardInterrupt):
                registry.register(saved["new-load"], card())
    assert list((registry.home / "mlruns").iterdir()) == []
    assert registry.list() == ()
    assert registry.register(saved["new-load"], card()).aliases == ("challenger", "champion")


def _interrupt(*_args, **_kwargs):
    raise KeyboardInterrupt
