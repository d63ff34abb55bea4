"""Seconds an epoch as a registered model forecasts them from few profiled points."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from jobcast.domain.bad_answers import EPOCHS, BadAnswers
from jobcast.domain.energy import Floats
from jobcast.domain.errors import OverlapError, TraceError
from jobcast.models.epoch_time.guarded import guarded_epoch_s, slowest_s
from jobcast.models.epoch_time.served import believed_epoch_s, pick_profiles
from jobcast.pipelines.energy.believing import Believed
from jobcast.pipelines.energy.scene import EnergyScene
from jobcast.pipelines.forecast_specs import EPOCH_TIME, ForecastSpec
from jobcast.pipelines.registered import registered
from jobcast.pipelines.sources import seen_by
from jobcast.traces.profiles import ProfileTable, profile_table, read_profiles


def registered_times(
    spec: ForecastSpec,
    scene: EnergyScene,
    *,
    known: Path | None,
    home: Path,
    allow_overlap: bool,
    degrade: bool | None = None,
) -> Believed:
    """What the champion of epoch times, or the version that `spec` names, forecasts.

    It goes by the points of `known`, else by at most 3 points of the profiles a model and GPU type, picked by the plan
    of the version. Points are believed as they are. Where a job cannot run at all is known. In place of a time that
    cannot be (see `guarded_epoch_s`), and with `degrade` of all where there is no version, the slowest is believed.

    Raises
    ------
    RegistryError
        There is no such version.
    OverlapError
        It was trained on these profiles, on applications of this window, and that is not allowed.
    TraceError
        A model of the window is without a known point.
    """
    told, profiled_s = BadAnswers(), scene.facts.times.epoch_s
    asked = registered(EPOCH_TIME, spec, home, told, EPOCHS, degrade)
    if asked is None:
        return Believed(slowest_s(profiled_s), told=told)
    version, model = asked.version, asked.model
    names, profiles = set(scene.facts.models), scene.facts.profiles
    overlap = version.trace_sha256 == profiles.sha256 and not names.isdisjoint(model.models_)
    if overlap and not allow_overlap:
        raise OverlapError(
            f"{EPOCH_TIME} version {version.version} was trained on {profiles.path} and knows its models, "
            f"{', '.join(sorted(names.intersection(model.models_)))} among them; train it on other profiles or, by "
            "`jobcast train epoch-time --trace FILE --until TIME`, on jobs before the window, or pass --allow-overlap"
        )
    overlap |= seen_by(version, scene.trace, allow_overlap)
    points = _points(scene, model, known)
    _refuse_unknown(points, names)
    epoch_s = guarded_epoch_s(lambda: _as_in_scene(model, points, scene), profiled_s, told, scene.job_ids)
    note = f"{EPOCH_TIME} version {version.version} forecasts epoch times from {len(points)} points of {points.path}"
    return Believed(epoch_s, {EPOCH_TIME: version.version}, overlap, (note,), told)


def _points(scene: EnergyScene, model: Any, known: Path | None) -> ProfileTable:
    if known is not None:
        return read_profiles(known)
    profiles = scene.facts.profiles
    mine = profiles.frame.filter(pl.col("model").is_in(sorted(set(scene.facts.models))))
    return pick_profiles(profile_table(mine, profiles.path, profiles.sha256), model.plan_)


def _refuse_unknown(points: ProfileTable, names: Sequence[str] | set[str]) -> None:
    missing = sorted(set(names).difference(points.models))
    if missing:
        raise TraceError(f"{points.path}: model {missing[0]} has no known point; profile it at least once")


def _as_in_scene(model: Any, points: ProfileTable, scene: EnergyScene) -> Floats:
    """(n_jobs, n_kinds, most_gpus) forecasts, each pair of model and batch size asked for once."""
    facts = scene.facts
    pairs = list(zip(facts.models, facts.batch_sizes, strict=True))
    distinct = {pair: row for row, pair in enumerate(dict.fromkeys(pairs))}
    models, batch_sizes = zip(*distinct, strict=True)
    most = scene.facts.times.epoch_s.shape[2]
    told = believed_epoch_s(model, points, models, batch_sizes, facts.gpu_types, most)
    return told[[distinct[pair] for pair in pairs]] * facts.scale[:, None, None]
