"""Speedup tables: golden values by hand, and each way in which a row can be wrong."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import ConfigError, TraceError
from jobcast.traces.speedups import LINEAR, read_speedups, write_speedups
from tests.shared import refused

HEADER = "model,gpus,speedup"


@pytest.fixture
def table(written):
    return lambda *rows, header=HEADER: written("speedups.csv", "\n".join([header, *rows]) + "\n")


def test_what_lies_between_rows_is_linear_and_what_lies_beyond_is_flat(table):
    found = read_speedups(table("b,1,1", "b,4,2.5", "a,2,1.8", "a,1,1", "a,6,1.2"))
    assert found.models == ("b", "a")
    assert found.gpu_types == ("",)
    assert found.speed.tolist() == [[1.0], [1.0]]
    assert found.notes == ()
    b = [0, 1, 1.5, 2, 2.5, 2.5, 2.5]
    a = [0, 1, 1.8, 1.65, 1.5, 1.35, 1.2]  # a speedup may fall
    np.testing.assert_allclose(found.speedup, [[b, b], [a, a]], atol=1e-12)
    assert found.speedup.dtype == np.float64
    assert found.row_of("a") == 1


def test_localities_have_their_own_curves_where_the_table_tells(table):
    rows = ("a,1,1,packed", "a,2,1.9,packed", "a,4,3.6,packed", "a,2,1.5,spread", "b,1,1,", "b,4,3,", "c,1,1,packed")
    found = read_speedups(table(*rows, "c,2,1.2,spread", header=f"{HEADER},locality"))
    packed, spread = found.speedup[found.row_of("a")]
    np.testing.assert_allclose(packed, [0, 1, 1.9, 2.75, 3.6])
    np.testing.assert_allclose(spread, [0, 1, 1.5, 1.5, 1.5])
    np.testing.assert_allclose(found.speedup[1][0], [0, 1, 5 / 3, 7 / 3, 3])
    np.testing.assert_array_equal(found.speedup[1][0], found.speedup[1][1])
    np.testing.assert_allclose(found.speedup[2], [[0, 1, 1.2, 1.2, 1.2]] * 2)


def test_types_have_the_speed_of_their_one_gpu_and_departures_are_told(table):
    rows = ("a,1,1,v100", "a,2,1.8,v100", "a,1,0.25,k80", "a,2,0.5,k80", "b,1,1,v100", "b,1,0.5,k80")
    found = read_speedups(table(*rows, header=f"{HEADER},gpu_type"))
    assert found.gpu_types == ("v100", "k80")
    assert found.speed.tolist() == [[1.0, 0.25], [1.0, 0.5]]
    assert found.notes == ("k80: scales as v100 does; its rows differ from that by up to 11%",)  # 0.5 / (1.8 x 0.25)
    assert found.speeds(["k80", "v100"]).tolist() == [[0.25, 1.0], [0.5, 1.0]]
    refused(ConfigError, r"no row of GPU type 'a100'; add rows, known types are v100, k80", found.speeds, ["a100"])


def test_types_that_no_table_names_are_equally_fast(table):
    assert read_speedups(table("a,1,1")).speeds(["a100", "t4"]).tolist() == [[1.0, 1.0]]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (("a,1,1", "a,2,0"), "row 3, column speedup: must be a number > 0, got '0'"),
        (("a,1,1", "a,0,1"), "row 3, column gpus: must be a whole number from 1 to 65536, got '0'"),
        (("a,1,1", "a,99999999,1"), "row 3, column gpus: must be a whole number"),
        (("a,1,1", "a,2,2", "a,2,2"), "row 4, column gpus: is there twice for its model, type and locality, got '2'"),
        (("a,2,2",), "model a has no row of 1 GPU; add it"),
        (("a,1,1", "b,2,2"), "model b has no row of 1 GPU; add it"),
        (("a,1,1", "b,1,2"), "row 3, column speedup: must be 1 for 1 GPU, got 2.0; divide the model's rows by it"),
        ((",1,1",), "row 2, column model: must name a model"),
        ((), "only a header, no rows"),
    ],
)
def test_what_cannot_be_used_is_said_in_one_line(table, rows, said):
    told = refused(TraceError, "", read_speedups, table(*rows))
    assert said in told
    assert "speedups.csv" in told


def test_a_row_of_both_localities_and_one_of_either_contradict_one_another(table):
    header = f"{HEADER},locality"
    with pytest.raises(TraceError, match="row 4, column gpus: is there twice"):
        read_speedups(table("a,1,1,", "a,2,2,", "a,2,1.5,spread", header=header))
    with pytest.raises(TraceError, match="row 3, column locality: must be packed or spread, got 'near'"):
        read_speedups(table("a,1,1,", "a,2,2,near", header=header))


def test_every_type_needs_its_one_gpu_and_columns_are_needed(table):
    with pytest.raises(TraceError, match="model a has no row of 1 GPU of type k80; add it"):
        read_speedups(table("a,1,1,v100", "a,2,1,k80", header=f"{HEADER},gpu_type"))
    refused(TraceError, "column speedup missing", read_speedups, table("a,1", header="model,gpus"))
    refused(TraceError, "no such file", read_speedups, "nowhere.csv")
    broken = table("x")
    broken.rename(broken.with_suffix(".parquet"))
    refused(TraceError, "not a Parquet file that can be read", read_speedups, broken.with_suffix(".parquet"))


@given(
    st.lists(
        st.lists(st.floats(0.1, 50), min_size=6, max_size=6), min_size=1, max_size=3
    ),
    st.sampled_from(["csv", "parquet"]),
)  # fmt: skip
def test_what_is_written_is_read_again(tmp_path_factory, values, suffix):
    curves = np.zeros((len(values), 2, 5))
    curves[:, :, 1] = 1.0
    curves[:, :, 2:] = np.reshape(values, (len(values), 2, 3))
    path = tmp_path_factory.mktemp("written") / f"speedups.{suffix}"
    models = [f"m{row}" for row in range(len(values))]
    write_speedups(path, models, curves)
    found = read_speedups(path)
    assert list(found.models) == models
    np.testing.assert_array_equal(found.speedup, curves)


def test_the_published_table(published):
    table = read_speedups(published / "pcs" / "speedups.csv")
    assert table.speedup.shape == (12, 2, 129)
    transformer = table.speedup[table.row_of("TransformerModel256"), 0]
    shown = (transformer[[3, 4, 6, 8]] / [3, 4, 6, 8]).round(2)
    assert shown.tolist() == [0.81, 0.86, 0.75, 0.82]  # efficiency is not monotone
    np.testing.assert_allclose(table.speedup[table.row_of(LINEAR), 0], np.arange(129), rtol=1e-12)
    rows = pl.read_csv(published / "pcs" / "speedups.csv")
    for model, gpus, speedup in rows.iter_rows():
        assert table.speedup[table.row_of(model), 0, gpus] == speedup
