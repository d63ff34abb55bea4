"""Walk-forward retraining: a version at the end of each week, scored on the next, which it has not seen.

When versions are trained, and on what, in a walk through a trace.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from jobcast import __version__
from jobcast.domain.clock import DAY_S
from jobcast.domain.errors import ConfigError, TrainingError
from jobcast.models.predictor import Known
from jobcast.models.registry import open_registry
from jobcast.models.registry.cards import ModelVersion, content_sha256
from jobcast.models.registry.references import CHALLENGER
from jobcast.pipelines.lifecycle.comparison import compare_rows
from jobcast.pipelines.lifecycle.forecast_rows import Blocks, Sample, joined
from jobcast.pipelines.lifecycle.model_files import drawn_card
from jobcast.pipelines.lifecycle.predictors.traces import TraceLife
from jobcast.pipelines.lifecycle.standards import judged
from jobcast.pipelines.report.console import Step, part_of
from jobcast.pipelines.report.formatting import UNKNOWN, between, iso, number, signed
from jobcast.pipelines.report.layout import in_terminal
from jobcast.pipelines.report.model_tables import made_from, saved
from jobcast.traces.table import Trace

WEEK_DAYS = 7.0
NAMED_DAYS = {"daily": 1.0, "weekly": WEEK_DAYS}
FIRST_WEEKS = 3.0
"""Training time before the first version."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """One version: trained on [from_s, until_s), scored on [until_s, next_s); epoch seconds."""

    from_s: float
    until_s: float
    next_s: float


@dataclass(frozen=True, slots=True)
class Schedule:
    """How often to train anew.

    Attributes
    ----------
    every_days : days between trainings
    first_weeks : weeks before the first training
    window_days : days that each training looks back; None = all since the beginning
    """

    every_days: float = WEEK_DAYS
    first_weeks: float = FIRST_WEEKS
    window_days: float | None = None

    def stretches(self, begin_s: float, end_s: float) -> list[Stretch]:
        """Trainings in [begin_s, end_s], in order of time; the last one's next stretch may be cut short or empty.

        >>> [one.until_s / DAY_S for one in Schedule(first_weeks=1).stretches(0.0, 16 * DAY_S)]
        [7.0, 14.0]
        """
        found: list[Stretch] = []
        # A walk of whole weeks ends with a version that nothing is left to score.
        until_s = begin_s + self.first_weeks * WEEK_DAYS * DAY_S
        while until_s <= end_s:
            from_s = begin_s if self.window_days is None else max(begin_s, until_s - self.window_days * DAY_S)
            next_s = until_s + self.every_days * DAY_S
            found.append(Stretch(from_s, until_s, min(next_s, end_s)))
            until_s = next_s
        return found


def parse_every(text: str) -> float:
    """`--retrain weekly`, `daily` or `Nd`: days; ConfigError for anything else.

    >>> parse_every("weekly"), parse_every("10d")
    (7.0, 10.0)
    """
    if text in NAMED_DAYS:
        return NAMED_DAYS[text]
    # Four digits: more days than any trace has.
    match = re.fullmatch(r"(\d{1,4})d", text)
    if match is None or int(match[1]) < 1:
        raise ConfigError(f"--retrain {text}: write weekly, daily or a number of days, as in 14d")
    return float(match[1])


KEY = "walk_forward"
"""Parameter of a version that tells what it was trained with, so that a repeated walk finds it again."""
NAMES = ("retrained", "first")
"""The version of each week, and the first one, never trained again."""


@dataclass(frozen=True, slots=True)
class Walk:
    """What is trained, where, and how often.

    Attributes
    ----------
    life : of the predictor, not trained yet
    trace : cut at the end of the walk
    begin_s, end_s : of the walk, seconds from the epoch
    schedule : of the trainings
    home : of the registry
    """

    life: TraceLife[Any]
    trace: Trace
    begin_s: float
    end_s: float
    schedule: Schedule
    home: Path

    @classmethod
    def of(cls, life: TraceLife[Any], trace: Trace, from_s: float | None, until_s: float | None, **rest: Any) -> "Walk":
        """A walk over [from_s, until_s), by default from the first job's midnight (UTC) to the last job."""
        trace = judged(life.name).jobs(trace)
        end_s = float(trace.seen_s.max()) + 1.0 if until_s is None else until_s
        # From midnight, so that weeks are whole days whenever the first job came.
        begin_s = float(trace.seen_s.min()) // DAY_S * DAY_S if from_s is None else from_s
        return cls(life=life, trace=trace.between(None, end_s), begin_s=begin_s, end_s=end_s, **rest)

    def stretches(self) -> list[Stretch]:
        """Trainings in order of time. Raises TrainingError where there is none."""
        found = self.schedule.stretches(self.begin_s, self.end_s)
        if not found:
            raise TrainingError(
                f"{self.trace.source.path}: {(self.end_s - self.begin_s) / DAY_S:.1f} days from {iso(self.begin_s)} to "
                f"{iso(self.end_s)}, the first training needs {self.schedule.first_weeks:g} weeks; give a longer "
                "window or a smaller --first"
            )
        return found


def walk_forward(walk: Walk, progress: Step | None = None) -> dict[str, Any]:
    """Train, register and score a version a week; what was registered already is not trained again.

    Every training reads what was submitted before its week's end, nothing later. Scores are of windows and jobs of the
    week after, with their truth as far as the walk reaches.

    Raises ConfigError, TrainingError for what cannot be trained, RegistryError for a store that cannot be used.
    """
    stretches = walk.stretches()
    weeks, scored = [], []
    first: Any = None
    for place, stretch in enumerate(stretches):
        version, pools, made = _version(walk, stretch, part_of(progress, place, len(stretches)))
        model = open_registry(walk.home).load(version)
        # The first week's version is the rule to beat: never trained again.
        first = first or model
        rows = dict(zip(NAMES, _rows(walk, (model, first), stretch, pools), strict=True))
        weeks.append(_told(stretch, version, made, pools, rows))
        scored.append(rows)
        if progress:
            progress(place + 1, len(stretches))
    _challenge(walk, version)
    return {
        "predictor": walk.life.name,
        "versions": [week["version"] for week in weeks],
        "weeks": weeks,
        "pooled": _pooled(scored),
        "schedule": asdict(walk.schedule),
        "window": {"from": iso(walk.begin_s), "until": iso(walk.end_s)},
        "seed": walk.life.settings.seed,
        "home": str(walk.home),
        **made_from(walk.trace.source, walk.trace.notes, walk.trace.dropped),
    }


def _version(walk: Walk, stretch: Stretch, step: Step | None) -> tuple[ModelVersion, tuple[str, ...], bool]:
    """The version of a stretch, the pools that it learnt from, and whether it was registered just now."""
    known = Known(walk.trace.between(None, stretch.until_s), {}, stretch.from_s, stretch.until_s)
    pools = walk.life.data(known).pools
    if found := _found(walk, stretch):
        return found, pools, False
    fitted = walk.life.fitted(known, step)
    # The key goes with the version: a repeated walk knows it by that, without training.
    card = replace(fitted.card, parameters={**fitted.card.parameters, KEY: _key(walk, stretch)})
    registry = open_registry(walk.home)
    with saved(fitted.model) as folder:
        # The same training gives the same bytes: a walk that was cut off here had registered them.
        if found := registry.find_by_content(walk.life.name, content_sha256(folder)):
            return found, pools, False
        with drawn_card(card, fitted.curves, fitted.tables) as drawn:
            version, made = registry.register_once(folder, drawn)
        return version, pools, made


def _key(walk: Walk, stretch: Stretch) -> str:
    """Hash of all that decides what a training gives."""
    result = {
        "algorithm": walk.life.algorithm,
        "settings": asdict(walk.life.settings),
        "trace": walk.trace.source.sha256,
        "window": [stretch.from_s, stretch.until_s],
        "jobcast": __version__,
    }
    return hashlib.sha256(json.dumps(result, sort_keys=True).encode()).hexdigest()


def _found(walk: Walk, stretch: Stretch) -> ModelVersion | None:
    """The version that an earlier walk left for a stretch."""
    registry, key = open_registry(walk.home), _key(walk, stretch)
    candidates = (
        version
        for version in registry.list()
        # Cheap tests first: parameters are read from the store, a query each.
        if version.name == walk.life.name and version.train_until_s == stretch.until_s
    )
    return next((version for version in candidates if registry.parameters(version).get(KEY) == key), None)


def _rows(walk: Walk, models: tuple[Any, Any], stretch: Stretch, pools: Sequence[str]) -> tuple[Blocks, Blocks]:
    """Of both models; nothing where the walk ends with the training."""
    if stretch.next_s <= stretch.until_s:
        return {}, {}
    begin_s, end_s = stretch.until_s, stretch.next_s
    sample = Sample(trace=walk.trace, from_s=begin_s, until_s=end_s, known_s=walk.end_s, pools=pools)
    return judged(walk.life.name).forecasts_of_both(models, sample)


def _pooled(weeks: Sequence[dict[str, Blocks]]) -> dict[str, Any] | None:
    """All weeks together, None where nothing was scored."""
    ours, theirs = (joined([week[name] for week in weeks if week[name]]) for name in NAMES)
    return compare_rows(ours, theirs, NAMES) if any(len(rows) for rows in ours.values()) else None


def _told(
    stretch: Stretch, version: ModelVersion, made: bool, pools: Sequence[str], rows: dict[str, Blocks]
) -> dict[str, Any]:
    return {
        "trained": {"from": iso(stretch.from_s), "until": iso(stretch.until_s)},
        "scored": {"from": iso(stretch.until_s), "until": iso(stretch.next_s)},
        "version": version.version,
        "algorithm": version.algorithm,
        "registered_now": made,
        "pools": len(pools),
        **{name: {block: of.figures() for block, of in blocks.items()} for name, blocks in rows.items()},
    }


def _challenge(walk: Walk, version: ModelVersion) -> None:
    """The last version of a walk is the challenger, whether it was registered now or found."""
    registry = open_registry(walk.home)
    # No new entry in the history of aliases where nothing changes.
    if registry.show(walk.life.name).aliases.get(CHALLENGER) != version.version:
        registry.set_alias(walk.life.name, CHALLENGER, version.version)


SHORT_BELOW = 10.0


def retraining_table(result: Mapping[str, Any]) -> str:
    """What `train --retrain` says to a person: each figure of the retrained version, then of the first one."""
    names, rows = judged(result["predictor"]).columns, []
    for week in result["weeks"]:
        when = week["scored"]["from"][:10]
        for block in week[NAMES[0]] or (UNKNOWN,):
            ours, theirs = (week[name].get(block, {}) for name in NAMES)
            rows.append([when, str(week["version"]), block, *_cells(ours, theirs, names)])
    pooled = result["pooled"]
    for block, described in (pooled or {"blocks": {}})["blocks"].items():
        rows.append(["all", "", block, *_cells(described[NAMES[0]], described[NAMES[1]], names)])
    head = ("scored from", "no.", "", "n", *(name.replace("_", " ") for name in names))
    lines = [
        f"{result['predictor']}: no. = version of the week; each figure of it / of the first version, never retrained"
    ]
    return "\n".join([*lines, "", in_terminal(head, rows, (0, 2)), *_difference(pooled)])


def _cells(ours: Mapping[str, Any], theirs: Mapping[str, Any], names: tuple[str, ...]) -> list[str]:
    return [number(ours.get("n")), *(f"{_short(ours.get(name))} / {_short(theirs.get(name))}" for name in names)]


def _short(value: float | None) -> str:
    """A figure around 1 with three decimals, a larger one with fewer, so that eight columns fit a terminal."""
    return UNKNOWN if value is None else f"{value:.3f}" if abs(value) < SHORT_BELOW else number(value)


def _difference(pooled: Mapping[str, Any] | None) -> list[str]:
    if pooled is None:
        return ["", "nothing was scored: the window ends with the first training"]
    better = "less" if pooled["less_is_better"] else "more"
    low, high = pooled["interval"] or (None, None)
    text = f"{signed(pooled['difference'])} ({between(low, high, signed)}, {100 * pooled['confidence']:g} % by days)"
    return ["", f"retrained less first, mean {pooled['figure']} ({better} is better): {text}"]
