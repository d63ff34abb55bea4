"""The page of a backtest, readable by somebody who was not there, and its table for the terminal."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from jobcast.domain.clock import MINUTE_S
from jobcast.pipelines.report import backtest_charts, backtest_tables
from jobcast.pipelines.report.advice import Where, advice, summary_of
from jobcast.pipelines.report.backtest_finding import find, lead_of
from jobcast.pipelines.report.backtest_tables import Summary, by_law, summaries
from jobcast.pipelines.report.charts import ZOOM, looks
from jobcast.pipelines.report.figure_lines import bad_forecast_lines, unfamiliar_lines
from jobcast.pipelines.report.formatting import UNKNOWN, listed, number, on_shown_clock
from jobcast.pipelines.report.layout import Drawing, in_terminal, render
from jobcast.pipelines.report.predictor_plots import IMPORTANCE, CurvePoints
from jobcast.pipelines.report.predictor_tables import points_in_use, predictor_tables
from jobcast.simulator.metrics import is_slowed, times_as_fast

if TYPE_CHECKING:
    from jobcast.pipelines.lifecycle.gate import Outcome  # which itself shows what reports show

LEAST_WORDS = 27
"""Columns that long names get before they are folded."""
TERMINAL_HEADS = ("policy", "forecasts", "mean JCT", "saved h", "speedup", "slowed", "by (h)")
MOST_DRAWN = 8
"""Configurations in a plot; more curves are told apart by nobody."""
MOST_COMPARED = 16
"""Comparisons in a plot."""


@dataclass(frozen=True, slots=True)
class ReportInput:
    """All that a report shows.

    Attributes
    ----------
    title : of the page
    trace : `name`, `sha256`, `rows`; if known `jobs`, `path`, `from`, `until`, `pools_origin`, `notes`, `dropped`
    split : `train_from`, `train_until`, `test_until`, ISO-8601 or (`..._s`) seconds from the epoch
    pools : each `name`, `gpus`
    rows : a simulation each, as `CellResult.row` tells it
    jobs : label -> `submit_s`, `jct_s`, `wait_s`, `pool`, `user`, each (n_jobs,), of a law the same jobs in one order
    baseline_label : the configuration that the rest is measured against
    baselines : the same by law
    gains : comparisons, as `backtest_results.gains_between` tells them
    skipped : policies that cannot run, each `policy`, `lacks`
    assumptions : what the trace rests on, in sentences
    evaluation : predictor -> figures of `evaluate --json`
    curves : `reliability` (horizon -> bins), `precision_recall` (horizon -> points), `importance` (horizon -> gains),
        `recall_per_pool_hour` and `recall_by_pool` (horizon -> points), `ablation` (horizon -> sets); see `curves`
    utilisation : label -> (times in seconds from the epoch, shares of all GPUs at work)
    models : each `name`, `version`, `aliases`, `algorithm`, `trained_until`
    commands : that make these figures again
    where : by policy the options of `simulate` that name trace, cluster and world
    notes : what else a reader should know
    outcome : of the gate before the champions, where there was one
    choice : what to run by these rows, as `experiments.choice.choose` tells it; None where there is nothing to choose
    """

    title: str
    trace: Mapping[str, Any]
    split: Mapping[str, Any]
    pools: Sequence[Mapping[str, Any]]
    rows: Sequence[Mapping[str, Any]]
    jobs: Mapping[str, Mapping[str, Any]]
    baseline_label: str = "fcfs"
    baselines: Mapping[str, str] = field(default_factory=dict)
    gains: Sequence[Mapping[str, Any]] = ()
    skipped: Sequence[Mapping[str, str]] = ()
    assumptions: Sequence[str] = ()
    evaluation: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    curves: Mapping[str, Any] = field(default_factory=dict)
    utilisation: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    models: Sequence[Mapping[str, Any]] = ()
    commands: Sequence[str] = ()
    where: Where = field(default_factory=dict)
    notes: Sequence[str] = ()
    outcome: "Outcome | None" = None
    choice: Mapping[str, Any] | None = None


def render_report(results: ReportInput) -> str:
    """A self-contained HTML page: nothing is loaded.

    Raises
    ------
    ValueError
        Configurations hold different numbers of jobs.
    """
    rows, baseline = summaries(results.rows), results.baseline_label
    jobs = _comparable(results.jobs, rows, baseline)
    lead, picked = _lead(results, rows), results.choice
    versions = {row.label: row.versions for row in rows}
    beside = [gain for gain in results.gains if gain["against"] not in results.baselines.values()]  # of the main table
    return render(
        "report.html.j2",
        title=results.title,
        question=_question(results, rows),
        outcome=results.outcome,
        advice=advice(picked, versions.get(picked["choice"]["label"]), results.where) if picked else None,
        doubts=_told_by_runs(results.rows, bad_forecast_lines),
        finding=find(
            rows,
            results.gains,
            results.baselines,
            backtest_tables.slowed_of(jobs, lead.label, baseline) if lead else None,
            lead,
        ),
        main_tables=backtest_tables.main_tables(rows, results.gains, baseline, results.baselines),
        skipped_table=backtest_tables.skipped_table(results.skipped),
        assumptions=results.assumptions,
        facts=_facts(results),
        pools_table=backtest_tables.pools_table(results.pools, jobs, baseline),
        gain_figures=_gain_figures(results, rows, jobs),
        slowed_table=backtest_tables.slowed_table(jobs, baseline),
        matrix_table=backtest_tables.matrix_table(rows, results.gains),
        versions_table=backtest_tables.versions_table(rows, results.gains),
        gains_table=backtest_tables.gains_table(beside),
        forest=_forest(beside),
        pool_tables=backtest_tables.pool_tables(jobs, baseline),
        predictor_tables=predictor_tables(results.evaluation),
        predictor_figures=_predictor_figures(results),
        models_table=backtest_tables.models_table(results.models),
        glossary=_glossary(rows),
        caveats=_caveats(results),
        commands=results.commands,
    )


def _lead(results: ReportInput, rows: Sequence[Summary]) -> Summary | None:
    """The configuration that the page is about: the recommended one, else what forecasts or speed put first."""
    taken = results.choice["choice"]["label"] if results.choice and results.choice["switch"] else None
    return next((one for one in rows if one.label == taken), None) or lead_of(rows, results.baselines)


def _comparable(jobs: backtest_tables.Jobs, rows: Sequence[Summary], baseline: str) -> backtest_tables.Jobs:
    """Jobs of the configurations under which they progress as under the baseline, the fastest configuration first."""
    # The baseline's law comes first, its fastest row first.
    alike = [one.label for one in next(iter(by_law(rows, baseline).values()), [])]
    return {label: jobs[label] for label in alike if label in jobs} if baseline in jobs else {}


def _told_by_runs(rows: Sequence[Mapping[str, Any]], lines: Callable[[Mapping[str, Any]], list[str]]) -> list[str]:
    """What there is to say of each run, with its name."""
    # A dictionary drops repeated lines and keeps their order.
    return list(dict.fromkeys(f"{_run_named(row, rows)}: {line}" for row in rows for line in lines(row["figures"])))


def _run_named(row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """A configuration, with window and seed where there are several."""
    # What never varies is no part of a name.
    parts = [f"{part} {row[part]}" for part in ("window", "seed") if len({other[part] for other in rows}) > 1]
    return ", ".join([row["label"], *parts])


def _question(results: ReportInput, rows: Sequence[Summary]) -> str:
    others = dict.fromkeys(one.policy for one in rows if one.label not in results.baselines.values())
    named = listed(list(others)) if len(others) <= MOST_DRAWN else f"{len(others)} policies"
    bases = list(results.baselines.values())
    base = results.baseline_label if len(bases) < 2 else f"the baseline of their law ({listed(bases)})"
    return (
        f"How much sooner do jobs finish under {named or 'other policies'} than under {base}, and "
        f"how many are slowed? Measured by replaying the trace {results.trace['name']} in a simulated cluster."
    )


def _facts(results: ReportInput) -> list[tuple[str, str]]:
    trace, split = results.trace, results.split
    since, until, end = (
        backtest_tables.instant(split.get(key, split.get(f"{key}_s")))
        for key in ("train_from", "train_until", "test_until")
    )
    dropped = [f"{number(count)} {reason}" for reason, count in (trace.get("dropped") or {}).items() if count]
    gpus = sum(int(pool["gpus"]) for pool in results.pools)
    facts = [
        ("trace", f"{trace['name']}" + (f" ({trace['path']})" if trace.get("path") else "")),
        ("rows in the file", number(trace.get("rows"))),
        ("jobs", number(trace.get("jobs"))),
        ("SHA-256", str(trace.get("sha256") or UNKNOWN)),
        ("span", f"{backtest_tables.instant(trace.get('from'))} to {backtest_tables.instant(trace.get('until'))}"),
        ("trained on", f"{since} to {until}"),
        ("replayed", f"{until} to {end}"),
        ("pools", f"{number(len(results.pools))} with {number(gpus)} GPUs in all"),
        ("quotas", _origin(trace) or UNKNOWN),
        ("left out", "; ".join(dropped)),
    ]
    # By words: a dash inside a name is no unknown value.
    return [(name, value) for name, value in facts if value and UNKNOWN not in value.split()]


def _origin(trace: Mapping[str, Any]) -> str:
    """Where quotas come from, without the word that notes of simulations begin with."""
    return str(trace.get("pools_origin") or "").removeprefix("quotas: ").removesuffix(".")


def _gain_figures(results: ReportInput, rows: Sequence[Summary], jobs: backtest_tables.Jobs) -> list[Drawing]:
    baseline = results.baseline_label
    drawn = _drawn(rows, jobs, baseline, _lead(results, rows))
    # The baseline takes the first colour, also where it has no curve.
    colours = looks([baseline, *drawn])
    found: list[Drawing] = []
    if drawn:
        base = np.asarray(jobs[baseline]["jct_s"], dtype=float)
        jct_s = {label: backtest_tables.jct_of(jobs, label, baseline) for label in drawn}
        # By the metric's own tolerance, so that plots and tables count the same jobs.
        later_min = {label: np.where(is_slowed(its, base), its - base, 0.0) / MINUTE_S for label, its in jct_s.items()}
        some = f" {len(drawn)} of {len(jobs) - 1} configurations are drawn." if len(drawn) < len(jobs) - 1 else ""
        speedups = {label: times_as_fast(its, base) for label, its in jct_s.items()}
        one = backtest_charts.speedups(speedups, colours, baseline)
        found.append(Drawing(one, f"A curve that runs further right is better; what lies left of 1 is slowed.{some}"))
        if late := backtest_charts.slowdowns(later_min, colours):
            told = f"A curve that lies lower is better; a configuration that slows no job has none.{some}"
            found.append(Drawing(late, told))
    used = {label: series for label, series in results.utilisation.items() if label in colours}
    if used:
        told = f"Sharing fills idle hours and so ends jobs sooner. In the chart: {ZOOM}."
        found.append(Drawing(backtest_charts.utilisation(used), told))
    return found


def _drawn(rows: Sequence[Summary], jobs: backtest_tables.Jobs, baseline: str, lead: Summary | None) -> list[str]:
    """Labels for the plots: those of the leading policy first, then others, the fastest first."""
    policies = {one.label: one.policy for one in rows}
    others = [label for label in jobs if label != baseline]
    # A stable sort: the lead's policy goes first, all else stays by speed.
    chosen = sorted(others, key=lambda label: lead is None or policies[label] != lead.policy)[: MOST_DRAWN - 1]
    return [label for label in others if label in chosen]


def _forest(gains: Sequence[Mapping[str, Any]]) -> list[Drawing]:
    rows = [gain for gain in gains if gain["ratio"]]
    if not rows:
        return []
    few = rows[:MOST_COMPARED]
    some = f" The first {len(few)} of {len(rows)} comparisons." if len(few) < len(rows) else ""
    caption = f"Dots are estimates, bars confidence intervals; grey bars hold 1 and tell nothing apart.{some}"
    return [Drawing(backtest_charts.gains_forest(few), caption)]


PREDICTOR_CAPTIONS = {
    "reliability": "Honest probabilities lie on the diagonal.",
    "precision_recall": "What a threshold can trade, the threshold in use, and rules without learning.",
    "recall_per_pool_hour": "Where most hours lie at 0 % or at 100 %, errors come in spells.",
    "recall_by_pool": "One model serves all pools: the flatter the curve, the more their recalls differ.",
    "ablation": "Twins trained anew, each with more features than the one above; bars are 95 % intervals.",
}
"""Of SIA, appendix B: where forecasts are right, hour by hour, pool by pool, with more and more features."""


def _predictor_figures(results: ReportInput) -> list[Drawing]:
    curves = {name: of for name, of in results.curves.items() if of}
    found = []
    for name, drawn in CurvePoints(**curves, points=points_in_use(results.evaluation)).drawings().items():
        ahead = f"What the arrival predictor looks at, {name.removeprefix(IMPORTANCE)} ahead."
        caption = next((text for kind, text in PREDICTOR_CAPTIONS.items() if name.startswith(kind)), ahead)
        found.append(Drawing(drawn, caption, narrow=True))
    return found


SOURCES_IN_WORDS = {
    "oracle": "reads the future from the trace, which nobody can: whether jobs arrive, how much load, which duration "
    "bin; sizes, regimes and accuracies for policies that ask for those. A bound on what forecasts can be worth",
    "registry": "trained models from the registry, which know nothing after the instant that they are asked at",
    "restatement": "the first batch sizes of a training job go on for as long as a rule says",
    "bayes": "batch sizes to come by a Bayesian estimate from what the job has shown",
    "greedy": "the batch size of now goes on",
    "conservative": "jobs always arrive and fill the quota, so that nothing is lent",
    "random": "a fair coin for arrivals, any duration bin; what bad forecasts do",
    "noisy": "the oracle, each answer wrong with the given probability",
    "mixed": "different sources for arrivals, loads and durations",
}


def _glossary(rows: Sequence[Summary]) -> list[tuple[str, str]]:
    kinds = {one.source for one in rows}
    policies = {one.policy: one for one in rows}
    laws = {one.law for one in rows}
    return [
        ("JCT", "job completion time, from submission to end"),
        *[("law", "how a job progresses under a policy; it is compared within its law alone")] * (len(laws) > 1),
        (
            "speedup",
            "JCT under the baseline divided by JCT; 2 means half the time. Means are geometric, since a few tiny jobs "
            "dominate the plain mean.",
        ),
        ("slowed", "ended later than under the baseline, by however little; the slowdown is by how much"),
        *((backtest_tables.named_policy(one), summary_of(policy)) for policy, one in policies.items()),
        *((f"forecasts: {kind}", meaning) for kind, meaning in SOURCES_IN_WORDS.items() if kind in kinds),
    ]


def _caveats(results: ReportInput) -> list[str]:
    origin = _origin(results.trace)
    return [
        "All figures are simulated: no job was run for them.",
        "The trace is replayed in an open loop: jobs arrive when they did, although people who get results sooner "
        "would submit their next jobs sooner.",
        f"Quotas: {origin}." if origin else "Where the quotas come from is not recorded.",
        "Tight quotas make any sharing look good and loose ones make all forecasts look alike: compare with the "
        "conservative and random forecasts of the same window, not with other windows.",
        *(on_shown_clock(str(note)) for note in results.trace.get("notes") or ()),
        *_told_by_runs(results.rows, unfamiliar_lines),
        *(on_shown_clock(str(note)) for note in results.notes),
    ]


def summary_table(figures: Mapping[str, Any]) -> str:
    """The rows of results.json for a terminal, at most `TERMINAL_COLUMNS` wide, without colours; a table a law."""
    known = summaries(figures["rows"])
    found, tables = [], backtest_tables.main_tables(known, (), figures["baseline"], figures["baselines"])
    for one in tables:
        # Heads begin alike and end in their unit.
        kept = [place for place, head in enumerate(one.head) if head.startswith(TERMINAL_HEADS)]
        rows = [[row[place] for place in kept] for row in one.rows]
        words = [place < one.words for place in kept]
        widest = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
        # Words get room first: numbers are short, and a folded label is hard to read.
        least = [
            min(LEAST_WORDS, width) if word and place else None
            for place, word, width in zip(kept, words, widest, strict=True)
        ]
        left = [number for number, word in enumerate(words) if word]
        text = in_terminal([one.head[place] for place in kept], rows, left, least)
        found.append("\n".join([*([one.caption] if len(tables) > 1 else []), text]))
    return "\n\n".join(filter(None, [*found, "\n".join(backtest_tables.marks_of(known))]))
