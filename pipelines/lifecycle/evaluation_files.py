"""The files of an evaluation: JSON, tables as CSV and Markdown, plots.

The figures of an evaluation for a terminal, baselines beside them, at most 120 columns wide.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from jobcast.pipelines.lifecycle.evaluation import Evaluated
from jobcast.pipelines.report.files import csv_text, write_json, write_text
from jobcast.pipelines.report.formatting import UNKNOWN, brief, counted, listed, number, share
from jobcast.pipelines.report.layout import Table, aligned, markdown_lines
from jobcast.pipelines.report.predictor_plots import CurvePoints
from jobcast.pipelines.report.predictor_tables import points_in_use, predictor_tables, regime_lines
from jobcast.traces.owners import scratch_room
from jobcast.traces.splits import MIN_TRAIN_JOBS

ARRIVALS = ("n", "base_rate", "precision", "recall", "f1", "pr_auc", "roc_auc", "ece", "threshold", "idle_f1")
LOADS = ("n", "coverage", "coverage_nonzero", "over", "missed", "worst_pool")
DURATIONS = ("n", "accuracy", "macro_f1", "log_loss", "ece", "under_predicted")
SETS = ("precision", "recall", "f1", "pr_auc")
RESERVED = "SIA reserves"
GAIN = "95 % of the gain"
NAMED = 3
"""Pools that are not scored and are named: those of most jobs."""
IDLE_NOTE = (
    "idle_f1: windows without arrivals, told by the threshold that is best for arrivals. At long horizons persistence\n"
    "is hard to beat there: idle spells of quiet pools outlast a window, so that empty follows empty,\n"
    "while most windows have arrivals and the threshold suits those; pr_auc of idle windows knows no threshold."
)
"""Why the idle class at the longest horizon is what it is."""
Block: TypeAlias = Mapping[str, Any]
Row: TypeAlias = tuple[str, Block | None]


def evaluation_table(result: Mapping[str, Any]) -> str:
    """A line a horizon and baseline; what a rule does not have stays empty."""
    head = f"{result['predictor']} {result['version']} on {result['window']['from']} to {result['window']['until']}"
    # Regimes have rules and groups of jobs, no horizons.
    if "regimes" in result:
        return "\n".join([head, *regime_lines(result)])
    lines = [f"{head}, {len(result['pools'])} pools"]
    lines += _sections(result)
    for key, name in (("without_bots", "without bot pools"), ("without", "without")):
        if key in result:
            lines += ["", f"{name} {', '.join(result[key]['pools'])}", *_sections(result[key])]
    if "total" in result:
        lines += ["", *_total(result["total"])]
    # Loads have horizons as well, but no classes.
    if "horizons" in result and _is_arrivals(result):
        lines += ["", IDLE_NOTE, "", *_groups(result["horizons"]), "", *_hours(result["horizons"])]
    if "ablation" in result:
        lines += ["", *(_ablation(result["ablation"]) if "horizons" in result else _tags(result["ablation"]))]
    if result.get("overlap_allowed"):
        lines.append("warning: training data reach into this window (--allow-overlap)")
    lines += [f"warning: {line}" for line in result.get("another_cluster") or ()]
    if "unscored" in result:
        lines.append(_unscored(result["unscored"]))
    return "\n".join(lines)


def _unscored(told: Mapping[str, Any]) -> str:
    jobs = told["jobs"]
    others = [f"{len(jobs) - NAMED} more"] if len(jobs) > NAMED else []
    most = listed([*(f"{pool} {number(count)}" for pool, count in list(jobs.items())[:NAMED]), *others])
    pools = f"{counted(len(jobs), 'pool')} with fewer than {MIN_TRAIN_JOBS} jobs in the training time"
    return f"note: {share(told['share'])} of the window's jobs are not scored, those of {pools}: {most}"


def _is_arrivals(result: Mapping[str, Any]) -> bool:
    return any("f1" in block for block in result["horizons"].values())


def _sections(result: Mapping[str, Any]) -> list[str]:
    blocks = result.get("horizons") or {"all jobs": result}
    # The three questions have figures of their own; which one is told by their shape.
    columns = DURATIONS if "horizons" not in result else ARRIVALS if _is_arrivals(result) else LOADS
    return _table("", columns, [row for name, block in blocks.items() for row in _rows(name, block)])


def _rows(name: str, block: Block) -> Iterator[Row]:
    """A horizon's lines: its figures, their intervals, the rules to beat, idle windows, the gate."""
    yield name, block
    # Of some figures there is no interval: too few days had any.
    known = {figure: ends for figure, ends in (block.get("intervals") or {}).items() if ends is not None}
    for end, word in enumerate(("  95 % from", "  95 % to")):
        if known:
            yield word, {figure: ends[end] for figure, ends in known.items()}
    if lent := block.get("lent"):
        yield "  lent against", lent
        if "gated" in lent:
            yield "  lent against, where jobs are forecast", lent["gated"]
    yield from ((f"  {rule}", figures) for rule, figures in block.get("baselines", {}).items())
    if "idle" in block:
        yield "  idle windows", block["idle"]
    if "gate" in block:
        gate = block["gate"]
        missed, freed = number(gate["miss_rate"]), number(gate["freed_idle_share"])
        yield f"  gate: misses {missed} of the windows with arrivals, frees {freed} of the idle ones", None


def _total(figures: Mapping[str, Any]) -> list[str]:
    """TotalNewLoad = gate x estimate, and what a scheduler reserves; or why there is neither."""
    if "horizons" not in figures:
        return [f"gate x estimate is not scored: {figures['note']}"]
    rows = [
        row
        for horizon, block in figures["horizons"].items()
        for row in ((horizon, block), (f"  {RESERVED}", block["reserved"]))
    ]
    return [f"gate ({figures['arrivals']}) x estimate", *_table("", LOADS, rows)]


def _groups(blocks: Mapping[str, Block]) -> list[str]:
    rows = [
        (f"{horizon} {label}", {**figures, "pools": len(figures["pools"])})
        for horizon, block in blocks.items()
        for label, figures in block["by_duration_group"].items()
    ]
    return _table("by pools' mean duration", ("pools", "n", "base_rate", *SETS), rows) if rows else []


def _hours(blocks: Mapping[str, Block]) -> list[str]:
    columns = ("hours", "mean", "share_0", "share_1", "extremes_if_independent", "p10", "p25", "p50", "p75", "p90")
    rows = [(horizon, block["recall_per_pool_hour"]) for horizon, block in blocks.items()]
    return _table("recall per pool-hour", columns, rows)


def _ablation(figures: Mapping[str, Any]) -> list[str]:
    blocks = [block for sets in figures["horizons"].values() for block in sets.values()]
    groups = list(dict.fromkeys(label for block in blocks for label in block["by_duration_group"]))
    rows = [
        (f"{horizon} {label}", {**block, **_gains(block)})
        for horizon, sets in figures["horizons"].items()
        for label, block in sets.items()
    ]
    closed = [
        f"closed loop, {horizon}: recent and future completions add {_signed(block['pr_auc_gain'])} to PR-AUC"
        + (f" (95 %: {_ends(block['pr_auc_gain_interval'])})" if block["pr_auc_gain_interval"] else "")
        for horizon, block in figures.get("closed_loop", {}).items()
    ]
    columns = ("f1", "pr_auc", "pr_auc_gain", GAIN, *groups)
    return [*_table("trained anew on", columns, rows), *closed]


def _gains(block: Block) -> dict[str, Any]:
    """The gain, where there is one, and the figure of each group of pools."""
    groups = {label: figures["pr_auc"] for label, figures in block["by_duration_group"].items()}
    if "pr_auc_gain" not in block:
        return groups
    return {"pr_auc_gain": _signed(block["pr_auc_gain"]), GAIN: _ends(block["pr_auc_gain_interval"]), **groups}


def _tags(figures: Mapping[str, Block]) -> list[str]:
    rows = [
        row
        for name, block in figures.items()
        for row in ((name, block), *([("  the rule", block["rule"])] if "rule" in block else []))
    ]
    return _table("trained anew", DURATIONS, rows)


def _table(corner: str, columns: Sequence[str], rows: Sequence[Row]) -> list[str]:
    """Names left, figures right; a row without figures is a sentence."""
    cells = [[name, *_cells(block, columns)] for name, block in rows if block is not None]
    head, *lines = aligned([[corner, *columns], *cells], words=1).splitlines()
    told = iter(lines)
    return [head, *(name if block is None else next(told) for name, block in rows)]


def _cells(block: Block, columns: Sequence[str]) -> list[str]:
    # In the line of the horizon itself, where it is compared.
    figures = {**block, "idle_f1": block["idle"]["f1"]} if "idle" in block else block
    return [_shown(figures.get(column)) for column in columns]


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else brief(value)


def _ends(interval: Sequence[float] | None) -> str:
    return f"{_signed(interval[0])} {_signed(interval[1])}" if interval else UNKNOWN


def _signed(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:+.4f}".replace("-", "−")


JSON = "evaluation.json"
MARKDOWN = "tables.md"


def keep_evaluation(evaluated: Evaluated, folder: Path | None, home: Path | None) -> dict[str, Any]:
    """Write the files into a folder and log them to MLflow in a home, where asked; what to tell the user."""
    from jobcast.models.registry.evaluations import log_evaluation

    result = dict(evaluated.result)
    if folder is not None:
        write_evaluation(folder, evaluated)
    if home is not None and evaluated.version is not None:
        # MLflow copies what lies in the room; the user's folder may hold other files.
        with scratch_room("evaluation") as room:
            files = write_evaluation(room, evaluated)
            result["run_id"] = log_evaluation(home, evaluated.version, evaluated.result, files)
    return result


def write_evaluation(folder: Path, evaluated: Evaluated) -> tuple[Path, ...]:
    """Write `evaluation.json`, a CSV a table, `tables.md` with all of them, and an SVG a plot; their paths.

    Files of that name are replaced, each whole or not at all; others in the folder stay.
    """
    folder.mkdir(parents=True, exist_ok=True)
    result = evaluated.result
    write_json(folder / JSON, result)
    tables = predictor_tables({result["predictor"]: result})
    written = [folder / JSON]
    for table in tables:
        written.append(folder / f"{_file_name(table.caption, result['predictor'])}.csv")
        write_text(written[-1], csv_text([table.head, *table.rows]))
    written.append(folder / MARKDOWN)
    window = result["window"]
    head = f"# {result['predictor']} version {result['version']}, {window['from']} to {window['until']}"
    write_text(written[-1], "\n\n".join([head, *map(to_markdown, tables)]) + "\n")
    return (*written, *curves_of(evaluated).draw(folder))


def curves_of(evaluated: Evaluated) -> CurvePoints:
    """Points for plots, those of the ablation and of the rules to beat among them."""
    result = evaluated.result
    return replace(
        evaluated.curves,
        ablation=result.get("ablation", {}).get("horizons", {}),
        points=points_in_use({result["predictor"]: result}),
    )


def to_markdown(table: Table) -> str:
    """A table with its caption above and its note below; words left, numbers right.

    >>> print(to_markdown(Table("Pools", ("pool", "jobs"), [("a|b", "1,000")])))
    ## Pools
    <BLANKLINE>
    | pool | jobs |
    | :-- | --: |
    | a\\|b | 1,000 |
    """
    lines = "\n".join(markdown_lines(table.head, table.rows, table.words)).rstrip("\n")
    return "\n\n".join(filter(None, (f"## {table.caption}", lines, table.note)))


def _file_name(caption: str, predictor: str) -> str:
    """A table's file: the words of its caption without the predictor that all tables of a folder are of.

    >>> _file_name("Pool by pool (new-load)", "new-load")
    'pool_by_pool'
    """
    return re.sub(r"[^a-z0-9]+", "_", caption.lower().replace(f"({predictor})", "")).strip("_")
