"""Jobs before a run begins, as the trace ran them: what forecasts of sizes and arrivals may learn from."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from jobcast.domain.errors import TraceError
from jobcast.models.completion.intervals import Position
from jobcast.models.completion.known_jobs import KnownJobs
from jobcast.pipelines.experiments.elastic.conformal_intervals import NOBODY, Earlier, replayed_positions
from jobcast.pipelines.experiments.elastic.jobs import ElasticScene, elastic_jobs, model_rows, models_of
from jobcast.pipelines.experiments.elastic.rollouts import Past
from jobcast.pipelines.experiments.elastic.simulation import prepare
from jobcast.pipelines.experiments.scenarios import cut_scenario


def earlier_of(scenario: ElasticScene, facts: Mapping[str, Any], learned: KnownJobs | None = None) -> Earlier:
    """Jobs submitted before a window; each ended when its trace says, else as if it ran alone from the first.

    Models that the window does not know count as the window's first: their widths and sizes are what is learnt.

    `learned`: jobs in their place, where the trace holds none before the window.
    """
    of_earlier = history_of(scenario, facts)
    if of_earlier is None:
        return NOBODY if learned is None else _as_earlier(learned, scenario)
    earlier, before = of_earlier.trace, of_earlier.workload
    origin_s, jobs = scenario.workload.origin_s, before.jobs
    rows = model_rows(scenario)
    model = np.array([rows.get(name, 0) for name in models_of(earlier)], dtype=np.int64)
    submit_s = jobs.submit_s + (before.origin_s - origin_s)
    # The table may end before a job's width.
    most = np.minimum(jobs.most, jobs.speedup.shape[2] - 1).astype(np.int64)
    end_s = submit_s + before.size_s / jobs.speedup[jobs.model, 0, most]
    if "end_time" in earlier.jobs.columns:
        result = earlier.end_s - origin_s
        # Jobs that ran on have no end yet: they are taken to run alone.
        end_s = np.where(np.isfinite(result), result, end_s)
    past = Past(submit_s, before.size_s, jobs.least, jobs.most, model, jobs.size_s)
    return Earlier(past, end_s)


def history_of(scenario: ElasticScene, facts: Mapping[str, Any]) -> ElasticScene | None:
    """Jobs submitted before a window, on the same cluster and tables: widths and sizes must be comparable."""
    try:
        return elastic_jobs(cut_scenario(scenario.earlier, scenario.place), **facts)
    except TraceError:
        return None


def warmed(
    scenario: ElasticScene, policy: str, settings: Mapping[str, str], facts: Mapping[str, Any], **how: Any
) -> list[Position]:
    """What a tracker of a policy begins with: a replay of the jobs before a window; `how`: see `replayed_positions`."""
    past = history_of(scenario, facts)
    if past is None:
        return []
    until_s = scenario.workload.origin_s - past.workload.origin_s
    return replayed_positions(prepare(past, policy, settings), until_s, **how)


def _as_earlier(learned: KnownJobs, scenario: ElasticScene) -> Earlier:
    """The ended jobs of another trace, as if it had stopped when the scenario's window begins."""
    ended, widest = learned.ended, scenario.workload.jobs.speedup.shape[2] - 1
    least, most = (np.minimum(one[ended], widest).astype(np.float64) for one in (learned.least, learned.most))
    past = Past(learned.submit_s[ended], learned.work_s[ended], least, most, np.zeros(int(ended.sum()), dtype=np.int64))
    return Earlier(past, learned.known_s[ended])
