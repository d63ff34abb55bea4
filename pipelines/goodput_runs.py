"""Simulations of jobs that scale: a scene under a goodput policy, and what becomes of batch sizes and accuracy."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from jobcast.domain.errors import ConfigError
from jobcast.domain.jobs import Pool
from jobcast.models.goodput import GPUS_PER_NODE
from jobcast.pipelines.console import Step
from jobcast.pipelines.scaling_jobs import CURVES, STEP_TIMES, Application, ScalingTables, scaling_workload
from jobcast.pipelines.scenes import Scene
from jobcast.schedulers.policies import split_settings
from jobcast.schedulers.registry import find_policy, make_rule
from jobcast.simulator.goodput import GoodputLog, ScalableWork, Stretch, replay_goodput
from jobcast.simulator.log import GOODPUT, Floats, RunLog, flat_spans
from jobcast.traces.goodput_tables import NoiseCurve
from jobcast.traces.table import Trace

Curves = Mapping[int, NoiseCurve]


def scaling_scene(scene: Scene, trace: Trace, tables: ScalingTables) -> Scene:
    """The scene with its jobs as they scale; run times are those alone on the GPUs asked for, whatever the policy.

    Nodes are as large as the cluster's, or as those that were measured where GPUs are known by number alone.

    Raises ConfigError for nodes of several sizes, TraceError as `scaling_workload`.
    """
    sizes = {gpus for _, gpus in scene.nodes}
    if len(sizes) > 1:
        raise ConfigError(f"cluster file: jobs that scale need nodes of one size, got {sorted(sizes)}; pass --gpus")
    workload, scaling = scaling_workload(scene.workload, trace, tables, min(sizes, default=GPUS_PER_NODE))
    note = f"run times: alone on the GPUs asked for at the batch sizes of the best goodput ({tables.times_path})"
    return replace(scene, workload=workload, scaling=scaling, notes=(*scene.notes, note))


def replay_scaling(
    scene: Scene, policy: str, settings: Mapping[str, object], progress: Step | None = None
) -> tuple[RunLog, dict[str, float]]:
    """What happened, and figures of what it did to batch sizes and accuracy; see `scaling_figures`.

    Raises ConfigError for a scene of several pools or without tables of how its jobs scale.
    """
    scaling, pools = scene.scaling, scene.workload.pools
    if scaling is None:
        raise ConfigError(
            f"policy {policy}: how jobs scale is not known; add --set {STEP_TIMES}=FILE --set {CURVES}=FILE"
        )
    if len(pools) > 1:
        raise ConfigError(f"policy {policy} shares one cluster out, got {len(pools)} pools; pass --gpus N")
    rule, own = make_rule(policy, None, settings), split_settings(find_policy(policy), settings).own
    how = {"round_s": own.round_s, "restart_s": own.restart_s}
    log = replay_goodput(scaling.works, rule, pools[0].quota, progress=progress, **how)
    alone_s = np.array([outcome.duration_s for outcome in scene.workload.outcomes])
    made = goodput_log(policy, pools, scaling.works, log, alone_s)
    return made, scaling_figures(scaling.works, scaling.applications, scaling.tables.curves, log)


def goodput_log(
    policy: str, pools: Sequence[Pool], works: Sequence[ScalableWork], log: GoodputLog, alone_s: Floats
) -> RunLog:
    """A replay of goodput in the form of all others.

    Parameters
    ----------
    policy : its name
    pools : the one that was shared out
    works : that were replayed
    log : of the replay
    alone_s : (n_jobs,) run times on the GPUs asked for, which fairness is measured by
    """
    holds = sorted(((hold.end_s, seq, hold) for seq, held in enumerate(log.holds) for hold in held), key=_by_end)
    spans = flat_spans(
        np.array([seq for _, seq, _ in holds], dtype=np.int64),
        np.array([hold.begin_s for _, _, hold in holds]),
        np.array([end_s for end_s, _, _ in holds]),
        np.array([hold.gpus for _, _, hold in holds], dtype=np.float64),
    )
    return RunLog(
        policy=policy,
        pools=tuple(pools),
        submit_s=np.array([work.submit_s for work in works]),
        start_s=np.array([held[0].begin_s for held in log.holds]),
        end_s=np.array(log.end_s),
        duration_s=alone_s,
        gpus=np.array([work.gpus for work in works], dtype=np.int64),
        pool=np.zeros(len(works), dtype=np.int64),
        preemptions=np.array(log.restarts, dtype=np.int64),
        dedicated=np.zeros(len(works), dtype=np.bool_),
        spans=spans,
        law=GOODPUT,
        events=len(works) * 2 + sum(log.restarts),
    )


def _by_end(row: tuple[float, int, object]) -> tuple[float, int]:
    return row[:2]


def scaling_figures(
    works: Sequence[ScalableWork], apps: Sequence[Application], curves: Mapping[str, Curves], log: GoodputLog
) -> dict[str, float]:
    """What a replay did to GPUs, batch sizes and accuracy. Shockwave, sections 2.3 and 8.7.

    `gpu_time_asked_to_held`: GPU time alone on the GPUs asked for / held. `gpu_changes_mean`: changes of GPUs a job.
    `batch_growth_mean`, `batch_growth_max`: batch size / the initial one, the mean over a job's running time averaged
    over jobs, and the largest. `efficiency_mean`: progress a sample, relative to the smallest batch size measured.
    `metric_change_mean_pct`, `metric_change_worst_pct`: see `metric_change_pct`.
    """
    growth, most, efficiency, change = [], [], [], []
    for app, ran in zip(apps, log.stretches, strict=True):
        time_s = np.array([stretch.end_s - stretch.begin_s for stretch in ran])
        size = np.array([stretch.batch_size for stretch in ran]) / app.limits.initial
        samples = sum(
            seconds * app.samples_s(stretch.gpus, stretch.batch_size)
            for seconds, stretch in zip(time_s.tolist(), ran, strict=True)
        )
        growth.append(float(time_s @ size / time_s.sum()))
        most.append(float(size.max()))
        efficiency.append(sum(stretch.work for stretch in ran) / samples)
        change.append(metric_change_pct(curves[app.name], app, ran))
    asked = sum(work.gpus * work.exclusive_s() for work in works)
    return {
        "gpu_time_asked_to_held": asked / sum(log.gpu_s),
        "gpu_changes_mean": float(np.mean(log.restarts)),
        "batch_growth_mean": float(np.mean(growth)),
        "batch_growth_max": max(most),
        "efficiency_mean": float(np.mean(efficiency)),
        "metric_change_mean_pct": float(np.mean(change)),
        "metric_change_worst_pct": min(change),
    }


def metric_change_pct(curves: Curves, app: Application, ran: Sequence[Stretch]) -> float:
    """How much better the validation metric ends than at the initial batch size throughout, % of that; below 0, worse.

    An estimate: each share of the work is taken to end at the metric measured, after as much progress, at its own batch
    size (between measured ones, by its logarithm). Whether more is better is read off the initial size's curve. NaN
    where that ends at 0.
    """
    until = app.work.phases[-1].until / app.limits.unit_size
    sizes = sorted(curves)
    ends = np.array([np.interp(until, curves[size].progress, curves[size].metric) for size in sizes])
    begin, initial = curves[app.limits.initial].metric, float(ends[sizes.index(app.limits.initial)])
    if initial == 0:
        return float("nan")
    work = np.array([stretch.work for stretch in ran])
    at = np.interp(np.log2([stretch.batch_size for stretch in ran]), np.log2(sizes), ends)
    better = float(np.sign(begin[-1] - begin[0])) or 1.0
    return 100.0 * better * float(work @ at / work.sum() - initial) / abs(initial)
