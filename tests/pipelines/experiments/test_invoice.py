"""Accounts of a run: by hand, and that what is lent is what is borrowed."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import ConfigError
from jobcast.pipelines.experiments.explain.run_table import RunTable, read_run_table
from jobcast.pipelines.experiments.invoice import NO_BASELINE, invoice, loans_of
from tests.shared import refused

QUOTAS = {"a": 4, "b": 4, "c": 2}


def run_of(rows: list[dict[str, object]], folder: Path, quotas: dict[str, int] | None = QUOTAS) -> RunTable:
    """A run as `simulate --out` wrote it, without its record."""
    filled = [{"user": "u", "preemptions": 0, "dedicated": True, **row} for row in rows]
    pl.DataFrame(filled).with_row_index("job_id").write_csv(folder / "log.csv")
    if quotas is None:
        return read_run_table(folder / "log.csv")
    (folder / "pools.csv").write_text("pool,gpus\n" + "".join(f"{name},{gpus}\n" for name, gpus in quotas.items()))
    return read_run_table(folder / "log.csv", folder / "pools.csv")


def job(pool: str, start_h: float, end_h: float, gpus: int, **more: object) -> dict[str, object]:
    """A job that was submitted at 0 and held GPUs in [start_h, end_h)."""
    start_s, end_s = start_h * 3600.0, end_h * 3600.0
    times = {"submit_time": 0.0, "start_time": start_s, "end_time": end_s, "duration": end_s - start_s}
    return {"pool": pool, "gpus": gpus, **times, **more}


def test_accounts_by_hand(tmp_path: Path) -> None:
    """Pool a holds 6 of its 4 GPUs for two hours; b is idle (4), c half (1 of 2): they lend 4/5 and 1/5."""
    table = run_of(
        [
            job("a", 0, 3, 4, user="x", baseline_end_time=3 * 3600.0),
            job("a", 0, 2, 2, user="y", dedicated=False, baseline_end_time=5 * 3600.0),
            job("c", 0, 3, 1, user="z", baseline_end_time=2 * 3600.0),
            job("b", 2, 3, 1, user="w", baseline_end_time=3 * 3600.0),
        ],
        tmp_path,
    )
    result = invoice(table, eur_per_gpu_h=0.5)
    pools = {row["pool"]: row for row in result["pools"]}
    assert {name: row["lent_gpu_h"] for name, row in pools.items()} == pytest.approx({"a": 0, "b": 3.2, "c": 0.8})
    assert {name: row["borrowed_gpu_h"] for name, row in pools.items()} == pytest.approx({"a": 4, "b": 0, "c": 0})
    assert {name: row["balance_eur"] for name, row in pools.items()} == pytest.approx({"a": -2.0, "b": 1.6, "c": 0.4})
    users = {row["user"]: row for row in result["users"]}
    assert {name: row["borrowed_gpu_h"] for name, row in users.items()} == pytest.approx(
        {"x": 0, "y": 4, "z": 0, "w": 0}
    )
    assert {name: row["used_gpu_h"] for name, row in users.items()} == pytest.approx({"x": 12, "y": 4, "z": 3, "w": 1})
    assert (users["y"]["saved_min"], users["z"]["lost_min"]) == pytest.approx((180.0, 60.0))
    # Whole numbers add up to whole ones.
    assert (repr(result["total"]["jobs"]), repr(result["total"]["gpus"])) == ("4", "10")
    assert result["loans"] == [
        {"lender": "b", "borrower": "a", "gpu_h": pytest.approx(3.2)},
        {"lender": "c", "borrower": "a", "gpu_h": pytest.approx(0.8)},
    ]


def test_a_loan_that_no_job_is_marked_for_falls_on_all(tmp_path: Path) -> None:
    """Of 6 GPUs on a quota of 4, a third of each is borrowed."""
    loans = loans_of(run_of([job("a", 0, 1, 4), job("a", 0, 1, 2)], tmp_path))
    assert loans.by_job_h == pytest.approx([4 / 3, 2 / 3])


def test_what_is_not_known_is_null(tmp_path: Path) -> None:
    """No baseline: no minutes; no quotas: no loans and no price."""
    table = run_of([job("a", 0, 1, 4), job("b", 0, 1, 9)], tmp_path, quotas=None)
    result = invoice(table)
    assert NO_BASELINE in result["notes"]
    assert [(row["saved_min"], row["borrowed_gpu_h"], row["used_gpu_h"]) for row in result["pools"]] == [
        (None, None, 4.0),
        (None, None, 9.0),
    ]
    refused(ConfigError, "--price", invoice, table, 1.0)


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"), st.floats(0, 50), st.floats(0.1, 50), st.integers(1, 6), st.booleans(),
            st.sampled_from("uvw"),
        ),
        min_size=1,
        max_size=20,
    )
)  # fmt: skip
def test_sums_conserve(drawn: list[tuple[str, float, float, int, bool, str]]) -> None:
    """Over quotas that hold all jobs at once: what is lent is borrowed, by pool, by user and by pair."""
    rows = [
        job(pool, start, start + length, gpus, dedicated=own, user=user, baseline_end_time=(start + 2 * length) * 3600)
        for pool, start, length, gpus, own, user in drawn
    ]
    total = sum(gpus for _, _, _, gpus, _, _ in drawn)
    with TemporaryDirectory() as folder:
        table = run_of(rows, Path(folder), {"a": 2, "b": 3, "c": total})
        result = invoice(table, 1.0)
    sums = [
        sum(row["lent_gpu_h"] for row in result["pools"]),
        sum(row["borrowed_gpu_h"] for row in result["users"]),
        sum(row["gpu_h"] for row in result["loans"]),
    ]
    assert sums == pytest.approx([result["total"]["borrowed_gpu_h"]] * 3, abs=1e-9)
    used = float(np.sum((table.end_s - table.start_s) * table.gpus) / 3600.0)
    assert sum(row["used_gpu_h"] for row in result["users"]) == pytest.approx(used, abs=1e-9)
    assert sum(row["balance_eur"] for row in result["pools"]) == pytest.approx(0.0, abs=1e-9)
    assert all(row["borrowed_gpu_h"] <= row["used_gpu_h"] + 1e-9 for row in result["users"])
