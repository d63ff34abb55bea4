"""What queue-wait says of the jobs that wait, beside futures of the cluster, and combined with them.

Where both speak of a start their quantiles are averaged, with weights by the losses of what either promised before.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.errors import LedgerError, RegistryError
from jobcast.models.forecast_combination import past_weights
from jobcast.models.predictor import Known
from jobcast.models.promise_ledger import START, Promise, PromiseLedger
from jobcast.models.promise_record import ALONE, start_losses
from jobcast.models.queue_wait import LEVELS, QueueWait
from jobcast.pipelines.experiments.elastic.completion_prediction import JobAnswers, combined
from jobcast.pipelines.experiments.sources import is_registered
from jobcast.pipelines.lifecycle.evaluation import predict_known
from jobcast.pipelines.lifecycle.promises import AS_RECORDED, WAITS_TOLD, starts_promised
from jobcast.pipelines.report.formatting import parse_time
from jobcast.traces.table import Trace


@dataclass(frozen=True, slots=True)
class WaitForecasts:
    """What a version says of jobs.

    Attributes
    ----------
    version : of queue-wait
    from_s : the instant that seconds count from, seconds from the epoch
    jobs : by id, see `promises.starts_promised`
    promises : that these are
    weight : how much they count beside futures
    """

    version: str
    from_s: float
    jobs: Mapping[str, Mapping[str, Any]]
    promises: Sequence[Promise]
    weight: float

    @property
    def starts_from(self) -> dict[str, float]:
        """Weights of both."""
        return {"futures": 1.0 - self.weight, self.version: self.weight}

    def starts_s(self, job_id: str) -> Floats:
        """(levels,) instants by `LEVELS`, seconds from the epoch."""
        return self.from_s + np.array([self.jobs[job_id][name] for name in WAITS_TOLD])

    def beside(self, one: JobAnswers, at_s: float) -> JobAnswers:
        """A job's answers with starts by both, where it waits: at its own width, which the version knows alone."""
        job_id = one.stands["job_id"]
        if job_id not in self.jobs:
            return one
        own, *others = one.answers
        both = combined(own, LEVELS, self.starts_s(job_id), self.weight, at_s)
        return JobAnswers(one.stands, [both, *others])


def asked_waits(
    trace: Trace, at_s: float, home: Path, note: Callable[[str], None], futures: Mapping[str, str]
) -> WaitForecasts | None:
    """What the champion of queue-wait says at an instant.

    None where there is none, or the trace tells no starts; with a note, where it cannot be asked.

    Parameters
    ----------
    futures : columns of the ledger, and what they are of promises by futures, whose past errors it is weighed against
    """
    name = QueueWait.name
    if "start_time" not in trace.jobs.columns:
        return None
    try:
        if not is_registered(name, home):
            return None
        result = predict_known((name, None), Known(trace, until_s=at_s), {}, home=home)
        version, from_s = f"{name}:{result['version']}", parse_time(result["from"])
        ledger = PromiseLedger(home)
        outcomes = ledger.outcomes(until_s=at_s)
        losses = [
            start_losses([*_kept(ledger, of), *_kept(ledger, {**of, "version": of["version"] + ALONE})], outcomes, at_s)
            for of in (futures, {"policy": AS_RECORDED, "version": version})
        ]
    except (RegistryError, LedgerError) as error:
        note(f"starts are told by futures alone: {error}")
        return None
    if result["overlap"]:
        note(f"starts are told by futures alone: {version} was trained on what comes after this instant")
        return None
    promises = starts_promised(version, from_s, result["jobs"], trace.source.sha256)
    return WaitForecasts(version, from_s, result["jobs"], promises, float(past_weights(losses)[1]))


def _kept(ledger: PromiseLedger, of: Mapping[str, str]) -> list[Promise]:
    return ledger.promises(kind=START, **of)
