"""Drift: week by week, does a version still fit what comes?"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from jobcast.domain.errors import RegistryError
from jobcast.domain.switches import Switch
from jobcast.models.registry import Registry, open_registry
from jobcast.models.registry.cards import ModelVersion
from jobcast.models.registry.promotions import left_by
from jobcast.models.registry.references import Ref
from jobcast.models.will_jobs_arrive import WillJobsArrive
from jobcast.pipelines.experiments.seen_data import refuse_overlap
from jobcast.pipelines.lifecycle import drift_rules as rules
from jobcast.pipelines.lifecycle.comparison import CANDIDATE, CHAMPION, compare_rows, why_worse
from jobcast.pipelines.lifecycle.drift_verdict import (
    FALSE_ALARMS,
    PASSED,
    Found,
    Ratio,
    Verdict,
    advice,
    findings,
    in_words,
    lost_inputs,
    silence,
    verdict_of,
)
from jobcast.pipelines.lifecycle.forecast_rows import Blocks, Rows, Sample, joined, known_of_both
from jobcast.pipelines.lifecycle.job_rows import DAY_S, gain_rows
from jobcast.pipelines.lifecycle.predictors.traces import scored_pools, stretch_of
from jobcast.pipelines.lifecycle.promotion import check_rows, refuse_seen
from jobcast.pipelines.lifecycle.replay_judges import Window, replay_one, unseen_from_s
from jobcast.pipelines.lifecycle.standards import Standards, standards_of
from jobcast.pipelines.report.console import Step
from jobcast.pipelines.report.formatting import iso
from jobcast.pipelines.report.model_tables import has_calendar, made_from, of_version
from jobcast.traces.splits import check_tests

WEEK_S = 7 * DAY_S
BATCH = 20
"""Curves or applications of a file without a calendar that stand in for a week."""


@dataclass(frozen=True, slots=True)
class Span:
    """[from_s, until_s) in weeks from `from_s` on; a last one that is cut short is not complete.

    Attributes
    ----------
    from_s, until_s : seconds from the epoch
    week_s : length of a week, or of what stands in for one
    """

    from_s: float
    until_s: float
    week_s: float = WEEK_S

    def weeks(self) -> list[tuple[float, float]]:
        """Begin and end of each, the last one cut at the end of the span.

        >>> [round((end - begin) / 86400) for begin, end in Span(0.0, 10 * 86400.0).weeks()]
        [7, 3]
        """
        # Added up in one go: adding week by week would collect rounding.
        begins = np.arange(self.from_s, self.until_s, self.week_s).tolist()
        return [(begin, min(begin + self.week_s, self.until_s)) for begin in begins]

    def complete(self, week: tuple[float, float]) -> bool:
        """Whether a week was not cut short."""
        return week[1] - week[0] >= self.week_s

    def completed_s(self) -> list[float]:
        """Ends of the completed weeks."""
        return [week[1] for week in self.weeks() if self.complete(week)]


@dataclass(frozen=True, slots=True)
class Drift:
    """What was found: figures as `jobcast drift --json` tells them, and the switches that follow."""

    result: dict[str, Any]
    switches: tuple[Switch, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Watch:
    """A version, and what it is watched by."""

    life: Standards
    version: ModelVersion
    model: Any
    nominal: Mapping[str, float]
    promises: Mapping[str, Ratio]
    pools: Sequence[str]
    span: Span
    says: Callable[[float], str] = field(default=lambda instant_s: str(iso(instant_s)))

    @classmethod
    def of(cls, life: Standards, registry: Registry, version: ModelVersion, **rest: Any) -> "_Watch":
        """With its model and what that promises."""
        model = registry.load(version)
        metrics = registry.metrics(version)
        nominal, promises = life.promised(model, metrics), life.promises(metrics)
        return cls(life=life, version=version, model=model, nominal=nominal, promises=promises, **rest)

    def week(
        self, week: tuple[float, float], rows: Blocks, jobs: int | None, inputs: dict[str, Any], verdict: Verdict
    ) -> dict[str, Any]:
        """Figures of a week and the verdict at its end; `jobs`: None for rows."""
        blocks, counts, early, cost = {}, [], {}, dict[str, float]()
        for name, of_all in rows.items():
            made = of_all.between(*week)
            mine = self.known(made)
            early[name] = _estimated(made, mine)
            # The mean over horizons: for whichever it is kept, a GPU is kept once.
            cost |= {what: cost.get(what, 0.0) + amount / len(rows) for what, amount in mine.cost().items()}
            # Pools of few rows have figures of None, not errors.
            by_pool = {pool: mine.of(mine.pool == pool).figures() for pool in self.pools}
            blocks[name] = {**mine.figures(), "by_pool": by_pool}
            counts.append(len(mine))
        return {
            "from": self.says(week[0]),
            "until": self.says(week[1]),
            "complete": self.span.complete(week),
            # Blocks of a table hold the same rows but for those that cannot be scored.
            "jobs": max(counts) if jobs is None else jobs,
            "verdict": verdict.says,
            "reasons": [*verdict.broken, *([PASSED] if verdict.passed else []), *map(self.in_words, verdict.off)],
            "off": [{**one.to_dict(), "since": self.says(one.since_s)} for one in verdict.off],
            "blocks": blocks,
            "inputs": inputs,
            "cost": cost,
            "estimated": {name: block for name, block in early.items() if block},
        }

    def known(self, rows: Rows) -> Rows:
        """Rows whose truth was known when the span ends."""
        return rows.known_by(self.span.until_s)

    def in_words(self, one: Found) -> str:
        """A figure that is off."""
        return f"{in_words(one, one.figure in self.nominal)}, since {self.says(one.since_s)}"

    def verdict(self, week: tuple[float, float], rows: Blocks, broken: Sequence[str], earlier: Blocks) -> Verdict:
        """What is said at the end of a week, by what was known then; `earlier`: rows of the champion of before."""
        begins_s = [begin for begin, end in self.span.weeks() if end <= week[1]]
        found = findings(rows, self.life.limits, self.nominal, begins_s, week[1], self.promises)
        verdict = verdict_of(found, broken)
        if not verdict.off or not earlier:
            return verdict
        since = verdict.off[0].since_s, week[1]
        ours, theirs = (
            {name: block.between(*since) for name, block in each.items()}
            for each in known_of_both(rows, earlier, week[1])
        )
        better = bool(why_worse(compare_rows(ours, theirs, (CANDIDATE, CHAMPION))))
        return verdict_of(found, broken, better)

    def report(self, weeks: list[dict[str, Any]], overlap: bool, source: Mapping[str, Any]) -> dict[str, Any]:
        """The report."""
        version, span = self.version, self.span
        known = has_calendar(version)
        return {
            **of_version(version),
            "algorithm": version.algorithm,
            "trained": {
                "from": iso(version.train_from_s) if known else None,
                "until": iso(version.train_until_s) if known else None,
            },
            "window": {"from": self.says(span.from_s), "until": self.says(span.until_s)},
            "verdict": weeks[-1]["verdict"],
            "advice": advice(weeks, version.name, source["inputs"]["trace"]["path"], span.until_s if known else None),
            "as_of": self.says(span.until_s),
            "weeks": weeks,
            "nominal": dict(self.nominal),
            "limits": {
                "psi": rules.PSI_LIMIT,
                **{one.figure: {"watch": one.watch, "drifted": one.drifted} for one in self.life.limits},
            },
            "false_alarms": FALSE_ALARMS,
            "switches": [],
            "switch_rule": None,
            "pools": list(self.pools),
            "overlap_allowed": overlap,
            "simulated": self.life.rows is None,
            **source,
        }


def drift(
    reference: tuple[str, Ref],
    window: Window,
    *,
    home: Path,
    rule: rules.SwitchRule | None = None,
    progress: Step | None = None,
    facts: Any = None,
) -> Drift:
    """A version week by week on a window; by default from where its training ended to the end of the trace.

    Parameters
    ----------
    rule : of the switches; None = the default one
    facts : table of the trace's jobs, for a predictor that learns from one

    Raises
    ------
    RegistryError, OverlapError
        The version cannot be used.
    ConfigError, TrainingError
        The window is empty.
    """
    life, registry = standards_of("drift", reference[0]), open_registry(home)
    version, trace = registry.resolve(*reference), life.jobs(window.trace)
    why = f"{version} was trained until {iso(version.train_until_s)}, --from must lie before --until"
    unseen_s = unseen_from_s(version, trace)
    span = Span(*stretch_of(trace, window.from_s, window.until_s, unseen_s, "look at", why))
    overlap = refuse_overlap(version, span.from_s, span.until_s, window.allow_overlap, trace.source.sha256)
    check_tests(trace, span.from_s, span.until_s)
    known = trace.between(None, span.until_s)
    trained = version.train_from_s, version.train_until_s
    pools = scored_pools(known, *trained) if life.by_pools else tuple(known.pools)
    watch = _Watch.of(life, registry, version, pools=pools, span=span)
    # The training time as a sample: what weeks are held against.
    whole = Sample(
        trace=known, from_s=trained[0], until_s=trained[1], known_s=trained[1], pools=pools, facts=facts,
        given=window.given,
    )  # fmt: skip
    rows, columns = _observed(watch, whole, window, home, progress)
    usual, before = _training(watch, whole)
    earlier = _before(watch, registry, whole, span)
    submit_s, weeks, verdict = known.submit_s, [], None
    in_training = submit_s[(submit_s >= trained[0]) & (submit_s < trained[1])]
    # Jobs between the training and what is looked at were submitted, too: no silence.
    first = max(int(np.searchsorted(submit_s, span.from_s)) - 1, 0)
    for week, columns_then in zip(span.weeks(), columns, strict=True):
        jobs = known.between(*week).jobs["pool"].is_in(list(pools)).sum()
        since_s = submit_s[first : int(np.searchsorted(submit_s, week[1]))]
        broken = [*silence(in_training, since_s, week[1]), *lost_inputs(before, columns_then)]
        verdict = watch.verdict(week, rows, broken, earlier).after(verdict)
        weeks.append(watch.week(week, rows, int(jobs), _inputs(before, columns_then, usual), verdict))
    result = watch.report(weeks, overlap, made_from(trace.source, trace.notes, trace.dropped))
    return _with_switches(Drift(result), watch, rows, rule or rules.SwitchRule())


def drift_of_table(reference: tuple[str, Ref], table: Any, *, home: Path, allow_overlap: bool = False) -> Drift:
    """A version batch by batch on a file without a calendar, in its order.

    Raises RegistryError, OverlapError for a version that cannot be used, TrainingError where nothing can be scored.
    """
    life, registry = standards_of("drift", reference[0]), open_registry(home)
    assert life.table is not None, "only who learns from tables is watched on them"
    version, one = registry.resolve(*reference), life.table.one
    overlap = refuse_seen(registry, version, table, allow_overlap)
    rows = life.table.rows(registry.load(version), table)
    check_rows(rows, table, life)
    # Rows of a table lie a day apart, from 1970 on.
    count = max(float(block.time_s[-1]) / DAY_S + 1.0 for block in rows.values() if len(block))
    span = Span(0.0, DAY_S * count, DAY_S * BATCH)
    pools = tuple(dict.fromkeys(name for block in rows.values() for name in block.pool.tolist()))
    watch = _Watch.of(
        life, registry, version, pools=pools, span=span, says=lambda at_s: f"{one} {int(at_s // DAY_S) + 1}"
    )
    weeks = [
        watch.week(week, rows, None, _inputs({}, {}, {}), watch.verdict(week, rows, (), {})) for week in span.weeks()
    ]
    return Drift(watch.report(weeks, overlap, made_from(table, table.notes)))


def _observed(
    watch: _Watch, whole: Sample, window: Window, home: Path, progress: Step | None
) -> tuple[Blocks, list[rules.Columns]]:
    """Rows of all weeks, and the inputs of each, a week at a time: features of a year would fill the memory."""
    parts, columns = [], []
    weeks, span = watch.span.weeks(), watch.span
    # The same GPUs every week, or weeks could not be compared.
    place = window.place(span.from_s, span.until_s) if watch.life.rows is None else None
    for number, (begin, end) in enumerate(weeks):
        sample = replace(whole, from_s=begin, until_s=end, known_s=span.until_s)
        if watch.life.rows is not None:
            parts.append(watch.life.rows(watch.model, sample))
        # A replay of no jobs has no figures.
        elif place is not None and len(whole.trace.between(begin, end)):
            experiment = window.experiment(begin, end, place)
            how: dict[str, Any] = {"home": home, "allow_overlap": window.allow_overlap}
            parts.append(gain_rows(replay_one(watch.life.judges[0], watch.version, experiment, **how)))
        columns.append(watch.life.inputs(watch.model, sample) if watch.life.inputs else {})
        if progress:
            progress(number + 1, len(weeks) + 1)
    return joined(parts), columns


def _before(watch: _Watch, registry: Registry, whole: Sample, span: Span) -> Blocks:
    """Rows of the champion that this one came after, where it has not seen the weeks either; else {}."""
    left = left_by(registry.show(watch.version.name), CHAMPION)
    number = next((one for one in reversed(left) if one != watch.version.version), None)
    if number is None or watch.life.rows is None or CHAMPION not in watch.version.aliases:
        return {}
    version = registry.resolve(watch.version.name, number)
    if unseen_from_s(version, whole.trace) > span.from_s:
        return {}
    sample = replace(whole, from_s=span.from_s, until_s=span.until_s, known_s=span.until_s)
    try:
        return watch.life.rows(registry.load(version), sample)
    except RegistryError:
        return {}  # of other features than today's: nobody could go back to it


def _estimated(made: Rows, known: Rows) -> dict[str, Any]:
    """Figures that the forecasts of all rows expect, beside those that came true where that is known already."""
    expected, told, came = made.expected(), known.expected(), known.figures()
    if not expected or not len(made):
        return {}
    pairs = {name: (value, came.get(name)) for name, value in told.items()}
    error = {name: None if ours is None or true is None else ours - true for name, (ours, true) in pairs.items()}
    realised = {name: came.get(name) for name in expected}
    return {"rows": len(made), "known": len(known), "expected": expected, "realised": realised, "error": error}


def _training(watch: _Watch, whole: Sample) -> tuple[dict[str, float], rules.Columns]:
    """Largest shift of a training week against all of the training time, by input, and the inputs of that time."""
    begin, end, inputs = whole.from_s, whole.until_s, watch.life.inputs
    if inputs is None or begin >= end or not len(whole.trace.between(begin, end)):
        return {}, {}
    before = inputs(watch.model, whole)
    # A week that is cut short moves by chance alone.
    weeks = [week for week in Span(begin, end).weeks() if week[1] - week[0] >= WEEK_S]
    moved = [
        rules.shifts(before, inputs(watch.model, replace(whole, from_s=week[0], until_s=week[1]))) for week in weeks
    ]
    return {name: max(one.get(name, 0.0) for one in moved) for name, _ in before} if moved else {}, before


def _inputs(before: rules.Columns, then: rules.Columns, usual: Mapping[str, float]) -> dict[str, Any]:
    """How far the inputs of a week have moved."""
    psi = rules.shifts(before, then)
    moved = rules.moved_inputs(psi, usual)
    # The input that is named is one that counts, if any does.
    most = moved[0] if moved else max(psi, key=lambda name: psi[name], default=None)
    return {
        "feature": most,
        "psi": None if most is None else psi[most],
        "usual": usual.get(most) if most else None,
        "moved": moved,
        "by_feature": psi,
    }


def _with_switches(found: Drift, watch: _Watch, rows: Blocks, rule: rules.SwitchRule) -> Drift:
    """The report with switches of sharing, where the version has a gate to switch by."""
    if not isinstance(watch.model, WillJobsArrive):
        return found
    by_horizon: dict[float, Any] = dict(zip(watch.model.horizons_min_, rows.values(), strict=True))
    switches = tuple(rules.switches_of(by_horizon, watch.span.completed_s(), rule, watch.pools))
    listed = [
        {"pool": one.pool, "horizon_min": one.horizon_min, "from": iso(one.from_s), "sharing": one.sharing}
        for one in switches
    ]
    return Drift({**found.result, "switches": listed, "switch_rule": asdict(rule)}, switches)
