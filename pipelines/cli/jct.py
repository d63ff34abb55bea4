"""Completion times by replays: `jobcast evaluate jct`, and what `jobcast predict jct` has in common with it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jobcast import __version__
from jobcast.domain.errors import ConfigError, TraceError
from jobcast.domain.hardware import Cluster
from jobcast.domain.pairs import settings_of
from jobcast.models.completion.completion_time import CompletionTime, tracker_of
from jobcast.models.completion.intervals import LEVELS, IntervalTracker
from jobcast.models.registry.home import find_home
from jobcast.pipelines.cli.options import check_places, made_by, table_or_json, tell_notes
from jobcast.pipelines.experiments.clusters import cluster_of
from jobcast.pipelines.experiments.completion_by_copies import score_by_copies
from jobcast.pipelines.experiments.elastic.completion_prediction import DECLARED, FORECAST, NOISY, earlier_of, warmed
from jobcast.pipelines.experiments.elastic.conformal_intervals import Progress, figures_of, forecast_run, track
from jobcast.pipelines.experiments.elastic.jobs import elastic_jobs
from jobcast.pipelines.experiments.elastic.simulation import prepare
from jobcast.pipelines.experiments.experiment import Experiment
from jobcast.pipelines.experiments.forecast_specs import ForecastSpec, parse_forecasts
from jobcast.pipelines.experiments.scenarios import cut_scenario
from jobcast.pipelines.experiments.seen_data import refuse_overlap
from jobcast.pipelines.experiments.sources import Ask, Registered
from jobcast.pipelines.report.console import Console
from jobcast.pipelines.report.formatting import counted
from jobcast.pipelines.report.layout import aligned
from jobcast.pipelines.report.model_tables import of_version
from jobcast.schedulers.policies import ELASTIC, split_settings
from jobcast.schedulers.registry import find_of_kind, resolve_policy
from jobcast.traces.readers import read_trace
from jobcast.traces.table import Trace


def files_read(asked: Mapping[str, Any]) -> tuple[Path | None, ...]:
    """What is read."""
    return asked["trace_path"], asked["pools"], asked["cluster_path"]


def place_of(trace: Trace, asked: Mapping[str, Any], from_s: float | None) -> Cluster:
    """The cluster that was named."""
    how = {"pools": asked["pools"], "gpus": asked["gpus"], "cluster": asked["cluster_path"]}
    return cluster_of(trace, **how, from_s=from_s)


def source_of(asked: Mapping[str, Any]) -> ForecastSpec | None:
    """Where forecasts of run times come from, None where nothing was named."""
    return None if asked["forecasts"] is None else parse_forecasts(asked["forecasts"])


def refuse_of_elastic(policy: str, asked: Mapping[str, Any], *names: str) -> None:
    """Raise ConfigError for options of other policies that were given with an elastic one."""
    for name in names:
        if asked[name] is not None:
            raise ConfigError(
                f"--{name.replace('_', '-')}: does not go with {policy}, whose jobs declare their sizes; leave it out"
            )


SCORE_FUTURES = 100
SCORED = 300
"""Jobs that are scored, spread evenly over the window, unless `--every-job` says otherwise."""
HISTORY = 0.4
"""Share of the jobs that are history where no `--from` is given."""


def evaluate_jct(asked: Mapping[str, Any], learned: Registered | None, console: Console) -> None:
    """Score intervals of jobs submitted in a window, by a version of completion-time where there is one.

    Raises ConfigError and TraceError for what cannot be scored, OverlapError for a version that has seen it.
    """
    if not asked["policy"]:
        raise ConfigError("evaluate jct: needs --policy NAME")
    check_places(asked["json_to"], files_read(asked))
    trace, settings = read_trace(asked["trace_path"]), settings_of(asked["pairs"])
    rule = resolve_policy(asked["policy"], elastic=bool(trace.elastic.any()))[0]
    from_s, until_s, overlap = _begins_s(trace, asked["from_s"], learned), asked["until_s"], False
    if learned is not None:
        overlap = refuse_overlap(learned.version, from_s, until_s, asked["allow_overlap"], trace.source.sha256)
    model = None if learned is None else learned.model
    place, every = place_of(trace, asked, from_s), asked["every"]
    drawn: dict[str, Any] = {"futures": asked["futures"] or SCORE_FUTURES, "seed": asked["seed"]}
    spread = spread_of(asked["sizes"])
    with console.progress(f"evaluate jct under {rule.name}") as step:
        if rule.kind == ELASTIC:
            refuse_of_elastic(rule.name, asked, "pools", "forecasts")
            drawn |= {"spread": spread, "sizes": asked["sizes"] or FORECAST}
            result = score_jct(trace, place, rule.name, settings, (from_s, until_s), drawn, every, step, model)
        else:
            if spread is not None:
                raise ConfigError(
                    f"--sizes {asked['sizes']}: run times under {rule.name} are forecast; see --forecasts"
                )
            window: dict[str, Any] = {"from_s": from_s, "until_s": until_s, "drop_wide": True, "only_pools": True}
            experiment = Experiment(trace=trace, cluster=place, **window)
            seed, futures = drawn["seed"], drawn["futures"]
            ask = Ask(policy=rule.name, home=find_home(), spec=source_of(asked), settings=settings, seed=seed)
            result = score_by_copies(experiment, ask, futures, every, SCORED, model, step)
    if learned is not None:
        result |= {**of_version(learned.version), "overlap_allowed": overlap}
    tell_notes(trace, console)
    table_or_json({**result, **made_by()}, asked["json_to"], _table(result), console)


def _begins_s(trace: Trace, from_s: float | None, learned: Registered | None) -> float:
    """Where the window begins: what was asked for, else where a version's training ended, or after some history."""
    if from_s is not None:
        return from_s
    # Where the trace does not hold the end of the training, its own beginning is the history.
    if learned is not None and trace.submit_s[0] < learned.version.train_until_s < trace.submit_s[-1]:
        return float(learned.version.train_until_s)
    return float(trace.submit_s[int(HISTORY * len(trace))])


def score_jct(
    trace: Trace,
    place: Cluster,
    policy: str,
    settings: Mapping[str, str],
    window: tuple[float, float | None],
    drawn: Mapping[str, Any],
    every: int | None = None,
    progress: Progress | None = None,
    learned: CompletionTime | None = None,
) -> dict[str, Any]:
    """Figures of intervals as tracked, and of the bare futures beside them; `learned`: what they go on from.

    Sizes and arrivals are drawn from jobs before the window, as the trace ran them, and from what the window has shown
    by each submission; levels follow its outcomes as they come in.

    Raises TraceError for a window without jobs, or one before which no job has ended.
    """
    from_s, until_s = window
    spread, how = drawn["spread"], {name: drawn[name] for name in ("futures", "seed")}
    facts = {**split_settings(find_of_kind(policy, ELASTIC), settings).files.given(), "spread": spread or 0.0}
    scored = elastic_jobs(cut_scenario(trace, place.shared, from_s=from_s, until_s=until_s), **facts)
    how["declared"] = spread is not None
    earlier = earlier_of(scored, facts, None if learned is None else learned.past_)
    given: dict[str, Any] = {} if learned is None else {"sizes": learned.settings_}
    # Every job, where there are fewer than are scored.
    every = every or max(1, len(scored) // SCORED)
    try:
        # From the middle of the first stretch: neither end counts for more.
        jobs = np.arange(every // 2, len(scored), every).tolist() or [0]
        found = forecast_run(prepare(scored, policy, settings), earlier, jobs, progress=progress, **given, **how)
    except ValueError as error:
        raise TraceError(f"{trace.source.path}: {error}; choose a later --from") from error
    submit_s = scored.workload.jobs.submit_s[found.job]
    tracker = tracker_of(learned, warmed(scored, policy, settings, facts, **how))
    # A tracker that trusts nothing but the futures: these by themselves.
    bare = track(found, submit_s, IntervalTracker(trust=np.inf))
    return {
        "predictor": "jct",
        "policy": policy,
        "gpus": scored.workload.cluster.gpus,
        "sizes": drawn["sizes"],
        "warmed": len(tracker.known),
        **figures_of(found, track(found, submit_s, tracker)),
        "bare": figures_of(found, bare),
        "futures": drawn["futures"],
        "seed": drawn["seed"],
        "inputs": scored.provenance(),
        "configuration": {"settings": dict(settings)},
        "simulated": True,
        "jobcast": __version__,
    }


def spread_of(sizes: str | None) -> float | None:
    """Standard deviation of the logarithm of what declared sizes are wrong by; None where sizes are forecast.

    Raises ConfigError for what names none of these.

    >>> spread_of("forecast"), spread_of("declared"), spread_of("noisy:0.4")
    (None, 0.0, 0.4)
    """
    name, _, spread = (sizes or FORECAST).partition(":")
    if name == NOISY:
        try:
            if 0.0 <= float(spread) < np.inf:
                return float(spread)
        except ValueError:
            pass
    elif not spread and name in (FORECAST, DECLARED):
        return None if name == FORECAST else 0.0
    raise ConfigError(f"--sizes {sizes}: pass {FORECAST}, {DECLARED} or {NOISY}:S, S the errors' standard deviation")


RULES = {"time_limit": "within the job's time limit", "pool_median": "as long as jobs of its pool took"}
"""Intervals that need no model, in words."""


def _table(result: Mapping[str, Any]) -> str:
    rows = [("interval", "held %", "width / median", "bare: held %")]
    for level in LEVELS:
        name = f"{100 * level:g}"
        held, bare = (f"{100 * one[f'coverage_{name}']:.1f}" for one in (result, result["bare"]))
        rows.append((f"{name} %", held, f"{result[f'width_{name}_p50']:.2f}", bare))
    head = f"{counted(result['jobs'], 'job')} under {result['policy']}, sizes {result['sizes']}"
    lines = [head, aligned(rows, words=1)]
    lines.append(
        f"90 %: {result['below_90_pct']:.1f} % below, {result['above_90_pct']:.1f} % above; the upper end is "
        f"{result['ratio_median']:.3g} times the lower in the median; pinball loss {result['pinball']:.4f}"
    )
    lines.append(
        f"median error: {result['median_err_p50_pct']:.1f} % of the median of the futures, "
        f"{result['point_err_p50_pct']:.1f} % of the point, which knows the sizes"
    )
    lines += [
        f"beside it, {RULES[name]}: 90 % holds {100 * one['coverage_90']:.1f} %, width / median "
        f"{one['width_90_p50']:.2f}, pinball loss {one['pinball']:.4f}"
        for name, one in result.get("rules", {}).items()
    ]
    return "\n".join(lines)
