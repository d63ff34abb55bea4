"""Sizes of elastic jobs as a registered model forecasts them, in the place of those that jobs declare."""

from dataclasses import replace
from typing import Any

import numpy as np

from jobcast.domain.bad_answers import SIZES, BadAnswers, Reason
from jobcast.domain.elastic import Floats
from jobcast.domain.questions import Question
from jobcast.models.predictors import ours_for
from jobcast.pipelines.experiments.elastic.jobs import ElasticScene
from jobcast.pipelines.experiments.forecast_specs import ForecastSpec
from jobcast.pipelines.experiments.registered_facts import Believed, believed

UNTOLD_S = 3600.0
"""Run time that is believed of each job where nobody tells any."""


def believed_sizes(spec: ForecastSpec, scenario: ElasticScene, **how: Any) -> Believed[Floats]:
    """(n_jobs,) seconds on one GPU, at the jobs' submissions; see `believed.believed`.

    Work is forecast where g GPUs are g times as fast, and counted as the scenario's table of speedups has it.
    """
    trace, workload = scenario.trace, scenario.workload
    factor = workload.size_s / trace.gpu_time_s

    def untold() -> Floats:
        size_s: Floats = UNTOLD_S * trace.duration_gpus * factor
        return size_s

    def ask(model: Any, told: BadAnswers) -> Floats:
        from jobcast.models.completion.known_jobs import keys_of

        told.checked(SIZES, len(trace))
        size_s = np.asarray(model.forecast(keys_of(trace), levels=(0.5,)))[:, 0] * factor
        bad = ~(np.isfinite(size_s) & (size_s > 0))
        if bad.any():
            row = int(np.argmax(bad))
            told.bad(SIZES, Reason.NOT_FINITE, f"job {trace.jobs['job_id'][row]}: {size_s[row]:g} s", int(bad.sum()))
        answers: Floats = np.where(bad, untold(), size_s)
        return answers

    return believed(ours_for(Question.SIZES), SIZES, spec, scenario, ask, untold, **how)


def with_sizes(scenario: ElasticScene, size_s: Floats) -> ElasticScene:
    """The scenario whose jobs declare other sizes; (n_jobs,) seconds on one GPU."""
    workload = scenario.workload
    return replace(scenario, workload=replace(workload, jobs=workload.jobs._replace(size_s=size_s)))
