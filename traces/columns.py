"""The columns of a canonical trace: what each holds, and which a trace cannot do without."""

from dataclasses import dataclass
from enum import Enum

import polars as pl

UTC_TIME = pl.Datetime("us", "UTC")


LONGEST_S = 100 * 365.25 * 86400.0
"""A century: no job runs longer, and its end stays exact to the microsecond in float64."""


class Kind(Enum):
    """What a column holds; the value is its type in memory."""

    TEXT = pl.String()
    NUMBER = pl.Float64()
    COUNT = pl.Int64()
    TIME = UTC_TIME
    FLAG = pl.Boolean()

    @property
    def dtype(self) -> pl.DataType:
        """Polars type of the column in memory."""
        dtype: pl.DataType = self.value
        return dtype


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name, what it holds, whether a trace must have it, and the values that it may take.

    A required column is filled in each row, unless it `may_be_empty`. `nodes`: its text is a list of them.
    """

    name: str
    kind: Kind
    required: bool = False
    may_be_empty: bool = False
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    nodes: bool = False


_ALL = (
    Column("job_id", Kind.TEXT, required=True),
    Column("pool", Kind.TEXT, required=True),
    Column("submit_time", Kind.TIME, required=True),
    Column("duration", Kind.NUMBER, required=True, may_be_empty=True, above=0.0, at_most=LONGEST_S),
    Column("gpus", Kind.COUNT, required=True, at_least=0),
    Column("min_gpus", Kind.COUNT, at_least=0),
    Column("duration_gpus", Kind.COUNT, at_least=1),
    Column("time_limit_s", Kind.NUMBER, above=0.0),
    Column("steps", Kind.COUNT, at_least=1),
    Column("user", Kind.TEXT),
    Column("tag", Kind.TEXT),
    Column("eligible_time", Kind.TIME),
    Column("snapshot_time", Kind.TIME),
    Column("start_time", Kind.TIME),
    Column("end_time", Kind.TIME),
    Column("known_time", Kind.TIME),
    Column("state", Kind.TEXT),
    Column("gpu_type", Kind.TEXT),
    Column("cores", Kind.NUMBER, at_least=0.0),
    Column("mem_gb", Kind.NUMBER, at_least=0.0),
    Column("account", Kind.TEXT),
    Column("qos", Kind.TEXT),
    Column("partition", Kind.TEXT),
    Column("nodes", Kind.TEXT, nodes=True),
    Column("priority", Kind.NUMBER),
    Column("model", Kind.TEXT),
    Column("batch_size", Kind.COUNT, at_least=1),
    Column("epochs", Kind.COUNT, at_least=1),
    Column("adaptation", Kind.TEXT),
    Column("max_regimes", Kind.COUNT, at_least=1),
    Column("deadline", Kind.TIME),
    Column("weight", Kind.NUMBER, at_least=0.0),
    Column("target_accuracy", Kind.NUMBER, at_least=0.0),
    Column("preemptible", Kind.FLAG),
    Column("stages", Kind.TEXT),
)
COLUMNS: dict[str, Column] = {column.name: column for column in _ALL}
"""The canonical columns by name, in the order in which they are written."""

REQUIRED: tuple[str, ...] = tuple(column.name for column in _ALL if column.required)
"""What every trace must hold."""

FORMER: dict[str, str] = {"cpus": "cores"}
"""Names that columns had in traces of earlier versions."""
