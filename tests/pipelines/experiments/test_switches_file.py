"""Switches as a file, and as a setting of simulate and backtest."""

import math
import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import ConfigError
from jobcast.domain.switches import Switch, Switches
from jobcast.pipelines.experiments.settings import check_horizons, read_switches, write_switches
from tests.shared import refused

pytestmark = pytest.mark.usefixtures("untrained")
HEADER = "pool,horizon_min,from,sharing"
ROWS = st.builds(
    Switch,
    st.text("ab,\"' ", min_size=1).filter(str.strip),
    st.sampled_from((5, 60, 2.5)),
    st.one_of(st.just(-math.inf), st.integers(0, 2_000_000_000).map(float)),
    st.booleans(),
)


@given(st.lists(ROWS, unique_by=lambda row: (row.pool, row.horizon_min, row.from_s)))
def test_what_was_written_is_read_again(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("switches") / "switches.csv"
    write_switches(rows, path)
    assert sorted(read_switches(path).rows) == sorted(rows)


def test_a_file_as_a_person_writes_it(tmp_path):
    path = tmp_path / "switches.csv"
    path.write_text(f"{HEADER}\na,60,2017-11-13,off\na,60,1511136000,on\nb,5,,off\n")
    assert read_switches(path) == Switches(
        (Switch("a", 60, 1510531200.0, False), Switch("a", 60, 1511136000.0, True), Switch("b", 5, -math.inf, False))
    )


def test_a_switch_that_no_forecast_can_obey_is_refused():
    switches = Switches((Switch("a", 60, 0.0, False), Switch("b", 7, 0.0, False)))
    check_horizons(switches, (5, 7.0, 60.0))
    told = "pool b is switched for windows of 7min, forecasts are of 5min, 60min;"
    refused(ConfigError, told, check_horizons, switches, (5, 60))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("pool,from,sharing\n", "column horizon_min missing, found pool, from, sharing"),
        (f"{HEADER}\na,60,,maybe\n", "row 2, column sharing: must be on or off, got 'maybe'"),
        (f"{HEADER}\na,-5,,on\n", "row 2, column horizon_min: must be minutes > 0, got '-5'"),
        (f"{HEADER}\na,60,yesterday,on\n", "row 2, column from: 'yesterday' is no instant"),
        (f"{HEADER}\n ,60,,on\n", "row 2, column pool: must not be empty"),
        (f"{HEADER}\na,60,,on\na,60,,off\n", "row 3: this pool, horizon and instant is given twice"),
        (f"{HEADER}\na,60,,on,1\n", "row 2: more fields than the header has"),
        ("\xff\xfe", "not readable as CSV"),
    ],
)
def test_a_file_that_cannot_be_used_is_told_in_one_line(tmp_path, text, told):
    path = tmp_path / "switches.csv"
    path.write_bytes(text.encode("latin-1"))
    refused(ConfigError, f"^{re.escape(str(path))}.*{re.escape(told)}", read_switches, path)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("switches") / "switches.csv"
    path.write_bytes(data)
    with suppress(ConfigError):
        assert isinstance(read_switches(path), Switches)


@pytest.fixture
def lending(csv):
    """p's short job b can run on q's idle GPU at once, or after a."""
    trace = csv("a,p,0,54000,1", "b,p,0,240,1", "c,q,90000,60,1")
    pools = csv("p,1", "q,1", name="pools.csv", header="pool,gpus")
    return ("--trace", trace, "--pools", pools)


def test_simulate_obeys_switches(shell, csv, lending):
    off = csv("q,5,,off", "q,60,,off", "q,720,,off", name="off.csv", header=HEADER)
    words = ("simulate", *lending, "--forecasts", "oracle", "--policy", "sia")
    plain, switched = shell.json(*words), shell.json(*words, "--set", f"switches={off}")
    assert (plain["mean_wait_s"], switched["mean_wait_s"]) == (0.0, 54000 / 3)
    assert switched["configuration"]["settings"] == {"switches": str(off)}
