"""Results of a figure: finished runs, what is measured of them, tables, and the page that they are written to.

The text of a page stands in a template beside its module, the paper's claims included; Python fills in what it found.
Means over draws have confidence intervals.
"""

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click
import numpy as np
from numpy.typing import NDArray

from jobcast.simulator.log import RunLog

HOUR_S = 3600.0
UNSTEADY = ("solve_s_total", "milp_solve_s", "decision_ms_mean", "decision_ms_max", "cpu_s")
"""Seconds of a machine differ from run to run."""
WORKERS = 2
CONFIDENCE = 0.95
HOLDS, OPEN, REVERSED = "yes", "open", "no"
Floats = NDArray[np.float64]
A = TypeVar("A")
B = TypeVar("B")
D = TypeVar("D", bound="Done")
By = Mapping[str, Mapping[str, float]]
"""Policy -> its figures."""
Means = dict[tuple[str, str], dict[str, float]]
"""(case, policy) -> its figures."""


@dataclass(frozen=True, slots=True)
class Done:
    """A finished run in a table.

    Attributes
    ----------
    case, name : what was run on, and what was run
    figures : what came out
    seed : of its draw, where it is of several
    jct_s : completion times at some quantiles, where they are wanted
    """

    case: str
    name: str
    figures: Mapping[str, float]
    seed: int | None = None
    jct_s: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Replayed(Done):
    """A finished run and what happened."""

    log: RunLog = field(kw_only=True)


def run_all(run: Callable[[A], D], tasks: Sequence[A]) -> list[D]:
    """Simulate tasks, two at a time, telling each that is done."""
    return list(in_parallel(run, tasks, lambda done: f"{done.case} {done.name}"))


def in_parallel(work: Callable[[A], B], items: Sequence[A], name: Callable[[B], str]) -> Iterable[B]:
    """Results in the order of the items, told as they come; a single item needs no second process."""
    from joblib import Parallel, delayed

    workers = min(WORKERS, len(items)) or 1
    # One at a time: runs differ in length by orders of magnitude, a batch of long ones would keep a worker to itself.
    parallel = Parallel(n_jobs=workers, return_as="generator", batch_size=1)
    for count, result in enumerate(parallel(delayed(work)(item) for item in items), 1):
        click.echo(f"  {count}/{len(items)} {name(result)}", err=True)
        yield result


def means(done: Iterable[Done], of: Callable[[list[float]], Any] = np.mean) -> Means:
    """Figures by case and name, their mean (or what `of` says) over runs of one name, in the order of their first."""
    groups: dict[tuple[str, str], list[Mapping[str, float]]] = {}
    for one in done:
        groups.setdefault((one.case, one.name), []).append(one.figures)
    return {
        key: {name: float(of([figures[name] for figures in group])) for name in group[0]}
        for key, group in groups.items()
    }


def of_case(found: Means, case: str) -> dict[str, dict[str, float]]:
    """Figures by policy."""
    return {name: figures for (of, name), figures in found.items() if of == case}


def names_of(found: Iterable[Done] | Means) -> tuple[list[str], list[str]]:
    """Cases and names, in the order of their first run."""
    pairs = [one if isinstance(one, tuple) else (one.case, one.name) for one in found]
    return list(dict.fromkeys(case for case, _ in pairs)), list(dict.fromkeys(name for _, name in pairs))


def pooled(done: Sequence[Replayed], by_job: Callable[[RunLog], Floats]) -> dict[str, list[float]]:
    """Values by job of all runs of a name put together, by name in the order of their first run."""
    return {
        name: np.concatenate([by_job(one.log) for one in done if one.name == name]).tolist()
        for name in names_of(done)[1]
    }


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure of a run.

    Attributes
    ----------
    key, title : its name among figures, and in tables
    digits, scale : that it is printed with, and what it is multiplied by for that
    lower : whether less is better
    log : whether an axis of it is logarithmic
    """

    key: str
    title: str = ""
    digits: int = 2
    scale: float = 1.0
    lower: bool = True
    log: bool = True

    @property
    def word(self) -> str:
        """The title without its unit."""
        return self.title.partition(",")[0]

    def text(self, figures: Mapping[str, float]) -> str:
        """As tables print it."""
        return number(figures[self.key] * self.scale, self.digits)

    def of(self, done: Iterable[Done], case: str, name: str) -> Floats:
        """(n_draws,) by draw, in the order of seeds, as it is printed."""
        ours = sorted((one for one in done if (one.case, one.name) == (case, name)), key=lambda one: one.seed or 0)
        return np.array([one.figures[self.key] * self.scale for one in ours], dtype=np.float64)


def table(found: Means, head: str, measures: Sequence[Measure]) -> str:
    """Means over draws: a row a case and name."""
    rows = ((case, name, *(one.text(figures) for one in measures)) for (case, name), figures in found.items())
    return grid((head, "policy", *(one.title for one in measures)), rows)


def by_policy(found: By, measures: Sequence[Measure]) -> str:
    """Means over draws of one case: a row a policy."""
    rows = ((name, *(one.text(figures) for one in measures)) for name, figures in found.items())
    return grid(("policy", *(one.title for one in measures)), rows)


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over draws and its confidence interval by Student's t; NaN bounds for a single draw."""

    mean: float
    low: float
    high: float

    def text(self, digits: int = 1) -> str:
        """The mean, and the interval where there is one.

        >>> Interval(1.0, 0.5, 1.5).text()
        '1.0 (0.5 to 1.5)'
        """
        spread = f" ({self.low:.{digits}f} to {self.high:.{digits}f})" if np.isfinite(self.low) else ""
        return f"{number(self.mean, digits)}{spread}"

    @property
    def negative(self) -> "Interval":
        """Of what it takes in place of what it gains."""
        return Interval(-self.mean, -self.high, -self.low)

    @property
    def verdict(self) -> str:
        """Whether it is above 0 with confidence, below, or neither."""
        return HOLDS if self.low > 0 else REVERSED if self.high < 0 else OPEN


def interval_of(values: Sequence[float] | Floats) -> Interval:
    """Of a sample's mean.

    >>> one = interval_of([1.0, 2.0, 3.0])
    >>> round(one.low, 3), round(one.high, 3)
    (-0.484, 4.484)
    """
    from scipy.stats import t

    sample = np.asarray(values, dtype=np.float64)
    mean, nan = float(sample.mean()), float("nan")
    # One draw tells nothing of the spread: no interval, rather than one of width 0.
    if len(sample) < 2:
        return Interval(mean, nan, nan)
    half = float(t.ppf(0.5 + CONFIDENCE / 2, len(sample) - 1) * sample.std(ddof=1) / np.sqrt(len(sample)))
    return Interval(mean, mean - half, mean + half)


def draws_text(count: int, single: str = "one draw") -> str:
    """How many draws there were, in words."""
    return f"{count} draws" if count > 1 else single


class Claim(NamedTuple):
    """A sentence of the paper: what it prints, what came out, and whether its direction holds (None: no direction)."""

    text: str
    paper: str
    here: str
    holds: bool | None = None


def result(here: str, holds: bool | None = None) -> str:
    """What came out beside a claim that stands in a template: the last two cells of its row.

    >>> result("1.2", True), result("-")
    ('1.2 | yes', '- | ')
    """
    return f"{here} | {'' if holds is None else 'yes' if holds else 'no'}"


def claims(found: Iterable[Claim]) -> str:
    """Rows of a template's table of claims."""
    return lines((one.text, one.paper, result(one.here, one.holds)) for one in found)


def lines(rows: Iterable[Sequence[str]]) -> str:
    """Rows of a table in Markdown, without its head."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown.

    >>> grid(("a", "b"), [("1", "2")])
    '| a | b |\\n| --- | --- |\\n| 1 | 2 |'
    """
    return lines([head, ["---"] * len(head), *rows])


def number(value: float, digits: int = 2) -> str:
    """A number, or a dash where there is none.

    >>> number(1.234), number(float("nan"))
    ('1.23', '-')
    """
    return f"{value:.{digits}f}" if isfinite(value) else "-"


def numbers(values: Iterable[float], digits: int = 2) -> str:
    """Numbers between commas."""
    return ", ".join(number(value, digits) for value in values)


@dataclass(frozen=True, slots=True)
class Page:
    """The folder of a figure, and what is written into it: its page, files of values, plots.

    Attributes
    ----------
    name : of the figure, and of its files
    out : the folder, made where it is missing
    template : of the page, in Markdown
    """

    name: str
    out: Path
    template: Path

    def named(self, name: str) -> "Page":
        """The same folder for a file of another name."""
        return replace(self, name=name)

    def file(self, kind: str) -> Path:
        """`NAME.kind`."""
        self.out.mkdir(parents=True, exist_ok=True)
        return self.out / f"{self.name}.{kind}"

    def write(self, **parts: object) -> None:
        """Fill the template and write it as `NAME.md`.

        Parameters
        ----------
        parts : values of the template's fields, beside the name; a list is one paragraph each, an empty paragraph is
            left out
        """
        joined = {key: "\n\n".join(part) if isinstance(part, list) else part for key, part in parts.items()}
        # Paragraph by paragraph, so that one whose only field is empty leaves no gap.
        paragraphs = self.template.read_text(encoding="utf-8").strip().split("\n\n")
        filled = [one.format(name=self.name, **joined) for one in paragraphs]
        self.file("md").write_text("\n\n".join(filter(None, filled)) + "\n", encoding="utf-8")

    def csv(self, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Write `NAME.csv`."""
        with self.file("csv").open("w", encoding="utf-8", newline="") as file:
            # The same bytes on every system.
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(head)
            writer.writerows(rows)

    def runs(self, done: list[D]) -> list[D]:
        """Write `NAME.csv` and give the runs back: a row a run, with its seed where it has one, and steady figures.

        Of the figures those that all runs have.
        """
        keys = [key for key in done[0].figures if key not in UNSTEADY and all(key in one.figures for one in done)]
        seeds = [] if done[0].seed is None else ["seed"]
        rows = [
            (one.case, one.name, *(getattr(one, seed) for seed in seeds), *(f"{one.figures[key]:.6g}" for key in keys))
            for one in done
        ]
        self.csv(("case", "policy", *seeds, *keys), rows)
        return done


def read_rows(path: Path) -> list[dict[str, str]]:
    """Rows of a CSV file with a head: what a paper prints."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
