"""Closed-loop replays: what they refuse, and what they tell beside the usual figures."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jobcast.domain.errors import ConfigError
from jobcast.pipelines.experiments.forecast_specs import PARTS, REGISTRY, ForecastSpec
from jobcast.schedulers.policies import ARRIVALS, LOADS, POOLS, TrainingFiles
from jobcast.schedulers.registry import BUILT_IN, find_policy
from jobcast.simulator.forecast_sources import NO_ARRIVALS
from jobcast.simulator.log import RunLog
from jobcast.simulator.workload import Workload


def check_loop(
    policies: Sequence[str], sources: Sequence[ForecastSpec], baseline: str | None, settings: Mapping[str, str]
) -> None:
    """Refuse a command that cannot be carried out in a closed loop, before anything is read.

    Parameters
    ----------
    policies : by name
    sources : of forecasts; none for the default
    baseline : policy to compare with
    settings : `--set`

    Raises
    ------
    ConfigError
        See `check_closed`; and where settings name tables of training jobs.
    """
    # Training jobs come with tables by job id, which say nothing of who thinks for how long.
    tables = [name for name in TrainingFiles.model_fields if name in settings]
    if tables:
        raise ConfigError(f"--closed-loop --set {tables[0]}: training jobs are replayed as they came; leave one out")
    # Without any source named the registry's champions are asked.
    for spec in sources or (REGISTRY,):
        for policy in policies:
            check_closed(policy, spec)
        if baseline is not None:
            try:
                check_closed(baseline, spec)
            except ConfigError as error:
                raise ConfigError(f"--baseline {baseline}: {error}") from None


def check_closed(policy: str, spec: ForecastSpec) -> None:
    """Refuse what cannot be replayed in a closed loop, before anything is.

    Raises
    ------
    ConfigError
        The policy is not one of pools of whole jobs, or it would ask for arrivals to come a source that reads them off
        the trace.
    """
    rule = find_policy(policy)
    if rule.kind != POOLS:
        able = [name for name, spec in BUILT_IN.items() if spec.kind == POOLS and not spec.needs_every_job]
        raise ConfigError(
            f"--closed-loop: {policy} schedules by rounds, tasks, energy or elastic jobs; "
            f"it goes with {', '.join(able)}"
        )
    # Told before forecasts are looked at: no source helps such a policy here.
    if rule.needs_every_job:
        raise ConfigError(
            f"--closed-loop: {policy} needs every single job's future, which nobody knows where arrivals follow from "
            "what the scheduler does; leave one out"
        )
    if not rule.asks:
        return
    # A wrong answer is drawn about what would come, which here nobody knows.
    if any(source.kind == "noisy" for source in (spec, *dict(spec.parts).values())):
        raise ConfigError(f"--forecasts {spec.label}: {NO_ARRIVALS.format(kind='noisy oracle')}")
    # Arrivals and loads; durations are a job's own and known to the oracle all the same.
    result = (spec.part(part) for part in PARTS[:2]) if spec.kind == "mixed" else (spec,)
    # Who asks only for run times may be told those of the trace.
    ahead = ARRIVALS in rule.asks or LOADS in rule.asks  # installed ones are refused when they ask
    if ahead and any(source.kind == "oracle" for source in result):
        raise ConfigError(f"{policy} --forecasts {spec.label}: {NO_ARRIVALS.format(kind='oracle')}")


def told_of_loop(workload: Workload, log: RunLog) -> dict[str, Any]:
    """Figures of a closed-loop run: who follows whom, and how far the run moved the arrivals of those who do.

    `following_jobs` and `mean_think_s` are of the workload; `mean_shift_s` is the mean of (submission in the run -
    submission in the trace) of the jobs that follow others. Nothing for an open loop.
    """
    successions = workload.successions
    if successions is None:
        return {}
    follows = np.array([job.job_id in successions for job in workload.jobs], dtype=np.bool_)
    thinks_s = [one.think_s for one in successions.values()]
    # Those who follow nobody come when the trace says.
    shift_s = (log.submit_s - log.told_submit_s)[follows]
    return {
        "closed_loop": True,
        "following_jobs": len(successions),
        "mean_think_s": float(np.mean(thinks_s)) if thinks_s else None,
        "mean_shift_s": float(shift_s.mean()) if thinks_s else None,
    }
