"""The searches that the figures choose configurations from (PCS, sections 3.3 and 5.1)."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.errors import ConfigError
from jobcast.pipelines.experiments.elastic.jobs import ElasticScene
from jobcast.pipelines.experiments.search import workload_samples
from jobcast.pipelines.experiments.search.evaluation import Candidate, Objective, World, parse_objectives, simulated
from jobcast.pipelines.experiments.search.front import FLOOR, Front, Row, read_front, write_front
from jobcast.pipelines.experiments.search.pareto_search import Searched, SearchRequest, draw_samples, search_front
from jobcast.schedulers.elastic.config import WfqConfig
from papers.pcs import runs
from papers.results import HOUR_S, WORKERS, Page, grid, in_parallel, number

RESAMPLED = workload_samples.RESAMPLED
MEANS, TAIL = "jct:mean,error:mean", "jct:mean,error:p99"
"""SetPreference for workloads 1 and 2, and for workload 3. PCS, section 3.2."""
COLLECTED = 1000
"""Jobs of a history that a drawn workload's samples come from, drawn from a seed that no figure uses ..."""
HISTORY = 1000
"""... this one."""
SHARES = (("PCS-jct", 0.05), ("PCS-bal", 0.2), ("PCS-pred", 0.6))
"""How far a configuration's mean JCT may be on the way from the front's lowest to FIFO's, on a logarithmic scale."""
NAMES = tuple(name for name, _ in SHARES)
LARGE = 1000.0
"""From here on tables leave decimals out."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What figures are made from: the folders of traces, and of the fronts that were searched for."""

    data: Path
    fronts: Path

    def front(self, key: str) -> Front:
        """A front that was searched for. Raises ConfigError when it is not there."""
        path = self.fronts / f"{key}.parquet"
        if not path.is_file():
            raise ConfigError(f"{path}: no such front; make the figure `fronts` first")
        return read_front(path)

    def configs(self, key: str) -> dict[str, WfqConfig]:
        """The configurations of `picks` from a front."""
        return {name: row.config for name, row in picks(self.front(key)).items()}


@dataclass(frozen=True, slots=True)
class Searching:
    """A search: of what, for what, and how long.

    Attributes
    ----------
    about : in words
    history : the jobs to draw samples from, by the folder of traces
    objectives : as `parse_objectives` reads them
    jobs : of a sample
    load : of samples, None for the history's
    gaps : between arrivals of samples
    evaluations : simulations
    """

    about: str
    history: Callable[[Path], ElasticScene]
    objectives: str = MEANS
    jobs: int = runs.APPS
    load: float | None = None
    gaps: str = workload_samples.EXPONENTIAL
    evaluations: int = 600

    def place(self, data: Path) -> tuple[workload_samples.Workload, World]:
        """What samples are drawn from, and the GPUs that they run on."""
        scenario = self.history(data)
        return workload_samples.workload_of(scenario), World(scenario.workload.cluster, scenario.place.gpu_types)

    def request(self, space: str = "parameters", seed: int = 0) -> SearchRequest:
        """As the search takes it; `space` and `seed` of `SearchRequest`."""
        objectives = parse_objectives(self.objectives)
        sampling = workload_samples.Sampling(self.jobs, self.load, self.gaps)
        return SearchRequest(objectives, evaluations=self.evaluations, sampling=sampling, space=space, seed=seed)


def _gavel(*, at_width: bool) -> Callable[[Path], ElasticScene]:
    return lambda data: runs.gavel(HISTORY, COLLECTED, at_width=at_width)


def _cluster(name: str) -> Callable[[Path], ElasticScene]:
    return lambda data: runs.published(data, name, jobs=None)


APPS, APPS_60, GAVEL, LIGHT = "workload-1", "workload-1-load-60", "workload-3", "workload-3-light"
THEMIS = "themis1"
CLUSTERS = {name: f"workload-2-{name}" for name in runs.CLUSTERS}
SEARCHES = {
    APPS: Searching("AutoML apps, 80 % load, 16 GPUs", lambda data: runs.automl(HISTORY, COLLECTED), load=runs.LOAD),
    THEMIS: Searching(
        "workload 1 as published, 64 GPUs", lambda data: runs.themis(data, HISTORY, COLLECTED), load=runs.LOAD
    ),
    APPS_60: Searching("AutoML apps, 60 % load, 16 GPUs", lambda data: runs.automl(HISTORY, COLLECTED), load=0.6),
    **{key: Searching(f"cluster {name}, 64 GPUs", _cluster(name), gaps=RESAMPLED) for name, key in CLUSTERS.items()},
    GAVEL: Searching("Gavel, run times at a job's width", _gavel(at_width=True), TAIL, 500, evaluations=300),
    LIGHT: Searching("Gavel, run times on one GPU", _gavel(at_width=False), TAIL, jobs=runs.JOBS, evaluations=300),
}


def search(data: Path, searching: Searching, progress: Callable[[int, int], None] | None = None) -> Searched:
    """Carry a search out; `progress` as of `search_front`."""
    return search_front(*searching.place(data), searching.request(), jobs=WORKERS, progress=progress)


def fresh_samples(data: Path, searching: Searching) -> tuple[World, list[workload_samples.Sample]]:
    """The GPUs of a search, and the samples on which its front was judged."""
    workload, world = searching.place(data)
    samples = draw_samples(workload, searching.request())
    return world, [one for name, one in samples.items() if name.startswith("test")]


def fronts(sources: Sources, page: Page) -> None:
    """Write every search's front, the configurations that it tried, and the page into a folder."""
    parts = []
    # Of the published workload 1 only Figure 9c makes use, by searches of its own.
    for key, searching in SEARCHES.items():
        if key == THEMIS:
            continue
        begin_s = time.monotonic()
        found = search(sources.data, searching)
        write_front(found.front, page.named(key).file("parquet"))
        labels = [one.label for one in found.front.objectives]
        tries = ((*(f"{value:.6g}" for value in one.values), len(one.config.rates)) for one in found.history)
        page.named(f"{key}-tried").csv((*labels, "queues"), tries)
        parts += [f"## {searching.about}", _page(found.front, len(found.history))]
        click.echo(f"  {key} ({time.monotonic() - begin_s:.0f} s)", err=True)
    shares = ", ".join(f"{name} {100 * share:.0f} %" for name, share in SHARES)
    page.write(shares=shares, fronts=parts)


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """A candidate on one sample; `case` and `name` are what it is called, rows of a front by their picks."""

    case: str
    name: str
    world: World
    candidate: Candidate
    sample: workload_samples.Sample


def tried(trials: Sequence[Trial], objectives: Sequence[Objective]) -> dict[str, dict[str, Floats]]:
    """(n_objectives,) means over samples, by case and name, in the order of trials."""

    def one(trial: Trial) -> tuple[str, str, Floats]:
        values = simulated(trial.world, trial.candidate, trial.sample, objectives)
        return trial.case, trial.name, np.array(values)

    found: dict[str, dict[str, list[Floats]]] = {}
    for case, name, values in in_parallel(one, trials, lambda made: f"{made[0]} {made[1]}"):
        found.setdefault(case, {}).setdefault(name, []).append(values)
    return {case: {name: np.mean(of, axis=0) for name, of in rows.items()} for case, rows in found.items()}


def picks(front: Front) -> dict[str, Row]:
    """PCS-jct, PCS-bal and PCS-pred: of the rows with two queues or more that nothing beats on test samples, those of
    least error whose mean JCT is within their share of the way from the lowest to FIFO's.
    """
    # One queue is FIFO: no configuration of a choice.
    rows = [row for row in front.rows if row.pareto and row.test is not None and len(row.config.rates) > 1]
    lowest = min(row.test[0] for row in rows)  # type: ignore[index]
    whole = max(front.references["elastic_fifo"][0] / lowest, 1.0)
    return {
        name: min((row for row in rows if row.test[0] <= lowest * whole**share), key=lambda row: row.test[1])  # type: ignore[index]
        for name, share in SHARES
    }


def _page(front: Front, tried: int) -> str:
    labels = [one.label for one in front.objectives]
    lines: list[tuple[str, tuple[float, ...] | None, Row | None]]
    lines = [(name, row.test, row) for name, row in picks(front).items()]
    lines += [(name, values, None) for name, values in front.references.items()]
    rows = [(name, *(_value(value) for value in values or ()), *_parameters(row)) for name, values, row in lines]
    best = sum(row.pareto for row in front.rows)
    return f"{tried} configurations tried, {best} of them beaten by none on fresh samples.\n\n" + grid(
        ("", *labels, "T", "W", "zeta_min", "thresholds, h on one GPU", "weights"), rows
    )


def _parameters(row: Row | None) -> tuple[str, ...]:
    if row is None:
        return ("",) * 5
    thresholds = ", ".join(f"{value / HOUR_S:.3g}" for value in row.config.thresholds[:-1])
    weights = ", ".join(f"{value:.2g}" for value in row.config.rates)
    return (*(_value(row.parameters[name]) for name in ("T", "W", "zeta_min")), thresholds, weights)


def _value(value: object) -> str:
    if not isinstance(value, int | float):
        return "-" if value is None else str(value)
    return f"{value:,.0f}" if abs(value) >= LARGE else number(value, 2)


def behind(values: Floats, front: Floats) -> Floats:
    """(n,) by which share each row is worse, in its weakest objective, than the row of the front closest to it.

    0.1: within 10 % of the closest Pareto-optimal point, as Figure 10c of PCS counts. 0 or less: on the front.

    Parameters
    ----------
    values, front : (n, n_objectives) and (n_front, n_objectives), at least 0
    """
    ratio = (values[:, None, :] + FLOOR) / (front[None, :, :] + FLOOR)
    return np.asarray(ratio.max(axis=2).min(axis=1) - 1.0, dtype=np.float64)


def uncovered(values: Floats, front: Floats) -> Floats:
    """(n,) by which share the front's best answer to each row is worse than it, in its weakest objective.

    0.02: a row of the front is within 2 % in all objectives. 0 or less: one is no worse anywhere.
    """
    ratio = (front[None, :, :] + FLOOR) / (values[:, None, :] + FLOOR)
    return np.asarray(ratio.max(axis=2).min(axis=1) - 1.0, dtype=np.float64)
