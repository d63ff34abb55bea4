"""Figures of a server in Prometheus' text format.

Prometheus, "Exposition formats", text-based format 0.0.4.
"""

import math

import numpy as np

from jobcast.live.server.service import Service

QUANTILES = (0.5, 0.9, 0.99)


def exposition(service: Service, now_s: float) -> str:
    """Age of what is known, whether answers are conservative, versions, and waits of the last 7 days in seconds."""
    waits = service.waits_s(now_s)
    lines = [
        *_gauge("jobcast_state_age_seconds", "Since something was last known of the cluster.", service.age_s(now_s)),
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
    ]
    return "\n".join(lines) + "\n"


def _gauge(name: str, meaning: str, value: float) -> list[str]:
    return [f"# HELP {name} {meaning}", f"# TYPE {name} gauge", f"{name} {_number(value)}"]


def _wait(waits: list[float], quantile: float) -> str:
    return _number(float(np.quantile(waits, quantile))) if waits else "NaN"


def _number(value: float) -> str:
    return ("+Inf" if value > 0 else "-Inf") if math.isinf(value) else repr(float(value))
