"""The page of a backtest, readable by somebody who was not there, and its table for the terminal."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jobcast.pipelines import plots_backtest, plots_predictors, plots_recalls
from jobcast.pipelines.console import printable
from jobcast.pipelines.headline import find
from jobcast.pipelines.lifecycle.gate import Outcome
from jobcast.pipelines.page import Drawing, render
from jobcast.pipelines.plots import styles
from jobcast.pipelines.predictor_tables import points_in_use, predictor_tables
from jobcast.pipelines.report_tables import (
    gains_table,
    instant,
    jct_of,
    main_table,
    models_table,
    pool_tables,
    pools_table,
)
from jobcast.pipelines.simulation import bad_forecast_lines, beyond_lines
from jobcast.pipelines.summaries import Summary, summaries
from jobcast.pipelines.wording import POLICIES_IN_WORDS, UNKNOWN, counted, listed, number, percent, unit_for
from jobcast.simulator.metrics import SLOWED_TOLERANCE_S

TERMINAL_COLUMNS = 100
SECONDS_A_MINUTE = 60.0


@dataclass(frozen=True, slots=True)
class ReportInput:
    """All that a report shows.

    Attributes
    ----------
    title : of the page
    trace : `name`, `sha256`, `rows`; if known `jobs`, `path`, `from`, `until`, `pools_origin`, `notes`, `dropped`
    split : `train_from`, `train_until`, `test_until`, ISO-8601 or (`..._s`) seconds from the epoch
    pools : each `name`, `gpus`
    rows : a simulation each: `label`, `policy`, `forecasts` (None if unused), `seed`, `window`, and the figures of
        `simulate --json`
    jobs : label -> `submit_s`, `jct_s`, `wait_s`, `pool`, each (n_jobs,), the same jobs in the same order throughout
    baseline_label : the configuration that the rest is measured against
    gains : comparisons, each `a`, `b` (labels) and `gains.Gains.to_dict()`
    evaluation : predictor -> figures of `evaluate --json`
    curves : `reliability` (horizon -> bins), `precision_recall` (horizon -> points), `importance` (horizon -> gains),
        `recall_per_pool_hour` and `recall_by_pool` (horizon -> points), `ablation` (horizon -> sets); see `curves`
    utilisation : label -> (times in seconds from the epoch, shares of all GPUs at work)
    models : each `name`, `version`, `aliases`, `algorithm`, `trained_until`
    commands : that make these figures again
    notes : what else a reader should know
    outcome : of the gate before the champions, where there was one
    """

    title: str
    trace: Mapping[str, Any]
    split: Mapping[str, Any]
    pools: Sequence[Mapping[str, Any]]
    rows: Sequence[Mapping[str, Any]]
    jobs: Mapping[str, Mapping[str, Any]]
    baseline_label: str = "fcfs"
    gains: Sequence[Mapping[str, Any]] = ()
    evaluation: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    curves: Mapping[str, Any] = field(default_factory=dict)
    utilisation: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    models: Sequence[Mapping[str, Any]] = ()
    commands: Sequence[str] = ()
    notes: Sequence[str] = ()
    outcome: Outcome | None = None


def render_report(results: ReportInput) -> str:
    """A self-contained HTML page: no scripts, nothing loaded.

    Raises
    ------
    ValueError
        Configurations hold different numbers of jobs.
    """
    rows, baseline = summaries(results.rows), results.baseline_label
    return render(
        "report.html.j2",
        title=results.title,
        question=_question(results, rows),
        outcome=results.outcome,
        doubts=_told_by_runs(results.rows, bad_forecast_lines),
        finding=find(rows, results.gains, baseline),
        facts=_facts(results),
        pools_table=pools_table(results.pools, results.jobs, baseline),
        main_table=main_table(rows, baseline),
        gain_figures=_gain_figures(results, rows),
        gains_table=gains_table(results.gains),
        forest=_forest(results.gains),
        pool_tables=pool_tables(results.jobs, baseline),
        predictor_tables=predictor_tables(results.evaluation),
        predictor_figures=_predictor_figures(results),
        models_table=models_table(results.models),
        glossary=_glossary(rows, baseline),
        caveats=_caveats(results),
        commands=results.commands,
    )


def _told_by_runs(rows: Sequence[Mapping[str, Any]], lines: Callable[[Mapping[str, Any]], list[str]]) -> list[str]:
    """What there is to say of each run, with its name."""
    return list(dict.fromkeys(f"{_run_named(row, rows)}: {line}" for row in rows for line in lines(row)))


def _run_named(row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """A configuration, with window and seed where there are several."""
    label = str(row.get("label") or row["policy"])
    parts = [f"{part} {row[part]}" for part in ("window", "seed") if len({other.get(part) for other in rows}) > 1]
    return ", ".join([label, *parts])


def _question(results: ReportInput, rows: Sequence[Summary]) -> str:
    policies = list(dict.fromkeys(one.policy for one in rows if one.label != results.baseline_label))
    kinds = list(dict.fromkeys(one.source for one in rows if one.kind))
    asked = f"How much sooner do jobs finish than under {results.baseline_label}, and how many are slowed"
    owned = f"when the GPUs of {counted(len(results.pools), 'pool')} are scheduled"
    return (
        f"{asked}, {owned} by {listed(policies) or 'nothing'}"
        + (f", with forecasts from {listed(kinds)}? " if kinds else "? ")
        + f"Measured by replaying the trace {results.trace['name']} in a simulated cluster."
    )


def _facts(results: ReportInput) -> list[tuple[str, str]]:
    trace, split = results.trace, results.split
    since, until, end = (_moment(split, key) for key in ("train_from", "train_until", "test_until"))
    dropped = [f"{number(count)} {reason}" for reason, count in (trace.get("dropped") or {}).items() if count]
    gpus = sum(int(pool.get("gpus", pool.get("quota", 0))) for pool in results.pools)
    facts = [
        ("trace", f"{trace['name']}" + (f" ({trace['path']})" if trace.get("path") else "")),
        ("rows in the file", number(trace.get("rows"))),
        ("jobs", number(trace.get("jobs"))),
        ("SHA-256", str(trace.get("sha256") or UNKNOWN)),
        ("span", f"{instant(trace.get('from'))} to {instant(trace.get('until'))}"),
        ("trained on", f"{since} to {until}"),
        ("tested on", f"{until} to {end}"),
        ("pools", f"{number(len(results.pools))} with {number(gpus)} GPUs in all"),
        ("quotas", str(trace.get("pools_origin") or UNKNOWN)),
        ("left out", "; ".join(dropped)),
    ]
    return [(name, value) for name, value in facts if value not in (UNKNOWN, "", f"{UNKNOWN} to {UNKNOWN}")]


def _moment(split: Mapping[str, Any], key: str) -> str:
    return instant(split.get(key, split.get(f"{key}_s")))


def _gain_figures(results: ReportInput, rows: Sequence[Summary]) -> list[Drawing]:
    jobs, baseline = results.jobs, results.baseline_label
    looks = styles(list(dict.fromkeys([*jobs, *results.utilisation, *(one.label for one in rows)])))
    found: list[Drawing] = []
    others = [label for label in jobs if label != baseline] if baseline in jobs else []
    if others:
        base = np.asarray(jobs[baseline]["jct_s"], dtype=float)
        speedups = {label: base / jct_of(jobs, label, baseline) for label in others}
        later_min = {label: _later_min(jct_of(jobs, label, baseline), base) for label in others}
        found += [
            Drawing(
                plots_backtest.speedup_cdf(speedups, looks, baseline),
                "Speedups of all jobs. A curve that runs further right is better; what lies left of 1 is slowed.",
            ),
            Drawing(
                plots_backtest.slowdown_curve(later_min, looks),
                "How many jobs are slowed, and by how much. A curve that lies lower is better; a configuration that "
                "slows no job has none.",
            ),
        ]
    known = [one for one in rows if one.get("slowed_pct") is not None and one.label != baseline]
    if known:
        slowed = {one.label: one.get("slowed_pct") or 0.0 for one in known}
        total = {one.label: one.get("slowdown_total_min") or 0.0 for one in known}
        told = f"Against {baseline}; means over runs. What lends GPUs too boldly shows here."
        found.append(Drawing(plots_backtest.slowed_bars(slowed, total, looks), told))
    if results.utilisation:
        drawing = plots_backtest.utilisation(results.utilisation, looks)
        found.append(Drawing(drawing, "GPUs at work over time; sharing fills idle hours and so ends jobs sooner."))
    return found


def _later_min(jct_s: Any, base_s: Any) -> Any:
    later_s = jct_s - base_s
    return np.where(later_s > SLOWED_TOLERANCE_S, later_s, 0.0) / SECONDS_A_MINUTE


def _forest(gains: Sequence[Mapping[str, Any]]) -> list[Drawing]:
    if not any(gain.get("speedup") for gain in gains):
        return []
    caption = "Dots are estimates, bars confidence intervals; grey bars hold 1 and tell nothing apart."
    return [Drawing(plots_backtest.gains_forest(gains), caption)]


def _predictor_figures(results: ReportInput) -> list[Drawing]:
    curves, found = results.curves, []
    if curves.get("reliability"):
        caption = "Honest probabilities lie on the diagonal; larger dots stand for more windows."
        found.append(Drawing(plots_predictors.reliability(curves["reliability"]), caption))
    if curves.get("precision_recall"):
        drawing = plots_predictors.precision_recall(curves["precision_recall"], points_in_use(results.evaluation))
        found.append(Drawing(drawing, "What a threshold can trade, the threshold in use, and rules without learning."))
    found += _recall_figures(curves)
    for horizon, features in (curves.get("importance") or {}).items():
        if features:
            caption = f"What the arrival predictor looks at, {horizon} ahead."
            found.append(Drawing(plots_predictors.importance(horizon, features), caption, narrow=True))
    return found


def _recall_figures(curves: Mapping[str, Any]) -> list[Drawing]:
    """Where forecasts are right: hour by hour, pool by pool, with more and more features. SIA, appendix B."""
    found = []
    if any((curves.get("recall_per_pool_hour") or {}).values()):
        told = "The predictions of an hour are mostly all right or all wrong: errors come in spells."
        found.append(Drawing(plots_recalls.recall_per_pool_hour(curves["recall_per_pool_hour"]), told))
    if any((curves.get("recall_by_pool") or {}).values()):
        told = "One model serves all pools; it foresees the arrivals of some far better than those of others."
        found.append(Drawing(plots_recalls.recall_by_pool(curves["recall_by_pool"]), told))
    if curves.get("ablation"):
        told = "Twins trained anew, each with more features than the one above; bars are 95 % intervals."
        found.append(Drawing(plots_recalls.ablation(curves["ablation"]), told))
    return found


def _glossary(rows: Sequence[Summary], baseline: str) -> list[tuple[str, str]]:
    policies = dict.fromkeys([baseline, *(one.policy for one in rows)])
    kinds = {one.source for one in rows}
    meanings = {
        "oracle": "reads the future from the trace, coarsely: whether jobs arrive, how much load, which duration bin",
        "registry": "trained models from the registry, which know nothing after the instant that they are asked at",
        "conservative": "jobs always arrive and fill the quota, so that nothing is lent: the same as the baseline",
        "random": "a fair coin for arrivals, any duration bin; what bad forecasts do",
        "noisy": "exact forecasts, each wrong with the given probability",
    }
    return [
        ("JCT", "job completion time, from submission to end"),
        (
            "speedup",
            f"JCT under {baseline} divided by JCT; 2 means half the time. Means are geometric, since a few tiny jobs "
            "dominate the plain mean.",
        ),
        ("slowed", f"ended later than under {baseline}, by however little; the slowdown is by how much"),
        *((name, POLICIES_IN_WORDS[name]) for name in policies if name in POLICIES_IN_WORDS),
        *((f"forecasts: {kind}", meaning) for kind, meaning in meanings.items() if kind in kinds),
    ]


def _caveats(results: ReportInput) -> list[str]:
    origin = results.trace.get("pools_origin")
    return [
        "All figures are simulated: no job was run for them.",
        "The trace is replayed in an open loop: jobs arrive when they did, although people who get results sooner "
        "would submit their next jobs sooner.",
        f"Quotas: {origin}." if origin else "Where the quotas come from is not recorded.",
        "Tight quotas make any sharing look good and loose ones make all forecasts look alike: compare with the "
        "conservative and random forecasts of the same window, not with other windows.",
        *(str(note) for note in results.trace.get("notes") or ()),
        *_told_by_runs(results.rows, beyond_lines),
        *(str(note) for note in results.notes),
    ]


def summary_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Policies and forecasts for a terminal, at most `TERMINAL_COLUMNS` wide, without colours."""
    from rich import box
    from rich.table import Table

    known = summaries(rows)
    unit, unit_s = unit_for(one.get("mean_jct_s") for one in known)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("policy", overflow="fold")
    table.add_column("forecasts", overflow="fold")
    for name in ("speedup (gmean)", "slowed", "slowdown (min)", f"mean JCT ({unit})"):
        table.add_column(name, justify="right")
    for one in known:
        jct = one.get("mean_jct_s")
        table.add_row(
            one.policy,
            one.forecasts or UNKNOWN,
            number(one.get("speedup_gmean")),
            percent(one.get("slowed_pct")),
            number(one.get("slowdown_total_min")),
            number(None if jct is None else jct / unit_s),
        )
    return in_terminal(table)


def in_terminal(table: Any) -> str:
    """Plain text of a rich table."""
    import io

    from rich.console import Console

    class Paper(Console):
        def render_str(self, text: str, **style: Any) -> Any:  # before rich drops some control characters unseen
            return super().render_str(printable(text), **style)

    paper = io.StringIO()
    # Without markup and emoji, so that brackets and colons in a label stay what they are.
    Paper(file=paper, width=TERMINAL_COLUMNS, no_color=True, markup=False, emoji=False, legacy_windows=False).print(
        table
    )
    return "\n".join(line.rstrip() for line in paper.getvalue().splitlines()).strip("\n")
