"""A backtest: policies x forecasts x windows x seeds, replayed in parallel, measured against one baseline."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.clock import DAY_S
from jobcast.domain.errors import DecisionError, JobcastError, RegistryError
from jobcast.domain.law import EPOCHS, SPEEDUP, TASKS
from jobcast.models.registry import open_registry
from jobcast.pipelines.experiments.executors import results
from jobcast.pipelines.experiments.experiment import Experiment
from jobcast.pipelines.experiments.forecast_specs import REGISTRY, ForecastSpec
from jobcast.pipelines.experiments.policy_runs import run, sources_for
from jobcast.pipelines.experiments.settings import Settings, settings_for
from jobcast.pipelines.experiments.simulation import Simulated, counted_from, figures
from jobcast.pipelines.experiments.sources import Ask
from jobcast.pipelines.experiments.worlds import lives
from jobcast.pipelines.report.console import Step
from jobcast.pipelines.report.gains import saved_hours
from jobcast.schedulers.policies import FUTURE, POOLS
from jobcast.schedulers.registry import find_policy
from jobcast.simulator.log import RunLog
from jobcast.simulator.metrics import after_warmup
from jobcast.traces.owners import scratch_room

NOT_REPEATABLE = (
    "wall_s",
    "cpu_s",
    "decision_ms_mean",
    "decision_ms_max",
    "solve_s_total",
    "solve_s_max",
    "milp_solve_s",
)
"""Figures of a run that differ from machine to machine."""

LAW_BASELINES: Mapping[str, str] = {SPEEDUP: "elastic_fifo", TASKS: "gandiva", EPOCHS: "energy_fifo"}
"""What rows of a law are compared with where the baseline has another: whoever came first."""
NAMES = ("policy", "forecasts", "future", "law")
"""What `simulate --json` tells among its figures, and a row beside them."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One simulation of the matrix; `window` is the position of its experiment, `settings` are the policy's."""

    policy: str
    spec: ForecastSpec
    label: str
    window: int = 0
    seed: int = 0
    settings: Settings = ()

    @property
    def identity(self) -> tuple[object, ...]:
        """The simulation that it is, whatever it is called: a policy that asks nothing has no forecasts."""
        spec = self.spec if find_policy(self.policy).asks else None
        return self.policy, spec, self.window, self.seed, self.settings


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
        cell = self.cell
        return cell.label.removeprefix(cell.policy).removesuffix(_beside(cell.settings)).strip() or None

    def row(self) -> dict[str, Any]:
        """What is the same whenever the cell is run again: what ran, hours saved against the baseline, figures."""
        known, log, cell, counted = find_policy(self.cell.policy), self.log, self.cell, self.counted
        return {
            "label": cell.label,
            "policy": cell.policy,
            "forecasts": self.forecasts,
            **({"settings": dict(cell.settings)} if cell.settings else {}),
            "future": self.run.future,
            "law": log.law,
            "scope": known.scope,
            "preempts": known.preempts,
            "window": cell.window,
            "seed": cell.seed,
            "days": self.days,
            **saved_hours(log.jct_s[counted], self.base_jct_s[counted], log.gpus[counted], self.days),
            "figures": {key: value for key, value in self.figures.items() if key not in (*NOT_REPEATABLE, *NAMES)},
        }

    def full_row(self) -> dict[str, Any]:
        """The row with the versions that answered, and how long the policy took."""
        row, times = self.row(), {key: self.figures[key] for key in NOT_REPEATABLE if key in self.figures}
        return {**row, "versions": dict(self.run.models), "figures": {**row["figures"], **times}}


Baselines = dict[tuple[object, ...], Simulated | JobcastError]
"""What baselines came to, for matrices of the same windows that follow one another; by `_share`."""


@dataclass(frozen=True, slots=True)
class Lacking:
    """A cell that could not run, and why."""

    cell: Cell
    why: str


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
        unique.setdefault(label, (policy, spec if find_policy(policy).asks else REGISTRY))
    return [
        Cell(policy, spec, label, window, base + seed)
        for label, (policy, spec) in unique.items()
        for window in range(windows)
        # Other seeds would only repeat the same run where nothing is drawn.
        for seed in range(seeds if spec.draws else 1)
    ]


def baselines_of(
    cells: Sequence[Cell], baseline: str, experiment: Experiment, sources: Sequence[ForecastSpec] = ()
) -> dict[str, Cell]:
    """What the rows of each law are compared with, by law: the baseline, and `LAW_BASELINES` of other laws.

    One that asks for forecasts goes by the first of `sources` that tells what it asks, else by its default.
    """
    laws = dict.fromkeys(experiment.law_of(find_policy(cell.policy)) for cell in cells)
    rule = find_policy(baseline)
    # A baseline that has no place in the law is no baseline there: another one of that law stands in.
    here = experiment.law is None or lives(rule, experiment.law)
    names = {experiment.law_of(rule): baseline} if here else {}
    names |= {law: LAW_BASELINES[law] for law in laws if law in LAW_BASELINES and law not in names}
    return {law: _base(name, experiment, sources) for law, name in names.items()}


def _base(name: str, experiment: Experiment, sources: Sequence[ForecastSpec]) -> Cell:
    rule = find_policy(name)
    found = sources_for(experiment, rule, sources) if rule.asks else []
    spec = found[0] if found else REGISTRY
    return Cell(name, spec, label_of(name, spec))


def with_baseline(cells: Sequence[Cell], bases: Mapping[str, Cell]) -> list[Cell]:
    """The cells, and before them the baselines of each window that are none of them.

    >>> fcfs = Cell("fcfs", REGISTRY, "fcfs")
    >>> [cell.label for cell in with_baseline([Cell("sia", REGISTRY, "sia registry")], {"runtime": fcfs})]
    ['fcfs', 'sia registry']
    """
    # In order of appearance, so that results keep the order in which they were asked for.
    windows = dict.fromkeys(cell.window for cell in cells)
    wanted = [replace(base, window=window) for base in bases.values() for window in windows]
    # By identity, not by label: a baseline may be among the cells under another name.
    there = {cell.identity for cell in cells}
    return [*(base for base in wanted if base.identity not in there), *cells]


def with_settings(cells: Sequence[Cell], settings: Mapping[str, str], local: bool = False) -> list[Cell]:
    """The cells, and after each one whose policy knows some of the settings, `local` on servers, the same with those.

    >>> plain = [Cell("fcfs", REGISTRY, "fcfs"), Cell("sia", REGISTRY, "sia registry")]
    >>> [cell.label for cell in with_settings(plain, {"switches": "off.csv"})]
    ['fcfs', 'sia registry', 'sia registry, switches=off.csv']
    """
    found: list[Cell] = []
    for cell in cells:
        found.append(cell)
        # Cells that carry settings already are left alone: they would be made twice.
        known = () if cell.settings else settings_for(cell.policy, settings, local)
        if known:
            found.append(replace(cell, label=cell.label + _beside(known), settings=known))
    return found


def _beside(settings: Settings) -> str:
    """What a label tells of settings, behind policy and forecasts."""
    return "".join(f", {name}={value}" for name, value in settings)


def run_matrix(
    experiments: Sequence[Experiment],
    cells: Sequence[Cell],
    *,
    home: Path,
    bases: Mapping[str, Cell] | None = None,
    jobs: int = 1,
    engine: str = "local",
    allow_overlap: bool = False,
    degrade: bool | None = None,
    warmup_days: float = 0.0,
    lacking: list[Lacking] | None = None,
    shared: Baselines | None = None,
    progress: Step | None = None,
) -> list[CellResult]:
    """Replay all cells, `jobs` at a time; results in the order of the cells.

    The baselines of `baselines_of`, None for those of fcfs, are replayed once a window, whether or not they are cells
    themselves. What cannot run, a model that has seen the window among it, goes into `lacking` where that is given,
    else what it lacks is raised. Baselines in `shared` are not replayed, others are put in. Raises ConfigError when
    the warm-up leaves no job of a window.
    """
    # Before anything is replayed, so that a warm-up that leaves nothing is refused at once.
    counted_s = [counted_from(*one.stretch_s, warmup_days) for one in experiments]
    named = baselines_of(cells, "fcfs", experiments[0]) if bases is None else bases
    windows = range(len(experiments))
    at = {(law, window): replace(base, window=window) for law, base in named.items() for window in windows}
    # Baselines and cells together, each simulation once.
    known = {} if shared is None else {base.identity: _share(base, experiments) for base in at.values()}
    done = {identity: shared[key] for identity, key in known.items() if shared and key in shared}
    todo = {cell.identity: cell for cell in (*at.values(), *cells) if cell.identity not in done}
    trust = {"home": home, "allow_overlap": allow_overlap, "degrade": degrade}
    ran_all = _replay_all(experiments, _as_found(list(todo.values()), home), trust, jobs, engine, progress)
    done |= dict(zip(todo, ran_all, strict=True))
    if shared is not None:
        shared |= {key: done[identity] for identity, key in known.items()}
    found: list[CellResult] = []
    for cell in cells:
        law = experiments[cell.window].law_of(find_policy(cell.policy))
        base = at.get((law, cell.window))
        ran = done[cell.identity]
        if isinstance(ran, JobcastError):
            # Whoever gives no list wants all cells or none.
            if lacking is None:
                raise ran
            lacking.append(Lacking(cell, str(ran)))
            continue
        # Of a law without baseline there is none, and one that could not run came back as its error.
        compared = None if base is None else done[base.identity]
        base_run = compared if isinstance(compared, Simulated) else None
        found.append(_measured(cell, ran, base_run, experiments[cell.window], counted_s[cell.window]))
    return found


def _share(base: Cell, experiments: Sequence[Experiment]) -> tuple[object, ...]:
    """What makes the run of a baseline: facts that `--set` names go with the kinds of policies beside it."""
    return *base.identity, *sorted(experiments[base.window].given.items())


def _as_found(cells: Sequence[Cell], home: Path) -> list[Cell]:
    """The cells with the registry's aliases looked up once: all workers ask the versions of this instant."""
    if not any(cell.spec.asks_registry for cell in cells):
        return list(cells)
    try:
        versions = open_registry(home).list()
    except RegistryError:  # told by the cells that cannot do without, each in its own words
        return list(cells)
    pointed = [(version.name, alias, version.version) for version in versions for alias in version.aliases]
    return [replace(cell, spec=cell.spec.as_found(pointed)) for cell in cells]


PARTS = 100
"""Of each run, which takes a byte of the file."""
LOOKS_S = 1.0
"""Between looks at how far they are."""


@dataclass(frozen=True, slots=True)
class Going:
    """A file that tells how far each run is: joblib's workers have no other way back before they are done."""

    path: Path

    def of(self, number: int) -> Step:
        """What the run of a number calls as it goes on; it may be called often."""
        told = 0

        def step(done: int, total: int) -> None:
            nonlocal told
            part = PARTS * done // max(total, 1)
            if part > told:
                told = part
                with self.path.open("r+b") as file:
                    file.seek(number)
                    file.write(bytes([part]))

        return step

    def far(self) -> tuple[int, int]:
        """Parts that are done, and all parts."""
        parts = self.path.read_bytes()
        return sum(parts), PARTS * len(parts)


@contextmanager
def going(runs: int, progress: Step | None) -> Iterator[Going | None]:
    """Call `progress` with how far all runs are together, now and then and after the last; None where nobody asks."""
    if progress is None:
        yield None
        return
    with scratch_room("going") as folder:
        path = folder / "going"
        path.write_bytes(bytes(runs))
        told, over = Going(path), Event()

        def look() -> None:
            while not over.wait(LOOKS_S):
                progress(*told.far())

        watch = Thread(target=look, daemon=True)
        watch.start()
        try:
            yield told
        finally:
            over.set()
            watch.join()
        progress(*told.far())


def _replay_all(
    experiments: Sequence[Experiment],
    cells: Sequence[Cell],
    trust: Mapping[str, Any],
    jobs: int,
    engine: str,
    progress: Step | None,
) -> list[Simulated | JobcastError]:
    from joblib import delayed

    # The longest first: a slow cell begun last would keep the other workers waiting.
    order = sorted(range(len(cells)), key=lambda number: -_weight(cells[number]))
    # Results come in no order: the number says whose each is.
    with going(len(cells), progress) as told:
        tasks = (
            delayed(_replay)(number, experiments[cells[number].window], cells[number], trust, told) for number in order
        )
        found: dict[int, Simulated | JobcastError] = dict(results(tasks, jobs=jobs, engine_name=engine))
    return [found[number] for number in range(len(cells))]


def _weight(cell: Cell) -> int:
    rule = find_policy(cell.policy)
    # Plans of the future, rounds or programmes, questions, models: each makes a run slower.
    return (FUTURE in rule.asks) + (rule.kind != POOLS) + bool(rule.asks) + cell.spec.asks_registry


def _replay(
    number: int, experiment: Experiment, cell: Cell, trust: Mapping[str, Any], told: Going | None
) -> tuple[int, Simulated | JobcastError]:
    """`trust`: where models lie, and which may be used; see `policy_runs.Ask`. What a policy lacks comes back."""
    ask = Ask(policy=cell.policy, spec=cell.spec, seed=cell.seed, settings=dict(cell.settings), **trust)
    step = told.of(number) if told else None
    try:
        return number, replace(run(experiment, ask, step), replaced=())  # nobody explains a backtest
    # A policy that breaks the engine's rules is a bug to be seen, not a cell that lacks something.
    except DecisionError:
        raise
    except JobcastError as error:
        return number, error
    finally:
        if step:
            step(1, 1)


def _measured(
    cell: Cell, ran: Simulated, base: Simulated | None, experiment: Experiment, counted_s: float | None
) -> CellResult:
    result = figures(ran, base, policy=cell.policy, warmup_until_s=counted_s)
    # NaN and not the run's own times, which would count as a speedup of 1.
    base_jct_s = np.full(len(ran.log), np.nan) if base is None else base.log.jct_s
    begin_s, last_s = experiment.stretch_s
    # Windows exclude their end: one second more holds the last submission.
    end_s = last_s + 1.0 if experiment.until_s is None else experiment.until_s
    days = (end_s - (begin_s if counted_s is None else counted_s)) / DAY_S
    return CellResult(cell, ran, result, base_jct_s, after_warmup(ran.log, counted_s), days)


def windows_of(from_s: float, until_s: float, count: int) -> list[tuple[float, float]]:
    """`count` consecutive windows of equal length.

    >>> windows_of(0.0, 10.0, 2)
    [(0.0, 5.0), (5.0, 10.0)]
    """
    # Each from the beginning, not from the edge before: rounding does not add up.
    edges = [from_s + (until_s - from_s) * part / count for part in range(count + 1)]
    return list(pairwise(edges))
