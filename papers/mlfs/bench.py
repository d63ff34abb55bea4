"""MLFS's replays: workloads (section 4.1) and models of curves in files that are made once, what is kept of runs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jobcast.domain.hardware import Cluster
from jobcast.domain.tasks import AccuracyForecast
from jobcast.pipelines.experiments.clusters import servers
from jobcast.pipelines.experiments.executors import results
from jobcast.pipelines.experiments.forecast_specs import ORACLE, ForecastSpec
from jobcast.pipelines.experiments.scenarios import cut_scenario
from jobcast.pipelines.experiments.sources import Ask
from jobcast.pipelines.experiments.tasks.jobs import TaskScene, task_jobs
from jobcast.pipelines.experiments.tasks.simulation import accuracy_forecast, by_model, learned_policy, simulate_tasks
from jobcast.simulator.log import RunLog
from jobcast.simulator.metrics import figures
from jobcast.traces.generators import generate, generate_tasks
from jobcast.traces.learning_curves import LearningCurve, read_job_curves, read_learning_curves, write_job_curves
from jobcast.traces.owners import scratch_room
from jobcast.traces.readers import read_trace
from jobcast.traces.table_files import write_trace
from jobcast.traces.tasks import write_tasks
from papers import bench
from papers.bench import Outcome, Unit
from papers.mlfs.rows import BY_EARLIER, BY_MODEL, EXACT, Row
from papers.results import draws_text

PHILLY = Path("philly", "philly_jobs.csv")
TIMEZONE = "America/Los_Angeles"
TRACE, TASKS, CURVES = "jobs.parquet", "tasks.parquet", "curves.parquet"
SCALES = {"1/4": 155, "1/2": 310, "1": 620, "2": 1240, "3": 1860}
"""x -> jobs, 620 x. MLFS, section 4.1."""
TESTBED = ((20, 4),)
"""Servers and GPUs of each."""
PHILLY_SERVERS = ((321, 2), (229, 8))
"""The only mix of servers of 2 and 8 GPUs that makes 2,474 GPUs on 550 servers."""
A_WEEK = 6518
"""117,325 jobs in 18 weeks, in the mean over a week. MLFS, section 4.1."""
PHILLY_LOAD = 0.735
"""A week's jobs at x = 1 offer a quarter of 2,474 GPUs then, as 620 jobs offer of 80."""
BUSIEST = 6
"""The week of the published trace with the most jobs, 14,724."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Draws of the generator `mlfs`, and the servers that they are run on.

    Attributes
    ----------
    name : in tables
    jobs : their number
    servers : (number, GPUs of each) pairs; cores, memory and bandwidth by GPUs as of p3.8xlarge
    settings : (name, value) pairs of the generator, besides jobs, GPUs and arrivals
    """

    name: str
    jobs: int
    servers: tuple[tuple[int, int], ...] = TESTBED
    settings: tuple[tuple[str, float], ...] = ()

    @property
    def drawn(self) -> dict[str, Any]:
        """All that draws depend on but the seed, and the servers."""
        return {"jobs": self.jobs, "servers": self.servers, "settings": dict(self.settings)}

    @property
    def gpus(self) -> int:
        """GPUs of all servers."""
        return sum(count * gpus for count, gpus in self.servers)

    def place(self) -> Cluster:
        """The servers."""
        groups = tuple(servers(count, gpus) for count, gpus in self.servers)
        return Cluster(groups, origin=f"{self.gpus} GPUs on {sum(group.count for group in groups)} servers")


def scaled(x: str) -> Workload:
    """The workload of an x of `SCALES` on 20 servers of 4 GPUs."""
    return Workload(f"x = {x}", SCALES[x])


def philly_week(x: str, share: float) -> Workload:
    """A week of Philly at x times the mean number of jobs, on 550 servers."""
    settings = (("load", PHILLY_LOAD), ("week", BUSIEST))
    return Workload(f"x = {x}", round(share * A_WEEK), PHILLY_SERVERS, settings)


def write_arrivals(data: Path, out: Path) -> None:
    """Philly as a canonical trace, so that it is parsed once. Raises TraceError where it cannot be read."""
    write_trace(read_trace(data / PHILLY, format="philly", timezone=TIMEZONE), out)


def write_workload(workload: Workload, seed: int, arrivals: Path, out: Path) -> Path:
    """Draw a workload and write its three files into a folder, complete or absent; return it."""
    settings: dict[str, str | float] = dict(workload.settings)
    settings |= {"jobs": workload.jobs, "gpus": workload.gpus, "arrivals": str(arrivals)}
    # Renamed when whole: a draw that was cut short is none.
    part = out.with_name(out.name + ".part")
    part.mkdir(parents=True, exist_ok=True)
    tasks, curves = generate_tasks("mlfs", seed, settings)
    write_trace(generate("mlfs", seed, settings)[0], part / TRACE)
    write_tasks(tasks, part / TASKS)
    write_job_curves(curves, part / CURVES)
    return part.rename(out)


def read_workload(workload: Workload, files: Path) -> TaskScene:
    """The scenario of files that `write_workload` wrote."""
    cut = cut_scenario(read_trace(files / TRACE), workload.place())
    return task_jobs(cut, tasks=files / TASKS, curves=files / CURVES)


if TYPE_CHECKING:
    from jobcast.models.curves.accuracy_curve import AccuracyCurve

MEASURED = Path("curves", "training_curves.csv")
EARLIER_SEED, EARLIER_JOBS = 100, 120
"""A draw that no figure is made of, and how many of its jobs have ended when the others begin."""


def fit_model(kind: str, data: Path, arrivals: Path) -> "AccuracyCurve":
    """A model fitted as a user would: to the curves of jobs that have ended, or to measured ones."""
    from jobcast.models.curves.accuracy_curve import AccuracyCurve

    curves = earlier_curves(arrivals) if kind == BY_EARLIER else read_learning_curves(data / MEASURED).curves
    return AccuracyCurve().fit(curves)


def earlier_curves(arrivals: Path) -> tuple[LearningCurve, ...]:
    """Curves of the first jobs of `EARLIER_SEED`'s draw, by learning algorithm."""
    with scratch_room("mlfs-earlier") as folder:
        files = write_workload(scaled("1"), EARLIER_SEED, arrivals, folder / "draw")
        jobs, known = read_trace(files / TRACE).jobs.head(EARLIER_JOBS), read_job_curves(files / CURVES)
    made = []
    for number, (job_id, algorithm) in enumerate(zip(jobs["job_id"], jobs["model"], strict=True), 1):
        row = known.row_of[job_id]
        # The first value is that before any iteration.
        metric = known.metric[known.begin[row] + 1 : known.begin[row + 1]]
        made.append(LearningCurve(algorithm, number, np.arange(1, len(metric) + 1), metric))
    return tuple(made)


QUANTILES = np.linspace(0.0, 1.0, 101)
DIGITS = 6
SHORT_S = 6000.0
"""100 minutes, for which section 4.2.1 tells shares of jobs."""
UNDER = "under_100_min"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench(bench.Bench):
    """Where figures get their runs from.

    Attributes
    ----------
    home, folder : of the registry, and for files that are not kept
    rows, notes : who is compared, and what a reader should know of it
    seeds : of draws
    made : folders of the workloads that are drawn
    """

    home: Path
    folder: Path
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    seeds: tuple[int, ...] = tuple(range(10))
    made: dict[tuple[Workload, int], Path] = field(default_factory=dict)

    @property
    def facts(self) -> dict[str, str]:
        """How many draws there are and who is left out, for a page."""
        return {"draws": draws_text(len(self.seeds)), "notes": "\n".join(f"- {note}" for note in self.notes)}

    @property
    def arrivals(self) -> Path:
        """Philly, read."""
        return self.folder / "arrivals.parquet"

    def prepare(self, units: Sequence[Unit]) -> None:
        """Write the files of the workloads and models that have none yet."""
        self._draw(units)
        for kind in dict.fromkeys(unit.row.forecasts for unit in units):
            if kind in BY_MODEL and not (self.folder / kind).exists():
                fit_model(kind, self.data, self.arrivals).save(self.folder / kind)

    def task(self, units: Sequence[Unit]) -> Any:
        """See `run_unit`."""
        from joblib import delayed

        [unit] = units
        return delayed(run_unit)(unit, self.made[unit.workload, unit.seed], self.folder, self.home)

    def _draw(self, units: Sequence[Unit]) -> None:
        from joblib import delayed

        if not self.arrivals.exists():
            write_arrivals(self.data, self.arrivals)
        wanted = [key for key in dict.fromkeys((unit.workload, unit.seed) for unit in units) if key not in self.made]
        for count, key in enumerate(wanted, len(self.made)):
            self.made[key] = self.folder / f"workload-{count}"
        tasks = (delayed(write_workload)(*key, self.arrivals, self.made[key]) for key in wanted)
        list(results(tasks, jobs=min(self.jobs, len(wanted)) or 1, engine_name="local"))


def run_unit(unit: Unit, files: Path, models: Path, home: Path) -> list[tuple[str, Outcome]]:
    """Replay a unit; its key and what is kept.

    Parameters
    ----------
    files : folder of the workload
    models : folder of models of training curves, which are read only where the policy goes by one
    home : of the registry, which is asked only where the policy has learned something

    Raises OverlapError where it has learned from this draw.
    """
    scenario, row = read_workload(unit.workload, files), unit.row
    spec = ForecastSpec("registry", versions=row.versions)
    asked = Ask(policy=row.policy, spec=spec, home=home, settings=dict(row.settings), seed=unit.seed)
    learned = learned_policy(asked, scenario.trace) if row.versions else None
    made = simulate_tasks(scenario, asked, _forecast(row, scenario, models, home), learned)
    return [(unit.key, outcome(made.log, made.cpu_s))]


def outcome(log: RunLog, cpu_s: float) -> Outcome:
    """Figures of `simulate`, the share of jobs done within 100 minutes, and seconds of CPU of the whole replay."""
    kept = {**figures(log), UNDER: float((log.jct_s < SHORT_S).mean()), "cpu_s": cpu_s}
    quantiles = np.quantile(log.jct_s, QUANTILES).tolist()
    return Outcome(kept, tuple(float(f"{value:.{DIGITS}g}") for value in quantiles))


def _forecast(row: Row, scenario: TaskScene, models: Path, home: Path) -> AccuracyForecast | None:
    if row.forecasts in BY_MODEL:
        from jobcast.models.curves.accuracy_curve import AccuracyCurve

        return by_model(AccuracyCurve.load(models / row.forecasts))
    if row.forecasts == EXACT:
        return accuracy_forecast(scenario, Ask(policy=row.policy, spec=ORACLE, home=home)).answers
    return None
