import pytest

from jobcast.domain.errors import RegistryError
from jobcast.models.metadata import METADATA, read_metadata, write_metadata


def test_keys_are_sorted_so_that_equal_models_are_equal_bytes(tmp_path):
    write_metadata(tmp_path / "a", "new-load", {"b": 1, "a": 0.1})
    write_metadata(tmp_path / "b", "new-load", {"a": 0.1, "b": 1})
    assert (tmp_path / "a" / METADATA).read_bytes() == (tmp_path / "b" / METADATA).read_bytes()
    assert read_metadata(tmp_path / "a", "new-load") == {"format": 1, "predictor": "new-load", "a": 0.1, "b": 1}


def test_missing_foreign_newer_and_broken_files_are_named(tmp_path):
    with pytest.raises(RegistryError, match=r"metadata\.json: cannot be read"):
        read_metadata(tmp_path, "new-load")
    write_metadata(tmp_path, "job-duration", {})
    with pytest.raises(RegistryError, match="holds 'job-duration', not 'new-load'"):
        read_metadata(tmp_path, "new-load")
    write_metadata(tmp_path, "new-load", {"format": 2})
    with pytest.raises(RegistryError, match="format 2, this version reads 1"):
        read_metadata(tmp_path, "new-load")
    (tmp_path / METADATA).write_text("{", encoding="utf-8")
    with pytest.raises(RegistryError, match="not valid JSON"):
        read_metadata(tmp_path, "new-load")
