"""One simulation of elastic jobs: a scenario replayed under a policy, its figures and its table."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.bad_answers import SIZES, BadAnswers, Reason
from jobcast.domain.forecasts import Question
from jobcast.models.predictors import ours_for
from jobcast.pipelines.experiments.clusters import preempting
from jobcast.pipelines.experiments.elastic.jobs import ElasticScene
from jobcast.pipelines.experiments.simulation import Simulated, timed
from jobcast.pipelines.experiments.sources import Ask, Believed, believed
from jobcast.schedulers.policies import ELASTIC, split_settings
from jobcast.schedulers.registry import find_of_kind, make_rule
from jobcast.simulator.elastic.run import ElasticReplay, replay_elastic


def prepare(scenario: ElasticScene, policy: str, settings: Mapping[str, Any]) -> ElasticReplay:
    """A run at its beginning. Raises ConfigError for an unknown policy or setting."""
    how, workload = split_settings(find_of_kind(policy, ELASTIC), settings).mechanism, scenario.workload
    rule = make_rule(policy, scenario.place.gpu_types, settings)
    # Fractions of GPUs lie on no node.
    cluster = preempting(workload.cluster, how.preempt_s, placed=rule.integral)
    given = {"pending_lease": how.pending_lease, "origin_s": workload.origin_s}
    return ElasticReplay(workload.jobs, workload.size_s, cluster, rule, **given)


def simulate_elastic(
    scenario: ElasticScene,
    policy: str,
    settings: Mapping[str, Any],
    *,
    predict: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Simulated:
    """Replay a scenario, with a forecast of each job's completion at its submission where `predict`.

    Raises ConfigError as `prepare`, DecisionError for a rule that gives out what is not there.
    """
    run = prepare(scenario, policy, settings)
    log, took = timed(lambda: replay_elastic(run, predict=predict, progress=progress))
    if predict:
        log = replace(log, columns={**log.columns, "shared_end_s": shared_end_s(scenario)})
    return Simulated(log, **took, notes=_promise_notes(run))


def shared_end_s(scenario: ElasticScene) -> Floats:
    """(n_jobs,) seconds from the epoch when jobs would end under processor sharing, which costs nothing.

    The fair finish of Figure 1 of PCS.
    """
    return replay_elastic(prepare(scenario, "elastic_fair", {})).end_s


def _promise_notes(run: ElasticReplay) -> tuple[str, ...]:
    """Why how many jobs were promised no worst case."""
    why = Counter(described.reason for described in run.worst_cases.values() if described.reason)
    return tuple(f"no worst case for {count} of {len(run.worst_cases)} jobs: {one}" for one, count in why.most_common())


def placing_notes(scenario: ElasticScene, policy: str, own: Mapping[str, Any]) -> tuple[str, ...]:
    """What to say where a cluster has nodes and jobs are not placed on them."""
    placed = len(scenario.workload.cluster.node_gpus) > 0
    if not placed or make_rule(policy, scenario.place.gpu_types, own).integral:
        return ()
    return (f"{policy} deals out fractions of GPUs: jobs are not placed on nodes (--set whole_gpus=true places them)",)


UNTOLD_S = 3600.0
"""Run time that is believed of each job where nobody tells any."""


def believed_sizes(scenario: ElasticScene, ask: Ask) -> Believed[Floats]:
    """(n_jobs,) seconds on one GPU, at the jobs' submissions; see `sources.believed`.

    Work is forecast where g GPUs are g times as fast, and counted as the scenario's table of speedups has it.
    """
    trace, workload = scenario.trace, scenario.workload
    # What the table of speedups makes of a GPU-second of the trace.
    factor = workload.size_s / trace.gpu_time_s

    def untold() -> Floats:
        size_s: Floats = UNTOLD_S * trace.duration_gpus * factor
        return size_s

    def answer(model: Any, tally: BadAnswers) -> Floats:
        from jobcast.models.completion.known_jobs import keys_of

        tally.checked(SIZES, len(trace))
        size_s = np.asarray(model.forecast(keys_of(trace), levels=(0.5,)))[:, 0] * factor
        # A job without work would never be served, or end at once.
        bad = ~(np.isfinite(size_s) & (size_s > 0))
        if bad.any():
            row = int(np.argmax(bad))
            tally.bad(SIZES, Reason.NOT_FINITE, f"job {trace.jobs['job_id'][row]}: {size_s[row]:g} s", int(bad.sum()))
        answers: Floats = np.where(bad, untold(), size_s)
        return answers

    return believed(ours_for(Question.SIZES), SIZES, scenario, ask, answer, untold)


def with_sizes(scenario: ElasticScene, size_s: Floats) -> ElasticScene:
    """The scenario whose jobs declare other sizes; (n_jobs,) seconds on one GPU."""
    workload = scenario.workload
    return replace(scenario, workload=replace(workload, jobs=workload.jobs._replace(size_s=size_s)))
