"""A backtest: policies x forecasts x windows x seeds, replayed in parallel, measured against one baseline."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobcast.pipelines.console import Step
from jobcast.pipelines.engines import results
from jobcast.pipelines.forecast_specs import ForecastSpec
from jobcast.pipelines.gains import saved_hours
from jobcast.pipelines.policy_settings import Settings, settings_for
from jobcast.pipelines.scenes import Scene
from jobcast.pipelines.simulation import DAY_S, Simulated, figures, simulate, warmup_end
from jobcast.schedulers.registry import find_policy
from jobcast.simulator.log import RunLog
from jobcast.simulator.metrics import after_warmup

NOT_REPEATABLE = ("wall_s", "cpu_s")
"""Figures of a run that differ from machine to machine."""

ORACLE = ForecastSpec("oracle")
NAMES = ("policy", "forecasts")
"""What `simulate --json` tells among its figures, and a row beside them."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One simulation of the matrix; `window` is the position of its scene, `settings` are the policy's."""

    policy: str
    spec: ForecastSpec
    label: str
    window: int = 0
    seed: int = 0
    settings: Settings = ()


@dataclass(frozen=True, slots=True)
class CellResult:
    """A finished cell against the baseline of the same window.

    Attributes
    ----------
    figures : those of `simulation.figures`, against the baseline where jobs progress by the same law under both
    base_jct_s : (n_jobs,) completion times under the baseline, NaN where it has another law
    counted : (n_jobs,) jobs submitted after the warm-up
    days : length of the window without the warm-up
    """

    cell: Cell
    run: Simulated
    figures: Mapping[str, Any]
    base_jct_s: NDArray[np.float64]
    counted: NDArray[np.bool_]
    days: float

    @property
    def log(self) -> RunLog:
        """What happened, by job."""
        return self.run.log

    @property
    def forecasts(self) -> str | None:
        """Its forecasts as its label tells them, None for a policy that uses none."""
        return self.cell.label.removeprefix(self.cell.policy).strip() or None

    def row(self) -> dict[str, Any]:
        """What is the same whenever the cell is run again: what ran, hours saved against the baseline, figures."""
        known, log, cell = find_policy(self.cell.policy), self.log, self.cell
        return {
            "label": cell.label,
            "policy": cell.policy,
            "forecasts": self.forecasts,
            "future": self.forecasts is not None and cell.spec.future,
            "law": log.law,
            "scope": known.scope,
            "preempts": known.preempts,
            "window": cell.window,
            "seed": cell.seed,
            **self._saved_hours(),
            "figures": {key: value for key, value in self.figures.items() if key not in (*NOT_REPEATABLE, *NAMES)},
        }

    def _saved_hours(self) -> dict[str, float | None]:
        counted = self.counted
        return saved_hours(self.log.jct_s[counted], self.base_jct_s[counted], self.log.gpus[counted], self.days)

    def full_row(self) -> dict[str, Any]:
        """The row with the versions that answered, and how long the policy took."""
        row, times = self.row(), {key: self.figures[key] for key in NOT_REPEATABLE}
        return {**row, "versions": dict(self.run.models), "figures": {**row["figures"], **times}}


def label_of(policy: str, spec: ForecastSpec, registry_label: str | None = None) -> str:
    """How a cell is called in tables: the policy, and the forecasts where it uses any.

    >>> label_of("fcfs", ForecastSpec("oracle"))
    'fcfs'
    >>> label_of("sia", ForecastSpec("random"))
    'sia random'
    """
    return f"{policy} {registry_label or spec.label}" if find_policy(policy).asks else policy


def matrix(pairs: Sequence[tuple[str, ForecastSpec, str]], windows: int, seeds: int, base: int = 0) -> list[Cell]:
    """Every simulation of the backtest once: seeds are repeated only for forecasts that draw.

    Parameters
    ----------
    pairs : (policy, forecasts, label); a label that comes twice is kept once
    windows, seeds : how many of each
    base : the first seed
    """
    unique: dict[str, tuple[str, ForecastSpec]] = {}
    for policy, spec, label in pairs:
        unique.setdefault(label, (policy, spec if find_policy(policy).asks else ORACLE))
    return [
        Cell(policy, spec, label, window, base + seed)
        for label, (policy, spec) in unique.items()
        for window in range(windows)
        for seed in range(seeds if spec.draws else 1)
    ]


def with_baseline(cells: Sequence[Cell], baseline: str) -> list[Cell]:
    """The cells, and before them the baseline of each window where it is none of them.

    >>> [cell.label for cell in with_baseline([Cell("sia", ORACLE, "sia oracle")], "fcfs")]
    ['fcfs', 'sia oracle']
    """
    there = {cell.window for cell in cells if _is_baseline(cell, baseline)}
    windows = dict.fromkeys(cell.window for cell in cells if cell.window not in there)
    return [*(Cell(baseline, ORACLE, label_of(baseline, ORACLE), window) for window in windows), *cells]


def with_settings(cells: Sequence[Cell], settings: Mapping[str, str], local: bool = False) -> list[Cell]:
    """The cells, and after each one whose policy knows some of the settings, `local` on servers, the same with those.

    >>> plain = [Cell("fcfs", ORACLE, "fcfs"), Cell("sia", ORACLE, "sia oracle")]
    >>> [cell.label for cell in with_settings(plain, {"switches": "off.csv"})]
    ['fcfs', 'sia oracle', 'sia oracle, switches=off.csv']
    """
    found: list[Cell] = []
    for cell in cells:
        found.append(cell)
        known = () if cell.settings else settings_for(cell.policy, settings, local)
        if known:
            label = ", ".join([cell.label, *(f"{name}={value}" for name, value in known)])
            found.append(replace(cell, label=label, settings=known))
    return found


def run_matrix(
    scenes: Sequence[Scene],
    cells: Sequence[Cell],
    *,
    home: Path,
    baseline: str = "fcfs",
    jobs: int = 1,
    engine: str = "local",
    allow_overlap: bool = False,
    degrade: bool | None = None,
    warmup_days: float = 0.0,
    progress: Step | None = None,
) -> list[CellResult]:
    """Replay all cells, `jobs` at a time; results in the order of the cells.

    The baseline, which is given the oracle where it asks for forecasts, is replayed once a window, whether or not
    it is a cell itself. Raises ConfigError when the warm-up leaves no job of a window.
    """
    counted_from = [warmup_end(scene, warmup_days) for scene in scenes]
    base_cells = [Cell(baseline, ORACLE, baseline, window) for window in range(len(scenes))]
    todo = [*base_cells, *(cell for cell in cells if not _is_baseline(cell, baseline))]
    trust = {"home": home, "allow_overlap": allow_overlap, "degrade": degrade}
    done = _replay_all(scenes, todo, trust, jobs, engine, progress)
    runs = dict(zip(todo, done, strict=True))
    bases = [runs[cell] for cell in base_cells]
    return [
        _measured(
            cell, scenes[cell.window], runs.get(cell, bases[cell.window]), bases[cell.window], counted_from[cell.window]
        )
        for cell in cells
    ]


def _is_baseline(cell: Cell, baseline: str) -> bool:
    plain = cell.spec == ORACLE or not find_policy(baseline).asks
    return cell.policy == baseline and not cell.settings and plain


def _replay_all(
    scenes: Sequence[Scene],
    cells: Sequence[Cell],
    trust: Mapping[str, Any],
    jobs: int,
    engine: str,
    progress: Step | None,
) -> list[Simulated]:
    from joblib import delayed

    # The longest first: a slow cell begun last would keep the other workers waiting.
    order = sorted(range(len(cells)), key=lambda number: -_weight(cells[number]))
    found: dict[int, Simulated] = {}
    tasks = (delayed(_replay)(number, scenes[cells[number].window], cells[number], trust) for number in order)
    for number, run in results(tasks, jobs=jobs, engine_name=engine):
        found[number] = run
        if progress:
            progress(len(found), len(cells))
    return [found[number] for number in range(len(cells))]


def _weight(cell: Cell) -> int:
    return bool(find_policy(cell.policy).asks) + cell.spec.asks_registry


def _replay(number: int, scene: Scene, cell: Cell, trust: Mapping[str, Any]) -> tuple[int, Simulated]:
    """`trust`: where models lie, and which may be used; see `simulation.simulate`."""
    run = simulate(scene, cell.policy, cell.spec, seed=cell.seed, settings=dict(cell.settings), **trust)
    return number, replace(run, replaced=())  # nobody explains a backtest


def _measured(cell: Cell, scene: Scene, run: Simulated, base: Simulated, counted_from_s: float | None) -> CellResult:
    alike = run.log.law == base.log.law
    told = figures(run, base if alike else None, policy=cell.policy, warmup_until_s=counted_from_s)
    base_jct_s = base.log.jct_s if alike else np.full(len(run.log), np.nan)
    days = (scene.until_s - (scene.from_s if counted_from_s is None else counted_from_s)) / DAY_S
    return CellResult(cell, run, told, base_jct_s, after_warmup(run.log, counted_from_s), days)


def windows_of(from_s: float, until_s: float, count: int) -> list[tuple[float, float]]:
    """`count` consecutive windows of equal length.

    >>> windows_of(0.0, 10.0, 2)
    [(0.0, 5.0), (5.0, 10.0)]
    """
    edges = [from_s + (until_s - from_s) * part / count for part in range(count + 1)]
    return list(pairwise(edges))
