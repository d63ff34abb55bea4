"""The files of an evaluation: JSON, tables as CSV and Markdown, plots."""

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from jobcast.pipelines.curves import CurvePoints
from jobcast.pipelines.evaluating import Evaluated
from jobcast.pipelines.files import write_json, write_text
from jobcast.pipelines.page import Table
from jobcast.pipelines.predictor_tables import points_in_use, predictor_tables
from jobcast.traces.owners import scratch_room

JSON = "evaluation.json"
MARKDOWN = "tables.md"


def keep_evaluation(evaluated: Evaluated, folder: Path | None, home: Path | None) -> dict[str, Any]:
    """Write the files into a folder and log them to MLflow in a home, where asked; what to tell the user."""
    from jobcast.models.registry.evaluations import log_evaluation

    told = dict(evaluated.result)
    if folder is not None:
        write_evaluation(folder, evaluated)
    if home is not None:
        with scratch_room("evaluation") as room:
            files = write_evaluation(room, evaluated)
            told["run_id"] = log_evaluation(home, evaluated.version, evaluated.result, files)
    return told


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
        write_text(written[-1], to_csv(table))
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


def to_csv(table: Table) -> str:
    """A table with its head.

    >>> to_csv(Table("Pools", ("pool", "jobs"), [("a, b", "1,000")]))
    'pool,jobs\\n"a, b","1,000"\\n'
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([table.head, *table.rows])
    return text.getvalue()


def to_markdown(table: Table) -> str:
    """A table with its caption above and its note below; words left, numbers right.

    >>> print(to_markdown(Table("Pools", ("pool", "jobs"), [("a|b", "1,000")])))
    ## Pools
    <BLANKLINE>
    | pool | jobs |
    | :-- | --: |
    | a\\|b | 1,000 |
    """
    sides = [":--" if column < table.words else "--:" for column in range(len(table.head))]
    lines = [_bar(table.head), _bar(sides), *(_bar(row) for row in table.rows)]
    return "\n\n".join(filter(None, (f"## {table.caption}", "\n".join(lines), table.note)))


def _bar(cells: Sequence[str]) -> str:
    return f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in cells)} |"


def _file_name(caption: str, predictor: str) -> str:
    """A table's file: the words of its caption without the predictor that all tables of a folder are of.

    >>> _file_name("Pool by pool (new-load)", "new-load")
    'pool_by_pool'
    """
    return re.sub(r"[^a-z0-9]+", "_", caption.lower().replace(f"({predictor})", "")).strip("_")
