"""`jobcast predict epoch-time`: a table of few points, completed by forecasts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from jobcast.domain.errors import ConfigError
from jobcast.models.registry import open_registry
from jobcast.models.registry.references import Ref
from jobcast.pipelines.model_tables import made_from, of_version
from jobcast.traces.profiles import KEY, PROFILE_COLUMNS, PROFILE_SCHEMA, ProfileTable, write_profiles

SETTINGS = ("model", "batch_size", "gpu_type", "gpus", "batch")


@dataclass(frozen=True, slots=True)
class Question:
    """Configurations that are asked about: all combinations; empty: those of the table.

    Attributes
    ----------
    models, batch_sizes, gpu_types : names and sizes
    most_gpus : 1, 2, ... up to these; None: up to the table's largest number
    batch : what batch sizes mean (gpu, job); None: what the points make likelier
    """

    models: tuple[str, ...] = ()
    batch_sizes: tuple[int, ...] = ()
    gpu_types: tuple[str, ...] = ()
    most_gpus: int | None = None
    batch: str | None = None

    @classmethod
    def read(cls, settings: Mapping[str, str]) -> "Question":
        """From `--set`, several values between commas. Raises ConfigError for what is not known."""
        for key in settings:
            if key not in SETTINGS:
                raise ConfigError(f"--set {key}: epoch-time knows {', '.join(SETTINGS)}")
        parts = {key: tuple(one.strip() for one in value.split(",")) for key, value in settings.items()}
        sizes = tuple(_whole("batch_size", one) for one in parts.get("batch_size", ()))
        most = _whole("gpus", settings["gpus"]) if "gpus" in settings else None
        return cls(parts.get("model", ()), sizes, parts.get("gpu_type", ()), most, settings.get("batch"))

    def keys(self, table: ProfileTable) -> pl.DataFrame:
        """(n,) model, batch_size, gpu_type, gpus, one a combination."""
        most = self.most_gpus or int(table.frame["gpus"].max())  # type: ignore[arg-type]
        rows: list[tuple[str, int | None, str, int]] = []
        for model in self.models or table.models:
            its = table.frame.filter(pl.col("model") == model)["batch_size"].unique().sort().to_list()
            sizes: Sequence[int | None] = self.batch_sizes or its or (None,)
            for size in sizes:
                for kind in self.gpu_types or table.gpu_types:
                    rows += [(model, size, kind, gpus) for gpus in range(1, most + 1)]
        return pl.DataFrame(rows, schema={name: PROFILE_SCHEMA[name] for name in KEY}, orient="row").unique(
            maintain_order=True
        )


def complete_table(
    reference: tuple[str, Ref], table: ProfileTable, question: Question, out: Path | None, *, home: Path
) -> dict[str, Any]:
    """Forecasts of all that is asked for, with 90 % intervals; `out` is written with the known points and these.

    Raises TraceError for a model without a point, RegistryError for a version that is not there.
    """
    registry = open_registry(home)
    version = registry.resolve(*reference)
    model = registry.load(version)
    asked = question.keys(table)
    forecast = model.forecast(table, asked, question.batch)
    known = asked.join(table.frame, on=KEY, how="left", nulls_equal=True, maintain_order="left")["epoch_s"]
    rows = asked.with_columns(
        pl.Series("epoch_s", forecast.epoch_s), pl.Series("low_s", forecast.low_s), pl.Series("high_s", forecast.high_s)
    ).with_columns(known.alias("profiled_s"))
    if out is not None:
        made = rows.filter(known.is_null()).select(PROFILE_COLUMNS)
        write_profiles(pl.concat([table.frame, made]), out)
    return {
        **of_version(version),
        "profiles": rows.to_dicts(),
        "overlap": any(name in model.models_ for name in rows["model"].unique().to_list()),
        "out": None if out is None else str(out),
        **made_from(table, table.notes),
    }


def prediction_table(result: Mapping[str, Any]) -> str:
    """What `predict` says: a line a configuration."""
    lines = [
        f"{result['predictor']} {result['version']}, seconds an epoch",
        f"{'model':<20}{'batch size':>11}  {'GPU type':<12}{'GPUs':>5}{'profiled':>11}{'forecast':>11}  90 %",
    ]
    for row in result["profiles"]:
        size = "any" if row["batch_size"] is None else row["batch_size"]
        profiled = "-" if row["profiled_s"] is None else f"{row['profiled_s']:.4g}"
        lines.append(
            f"{row['model']:<20}{size:>11}  {row['gpu_type']:<12}{row['gpus']:>5}{profiled:>11}"
            f"{row['epoch_s']:>11.4g}  {row['low_s']:.4g} to {row['high_s']:.4g}"
        )
    if result["overlap"]:
        lines.append("note: the version was trained on some of these models")
    return "\n".join(lines)


def _whole(key: str, text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ConfigError(f"--set {key}={text}: must be a whole number of 1 or more")
    return int(text)
