"""Sources of forecasts for a scene: from a spec to what the engine drives.

A registered predictor to ask, or nobody where that is allowed.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jobcast.domain.answer_checks import shown
from jobcast.domain.bad_answers import ARRIVALS, LOADS, BadAnswers, Reason
from jobcast.domain.errors import ConfigError, JobcastError, OverlapError, RegistryError
from jobcast.domain.forecasts import ForecastSource
from jobcast.domain.horizons import DEFAULT_HORIZONS_MIN
from jobcast.domain.jobs import Job
from jobcast.pipelines.forecast_specs import PARTS, PREDICTORS, ForecastSpec, make_plugin
from jobcast.pipelines.times import iso
from jobcast.pipelines.whole_jobs import WholeScene, in_one_pool
from jobcast.simulator.closed_forecasts import NO_ARRIVALS, KnownDurations, RunRandom
from jobcast.simulator.forecasts import Conservative, Noisy, Oracle, Random
from jobcast.simulator.guard import GuardedForecasts, Nobody
from jobcast.simulator.history import EarlierJobs, RunHistory
from jobcast.simulator.mixed import Mixed
from jobcast.simulator.workload import Workload
from jobcast.traces.table import Trace

if TYPE_CHECKING:
    from jobcast.models.forecasts import RegistryForecasts


@dataclass(frozen=True, slots=True)
class Registered:
    """A version (`models.registry.ModelVersion`) and its predictor."""

    version: Any
    model: Any


def registered(
    name: str, spec: ForecastSpec, home: Path, told: BadAnswers, kind: str, degrade: bool | None = None
) -> Registered | None:
    """The predictor that a spec names: the version that is pinned, else what its alias points at.

    Parameters
    ----------
    name : of the predictor
    home : of the registry
    told, kind : where it is counted, and as what, that there is nobody to ask
    degrade : answer None then; else what is wrong is raised, a RegistryError where that is known. None where whoever
        asks has no such choice
    """
    from jobcast.models.registry import open_registry

    try:
        version = open_registry(home).resolve(name, dict(spec.versions).get(name, spec.alias))
        return Registered(version, loaded_version(home, name, version.version))
    except Exception as error:  # a registry may be damaged in any way: counted with its reason where that is allowed
        if degrade is None or (not degrade and not isinstance(error, RegistryError)):
            raise
        if not degrade:
            raise RegistryError(f"{error}; or pass --degrade to go on with conservative answers") from error
        count_missing(told, kind, error)
        return None


def trust(told: BadAnswers, models: Mapping[str, int]) -> dict[str, Any]:
    """How far answers could be trusted: the tally wherever a model was asked ({} where all were good), and who was not.

    Parameters
    ----------
    models : versions that answered, by predictor
    """
    figures = told.figures()
    missing = [one["first"] for one in figures.values() if Reason.DEGRADED in one["reasons"]]
    found = {"bad_forecasts": figures} if models or figures else {}
    return {**found, "degraded": missing} if missing else found


def count_missing(told: BadAnswers, kind: str, error: Exception) -> None:
    """Count that there is nobody to ask, and why."""
    told.checked(kind)
    told.bad(kind, Reason.DEGRADED, str(error) if isinstance(error, JobcastError) else shown(error))


CALENDAR_FROM_S = 365 * 86400.0
"""Times before 1971 are seconds from a trace's own start: no cluster's calendar begins there."""
NOBODY = "nobody"
"""Pool of the question that warms predictors up."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """What answers a run.

    Attributes
    ----------
    source : None for a policy that asks nothing
    history : what the source reads
    models : concrete versions behind it, by predictor
    overlap : whether one was trained on the window
    guard : around those of its answers that are forecast by a model or a plug-in
    told : the guard's tally
    degraded : why nobody could be asked, and all those answers are conservative
    registered : the source of registered predictors, inside of the guard
    """

    source: ForecastSource | None = None
    history: RunHistory | None = None
    models: Mapping[str, int] = field(default_factory=dict)
    overlap: bool = False
    guard: GuardedForecasts | None = None
    told: BadAnswers = field(default_factory=BadAnswers)
    degraded: tuple[str, ...] = ()
    registered: "RegistryForecasts | None" = None

    def trust(self) -> dict[str, Any]:
        """How far the answers of a run could be trusted, as `simulate --json` tells it; {} where no model answered."""
        if self.guard is None:
            return {}
        told: dict[str, Any] = {"bad_forecasts": self.told.figures()}
        if self.degraded:
            told["degraded"] = list(self.degraded)
        if self.registered is not None:
            told["features_beyond_training"] = self.registered.beyond_training()
        return told


@dataclass(frozen=True, slots=True)
class Sources:
    """Makes sources for one scene.

    Attributes
    ----------
    degrade : whether a registry that cannot answer, and a pool that a predictor has not seen in training, are answered
        conservatively; None where whoever asks has no such choice
    """

    scene: WholeScene
    home: Path
    seed: int = 0
    allow_overlap: bool = False
    degrade: bool | None = None

    def none(self) -> Chosen:
        """For policies that ask nothing."""
        return Chosen()

    def make(self, spec: ForecastSpec) -> Chosen:
        """The source of a spec.

        Raises RegistryError when a model is not there or does not fit, OverlapError when it was trained on the window.
        """
        if spec.kind == "mixed":
            return self._mixed(spec)
        if spec.kind == "registry":
            return self._registry(_asked(spec))
        if spec.installed:
            return self._plugin(spec.kind)
        history = self._past()
        return Chosen(self._plain(spec, history), history)

    def _past(self) -> RunHistory | None:
        """The run's own past, where sources without models need it: in a closed loop."""
        return self._history() if self.scene.workload.closed else None

    def _history(self) -> RunHistory:
        return RunHistory([pool.name for pool in self.scene.workload.pools], earlier_jobs(self.scene))

    def _plain(
        self, spec: ForecastSpec, history: RunHistory | None, horizons_min: Sequence[float] = DEFAULT_HORIZONS_MIN
    ) -> ForecastSource:
        workload, seed, horizons = self.scene.workload, self.seed, horizons_min
        makers: dict[str, Callable[[], ForecastSource]] = {
            "oracle": lambda: Oracle(workload, horizons),
            "conservative": lambda: Conservative(workload, horizons),
            "random": lambda: Random(workload, seed, earlier_jobs(self.scene).jobs, horizons),
            "noisy": lambda: Noisy(workload, spec.probability, seed, earlier_jobs(self.scene).jobs, horizons),
        }
        if history is not None and self.scene.workload.closed:
            past = history
            if spec.kind == "noisy":
                raise ConfigError(f"--forecasts {spec.label}: {NO_ARRIVALS.format(kind='noisy oracle')}")
            makers |= {
                "oracle": lambda: KnownDurations(workload, horizons),
                "random": lambda: RunRandom(past, seed, horizons),
            }
        if spec.kind not in makers:
            raise ConfigError(f"--forecasts {spec.label}: forecasts regimes, which only training jobs in rounds have")
        return makers[spec.kind]()

    def _mixed(self, spec: ForecastSpec) -> Chosen:
        """Parts with the same source share it; all answer about the registry's horizons where it has a part."""
        wanted = {part: spec.part(part) for part in PARTS}
        chosen, made = Chosen(history=self._past()), dict[ForecastSpec, ForecastSource]()
        horizons: Sequence[float] = DEFAULT_HORIZONS_MIN
        if spec.asks_registry:
            chosen = self._registry(_asked_by_part(wanted))
            assert chosen.source is not None
            horizons = chosen.source.horizons_min
            made = dict.fromkeys((part for part in wanted.values() if part.asks_registry), chosen.source)
        for part in wanted.values():
            if part not in made:
                made[part] = self._plain(part, chosen.history, horizons)
        return replace(chosen, source=Mixed(*(made[wanted[part]] for part in PARTS)))

    def _registry(self, asked: Mapping[str, int | str]) -> Chosen:
        return self._or_nobody(lambda: self._registered(asked), RegistryError)

    def _plugin(self, name: str) -> Chosen:
        def installed() -> Chosen:
            history = self._history()
            return self._guarded(make_plugin(name, self.scene.workload, history, self.seed), history=history)

        return self._or_nobody(installed, ConfigError)

    def _or_nobody(self, make: Callable[[], Chosen], refusal: type[JobcastError]) -> Chosen:
        """What is made; where it is refused and `degrade` allows it, conservative answers that are told as such."""
        try:
            return make()
        except refusal as error:
            if self.degrade is None:
                raise
            if not self.degrade:
                raise refusal(f"{error}; or pass --degrade to go on with conservative answers") from error
            nobody = Nobody(str(error), DEFAULT_HORIZONS_MIN)
            return self._guarded(nobody, history=self._past(), degraded=(str(error),))

    def _guarded(
        self, source: ForecastSource, unseen: Mapping[str, Sequence[str]] | None = None, **others: Any
    ) -> Chosen:
        told = BadAnswers()
        guard = GuardedForecasts(source, self.scene.workload, told, unseen)
        return Chosen(source=guard, guard=guard, told=told, **others)

    def _registered(self, asked: Mapping[str, int | str]) -> Chosen:
        from jobcast.models.forecasts import RegistryForecasts
        from jobcast.models.registry import open_registry

        registry = open_registry(self.home)
        versions = {name: registry.resolve(name, asked[name]) for name in PREDICTORS}
        overlap = any(
            refuse_overlap(version, self.scene.from_s, self.scene.until_s, self.allow_overlap)
            for version in versions.values()
        )
        history = self._history()
        predictors = [loaded_version(self.home, name, versions[name].version) for name in PREDICTORS]
        source = RegistryForecasts(history, *predictors)
        _warm_up(predictors)
        unseen, degraded = self._unseen(predictors) if self.degrade else ({}, ())
        models = {name: versions[name].version for name in PREDICTORS}
        return self._guarded(
            source, unseen, history=history, models=models, overlap=overlap, degraded=degraded, registered=source
        )

    def _unseen(self, predictors: Sequence[Any]) -> tuple[dict[str, list[str]], tuple[str, ...]]:
        """Pools that have not taught a predictor anything, by what it forecasts, and a line about each predictor.

        Durations know no pools: whose jobs they learnt from makes no difference.
        """
        pools = [pool.name for pool in self.scene.workload.pools]
        unseen = {
            kind: [pool for pool in pools if pool not in predictor.pools_]
            for kind, predictor in zip((ARRIVALS, LOADS), predictors, strict=False)
        }
        lines = [
            f"{predictor.name} has not learnt from pools {', '.join(unseen[kind])}"
            for kind, predictor in zip((ARRIVALS, LOADS), predictors, strict=False)
            if unseen[kind]
        ]
        return unseen, tuple(lines)


def _asked(spec: ForecastSpec) -> dict[str, int | str]:
    """Version or alias of each predictor."""
    pinned = dict(spec.versions)
    return {name: pinned.get(name, spec.alias) for name in PREDICTORS}


def _asked_by_part(wanted: Mapping[str, ForecastSpec]) -> dict[str, int | str]:
    """As each part of the registry asks; predictors of other parts are loaded too, by the alias of the first."""
    of_registry = [spec for spec in wanted.values() if spec.asks_registry]
    specs = [wanted[part] if wanted[part].asks_registry else of_registry[0] for part in PARTS]
    return {name: _asked(spec)[name] for name, spec in zip(PREDICTORS, specs, strict=True)}


def earlier_jobs(scene: WholeScene) -> EarlierJobs:
    """What the trace did before the window; ends after its beginning become known as time reaches them."""
    earlier = in_one_pool(scene.earlier) if scene.place.flat else scene.earlier
    jobs, durations = earlier.to_jobs()
    return EarlierJobs(jobs, earlier.start_s, earlier.end_s, durations)


@lru_cache(maxsize=8)
def loaded_version(home: Path, name: str, version: int) -> Any:
    """A registered predictor, loaded once a process: a version never changes."""
    from jobcast.models.registry import open_registry

    registry = open_registry(home)
    found = registry.resolve(name, version)
    try:
        return registry.load(found)
    except (JobcastError, MemoryError):
        raise
    except Exception as error:  # files may be damaged in any way
        raise RegistryError(
            f"{found}: cannot be loaded ({type(error).__name__}: {error}); restore its files or train the model again"
        ) from error


def _warm_up(predictors: Sequence[Any]) -> None:
    """Ask each predictor once about nothing: what it imports and compiles then is no part of a policy's own run."""
    from jobcast.models.forecasts import RegistryForecasts

    nothing = np.empty(0)
    unguarded = RegistryForecasts(RunHistory([NOBODY], EarlierJobs((), nothing, nothing, nothing)), *predictors)
    source = GuardedForecasts(unguarded, Workload((), (), ()), BadAnswers())  # its answers are nobody's
    source.advance(0.0)
    horizon_s = 60.0 * source.horizons_min[0]
    source.will_jobs_arrive(NOBODY, horizon_s)
    source.new_load(NOBODY, horizon_s)
    source.duration_bin(Job(0, NOBODY, NOBODY, 0.0, 1))


def refuse_overlap(
    version: Any, from_s: float, until_s: float | None, allowed: bool, trace_sha256: str | None = None
) -> bool:
    """Whether a version was trained on part of [from_s, until_s), or on what came after it.

    Of another trace whose times hang on no calendar either, nothing comes before or after.

    Raises OverlapError when it was and that is not allowed.
    """
    reaches = version.train_until_s > from_s and not apart_in_time(version, from_s, trace_sha256)
    if reaches and not allowed:
        raise OverlapError(
            f"{version.name} version {version.version} was trained on data until {iso(version.train_until_s)}, "
            f"which reaches into the window from {iso(from_s)} to {iso(_finite(until_s)) or 'the end'}; "
            "choose another version or a later --from, or pass --allow-overlap"
        )
    return bool(reaches)


def seen_by(version: Any, window: Trace, allowed: bool) -> bool:
    """`refuse_overlap` of the jobs of a window."""
    return refuse_overlap(version, float(window.submit_s[0]), None, allowed, window.source.sha256)


def apart_in_time(version: Any, from_s: float, trace_sha256: str | None) -> bool:
    """Whether a version and a window are of two traces that both count seconds from their own start."""
    if trace_sha256 is None or trace_sha256 == version.trace_sha256:
        return False
    return bool(max(version.train_from_s, from_s) < CALENDAR_FROM_S)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
