"""Figures of a server in Prometheus' text format.

Prometheus, "Exposition formats", text-based format 0.0.4.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from jobcast.live.server.service import Service

QUANTILES = (0.5, 0.9, 0.99)


def exposition(service: Service, now_s: float) -> str:
    """Ages in seconds, whether answers are conservative, versions; of the last 7 days waits, promises and scores."""
    waits = service.waits_s(now_s)
    lines = [
        *_gauge("jobcast_state_age_seconds", "Since something was last known of the cluster.", service.age_s(now_s)),
        *_gauge("jobcast_futures_age_seconds", "Since futures were played.", service.etas.futures.age_s(now_s)),
        *_gauge("jobcast_degraded", "1 where answers are conservative.", bool(service.forecasts(now_s).degraded)),
        *_gauge("jobcast_events", "Events kept.", service.state.number),
        "# HELP jobcast_model_version Version that answers.",
        "# TYPE jobcast_model_version gauge",
        *(f'jobcast_model_version{{name="{name}"}} {n}' for name, n in service.watch.current.versions.items()),
        "# HELP jobcast_wait_seconds Waits of jobs that started within the last 7 days.",
        "# TYPE jobcast_wait_seconds summary",
        *(f'jobcast_wait_seconds{{quantile="{q:g}"}} {_wait(waits, q)}' for q in QUANTILES),
        f"jobcast_wait_seconds_sum {_number(math.fsum(waits))}",
        f"jobcast_wait_seconds_count {len(waits)}",
        *_stopped(service),
        *_promises(service),
        *_scores(service),
    ]
    return "\n".join(lines) + "\n"


def _stopped(service: Service) -> list[str]:
    stopped = list(service.state.record.stopped)
    return [
        "# HELP jobcast_lent_stopped_total Jobs on lease that were stopped, most by owners who took GPUs back.",
        "# TYPE jobcast_lent_stopped_total counter",
        f"jobcast_lent_stopped_total {len(stopped)}",
        "# HELP jobcast_lent_gpu_hours_lost_total GPU-hours that these had run for.",
        "# TYPE jobcast_lent_gpu_hours_lost_total counter",
        f"jobcast_lent_gpu_hours_lost_total {_number(math.fsum(one.gpu_hours for one in stopped))}",
    ]


def _promises(service: Service) -> list[str]:
    rows = service.promises.figures.get("versions", [])
    due = [one for one in rows if one["due_90"]]
    return [
        "# HELP jobcast_promise_coverage Share of the 90 % intervals told in the last 7 days that held, of those due.",
        "# TYPE jobcast_promise_coverage gauge",
        *(f"jobcast_promise_coverage{_of(one)} {_number(one['coverage_90_pct'] / 100.0)}" for one in due),
        "# HELP jobcast_promises Intervals told in the last 7 days that are due.",
        "# TYPE jobcast_promises gauge",
        *(f"jobcast_promises{_of(one)} {one['due_90']}" for one in rows),
    ]


def _of(row: Mapping[str, Any]) -> str:
    return _labels(kind=row["kind"], version=row["group"])


def _scores(service: Service) -> list[str]:
    lines = [
        "# HELP jobcast_forecast_score Of the last 7 days: mean Brier score of arrivals, mean pinball loss of loads in "
        "GPUs.",
        "# TYPE jobcast_forecast_score gauge",
    ]
    for one in service.shadow.figures():
        labels = _labels(**{name: one[name] for name in ("name", "version", "horizon", "score")})
        lines.append(f"jobcast_forecast_score{labels} {_number(one['mean'])}")
    return lines


def _labels(**labels: object) -> str:
    # As the format has it: a backslash, a quote and the end of a line are written with a backslash.
    escapes = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
    return "{" + ",".join(f'{name}="{str(one).translate(escapes)}"' for name, one in labels.items()) + "}"


def _gauge(name: str, meaning: str, value: float) -> list[str]:
    return [f"# HELP {name} {meaning}", f"# TYPE {name} gauge", f"{name} {_number(value)}"]


def _wait(waits: list[float], quantile: float) -> str:
    return _number(float(np.quantile(waits, quantile))) if waits else _number(math.nan)


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return ("+Inf" if value > 0 else "-Inf") if math.isinf(value) else repr(float(value))
