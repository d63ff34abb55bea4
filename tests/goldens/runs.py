"""Runs of the cases through the command line, what is kept of them, and what of it has moved.

Kept are, by case, the table of jobs, the table of segments, the figures, the rows and gains of a backtest, and the
front of a search: instants as whole microseconds, decisions as they are, other numbers in full. Only columns and
figures of the contract of the command line are kept; others may come and go.
"""

import json
import math
import os
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl

from jobcast.pipelines.cli.main import main
from tests.goldens.cases import Case
from tests.goldens.inputs import TEXTS

FILE = Path(__file__).with_name("runs.parquet")
DATA = "JOBCAST_DATA"
KEYS = ("case", "table", "row", "column")
INSTANTS = ("submit_time", "trace_submit_time", "start_time", "end_time", "predicted_end_time", "from", "until")
DECISIONS = ("gpus", "preemptions", "dedicated", "nodes", "node", "duration_bin", "migrations", "deadline_met")
MEASURES = ("fair_finish_s", "accuracy", "bandwidth_mb", "energy_kwh", "tardiness_eur")
COLUMNS = (*INSTANTS, *DECISIONS, *MEASURES)
"""Of tables of jobs and of segments."""
FIGURES = (
    "jobs", "makespan_s", "mean_jct_s", "p50_jct_s", "p99_jct_s", "mean_wait_s", "events",
    "speedup_mean", "speedup_gmean", "speedup_p5", "speedup_p95", "slowed_pct", "slowdown_total_min",
    "slowdown_max_min", "worst_ftf", "mean_ftf", "unfair_pct_100", "unfair_pct_105", "unfair_pct_110",
    "worst_ftf_lifetime", "mean_ftf_lifetime", "unfair_pct_100_lifetime", "unfair_pct_105_lifetime",
    "unfair_pct_110_lifetime", "rounds", "solver_gap_max", "pred_err_mean_pct", "pred_err_p99_pct",
    "unfairness_mean_pct", "deadline_ratio", "accuracy_mean", "accuracy_ratio", "bandwidth_tb", "energy_kwh",
    "energy_eur", "tardiness_eur", "total_eur",
)  # fmt: skip
"""Of `--json`. Utilisation, times of the policy's own run and versions of models are left out."""
MICROSECONDS = "us"
CLOSE, CLOSE_S = 1e-9, 1e-6
"""How much numbers may differ, relative where nobody says else and absolute; spans of seconds by a microsecond, and so
may instants."""

Place = tuple[str, str, str]
"""Table, row, column."""
Outcome = dict[Place, str]


class Bench:
    """A folder in which commands are typed, with a registry of its own; inputs are made when first needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._data = os.environ.get(DATA)
        self._typed: set[str] = set()
        for name, text in TEXTS.items():
            (folder / name).write_text(text, encoding="utf-8")

    def lacks(self, case: Case) -> str | None:
        """Why a case cannot be run here; None where it can."""
        return f"{DATA} is not set: name the folder of real traces" if case.topic.data and not self._data else None

    def outcome(self, case: Case) -> Outcome:
        """Run a case."""
        for words in case.topic.made:
            if words not in self._typed:
                self._type(words)
                self._typed.add(words)
        for name in ("jobs.parquet", "segments.parquet", "front.parquet", "figures.json"):
            (self._folder / name).unlink(missing_ok=True)
        shown = "--out jobs.parquet" if case.words.startswith("simulate") else ""
        self._type(f"{case.words} {shown} --json figures.json")
        return dict(self._read())

    def _type(self, words: str) -> None:
        typed, told = shlex.split(words.replace("{data}", self._data or "")), StringIO()
        known = {key: value for key, value in os.environ.items() if key != DATA}
        with chdir(self._folder), patch.dict(os.environ, known | {"JOBCAST_HOME": "home"}, clear=True):
            try:
                with redirect_stdout(told), redirect_stderr(told):
                    main(["--quiet", *typed])
            except SystemExit as left:
                if left.code:
                    raise AssertionError(f"jobcast {words}\n{told.getvalue()}") from left

    def _read(self) -> Iterator[tuple[Place, str]]:
        told = json.loads((self._folder / "figures.json").read_text(encoding="utf-8"))
        if (front := self._table("front")) is not None:
            yield from _front_values(front)
        elif "gains" in told:
            yield from _backtest_values(told)
        else:
            yield from _figure_values("figures", "", told)
        if (jobs := self._table("jobs")) is not None:
            yield from _table_values("jobs", jobs, jobs["job_id"].to_list())
        if (segments := self._table("segments")) is not None:
            segments = segments.sort("job_id", "from")
            yield from _table_values("segments", segments, _numbered(segments["job_id"].to_list()))

    def _table(self, name: str) -> pl.DataFrame | None:
        path = self._folder / f"{name}.parquet"
        return pl.read_parquet(path) if path.is_file() else None


def _numbered(names: Sequence[str]) -> list[str]:
    """Names that come several times, each with how often it came before.

    >>> _numbered(["a", "b", "a"])
    ['a 0', 'b 0', 'a 1']
    """
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        found.append(f"{name} {seen[name]}")
        seen[name] += 1
    return found


def _table_values(title: str, table: pl.DataFrame, rows: Sequence[str]) -> Iterator[tuple[Place, str]]:
    for column in (name for name in COLUMNS if name in table.columns):
        values = table[column]
        if column in INSTANTS and values.dtype != pl.Float64:
            values = values.dt.epoch("us")
        elif column in INSTANTS:
            values = (values * 1e6).round().cast(pl.Int64)
        ending = MICROSECONDS if column in INSTANTS else ""
        for row, value in zip(rows, values.to_list(), strict=True):
            yield (title, row, column), f"{value!s}{ending}"


def _figure_values(title: str, row: str, figures: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    for name in FIGURES:
        if name in figures:
            yield (title, row, name), str(figures[name])


def _backtest_values(told: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    rows = told["rows"]
    asked = [row["label"].removeprefix(row["policy"]).strip() or None for row in rows]
    names = [f"{row['policy']} {source}" for row, source in zip(rows, asked, strict=True)]
    for name, row in zip(_numbered(names), rows, strict=True):
        yield from _figure_values("rows", name, row["figures"])
    for gain in told["gains"]:
        for column in ("ratio", "low", "high"):
            yield ("gains", f"{gain['label']} over {gain['against']}", column), str(gain[column])


def _front_values(front: pl.DataFrame) -> Iterator[tuple[Place, str]]:
    for row in front.drop("config").iter_rows(named=True):
        for column, value in row.items():
            yield ("front", str(row["pick"]), column), str(value)


def differences(golden: Outcome, found: Outcome, close: float = CLOSE) -> list[str]:
    """What of a golden outcome is gone or another one, a line each; what is new is nobody's loss.

    `close`: how much numbers may differ, relative.
    """
    lines = []
    for place, value in golden.items():
        told = found.get(place)
        if told is None:
            lines.append(f"{' '.join(place)}: is gone, was {value}")
        elif not _same(value, told, place[2], close):
            lines.append(f"{' '.join(place)}: {told}, was {value}")
    return lines


def _same(golden: str, found: str, column: str, close: float) -> bool:
    if golden == found:
        return True
    instant = golden.endswith(MICROSECONDS)
    try:
        was, now = (float(value.removesuffix(MICROSECONDS)) for value in (golden, found))
    except ValueError:  # one of them is text or nothing at all, and they are not equal
        return False
    if instant:
        return found.endswith(MICROSECONDS) and abs(now - was) <= max(1.0, close * abs(was) if close > CLOSE else 0.0)
    if column in DECISIONS:
        return False
    return math.isclose(now, was, rel_tol=close, abs_tol=CLOSE_S if column.endswith("_s") else CLOSE)


def read_goldens() -> dict[str, Outcome]:
    """The golden outcomes by case."""
    found: dict[str, Outcome] = {}
    for case, *place, value in pl.read_parquet(FILE).iter_rows():
        found.setdefault(case, {})[tuple(place)] = value
    return found


def write_goldens(goldens: Mapping[str, Outcome]) -> None:
    """Write the golden outcomes, in the order given."""
    rows = [(case, *place, value) for case, outcome in goldens.items() for place, value in outcome.items()]
    table = pl.DataFrame(rows, dict.fromkeys((*KEYS, "value"), pl.String), orient="row")
    table.write_parquet(FILE, compression="zstd", compression_level=19)
