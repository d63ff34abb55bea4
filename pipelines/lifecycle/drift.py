"""Drift: week by week, does a version still fit what comes?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jobcast.domain.switches import Switch
from jobcast.models.new_load import NewLoad
from jobcast.models.registry import Registry, open_registry
from jobcast.models.registry.cards import ModelVersion
from jobcast.models.registry.references import Ref
from jobcast.models.will_jobs_arrive import WillJobsArrive
from jobcast.pipelines.console import Step
from jobcast.pipelines.evaluating import scored_pools, stretch_of
from jobcast.pipelines.forecast_specs import check_known
from jobcast.pipelines.lifecycle import drift_rules as rules
from jobcast.pipelines.lifecycle.rows import Blocks, forecast_rows, joined
from jobcast.pipelines.model_tables import made_from, of_version
from jobcast.pipelines.sources import refuse_overlap
from jobcast.pipelines.times import iso
from jobcast.traces.splits import check_tests, gpu_jobs
from jobcast.traces.table import Trace

WEEK_S = 7 * 86400.0
TOP_INPUTS = 12
"""Inputs whose shift is drawn, the most moved of any week."""


@dataclass(frozen=True, slots=True)
class Span:
    """[from_s, until_s) of a trace in weeks from `from_s` on; a last one that is cut short is not complete."""

    from_s: float
    until_s: float

    def weeks(self) -> list[tuple[float, float]]:
        """Begin and end of each, the last one cut at the end of the span.

        >>> [round((end - begin) / 86400) for begin, end in Span(0.0, 10 * 86400.0).weeks()]
        [7, 3]
        """
        begins = np.arange(self.from_s, self.until_s, WEEK_S).tolist()
        return [(begin, min(begin + WEEK_S, self.until_s)) for begin in begins]

    def completed_s(self) -> list[float]:
        """Ends of the completed weeks."""
        return [end for begin, end in self.weeks() if end - begin >= WEEK_S]


@dataclass(frozen=True, slots=True)
class Drift:
    """What was found: figures as `jobcast drift --json` tells them, and the switches that follow."""

    result: dict[str, Any]
    switches: tuple[Switch, ...]


def drift(
    reference: tuple[str, Ref],
    trace: Trace,
    from_s: float | None,
    until_s: float | None,
    *,
    home: Path,
    rule: rules.SwitchRule | None = None,
    allow_overlap: bool = False,
    progress: Step | None = None,
) -> Drift:
    """A version week by week on [from, until); by default from where its training ended to the end of the trace.

    Parameters
    ----------
    rule : of the switches; None = the default one

    Raises
    ------
    RegistryError, OverlapError
        The version cannot be used.
    ConfigError, TrainingError
        The window is empty.
    """
    check_known("drift", reference[0], rules.LIMITS)
    registry = open_registry(home)
    version, trace = registry.resolve(*reference), gpu_jobs(trace)
    why = f"{version} was trained until {iso(version.train_until_s)}, --from must lie before --until"
    span = Span(*stretch_of(trace, from_s, until_s, version.train_until_s, "look at", why))
    overlap = refuse_overlap(version, span.from_s, span.until_s, allow_overlap)
    check_tests(trace, span.from_s, span.until_s)
    known = trace.between(None, span.until_s)
    pools = scored_pools(known, version.train_from_s, version.train_until_s)
    model = registry.load(version)
    rows, columns = _observed(model, known, span, pools, progress)
    usual, before = _training(model, known, version, pools)
    nominal = _nominal(registry, version, model)
    weeks = []
    for week, columns_then in zip(span.weeks(), columns, strict=True):
        weeks.append(_week(version.name, known, week, rows, nominal, _inputs(before, columns_then, usual), pools))
    switches = tuple(_switches(model, rows, span, rule or rules.SwitchRule(), pools))
    return Drift(
        _told(version, trace, span, weeks, nominal, switches, rule or rules.SwitchRule(), pools, overlap), switches
    )


def _observed(
    model: Any, trace: Trace, span: Span, pools: Sequence[str], progress: Step | None
) -> tuple[Blocks, list[rules.Columns]]:
    """Rows of all weeks, and the inputs of each, a week at a time: features of a year would fill the memory."""
    parts, columns = [], []
    weeks = span.weeks()
    for number, (begin, end) in enumerate(weeks):
        parts.append(forecast_rows(model, trace, begin, end, pools, span.until_s))
        columns.append(rules.input_columns(model, trace, begin, end, pools))
        if progress:
            progress(number + 1, len(weeks) + 1)
    return joined(parts), columns


def _training(
    model: Any, trace: Trace, version: ModelVersion, pools: Sequence[str]
) -> tuple[dict[str, float], rules.Columns]:
    """Largest shift of a training week against all of the training time, by input, and the inputs of that time."""
    begin, end = version.train_from_s, version.train_until_s
    if not len(trace.between(begin, end)):
        return {}, {}
    before = rules.input_columns(model, trace, begin, end, pools)
    weeks = [week for week in Span(begin, end).weeks() if week[1] - week[0] >= WEEK_S]
    moved = [rules.shifts(before, rules.input_columns(model, trace, *week, pools)) for week in weeks]
    return {name: max(one.get(name, 0.0) for one in moved) for name, _ in before} if moved else {}, before


def _inputs(before: rules.Columns, then: rules.Columns, usual: Mapping[str, float]) -> dict[str, Any]:
    """How far the inputs of a week have moved."""
    psi = rules.shifts(before, then)
    moved = rules.moved_inputs(psi, usual)
    most = moved[0] if moved else max(psi, key=lambda name: psi[name], default=None)
    return {
        "feature": most,
        "psi": None if most is None else psi[most],
        "usual": usual.get(most) if most else None,
        "moved": moved,
        "by_feature": psi,
    }


def _nominal(registry: Registry, version: ModelVersion, model: Any) -> dict[str, float]:
    """What a version promises: by its settings, or by its own validation."""
    if isinstance(model, WillJobsArrive):
        return {"miss_rate": model.miss_share}
    if isinstance(model, NewLoad):
        return {"coverage": model.coverage}
    metrics = registry.metrics(version)
    names = ("accuracy", "log_loss")
    return {name: metrics[f"validation/{name}"] for name in names if f"validation/{name}" in metrics}


def _week(
    predictor: str,
    trace: Trace,
    week: tuple[float, float],
    rows: Blocks,
    nominal: Mapping[str, float],
    inputs: dict[str, Any],
    pools: Sequence[str],
) -> dict[str, Any]:
    blocks = {}
    for name, of_all in rows.items():
        mine = of_all.between(*week)
        by_pool = {pool: mine.of(mine.pool == pool).figures() for pool in pools}
        blocks[name] = {**mine.figures(), "by_pool": by_pool}
    verdict, reasons = rules.judge(predictor, blocks, nominal, inputs)
    jobs = trace.between(*week).jobs["pool"].is_in(list(pools)).sum()
    return {
        "from": iso(week[0]),
        "until": iso(week[1]),
        "complete": week[1] - week[0] >= WEEK_S,
        "jobs": int(jobs),
        "verdict": verdict,
        "reasons": reasons,
        "blocks": blocks,
        "inputs": inputs,
    }


def _switches(model: Any, rows: Blocks, span: Span, rule: rules.SwitchRule, pools: Sequence[str]) -> list[Switch]:
    if not isinstance(model, WillJobsArrive):
        return []
    by_horizon: dict[float, Any] = dict(zip(model.horizons_min_, rows.values(), strict=True))
    return rules.switches_of(by_horizon, span.completed_s(), rule, pools)


def _told(
    version: ModelVersion,
    trace: Trace,
    span: Span,
    weeks: list[dict[str, Any]],
    nominal: Mapping[str, float],
    switches: Sequence[Switch],
    rule: rules.SwitchRule,
    pools: Sequence[str],
    overlap: bool,
) -> dict[str, Any]:
    return {
        **of_version(version),
        "algorithm": version.algorithm,
        "trained": {"from": iso(version.train_from_s), "until": iso(version.train_until_s)},
        "window": {"from": iso(span.from_s), "until": iso(span.until_s)},
        "verdict": weeks[-1]["verdict"],
        "weeks": weeks,
        "nominal": dict(nominal),
        "limits": {
            "psi": rules.PSI_LIMIT,
            **{one.figure: {"watch": one.watch, "drifted": one.drifted} for one in rules.LIMITS[version.name]},
        },
        "switches": [
            {"pool": one.pool, "horizon_min": one.horizon_min, "from": iso(one.from_s), "sharing": one.sharing}
            for one in switches
        ],
        "switch_rule": rule.to_dict() if version.name == WillJobsArrive.name else None,
        "pools": list(pools),
        "overlap_allowed": overlap,
        "simulated": False,
        **made_from(trace.source, trace.notes, trace.dropped),
    }
