"""The seal of Parquet files: what changed is found, what others save or edit is read."""

import random

import polars as pl
import pyarrow.parquet
import pytest

from jobcast.domain.errors import TraceError
from jobcast.traces.files import read_file
from jobcast.traces.parquet import SEAL_BEGINS, SEAL_BYTES, SEAL_ENDS, parquet_metadata, read_parquet, write_parquet

TABLE = pl.DataFrame({"name": ["a", None, "ü"], "seconds": [1.5, -0.0, None], "of": [["x"], [], None]})


@pytest.fixture
def sealed(tmp_path):
    path = tmp_path / "table.parquet"
    write_parquet(TABLE, path, {"about": "this"})
    return path


def refuses(path) -> bool:
    try:
        read_parquet(path)
    except TraceError:
        return True
    return False


def test_a_table_and_its_texts_come_back_and_the_bytes_are_the_same(sealed, tmp_path):
    assert read_parquet(sealed).equals(TABLE)
    assert parquet_metadata(sealed)["about"] == "this"
    write_parquet(TABLE, tmp_path / "again.parquet", {"about": "this"})
    assert sealed.read_bytes() == (tmp_path / "again.parquet").read_bytes()


def test_any_one_bit_that_flips_is_found(sealed):
    data = sealed.read_bytes()
    seal = data.index(SEAL_BEGINS)
    for at in range(0, len(data), 3):
        sealed.write_bytes(data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :])
        refused = refuses(sealed)
        assert refused, f"byte {at} of {len(data)}, the seal is at {seal}"


def test_the_line_says_what_to_do(sealed):
    data = bytearray(sealed.read_bytes())
    data[6] ^= 1
    sealed.write_bytes(data)
    with pytest.raises(TraceError, match=r"is not what jobcast wrote, bytes of it have changed; restore it, or do so"):
        read_parquet(sealed, "do so")


def test_damage_to_the_seal_and_to_the_table_does_not_pass_for_a_file_without_a_seal(sealed):
    data = sealed.read_bytes()
    for seed in range(100):
        rng = random.Random(seed)
        spoilt = bytearray(data)
        at = data.index(SEAL_BEGINS)
        for hit in rng.sample(range(at, at + SEAL_BYTES), rng.randint(1, 20)):
            spoilt[hit] ^= 1 + rng.randrange(255)
        spoilt[rng.randrange(4, at)] ^= 1
        sealed.write_bytes(spoilt)
        assert refuses(sealed)


def test_a_seal_that_was_moved_is_refused(sealed):
    data = sealed.read_bytes()
    seal = data[(at := data.index(SEAL_BEGINS)) : at + SEAL_BYTES]
    for moved in (data.replace(seal, b"") + seal, data.replace(seal, seal + seal), data.replace(seal, b"\0" + seal)):
        sealed.write_bytes(moved)
        assert refuses(sealed)


def test_any_other_reader_reads_it(sealed):
    assert pl.read_parquet(sealed).equals(TABLE)
    assert pl.scan_parquet(sealed).select("seconds").collect().equals(TABLE.select("seconds"))
    assert pyarrow.parquet.read_table(sealed)["name"].to_pylist() == TABLE["name"].to_list()


def test_whoever_edits_it_is_not_locked_out(sealed, tmp_path):
    edited = tmp_path / "edited.parquet"
    read_parquet(sealed).head(1).write_parquet(edited)
    assert read_parquet(edited).equals(TABLE.head(1))
    pyarrow.parquet.write_table(pyarrow.parquet.read_table(sealed).slice(1), edited)
    assert read_parquet(edited)["name"].to_list() == [None, "ü"]
    pyarrow.parquet.read_table(sealed).to_pandas().to_parquet(edited)
    assert read_parquet(edited).height == 3


def test_a_file_without_a_seal_that_panics_or_is_cut_is_refused(tmp_path):
    path = tmp_path / "plain.parquet"
    TABLE.write_parquet(path)
    data = path.read_bytes()
    for end in range(1, len(data), 7):
        path.write_bytes(data[:end])
        assert refuses(path)
    assert SEAL_ENDS not in data
    assert read_file(path).data
