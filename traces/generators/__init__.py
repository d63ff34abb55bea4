"""Generators of traces: synthetic workloads under a seed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from jobcast.domain.errors import ConfigError
from jobcast.domain.jobs import Pool
from jobcast.traces.generators.campus import generate_campus, parse_campus
from jobcast.traces.generators.campus_config import CampusConfig
from jobcast.traces.generators.settings import Setting
from jobcast.traces.generators.sia import SiaConfig, generate_sia, parse_sia
from jobcast.traces.table import Trace


@dataclass(frozen=True, slots=True)
class Generator:
    """One kind of workload: its configuration, how settings become one, and how a trace is drawn from it."""

    config_type: type[Any]
    parse: Callable[[Mapping[str, Setting]], Any]
    draw: Callable[[Any, np.random.Generator], tuple[pl.DataFrame, list[Pool]]]


GENERATORS: dict[str, Generator] = {
    "sia": Generator(SiaConfig, parse_sia, generate_sia),
    "campus": Generator(CampusConfig, parse_campus, generate_campus),
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
    if kind not in GENERATORS:
        raise ConfigError(f"there is no generator {kind!r}; known generators are {', '.join(GENERATORS)}")
    if seed < 0:
        raise ConfigError(f"{kind}: seed must be a whole number of at least 0, got {seed}")
    generator = GENERATORS[kind]
    chosen = dict(settings or {})
    frame, pools = generator.draw(generator.parse(chosen), np.random.default_rng(seed))
    said = "".join(f" {name}={value}" for name, value in sorted(chosen.items()))
    return Trace.from_frame(frame, name=kind, source=f"generated: {kind} seed={seed}{said}"), pools
