"""Simulations of configurations on samples: several at a time, none twice.

What a search minimises: SetPreference of PCS, metrics and how they are measured over jobs. PCS, section 3.2.

What a search has simulated already, kept on disk as it goes: JSON lines that an interruption cannot spoil.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.elastic import ElasticPolicy
from jobcast.domain.errors import ConfigError
from jobcast.pipelines.experiments.clusters import preempting
from jobcast.pipelines.experiments.executors import results
from jobcast.pipelines.experiments.search.workload_samples import Sample
from jobcast.pipelines.report.console import Step
from jobcast.schedulers.elastic.config import WfqConfig
from jobcast.schedulers.registry import make_rule
from jobcast.simulator.elastic.run import ElasticCluster, ElasticReplay, replay_elastic
from jobcast.simulator.log import RunLog
from jobcast.simulator.metrics import errors_pct, unfairness_pct
from jobcast.traces.files import reason, unwritable

SUFFIX = ".journal.jsonl"


def journal_beside(out: Path) -> Path:
    """Where the journal of a front lies.

    >>> journal_beside(Path("found/front.parquet")).as_posix()
    'found/front.journal.jsonl'
    """
    return out.with_name(out.stem + SUFFIX)


class Journal:
    """Values by simulation, of one run among those in a file.

    A line holds `run` (hash of the workload, the settings and the seed), `what` (the configuration's hash and the
    sample) and `values`. Lines of other runs, and a last line that was cut off, are left alone.

    Parameters
    ----------
    path : the file, which need not be there; None keeps nothing
    run : the run's hash

    Raises ConfigError when the file cannot be read or written to.
    """

    def __init__(self, path: Path | None, run: str) -> None:
        self._path, self._run = path, run
        self._known: dict[str, list[float]] = {}
        if path is not None and path.exists():
            self._read(path)
        self.resumed = len(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def get(self, what: str) -> list[float] | None:
        """Values of a simulation, None when it was not done."""
        return self._known.get(what)

    def add(self, what: str, values: Sequence[float]) -> None:
        """Note a simulation, on disk at once. Raises ConfigError when the file cannot be written to."""
        self._known[what] = list(values)
        if self._path is None:
            return
        # One write a line: writers at once may not mix theirs.
        line = json.dumps({"run": self._run, "what": what, "values": list(values)}) + "\n"
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as lines:
                lines.write(line)
                lines.flush()
                # A power cut would else cost simulations of minutes.
                os.fsync(lines.fileno())
        except OSError as error:
            raise ConfigError(unwritable(self._path, error)) from error

    def _read(self, path: Path) -> None:
        try:
            # A cut-off line may end in half a character.
            text = path.read_bytes().decode("utf-8", errors="replace")
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read ({reason(error)}); check its permissions") from error
        for line in text.splitlines():
            result = _parsed(line)
            # Runs share a file: lines of others are theirs.
            if result is not None and result.get("run") == self._run:
                self._known[str(result["what"])] = [float(one) for one in result["values"]]
        if text and not text.endswith("\n"):
            with path.open("a", encoding="utf-8") as lines:
                lines.write("\n")  # what an interruption cut off must not swallow the next line


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        saved = json.loads(line)
    except json.JSONDecodeError:
        return None  # a line that an interruption cut off: its simulation is done again
    return saved if isinstance(saved, dict) and {"what", "values"} <= saved.keys() else None


MEAN = "mean"
AVERAGES = (MEAN, "avg")
FORECAST = "error"
"""The metric that needs completions forecast at each submission."""
PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d+)?)")
MOST_PERCENTILE = 100.0


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure by job, smaller is better.

    Attributes
    ----------
    title : in words, unit included
    by_job : of a run's log, (n_jobs,)
    """

    title: str
    by_job: Callable[[RunLog], Floats]


METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        "jct": Metric("JCT (s)", lambda log: log.jct_s),
        FORECAST: Metric("prediction error (%)", errors_pct),
        "unfairness": Metric("unfairness (%)", unfairness_pct),
    }
)
"""PCS, sections 2.2 and 5.1: performance, predictability, fairness."""


@dataclass(frozen=True, slots=True)
class Objective:
    """A metric and its measure.

    Attributes
    ----------
    metric : key of `METRICS`
    percentile : over jobs, or None for the mean
    """

    metric: str
    percentile: float | None = None

    @property
    def label(self) -> str:
        """As it is written.

        >>> Objective("error", 99.0).label
        'error:p99'
        """
        return f"{self.metric}:{MEAN if self.percentile is None else f'p{self.percentile:g}'}"

    @property
    def title(self) -> str:
        """In words."""
        measure = MEAN if self.percentile is None else f"p{self.percentile:g}"
        return f"{measure} {METRICS[self.metric].title}"

    def of(self, log: RunLog) -> float:
        """Its value for a run."""
        values = METRICS[self.metric].by_job(log)
        return float(values.mean() if self.percentile is None else np.percentile(values, self.percentile))


def parse_objectives(text: str) -> tuple[Objective, ...]:
    """Objectives between commas, each metric:measure; a metric may come again with another measure.

    >>> [one.label for one in parse_objectives("jct:avg, error:p99")]
    ['jct:mean', 'error:p99']

    Raises ConfigError that says which one is wrong.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise ConfigError("--objectives: names none; write for example jct:mean,error:p99")
    found = [_objective(part) for part in parts]
    twice = [one.label for at, one in enumerate(found) if one in found[:at]]
    if twice:
        raise ConfigError(f"--objectives {twice[0]}: is given twice; give it once")
    return tuple(found)


def _objective(text: str) -> Objective:
    metric, colon, measure = text.partition(":")
    if metric not in METRICS:
        raise ConfigError(f"--objectives {text}: metric {metric!r} is unknown; choose from {', '.join(METRICS)}")
    if measure in AVERAGES:
        return Objective(metric)
    matched = PERCENTILE.fullmatch(measure)
    if not colon or matched is None or not 0.0 < float(matched[1]) < MOST_PERCENTILE:
        raise ConfigError(f"--objectives {text}: measure {measure!r} is unknown; write mean, avg or pNN, such as p99")
    return Objective(metric, float(matched[1]))


def values_of(log: RunLog, objectives: Sequence[Objective]) -> list[float]:
    """Values for a run, (n_objectives,)."""
    return [one.of(log) for one in objectives]


HASH_LENGTH = 16
Candidate = WfqConfig | str
"""A configuration of PCS, or another policy's name."""


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """Where configurations are tried.

    Attributes
    ----------
    cluster, gpu_types : GPUs, and names of their types in its order
    whole, monotone : how PCS deals out, as of `WfqConfig.policy`
    preempt_s : progress that a change of a running job's GPUs costs, seconds
    """

    cluster: ElasticCluster
    gpu_types: tuple[str, ...] = ("",)
    whole: bool = False
    monotone: bool = False
    preempt_s: float = 0.0

    def policy(self, candidate: Candidate) -> ElasticPolicy:
        """The policy that a candidate is. Raises ConfigError for an unknown name."""
        if isinstance(candidate, str):
            rule: ElasticPolicy = make_rule(candidate, self.gpu_types)
            return rule
        return candidate.policy(self.gpu_types, whole=self.whole, monotone=self.monotone)


def config_hash(candidate: Candidate) -> str:
    """A name for a candidate that is the same wherever it is met."""
    if isinstance(candidate, str):
        return candidate
    # By content: the same configuration has one name in every run.
    return hashlib.sha256(json.dumps(candidate.to_json()).encode()).hexdigest()[:HASH_LENGTH]


def simulated(world: World, candidate: Candidate, sample: Sample, objectives: Sequence[Objective]) -> list[float]:
    """Objectives of one candidate on one sample, (n_objectives,)."""
    rule = world.policy(candidate)
    cluster = preempting(world.cluster, world.preempt_s, placed=rule.integral)
    run = ElasticReplay(sample.jobs, sample.size_s, cluster, rule, record=False)
    log = replay_elastic(run, predict=any(one.metric == FORECAST for one in objectives))
    return values_of(log, objectives)


@dataclass(frozen=True, slots=True, eq=False)
class Evaluator:
    """Evaluates candidates on samples; what the journal holds is not simulated again.

    Attributes
    ----------
    world, objectives : where, and what for
    samples : by a name that stays the same, such as train-0
    journal : of this run
    jobs : simulations at a time
    engine_name : key of `executors.ENGINES`
    """

    world: World
    objectives: Sequence[Objective]
    samples: Mapping[str, Sample]
    journal: Journal
    jobs: int = 1
    engine_name: str = "local"

    def evaluate(self, candidates: Sequence[Candidate], names: Sequence[str], progress: Step | None = None) -> Floats:
        """Values by candidate, sample and objective, (n, n_samples, n_objectives).

        `progress` is called with (simulations done, simulations) of this call. Raises DecisionError as a replay does.
        """
        # A dictionary: a configuration asked twice in one generation is simulated once.
        keys = {f"{config_hash(one)} {name}": (one, name) for one in candidates for name in names}
        todo = [key for key in keys if self.journal.get(key) is None]
        for done, (key, values) in enumerate(self._simulate(todo, keys), 1):
            self.journal.add(key, values)
            if progress:
                progress(len(keys) - len(todo) + done, len(keys))
        # Read back through the journal, so that fresh and resumed values are the same floats.
        found = [[self.journal.get(f"{config_hash(one)} {name}") for name in names] for one in candidates]
        return np.array(found, dtype=np.float64).reshape(len(candidates), len(names), len(self.objectives))

    def _simulate(
        self, todo: Sequence[str], keys: dict[str, tuple[Candidate, str]]
    ) -> Iterable[tuple[str, list[float]]]:
        from joblib import delayed

        from jobcast.schedulers.elastic import wfq  # noqa: F401  compiled and kept on disk before workers begin
        from jobcast.simulator.elastic import kernel  # noqa: F401

        if not todo:
            return
        tasks = (
            delayed(_task)(key, self.world, keys[key][0], self.samples[keys[key][1]], self.objectives) for key in todo
        )
        yield from results(tasks, jobs=self.jobs, engine_name=self.engine_name)


def _task(
    key: str, world: World, candidate: Candidate, sample: Sample, objectives: Sequence[Objective]
) -> tuple[str, list[float]]:
    return key, simulated(world, candidate, sample, objectives)
