"""What would have become of a job that had asked for something else: forecast at its submission by copies of the run.

The run is replayed up to the submission, with the job as it was and as it might have been, and a copy is played forward
with what was believed then. All of them are forecasts, so that they can be compared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from jobcast.domain.errors import ConfigError, OverlapError, RegistryError
from jobcast.live.completion_forecasts import Completion
from jobcast.pipelines.experiments.completion_meters import AtInstant
from jobcast.pipelines.experiments.experiment import BY_QUOTAS, Experiment
from jobcast.pipelines.experiments.explain.phrases import finite
from jobcast.pipelines.experiments.explain.run_table import RunTable
from jobcast.pipelines.experiments.forecast_specs import parse_forecasts
from jobcast.pipelines.experiments.policy_runs import run
from jobcast.pipelines.experiments.settings import settings_apart
from jobcast.pipelines.experiments.simulation import fidelity_told
from jobcast.pipelines.experiments.sources import Ask
from jobcast.pipelines.experiments.worlds import law_apart
from jobcast.schedulers.policies import ELASTIC, PolicySpec
from jobcast.schedulers.registry import find_policy
from jobcast.traces.readers import read_trace
from jobcast.traces.table import Trace

AS_IT_WAS = "as it was"
SAME_WORK = "with other GPUs a whole job is taken to need as many GPU-seconds as it did"


@dataclass(frozen=True, slots=True)
class Change:
    """What a job asks for instead; None: what it asked for. `words`: as the user wrote it."""

    words: str
    gpus: int | None = None
    pool: str | None = None


def parse_change(text: str) -> Change:
    """`gpus=4`, `pool=q2`, or both between commas. Raises ConfigError for anything else.

    >>> parse_change("gpus=4,pool=q2")
    Change(words='gpus=4,pool=q2', gpus=4, pool='q2')
    """
    found = dict(part.partition("=")[::2] for part in text.split(","))
    # Where no width is asked any that passes the check will do.
    gpus = found.get("gpus", "1")
    if (
        not found
        or not found.keys() <= {"gpus", "pool"}
        or not gpus.isdecimal()
        or int(gpus) < 1
        or "" in found.values()
    ):
        raise ConfigError(f"--what-if {text}: write gpus=N, pool=NAME, or both between commas")
    return Change(text, int(gpus) if "gpus" in found else None, found.get("pool"))


def what_if(table: RunTable, job_id: str, asked: Sequence[str], home: Path) -> list[dict[str, Any]]:
    """Forecast starts and ends of a job as it was, then under each change.

    Raises ConfigError for a run that cannot be replayed, or a change that makes no difference to its policy.
    """
    changes = [Change(AS_IT_WAS), *map(parse_change, asked)]
    # The run as it was: what the record does not tell cannot be repeated.
    again, rule = _again(table), find_policy(str(table.policy))
    trace = _trace(table, again)
    job = table.find(job_id)
    files: dict[str, Any] = {name: None if again[name] is None else Path(again[name]) for name in ("pools", "cluster")}
    whole = Experiment.asked(trace, {**again, **files})
    place = whole.place()
    _check(rule, changes, [pool.name for pool in place.pools])
    costs, settings = law_apart(again["settings"], again["law"])
    facts, decide = settings_apart(settings, rule)
    if table.start_s[job] < table.begin_s:
        raise ConfigError(
            f"--what-if: job {job_id} ran when the run began; ask about one that waited then or came later"
        )
    submit_s = float(table.submit_s[job])
    # Whom the run found waiting is asked about at its beginning.
    at_s = float(table.known_s[job])
    # The same cluster whatever the job asks for.
    whole = replace(whole, cluster=place, given={**facts, **costs})
    spec = None if again["forecasts"] is None else parse_forecasts(again["forecasts"])
    own = ("seed", "allow_overlap", "degrade")
    ask = Ask(policy=rule.name, home=home, spec=spec, settings=decide, **{name: again[name] for name in own})
    rows = []
    for change in changes:
        changed = with_change(trace, job_id, change, rule)
        # Later submissions are not known when the job comes.
        experiment = replace(whole, trace=changed, until_s=float(np.nextafter(at_s, np.inf)))
        try:
            found, near = _forecast(experiment, ask, rule, job_id, at_s)
        # Of a run that asked for no forecasts the registry is asked now: what may be done about it stands elsewhere.
        except (RegistryError, OverlapError) as error:
            raise type(error)(
                f"--what-if plays the run again, whose options `jobcast simulate` takes: {error}"
            ) from error
        rows.append(
            {
                "change": change.words,
                "gpus": change.gpus or int(table.gpus[job]),
                "pool": change.pool or table.pools[table.pool[job]],
                "start_s": finite(found.start_s),
                "end_s": finite(found.end_s),
                "wait_s": finite(found.start_s - submit_s),
                "jct_s": finite(found.end_s - submit_s),
                **(near if change.words == AS_IT_WAS else {}),
            }
        )
    return rows


def _forecast(
    experiment: Experiment, ask: Ask, rule: PolicySpec, job_id: str, at_s: float
) -> tuple[Completion, dict[str, Any]]:
    """What is forecast of the job, and how near the run's starts were to recorded ones by then."""
    if rule.kind == ELASTIC and experiment.world is None:  # by the compiled twin, with sizes as declared
        log = run(experiment, replace(ask, predict=True)).log
        row = experiment.scenario(rule.kind, rule.scope).job_ids.index(job_id)
        found = Completion(float(log.start_s[row]), float(log.columns["predicted_end_s"][row]))
        return found, fidelity_told(log, by_s=at_s)
    watch = AtInstant(at_s, job_id)
    log = run(experiment, replace(ask, watching=(watch,))).log
    if not watch.found:
        raise ConfigError(f"--what-if: job {job_id} is not among the jobs that the policy meets; see notes of simulate")
    return watch.found[0][1], fidelity_told(log, by_s=at_s)


def _again(table: RunTable) -> Mapping[str, Any]:
    result = table.figures.get("again")
    if result is None:
        raise ConfigError(f"--what-if: {table.path} has no record of how it was made; simulate again with --out")
    if result["closed_loop"]:
        raise ConfigError("--what-if: submissions of a closed loop are the run's own; leave it out")
    return dict(result)


def _trace(table: RunTable, again: Mapping[str, Any]) -> Trace:
    path = Path(again["trace"])
    if not path.is_file():
        raise ConfigError(f"--what-if: the trace {path} is not there any more; put it back, or simulate again")
    trace = read_trace(path)
    if table.record is not None and trace.source.sha256 != table.record.figures["inputs"]["trace"]["sha256"]:
        raise ConfigError(f"--what-if: the trace {path} has changed since; simulate again")
    return trace


def _check(rule: PolicySpec, changes: Sequence[Change], pools: Sequence[str]) -> None:
    if rule.kind not in (*BY_QUOTAS, ELASTIC):
        raise ConfigError(f"--what-if: under {rule.name} a table beside the trace says what jobs ask for; leave it out")
    for change in changes:
        if change.pool is not None and rule.kind == ELASTIC:
            raise ConfigError(f"--what-if {change.words}: under {rule.name} all jobs share all GPUs; leave pool= out")
        if change.pool is not None and change.pool not in pools:
            raise ConfigError(f"--what-if {change.words}: there is no such pool; known are {', '.join(pools)}")


def with_change(trace: Trace, job_id: str, change: Change, rule: PolicySpec) -> Trace:
    """The trace with what one job asks for changed; a whole job on other GPUs needs as many GPU-seconds."""
    mine, columns = pl.col("job_id") == job_id, dict[str, pl.Expr]()
    if change.pool is not None:
        columns["pool"] = pl.lit(change.pool)
    if change.gpus is not None:
        columns["gpus"] = pl.lit(change.gpus, pl.Int64)
        if rule.kind != ELASTIC:
            columns["duration"] = pl.col("duration") * pl.col("gpus") / change.gpus
        for name in ("min_gpus", "duration_gpus"):
            if name in trace.jobs.columns:
                columns[name] = (
                    pl.min_horizontal(name, change.gpus)
                    if name == "min_gpus"
                    else pl.when(pl.col(name).is_not_null()).then(pl.lit(change.gpus, pl.Int64))
                )
    changed = {name: pl.when(mine).then(one).otherwise(pl.col(name)) for name, one in columns.items()}
    return replace(trace, jobs=trace.jobs.with_columns(**changed))
