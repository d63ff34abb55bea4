"""jobcast forecasts what a GPU cluster's queues will do next and measures what each forecast is worth.

    import jobcast as jc

    trace = jc.read_trace("jobs.parquet")
    version = jc.train("new-load", trace, until="2024-02-05")
    jc.forecast(version, trace, at="2024-02-20T09:00:00Z").plot()

Names are imported when they are first used, so that `import jobcast` costs nothing.

>>> import jobcast as jc
>>> workload = jc.workload(*jc.example_trace(), until="2024-01-03")
>>> run = jc.Simulation(workload, jc.make_policy("fcfs"))
>>> while not run.over:
...     run.step()
>>> len(run.log()) == len(workload.jobs)
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jobcast.domain.errors import JobcastError, UserError
    from jobcast.domain.forecasts import Forecasts
    from jobcast.domain.hardware import Cluster
    from jobcast.domain.jobs import Job, Pool
    from jobcast.domain.policy import Decision, Grant, Policy, View
    from jobcast.models.predictor import Predictor
    from jobcast.pipelines.surface import (
        backtest,
        command,
        describe,
        evaluate,
        example_trace,
        explain,
        forecast,
        load,
        policies,
        predictors,
        promote,
        registry,
        rollback,
        simulate,
        train,
        versions,
        workload,
    )
    from jobcast.schedulers.registry import make_policy, policy
    from jobcast.simulator.engine import Simulation
    from jobcast.testing import check_policy, check_predictor
    from jobcast.traces.generators import generate
    from jobcast.traces.readers import read_trace
    from jobcast.traces.table import Trace

__version__ = "0.1.0"

_SURFACE = (
    "backtest command describe evaluate example_trace explain forecast load policies predictors promote registry "
    "rollback simulate train versions workload"
)
_PLACES = {
    "domain.errors": "JobcastError UserError",
    "domain.forecasts": "Forecasts",
    "domain.hardware": "Cluster",
    "domain.jobs": "Job Pool",
    "domain.policy": "Decision Grant Policy View",
    "models.predictor": "Predictor",
    "pipelines.surface": _SURFACE,
    "schedulers.registry": "make_policy policy",
    "simulator.engine": "Simulation",
    "testing": "check_policy check_predictor",
    "traces.generators": "generate",
    "traces.readers": "read_trace",
    "traces.table": "Trace",
}
_HOMES = {name: module for module, names in _PLACES.items() for name in names.split()}

__all__ = [
    "Cluster", "Decision", "Forecasts", "Grant", "Job", "JobcastError", "Policy", "Pool", "Predictor", "Simulation",
    "Trace", "UserError", "View", "__version__", "backtest", "check_policy", "check_predictor", "command",
    "describe", "evaluate", "example_trace", "explain", "forecast", "generate", "load", "make_policy", "policies",
    "policy", "predictors", "promote", "read_trace", "registry", "rollback", "simulate", "train", "versions",
    "workload",
]  # fmt: skip


if not TYPE_CHECKING:  # a checker shall take no name for granted

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
