"""What `train`, `evaluate` and `predict` say of predictors whose figures and answers are a few numbers each."""

from collections.abc import Mapping
from typing import Any

from jobcast.domain.bad_answers import bad_lines
from jobcast.pipelines.report.formatting import counted
from jobcast.pipelines.report.layout import aligned
from jobcast.pipelines.report.model_tables import details, version_lines

NOT_TOLD = ("predictor", "version", "aliases", "pools", "window", "trained", "bootstrap", "inputs", "notes", "dropped")
"""Of an evaluation: said elsewhere, or of no use to a person."""


def training_table(result: Mapping[str, Any]) -> str:
    """What `train` says: the version, and figures of a part that was left out."""
    lines = [*version_lines(result), details({"validation": result["validation"]})]
    lines += [f"warning: {line}" for line in result.get("weak_validation") or ()]
    return "\n".join(filter(None, lines))


def evaluation_table(result: Mapping[str, Any]) -> str:
    """What `evaluate` says: a line a figure."""
    version = "trained anew for each stretch" if result["version"] is None else result["version"]
    head = f"{result['predictor']} {version}"
    if "window" in result:
        head += f" on {result['window']['from']} to {result['window']['until']}"
    found = {name: value for name, value in result.items() if name not in NOT_TOLD and not isinstance(value, bool)}
    lines = [head, details(found)]
    if result.get("overlap_allowed"):
        lines.append("warning: the version was trained on some of this (--allow-overlap)")
    return "\n".join(lines)


def prediction_table(result: Mapping[str, Any]) -> str:
    """What `predict` says: a line a job, or an application's configuration."""
    lines = [f"{result['predictor']} {result['version']}" + (f" at {result['at']}" if "at" in result else "")]
    # Predictors answer about jobs by id, or about steps in a list.
    rows = [{"job_id": name, **row} for name, row in result.get("jobs", {}).items()] or result.get("steps", [])
    if rows:
        lines.append(aligned([list(rows[0]), *([_cell(value) for value in row.values()] for row in rows)], words=1))
    if unanswered := result.get("unanswered"):
        lines.append(
            f"note: {counted(unanswered, 'job')} of earlier snapshots that may still wait left out: only a job's first "
            "snapshot is kept"
        )
    if result["overlap"]:
        lines.append("note: the version was trained on some of what it was asked about")
    return "\n".join(lines)


def _cell(value: object) -> str:
    return "-" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def bad_forecast_lines(result: Mapping[str, Any]) -> list[str]:
    """Which forecasts of a run were replaced by conservative ones."""
    return [
        *(f"degraded: {why}" for why in result.get("degraded") or ()),
        *(f"bad forecasts, {line}" for line in bad_lines(result.get("bad_forecasts") or {})),
    ]


TOLD = 3
"""Features far beyond training that a line names, those of most rows."""


def beyond_lines(result: Mapping[str, Any]) -> list[str]:
    """Which features of a run lay far outside of what predictors were trained on.

    >>> far = {column: {"seen": 9.0, "trained": [0, 1], "rows": rows} for rows, column in enumerate("abcd")}
    >>> beyond_lines({"features_beyond_training": {"new-load": far}})[0].split("; ")[2::2]
    ['c 9 (trained on 0 to 1', 'b 9 (trained on 0 to 1', '1 more']
    """
    lines = []
    for predictor, columns in (result.get("features_beyond_training") or {}).items():
        most = sorted(columns.items(), key=lambda item: -item[1]["rows"])
        told = [
            f"{column} {span['seen']:.4g} (trained on {span['trained'][0]:.4g} to {span['trained'][1]:.4g}; "
            f"{span['rows']:,} rows)"
            for column, span in most[:TOLD]
        ]
        rest = [f"{len(most) - TOLD} more"] if len(most) > TOLD else []
        lines.append(f"features far beyond training, {predictor}: {'; '.join(told + rest)}")
    return lines


def unfamiliar_lines(result: Mapping[str, Any]) -> list[str]:
    """Where predictors were asked what they had not learnt: on another cluster, far from what they were trained on."""
    return [*(result.get("another_cluster") or ()), *beyond_lines(result)]


def fidelity_line(figures: Mapping[str, Any]) -> str:
    """How near simulated starts are to recorded ones, in words."""
    near = f"{figures['median']:.3g} recorded waits (median), 90 % by at most {figures['p90']:.3g}"
    verb = "is" if figures["n"] == 1 else "are"
    return f"{counted(figures['n'], 'start')} {verb} off by {near} (a wait counts as a minute at least)"
