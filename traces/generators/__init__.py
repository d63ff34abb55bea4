"""Generators of traces: synthetic workloads under a seed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
import polars as pl

from jobcast.domain.errors import ConfigError
from jobcast.domain.hardware import Cluster
from jobcast.domain.jobs import Pool
from jobcast.traces.generators.andreas import (
    AndreasConfig,
    ArmidaConfig,
    andreas_notes,
    andreas_profiles,
    armida_notes,
    generate_andreas,
    generate_armida,
)
from jobcast.traces.generators.campus import generate_campus
from jobcast.traces.generators.campus_config import CampusConfig
from jobcast.traces.generators.gavel import (
    GavelConfig,
    GavelElasticConfig,
    gavel_courses,
    gavel_notes,
    generate_gavel,
    generate_gavel_elastic,
    parse_gavel,
)
from jobcast.traces.generators.mlfs import generate_mlfs, mlfs_notes, mlfs_tasks
from jobcast.traces.generators.mlfs_tasks import MlfsConfig
from jobcast.traces.generators.pcs_workloads import (
    AutomlConfig,
    PhillyElasticConfig,
    automl_notes,
    generate_automl,
    generate_philly_elastic,
    parse_philly_elastic,
    philly_elastic_notes,
)
from jobcast.traces.generators.settings import Setting, parse_settings
from jobcast.traces.generators.sia import SiaConfig, generate_sia, parse_sia
from jobcast.traces.learning_curves import JobCurves
from jobcast.traces.table import Trace
from jobcast.traces.tasks import TaskTable
from jobcast.traces.trainings import Starts

PartT = TypeVar("PartT")
COURSES = 1
"""Sets the stream of a seed that draws courses apart from the one that draws the trace."""


@dataclass(frozen=True, slots=True)
class Generator:
    """One kind of workload: its configuration, how settings become one, and how a trace is drawn from it.

    Attributes
    ----------
    config_type, parse, draw : as said
    notes : what a configuration should say of itself beside a trace
    courses : draws where each batch size of each job of a trace begins, for kinds of training jobs
    tasks : tasks and curves of the jobs that `draw` draws from an equal random generator, for kinds of jobs of tasks
    profiles : seconds an epoch of their jobs by GPU type and number, for kinds of jobs that run anywhere on a cluster
    nodes : the cluster of these
    """

    config_type: type[Any]
    parse: Callable[[Mapping[str, Setting]], Any]
    draw: Callable[[Any, np.random.Generator], tuple[pl.DataFrame, list[Pool]]]
    notes: Callable[[Any], tuple[str, ...]] = lambda config: ()
    courses: Callable[[Any, Trace, np.random.Generator], Mapping[str, Starts]] | None = None
    tasks: Callable[[Any, np.random.Generator], tuple[TaskTable, JobCurves]] | None = None
    profiles: Callable[[Any], pl.DataFrame] | None = None
    nodes: Callable[[Any], Cluster] | None = None


def _reads(config_type: type[Any], kind: str) -> Callable[[Mapping[str, Setting]], Any]:
    """How settings become the configuration of a kind that has no rule of its own for them."""
    return partial(parse_settings, config_type, kind=kind)


GENERATORS: dict[str, Generator] = {
    # in the order in which help and messages list them
    "sia": Generator(SiaConfig, parse_sia, generate_sia),
    "campus": Generator(CampusConfig, _reads(CampusConfig, "campus"), generate_campus),
    "gavel": Generator(GavelConfig, parse_gavel, generate_gavel, gavel_notes, gavel_courses),
    "automl": Generator(AutomlConfig, _reads(AutomlConfig, "automl"), generate_automl, automl_notes),
    "philly-elastic": Generator(
        PhillyElasticConfig, parse_philly_elastic, generate_philly_elastic, philly_elastic_notes
    ),
    "gavel-elastic": Generator(GavelElasticConfig, _reads(GavelElasticConfig, "gavel-elastic"), generate_gavel_elastic),
    "mlfs": Generator(MlfsConfig, _reads(MlfsConfig, "mlfs"), generate_mlfs, mlfs_notes, tasks=mlfs_tasks),
    "andreas": Generator(
        AndreasConfig,
        _reads(AndreasConfig, "andreas"),
        generate_andreas,
        andreas_notes,
        profiles=andreas_profiles,
        nodes=AndreasConfig.gpu_nodes,
    ),
    "armida": Generator(
        ArmidaConfig,
        _reads(ArmidaConfig, "armida"),
        generate_armida,
        armida_notes,
        profiles=andreas_profiles,
        nodes=ArmidaConfig.gpu_nodes,
    ),
}


def generate(kind: str, seed: int = 0, settings: Mapping[str, Setting] | None = None) -> tuple[Trace, list[Pool]]:
    """Draw a trace and the pools that its jobs are submitted to; equal arguments give equal bytes.

    Parameters
    ----------
    kind : name in `GENERATORS`
    seed : at least 0
    settings : name -> value of the kind's configuration, as text or number; see `docs/generators.md`

    Raises
    ------
    ConfigError
        On an unknown kind or setting, or a value that cannot be used.
    """
    generator, chosen = _generator(kind, seed), dict(settings or {})
    config = generator.parse(chosen)
    frame, pools = generator.draw(config, np.random.default_rng(seed))
    # sorted: the source's name must not hang on the order of --set
    said = "".join(f" {name}={value}" for name, value in sorted(chosen.items()))
    source = f"generated: {kind} seed={seed}{said}"
    return Trace.from_frame(frame, name=kind, source=source, notes=generator.notes(config)), pools


def generate_courses(
    kind: str, trace: Trace, seed: int = 0, settings: Mapping[str, Setting] | None = None
) -> Mapping[str, Starts]:
    """Draw the batch sizes that the jobs of a trace run at: by job id, where each begins.

    Parameters
    ----------
    kind, seed, settings : as of `generate`
    trace : drawn with them, or any other of training jobs

    Raises ConfigError and TraceError, also for a kind without courses.
    """
    words = "its jobs have no courses of batch sizes; kinds that have are"
    return _part(kind, lambda one: one.courses, words, settings, seed)(trace, np.random.default_rng((seed, COURSES)))


def generate_tasks(
    kind: str, seed: int = 0, settings: Mapping[str, Setting] | None = None
) -> tuple[TaskTable, JobCurves]:
    """Draw the tasks and the curves of the jobs that `generate` draws with the same arguments.

    Raises ConfigError and TraceError, also for a kind whose jobs have no tasks.
    """
    words = "its jobs have no tasks; kinds that have are"
    return _part(kind, lambda one: one.tasks, words, settings, seed)(np.random.default_rng(seed))


def generate_profiles(kind: str, settings: Mapping[str, Setting] | None = None) -> pl.DataFrame:
    """Seconds an epoch of the jobs of a kind: model, batch_size, gpu_type, gpus, epoch_s. Nothing of it is drawn.

    Raises ConfigError, also for a kind whose jobs have no profiles.
    """
    words = "its jobs have no profiles; kinds that have are"
    return _part(kind, lambda one: one.profiles, words, settings)()


def generate_nodes(kind: str, settings: Mapping[str, Setting] | None = None) -> Cluster:
    """The cluster that a kind's jobs are for. Raises ConfigError, also for a kind that is for no cluster."""
    words = "its jobs are for no cluster of nodes; kinds whose jobs are:"
    return _part(kind, lambda one: one.nodes, words, settings)()


def _part(
    kind: str,
    of: Callable[[Generator], Callable[..., PartT] | None],
    words: str,
    settings: Mapping[str, Setting] | None,
    seed: int = 0,
) -> Callable[..., PartT]:
    """What makes a part beside a kind's trace, by these settings.

    Raises ConfigError where a kind has no such part, and names those that have.
    """
    generator = _generator(kind, seed)
    part = of(generator)
    if part is None:
        known = ", ".join(other for other, one in GENERATORS.items() if of(one) is not None)
        raise ConfigError(f"{kind}: {words} {known}")
    return partial(part, generator.parse(dict(settings or {})))


def _generator(kind: str, seed: int = 0) -> Generator:
    if kind not in GENERATORS:
        raise ConfigError(f"there is no generator {kind!r}; known generators are {', '.join(GENERATORS)}")
    if not isinstance(seed, Integral) or seed < 0:
        raise ConfigError(f"{kind}: seed must be a whole number of at least 0, got {seed}")
    return GENERATORS[kind]
