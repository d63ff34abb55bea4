"""Workloads of MLFS's evaluation (section 4.1) on Philly's arrivals, in files that are made once."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobcast.domain.hardware import Cluster
from jobcast.pipelines.experiments.clusters import servers
from jobcast.pipelines.experiments.scenarios import cut_scenario
from jobcast.pipelines.experiments.tasks.jobs import TaskScene, task_jobs
from jobcast.traces.generators import generate, generate_tasks
from jobcast.traces.learning_curves import write_job_curves
from jobcast.traces.readers import read_trace
from jobcast.traces.table_files import write_trace
from jobcast.traces.tasks import write_tasks

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
