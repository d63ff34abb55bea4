"""Speedup tables from measured step times: demand functions by application, and what they miss."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jobcast.domain.errors import ConfigError, TrainingError
from jobcast.models.demand import (
    FITS,
    default_batch_size,
    fit_steps,
    left_out_errors,
    speedup_curves,
)
from jobcast.pipelines.report.layout import aligned
from jobcast.traces.goodput_tables import StepTimes, read_step_times
from jobcast.traces.speedups import MOST_GPUS, write_speedups

BEST = "best"
"""The fit whose speedups err least in the mean on configurations left out, by application."""
SHOWN_GPUS = (2, 4, 8, 16)


def make_speedups(
    step_times: Path,
    out: Path,
    fit: str = BEST,
    most_gpus: int = 16,
    gpus_per_node: int = 4,
    batch_sizes: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Write a table of speedups over one GPU, by application, GPUs and locality.

    Parameters
    ----------
    step_times : CSV of app, num_nodes, num_replicas, local_bsz, step_time, sync_time
    out : table, CSV or Parquet
    fit : name in `FITS`, or `BEST`
    most_gpus : last row of each application
    gpus_per_node : of the cluster that was measured
    batch_sizes : total batch size by application; those not given fill one GPU, or can be shared by `most_gpus`

    Returns
    -------
    By application: fit, batch size, some speedups, and errors of every fit on configurations left out.

    Raises
    ------
    TraceError, TrainingError, ConfigError
        The step times cannot be read or do not suffice, an option cannot be used, or the table cannot be written.
    """
    if fit not in (BEST, *FITS):
        raise ConfigError(f"--fit {fit}: is not known; choose from {', '.join((BEST, *FITS))}")
    # A table of one GPU tells no speedup.
    if not 2 <= most_gpus <= MOST_GPUS or gpus_per_node < 1:
        raise ConfigError(f"--most must be 2 to {MOST_GPUS} and --gpus-per-node at least 1; correct them")
    measured = read_step_times(step_times)
    chosen = dict(batch_sizes or {})
    unknown = [app for app in chosen if app not in measured]
    if unknown:
        raise ConfigError(f"--batch-size {unknown[0]}: {step_times} has no such app; it has {', '.join(measured)}")
    curves, result = [], {}
    for app, times in measured.items():
        size = _batch_size(app, chosen[app]) if app in chosen else default_batch_size(times, most_gpus)
        curve, result[app] = _app(app, times, size, fit, most_gpus, gpus_per_node)
        curves.append(curve)
    write_speedups(out, list(measured), np.stack(curves))
    return {"fit": fit, "most_gpus": most_gpus, "gpus_per_node": gpus_per_node, "apps": result}


def _app(
    app: str, times: StepTimes, size: int, fit: str, most_gpus: int, gpus_per_node: int
) -> tuple[Any, dict[str, Any]]:
    try:
        errors = left_out_errors(times, size, most_gpus, gpus_per_node)
        if fit == BEST:
            # Without enough configurations to leave any out the first fit is taken.
            fit = min(errors, key=lambda name: errors[name]["speedup_mean_pct"], default=FITS[0])
        curve = speedup_curves(fit_steps(fit, times, size, most_gpus, gpus_per_node), most_gpus, gpus_per_node)
    # The application is named here: its fit does not know it.
    except TrainingError as error:
        raise TrainingError(f"{app}: {error}") from None
    shown = [gpus for gpus in SHOWN_GPUS if gpus <= most_gpus]
    speedups = {name: {str(g): float(curve[row, g]) for g in shown} for row, name in enumerate(("packed", "spread"))}
    return curve, {"fit": fit, "batch_size": size, "speedup": speedups, "left_out": errors}


def speedups_text(result: Mapping[str, Any]) -> str:
    """Figures of `make_speedups` for a terminal."""
    shown = [str(gpus) for gpus in SHOWN_GPUS if gpus <= result["most_gpus"]]
    rows = [["speedup", "", "fit", "batch size", *(f"{gpus} GPUs" for gpus in shown)]]
    for app, its in result["apps"].items():
        for where, said in (("packed", [its["fit"], str(its["batch_size"])]), ("spread", ["", ""])):
            speedups = [f"{its['speedup'][where][gpus]:.2f}" for gpus in shown]
            rows.append([app if said[0] else "", where, *said, *speedups])
    errors = [[app, *(_error(its["left_out"].get(fit)) for fit in FITS)] for app, its in result["apps"].items()]
    tables = aligned(rows, words=2), "", aligned([["error, mean and worst", *FITS], *errors], words=1)
    return "\n".join([*tables, "errors are those of speedups on configurations that the fit did not see"])


def _error(its: Mapping[str, float] | None) -> str:
    return f"{its['speedup_mean_pct']:.1f} {its['speedup_worst_pct']:.0f} %" if its else "-"


def _batch_size(app: str, text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ConfigError(f"--batch-size {app}={text}: must be a whole number >= 1; correct it")
    return int(text)
