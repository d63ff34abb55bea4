"""What a policy believes of the seconds an epoch takes: the truth, a registered model's forecasts, or noise."""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from jobcast.domain.bad_answers import BadAnswers
from jobcast.domain.energy import Floats
from jobcast.domain.errors import ConfigError
from jobcast.pipelines.energy.scene import EnergyScene
from jobcast.pipelines.forecast_specs import ForecastSpec

CHOICES = "oracle, registry, conservative or noisy:P"


@dataclass(frozen=True, slots=True, eq=False)
class Believed:
    """Seconds an epoch, (n_jobs, n_kinds, most_gpus), None for the true ones; versions behind them; bad answers."""

    epoch_s: Floats | None = None
    models: Mapping[str, int] = field(default_factory=dict)
    overlap: bool = False
    notes: tuple[str, ...] = ()
    told: BadAnswers = field(default_factory=BadAnswers)


def believed_times(
    spec: ForecastSpec,
    scene: EnergyScene,
    *,
    known: Path | None,
    home: Path,
    seed: int,
    allow_overlap: bool = False,
    degrade: bool | None = None,
) -> Believed:
    """What a source forecasts; where a registered model answers what cannot be, the job's slowest profile.

    Parameters
    ----------
    known : file of the few points that the registry's model goes by; None: those that it picks of the profiles
    home : of the registry
    seed : of noise
    degrade : whether the slowest profiles are taken where there is no registered model

    Raises ConfigError for a source that forecasts no times, RegistryError for a model that is not there.
    """
    if known is not None and spec.kind != "registry":
        raise ConfigError(f"--set known: points that --forecasts registry goes by, not {spec.label}; leave it out")
    if spec.kind == "oracle":
        return Believed()
    if spec.kind == "noisy":
        return Believed(noisy(scene.facts.times.epoch_s, scene.job_ids, spec.probability, seed))
    if spec.kind == "conservative":
        from jobcast.models.epoch_time.guarded import slowest_s

        return Believed(slowest_s(scene.facts.times.epoch_s))
    if spec.kind == "registry":
        from jobcast.pipelines.energy.forecasting import registered_times

        return registered_times(spec, scene, known=known, home=home, allow_overlap=allow_overlap, degrade=degrade)
    raise ConfigError(f"--forecasts {spec.label}: forecasts no seconds an epoch; choose {CHOICES}")


def noisy(epoch_s: Floats, job_ids: tuple[str, ...], spread: float, seed: int) -> Floats:
    """Each time multiplied by exp(N(0, spread)), drawn by seed, job, kind and number of GPUs."""
    factors = [
        np.random.default_rng([seed, zlib.crc32(job_id.encode())]).standard_normal(epoch_s.shape[1:])
        for job_id in job_ids
    ]
    return epoch_s * np.exp(spread * np.array(factors))
