"""A front: configurations to choose from, their values, and the file that keeps them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from jobcast.domain.elastic import Floats
from jobcast.domain.errors import ConfigError, TraceError
from jobcast.pipelines.search.evaluating import Objective, parse_objectives
from jobcast.schedulers.elastic.config import WfqConfig, parse_config
from jobcast.traces.files import read_file, replacing
from jobcast.traces.table_files import parquet_metadata, read_parquet, write_parquet

ENDING = ".parquet"
ABOUT = "jobcast_front"
"""Key of the file's metadata under which lies what the front was searched on and how."""
AGAIN = "write one with jobcast search pcs"
PARAMETERS = ("T", "W", "zeta_min", "delta")


@dataclass(frozen=True, slots=True)
class Row:
    """A configuration of a front.

    Attributes
    ----------
    pick : its number
    config, parameters : and what it was made from, by name; T and W are None where it was not made from them
    train, test : values by objective, means over samples; None where nothing was simulated
    pareto : whether nothing of the front beats it on the test samples
    """

    pick: int
    config: WfqConfig
    parameters: Mapping[str, Any]
    train: tuple[float, ...] | None
    test: tuple[float, ...] | None
    pareto: bool


@dataclass(frozen=True, slots=True)
class Front:
    """What a search found.

    Attributes
    ----------
    objectives : in the order of the values
    rows : in the order of the picks: by the first objective on test samples
    references : values of other policies on the test samples, by name
    about : what it was searched on and how
    """

    objectives: tuple[Objective, ...]
    rows: tuple[Row, ...]
    references: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def tested(self) -> Floats:
        """(n_pareto, n_objectives) values on test samples of the rows that nothing beats."""
        return np.array([row.test for row in self.rows if row.pareto and row.test is not None])

    def pick(self, number: int) -> Row:
        """A row by its number. Raises ConfigError that says which there are."""
        for row in self.rows:
            if row.pick == number:
                return row
        raise ConfigError(f"--pick {number}: the front has 0 to {len(self.rows) - 1}; choose one of them")


def check_front_path(path: Path) -> None:
    """Refuse a place for a front that is no Parquet file."""
    if path.suffix != ENDING:
        raise ConfigError(f"--out {path}: a front is a Parquet file; let the name end in {ENDING}")


def write_front(front: Front, path: Path) -> None:
    """One row a configuration, what it was searched on in the file's metadata. Raises ConfigError."""
    columns: dict[str, Any] = {"pick": [row.pick for row in front.rows], "pareto": [row.pareto for row in front.rows]}
    for at, objective in enumerate(front.objectives):
        for kind, values in (("test", [row.test for row in front.rows]), ("train", [row.train for row in front.rows])):
            told = [one[at] if one else None for one in values]
            columns[f"{objective.label} {kind}"] = pl.Series(told, dtype=pl.Float64)
    for name in PARAMETERS:
        columns[name] = pl.Series([_text(row.parameters.get(name)) for row in front.rows], dtype=pl.String)
    columns["queues"] = [len(row.config.rates) for row in front.rows]
    columns["config"] = [json.dumps(row.config.to_json()) for row in front.rows]
    about = {"objectives": [one.label for one in front.objectives], "references": dict(front.references)}
    told_about = json.dumps({**about, **front.about})
    with replacing(path) as draft:
        write_parquet(pl.DataFrame(columns), draft, {ABOUT: told_about})


def _text(value: Any) -> str | None:
    """A parameter as text: there may be several W."""
    return None if value is None else json.dumps(value)


def read_front(path: Path) -> Front:
    """A front from its file. Raises ConfigError when it is none."""
    if not path.exists():
        raise ConfigError(f"{path}: no such file; write it with jobcast search pcs --out {path}")
    try:
        file = read_file(path)
        table = read_parquet(file, AGAIN)
        about = json.loads(parquet_metadata(file, AGAIN)[ABOUT])
        objectives = parse_objectives(",".join(about.pop("objectives")))
        references = {name: tuple(values) for name, values in about.pop("references").items()}
        rows = tuple(_row(told, objectives, path) for told in table.to_dicts())
    except TraceError as error:
        raise ConfigError(f"cannot be read as a front: {error}") from error
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        # Of a table or of what lies beside it when somebody else wrote them: columns that lack, values of other kinds.
        raise ConfigError(f"{path}: is no front ({type(error).__name__}: {error}); {AGAIN}") from error
    return Front(objectives, rows, references, about)


def _row(told: Mapping[str, Any], objectives: tuple[Objective, ...], path: Path) -> Row:
    train, test = (tuple(told[f"{one.label} {kind}"] for one in objectives) for kind in ("train", "test"))
    parameters = {name: json.loads(told[name]) if told[name] is not None else None for name in PARAMETERS}
    config = parse_config(json.loads(told["config"]), f"{path}, pick {told['pick']}")
    known = test[0] is not None
    return Row(told["pick"], config, parameters, train if known else None, test if known else None, told["pareto"])


def front_table(front: Front) -> str:
    """The front for a terminal: what may be chosen, then the policies shown beside it."""
    head = ["pick", *(one.label for one in front.objectives), *("T", "W", "zeta_min", "queues")]
    lines = [head]
    for row in front.rows:
        if row.pareto:
            values = [figure_text(one) for one in row.test] if row.test else ["-"] * len(front.objectives)
            told = [figure_text(row.parameters.get(name)) for name in ("T", "W", "zeta_min")]
            lines.append([str(row.pick), *values, *told, str(len(row.config.rates))])
    for name, shown in front.references.items():
        lines.append([name, *(figure_text(one) for one in shown), "", "", "", ""])
    widths = [max(len(line[at]) for line in lines) for at in range(len(head))]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def figure_text(value: Any) -> str:
    """A value as tables and plots show it."""
    if value is None:
        return "-"
    if isinstance(value, list):
        return "/".join(figure_text(one) for one in value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
