"""`jobcast simulate`: one policy, one source of forecasts, one window."""

from functools import cache
from pathlib import Path
from typing import Any

import click

from jobcast.pipelines.commands.loop_options import asked_think_s, loop_options
from jobcast.pipelines.commands.options import (
    PolicyCommand,
    check_places,
    console_of,
    degrade_option,
    dropped_lines,
    json_option,
    overlap_option,
    seed_option,
    set_option,
    settings_of,
    table_or_json,
    trace_option,
    warmup_option,
    window_options,
)
from jobcast.pipelines.forecast_specs import HELP


@click.command(name="simulate", cls=PolicyCommand)
@trace_option()
@click.option(
    "--policy",
    required=True,
    metavar="NAME",
    help="One of those below, or an installed one.",
)
@click.option("--pools", "pools_path", type=click.Path(path_type=Path), help="Quotas: CSV pool,gpus[,from][,cells].")
@click.option(
    "--cluster", "cluster_path", type=click.Path(path_type=Path), help="Cluster: YAML of nodes, pools, watts, prices."
)
@click.option("--gpus", type=click.IntRange(min=1), help="A flat cluster of N GPUs, pools ignored.")
@click.option(
    "--forecasts",
    metavar="KIND",
    help=f"{HELP}; default oracle, restatement for training jobs in rounds. SOURCE is one of the first ones; parts of "
    "mixed that are not named are the oracle's.",
)
@window_options
@click.option("--limit", type=click.IntRange(min=1), help="Only the first N jobs of the window.")
@warmup_option
@click.option(
    "--baseline", metavar="NAME", help="Policy to compare with, or none; default fcfs, none for training jobs."
)
@loop_options
@click.option("--predict", is_flag=True, help="Forecast each job's completion at its submission (elastic policies).")
@click.option("--drop-too-wide", is_flag=True, help="Drop and count jobs wider than their pool.")
@click.option("--pools-only", is_flag=True, help="Drop and count jobs of pools without capacity.")
@overlap_option
@degrade_option
@seed_option
@set_option
@click.option("--out", type=click.Path(path_type=Path), help="One row a job: CSV or Parquet, by its ending.")
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    trace_path: Path,
    policy: str,
    pools_path: Path | None,
    cluster_path: Path | None,
    gpus: int | None,
    forecasts: str | None,
    from_s: float | None,
    until_s: float | None,
    limit: int | None,
    warmup_days: float,
    baseline: str | None,
    closed_loop: bool,
    max_think_s: float | None,
    predict: bool,
    drop_too_wide: bool,
    pools_only: bool,
    allow_overlap: bool,
    degrade: bool,
    seed: int,
    pairs: tuple[str, ...],
    out: Path | None,
    json_to: str | None,
) -> None:
    """Replay the jobs submitted in [from, until) to completion, from an empty cluster.

    \b
    Example:
      jobcast simulate --trace jobs.parquet --pools pools.csv --policy sia --forecasts registry --json -
      jobcast simulate --trace jobs.parquet --pools pools.csv --policy sia --set slack=.1 --out log.csv
      jobcast simulate --trace jobs.parquet --cluster cluster.yaml --policy sia --set locality=true
      jobcast simulate --trace jobs.parquet --gpus 32 --policy srpt --set throughputs=t.csv --set regimes=r.csv
      jobcast simulate --trace elastic.parquet --gpus 64 --policy pcs --set config=c.json --set speedups=s.csv --predict
      jobcast simulate --trace jobs.parquet --gpus 80 --policy mlfs --set tasks=t.parquet --set curves=c.parquet
      jobcast simulate --trace jobs.parquet --cluster cluster.yaml --policy andreas --set profiles=p.csv --baseline edf
    """
    from jobcast import __version__
    from jobcast.domain.errors import ConfigError
    from jobcast.models.registry.home import find_home
    from jobcast.pipelines.cells import asks_for_locality, check_locality, placed
    from jobcast.pipelines.closed_loop import check_loop, told_of_loop
    from jobcast.pipelines.clusters import TASK_GPUS, cluster_of
    from jobcast.pipelines.elastic.asking import Asked, simulate_and_tell
    from jobcast.pipelines.energy import asking as energy
    from jobcast.pipelines.enriched import settings_beside
    from jobcast.pipelines.forecast_specs import parse_forecasts
    from jobcast.pipelines.goodput_runs import scaling_scene
    from jobcast.pipelines.job_table import check_job_table, listed, write_job_table
    from jobcast.pipelines.policy_settings import check_forecasts, loaded, policies_meant, settings_for
    from jobcast.pipelines.rounds import default_spec, has_training
    from jobcast.pipelines.run_record import (
        bin_names,
        check_record,
        pool_record_of,
        simulate_recorded,
        write_run_record,
    )
    from jobcast.pipelines.scaling_jobs import read_scaling
    from jobcast.pipelines.scenes import build_scene
    from jobcast.pipelines.simulation import (
        check_baseline,
        figures,
        figures_table,
        is_by_rounds,
        simulate,
        trust_lines,
        warmup_end,
    )
    from jobcast.pipelines.tasks import asking as tasks
    from jobcast.pipelines.training_jobs import read_tables
    from jobcast.schedulers.policies import ELASTIC, ENERGY, TASKS, split_settings
    from jobcast.traces.readers import read_trace

    console = console_of(ctx)
    oracle = parse_forecasts("oracle")
    spec = parse_forecasts(forecasts) if forecasts is not None else None
    settings = settings_of(pairs)
    trace = cache(lambda: read_trace(trace_path))
    rule, baseline, taken = policies_meant(policy, baseline, settings, trace)
    policy = rule.name
    settings, assumed = settings_beside(rule.kind, trace_path, settings)
    for line in assumed:
        console.note(f"assumed: {line}")
    think_s = asked_think_s(closed_loop, max_think_s)
    if think_s is not None:
        check_loop([(policy, spec or oracle)], check_baseline("fcfs" if baseline is None else baseline), settings)
    if out:
        check_job_table(out)
    check_places(json_to, (trace_path, pools_path, cluster_path), {"--out": out})
    if out:
        check_record(out)
    if from_s is not None and until_s is not None and from_s >= until_s:
        raise ConfigError("--from must lie before --until")
    asked = Asked(
        policy=policy,
        baseline=baseline,
        predict=predict,
        window=(from_s, until_s),
        limit=limit,
        warmup_days=warmup_days,
        settings=settings,
        seed=seed,
        allow_overlap=allow_overlap,
        degrade=degrade,
        assumptions=assumed,
    )
    for note in taken:
        console.note(note)
    where: dict[str, Any] = {"pools": pools_path, "cluster": cluster_path, "gpus": gpus, "from_s": from_s}
    if rule.kind == ELASTIC:
        simulate_and_tell(trace(), cluster_of(trace(), **where), asked, spec, console, out=out, json_to=json_to)
        return
    if predict:
        raise ConfigError(
            f"--predict: completion times are forecast for elastic policies, not {policy}; `jobcast policies` lists "
            "them"
        )
    if rule.kind == ENERGY:
        place = cluster_of(trace(), **where)
        energy.simulate_and_tell(trace(), place, asked, spec, console, home=find_home(), out=out, json_to=json_to)
        return
    if rule.kind == TASKS:
        servers = cluster_of(trace(), **where, otherwise=TASK_GPUS)
        tasks.simulate_and_tell(trace(), servers, asked, spec, console, home=find_home(), out=out, json_to=json_to)
        return
    base_name = check_baseline(baseline) if baseline is not None else "fcfs"
    local, by_rounds, tables = asks_for_locality(settings), is_by_rounds(policy), read_tables(settings)
    check_forecasts(policy, spec or oracle)
    if local:
        check_locality(policy, base_name)
    split_settings(rule, loaded(settings), local)
    own = dict(settings_for(policy, settings, local))
    scaling = read_scaling(settings)
    place = cluster_of(trace(), **where)
    scene = build_scene(
        trace(),
        place.pools,
        origin=place.origin,
        flat=place.flat,
        from_s=from_s,
        until_s=until_s,
        limit=limit,
        drop_wide=drop_too_wide,
        only_pools=pools_only,
        tables=tables,
        nodes=place.nodes,
        max_think_s=think_s,
    )
    if local:
        scene = placed(scene, place.cells)
    if scaling is not None:
        scene = scaling_scene(scene, trace(), scaling)
    if baseline is None and (has_training(scene) or scaling is not None):
        base_name = None
    spec = spec or (default_spec(scene) if by_rounds else oracle)
    warmup_until_s = warmup_end(scene, warmup_days)
    home = find_home()
    recording = None
    with console.progress(f"simulate {policy}") as step:
        how: dict[str, Any] = {
            "home": home,
            "seed": seed,
            "settings": own,
            "allow_overlap": allow_overlap,
            "degrade": degrade,
            "progress": step,
        }
        if out:
            run, recording = simulate_recorded(scene, policy, spec, **how)
        else:
            run = simulate(scene, policy, spec, **how)
    base = None
    if base_name is not None:
        same = base_name == policy and not own and (spec == oracle or not rule.asks)
        base = run if same else simulate(scene, base_name, oracle, home=home, seed=seed)
    result: dict[str, Any] = {
        **figures(run, base, policy=policy, spec=spec, warmup_until_s=warmup_until_s),
        **told_of_loop(scene, run.log),
        "baseline": base_name,
        "simulated": True,
        "inputs": scene.provenance(trace()),
        "configuration": {"settings": settings, "limit": limit, "warmup_days": warmup_days},
        "assumptions": list(assumed),
        "seed": seed,
        "models": dict(run.models),
        "overlap_allowed": run.overlap,
        "jobcast": __version__,
    }
    if out:
        jobs, told_base = listed(scene.workload), None if base is None else base.log
        write_job_table(run.log, jobs, out, told_base, run.nodes, bin_names(recording, scene.workload))
        told = pool_record_of(run.log, scene.workload, policy, result, own, recording)
        write_run_record(out, told, run.log, recording, run.replaced)
        console.note(f"jobs: {out}")
    for line in (*scene.notes, *dropped_lines(scene.dropped), *trust_lines(result)):
        console.note(line)
    table_or_json(result, json_to, figures_table(result), console)
