import io
import json

import lightgbm
import numpy as np
import pytest

from jobcast.domain.errors import MemoryLimitError, RegistryError
from jobcast.domain.memory import memory_limit
from jobcast.models.classifiers import ExtraTrees
from jobcast.models.metadata import METADATA, booster_of, read_metadata, write_metadata
from jobcast.models.new_load import NewLoad
from tests.features.pools import arrived
from tests.shared import refused


def test_keys_are_sorted_so_that_equal_models_are_equal_bytes(tmp_path):
    write_metadata(tmp_path / "a", "new-load", {"b": 1, "a": 0.1})
    write_metadata(tmp_path / "b", "new-load", {"a": 0.1, "b": 1})
    assert (tmp_path / "a" / METADATA).read_bytes() == (tmp_path / "b" / METADATA).read_bytes()
    assert read_metadata(tmp_path / "a", "new-load") == {"format": 1, "predictor": "new-load", "a": 0.1, "b": 1}


def test_missing_foreign_newer_and_broken_files_are_named(tmp_path):
    refused(RegistryError, r"metadata\.json: cannot be read", read_metadata, tmp_path, "new-load")
    write_metadata(tmp_path, "job-duration", {})
    refused(RegistryError, "holds 'job-duration', not 'new-load'", read_metadata, tmp_path, "new-load")
    write_metadata(tmp_path, "new-load", {"format": 2})
    refused(RegistryError, "format 2, this version reads 1", read_metadata, tmp_path, "new-load")
    (tmp_path / METADATA).write_text("{", encoding="utf-8")
    refused(RegistryError, "not valid JSON", read_metadata, tmp_path, "new-load")


def test_a_file_beyond_the_limit_is_not_read(tmp_path):
    write_metadata(tmp_path, "new-load", {"pools": ["p"] * 1000})
    with memory_limit(10**4), pytest.raises(MemoryLimitError, match=r"metadata\.json needs about .* train the model"):
        read_metadata(tmp_path, "new-load")


@pytest.mark.parametrize("windows", [10**9, 25, 0, -1, 2.5, "24", None])
def test_a_model_may_not_declare_more_windows_than_are_learnt_from(tmp_path, windows):
    model = NewLoad("sliding-max").fit({"a": arrived(np.arange(0, 1e6, 3600.0))}, 0.0, 1e6, [60])
    model.save(tmp_path)
    assert NewLoad.load(tmp_path).rule_.windows_ == model.rule_.windows_
    told = json.loads((tmp_path / METADATA).read_text())
    told["rule"]["lending_windows"] = [windows]
    (tmp_path / METADATA).write_text(json.dumps(told))
    refused(RegistryError, "windows of load where 1 to 24 can be; train the model again", NewLoad.load, tmp_path)


def test_a_text_holds_the_leaves_that_it_declares():
    rng = np.random.default_rng(0)
    X = rng.random((200, 2))
    parameters = {"num_leaves": 4, "verbosity": -1, "num_threads": 1}
    text = lightgbm.train(parameters, lightgbm.Dataset(X, label=X[:, 0]), 2).model_to_string()
    assert booster_of(text).num_trees() == 2
    with pytest.raises(RegistryError, match=r"a tree of 4,000,000,000 leaves in a text of"):
        booster_of(text.replace("num_leaves=4", "num_leaves=4000000000", 1))


def test_an_archive_is_not_unpacked_beyond_the_limit():
    packed = io.BytesIO()
    np.savez_compressed(packed, root=np.zeros(10**6))
    with memory_limit(10**6), pytest.raises(MemoryLimitError, match=r"60min\.npz needs about 8\.0 MB"):
        ExtraTrees.from_files("60min", lambda name: packed.getvalue())
