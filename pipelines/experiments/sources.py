"""Sources of forecasts for a scenario: from a spec to what the engine drives.

A registered predictor to ask, or nobody where that is allowed.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from jobcast.domain.answer_checks import shown
from jobcast.domain.bad_answers import ARRIVALS, LOADS, BadAnswers, Reason
from jobcast.domain.errors import ConfigError, JobcastError, RegistryError
from jobcast.domain.forecasts import ForecastSource
from jobcast.domain.horizons import DEFAULT_HORIZONS_MIN
from jobcast.domain.jobs import Job
from jobcast.pipelines.experiments.forecast_specs import PARTS, PREDICTORS, REGISTRY, ForecastSpec, make_plugin
from jobcast.pipelines.experiments.rigid_jobs import RigidScenario, in_one_pool
from jobcast.pipelines.experiments.scenarios import Scenario
from jobcast.pipelines.experiments.seen_data import another_cluster, refuse_overlap, seen_by
from jobcast.simulator.engine import Meter
from jobcast.simulator.forecast_sources import (
    NO_ARRIVALS,
    Conservative,
    KnownDurations,
    Mixed,
    Noisy,
    Oracle,
    Random,
    RunRandom,
)
from jobcast.simulator.guard import GuardedForecasts, Nobody
from jobcast.simulator.history import EarlierJobs, RunHistory
from jobcast.simulator.workload import Workload

if TYPE_CHECKING:
    from jobcast.models.forecasts import RegistryForecasts
    from jobcast.pipelines.experiments.simulation import Simulated


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a policy is run with.

    Attributes
    ----------
    policy : its name
    spec : where its forecasts come from, None where nobody named a source
    settings : those that it decides by: its own and its mechanism's
    seed : of draws
    home : of the registry
    allow_overlap : whether models may have seen the window
    degrade : whether the conservative answer is taken where a registered model is missing or damaged;
        None where whoever asks has no such choice
    predict : whether each job's completion is forecast at its submission
    watching : meters that ask copies of the run what will become of jobs; of elastic jobs in worlds alone
    record : whether what forecasts answered is kept
    """

    policy: str
    home: Path
    spec: ForecastSpec | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    allow_overlap: bool = False
    degrade: bool | None = None
    predict: bool = False
    watching: tuple[Meter, ...] = ()
    record: bool = False

    @property
    def source(self) -> ForecastSpec:
        """Where its forecasts come from: the registry where nobody named a source."""
        return self.spec or REGISTRY


@dataclass(frozen=True, slots=True)
class Registered:
    """A version (`models.registry.ModelVersion`) and its predictor."""

    version: Any
    model: Any

    @property
    def named(self) -> dict[str, int]:
        """The version by its predictor's name, as results tell it: one that is pinned need not be ours."""
        return {self.version.name: self.version.version}


def registered(
    name: str, spec: ForecastSpec, home: Path, tally: BadAnswers, kind: str, degrade: bool | None = None
) -> Registered | None:
    """The predictor that a spec names: the version that is pinned, else what its alias points at.

    Parameters
    ----------
    name : of our predictor; another one that answers its question may be pinned in its place
    home : of the registry
    tally, kind : where it is counted, and as what, that there is nobody to ask
    degrade : answer None then; else what is wrong is raised, a RegistryError where that is known.
        None where whoever asks has no such choice
    """
    from jobcast.models.registry import open_registry

    try:
        version = open_registry(home).asked(*spec.pinned(name))
        return Registered(version, loaded_version(home, version.name, version.version))
    except Exception as error:  # a registry may be damaged in any way: counted with its reason where that is allowed
        # An error that nobody foresaw is hidden by nothing but `degrade`.
        if degrade is None or (not degrade and not isinstance(error, RegistryError)):
            raise
        if not degrade:
            raise RegistryError(f"{error}; or pass --degrade to go on with conservative answers") from error
        count_missing(tally, kind, error)
        return None


def is_registered(name: str, home: Path) -> bool:
    """Whether a registry holds any version of a predictor. Raises RegistryError for one that cannot be read."""
    from jobcast.models.registry import open_registry

    return any(one.name == name for one in open_registry(home).list())


def trust(tally: BadAnswers, models: Mapping[str, int]) -> dict[str, Any]:
    """How far answers could be trusted: the tally wherever a model was asked ({} where all were good), and who was not.

    Parameters
    ----------
    models : versions that answered, by predictor
    """
    figures = tally.figures()
    missing = [one["first"] for one in figures.values() if Reason.DEGRADED in one["reasons"]]
    found = {"bad_forecasts": figures} if models or figures else {}
    return {**found, "degraded": missing} if missing else found


def count_missing(tally: BadAnswers, kind: str, error: Exception) -> None:
    """Count that there is nobody to ask, and why."""
    # Counted as a question first: no more answers may be bad than were checked.
    tally.checked(kind)
    tally.bad(kind, Reason.DEGRADED, str(error) if isinstance(error, JobcastError) else shown(error))


NOBODY = "nobody"
"""Pool of the question that warms predictors up."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """What answers a run.

    Attributes
    ----------
    source : a `ForecastSource`, of policies of rounds a `WorkForecasts`; None for a policy that asks nothing
    history : what the source reads
    models : concrete versions behind it, by predictor
    overlap : whether one was trained on the window
    guard : around those of its answers that are forecast by a model or a plug-in
    tally : of bad answers
    degraded : why nobody could be asked, and all those answers are conservative
    registered : the source of registered predictors, inside of the guard
    elsewhere : a line about each predictor that was trained on another cluster
    """

    source: Any = None
    history: RunHistory | None = None
    models: Mapping[str, int] = field(default_factory=dict)
    overlap: bool = False
    guard: GuardedForecasts | None = None
    tally: BadAnswers = field(default_factory=BadAnswers)
    degraded: tuple[str, ...] = ()
    registered: "RegistryForecasts | None" = None
    elsewhere: tuple[str, ...] = ()

    def trust(self) -> dict[str, Any]:
        """How far the answers of a run could be trusted, as `simulate --json` tells it; {} where no model answered."""
        if self.guard is None:
            return trust(self.tally, self.models)
        result: dict[str, Any] = {"bad_forecasts": self.tally.figures()}
        if self.degraded:
            result["degraded"] = list(self.degraded)
        if self.elsewhere:
            result["another_cluster"] = list(self.elsewhere)
        if self.registered is not None:
            result["features_beyond_training"] = self.registered.beyond_training()
        return result


@dataclass(frozen=True, slots=True)
class Sources:
    """Makes sources for one scenario.

    With `degrade` a registry that cannot answer, and a pool that a predictor has not seen in training, are answered
    conservatively; without it the first is an error.
    """

    scenario: RigidScenario
    ask: Ask

    def make(self, spec: ForecastSpec, parts: Collection[str] = PARTS) -> Chosen:
        """The source of a spec.

        `parts`: what is asked, of `PARTS`; no model of another is needed.

        Raises RegistryError when a model is not there or does not fit, OverlapError when it was trained on the window.
        """
        # Before `registry`: its parts may be of the registry too.
        if spec.kind == "mixed":
            return self._mixed(spec, parts)
        if spec.kind == "registry":
            return self._registry({part: spec for part in PARTS if part in parts})
        if spec.installed:
            return self._plugin(spec.kind)
        history = self._past()
        return Chosen(self._plain(spec, history), history)

    def _past(self) -> RunHistory | None:
        """The run's own past, where sources without models need it: in a closed loop."""
        return self._history() if self.scenario.workload.closed else None

    def _history(self) -> RunHistory:
        names = [pool.name for pool in self.scenario.workload.pools]
        return RunHistory(names, earlier_jobs(self.scenario), self.scenario.earlier.known_after_s)

    def _plain(
        self, spec: ForecastSpec, history: RunHistory | None, horizons_min: Sequence[float] = DEFAULT_HORIZONS_MIN
    ) -> ForecastSource:
        workload, seed, horizons = self.scenario.workload, self.ask.seed, horizons_min
        # Made on demand: some read the whole trace when they are made.
        makers: dict[str, Callable[[], ForecastSource]] = {
            "oracle": lambda: Oracle(workload, horizons),
            "conservative": lambda: Conservative(workload, horizons),
            "random": lambda: Random(workload, seed, earlier_jobs(self.scenario).jobs, horizons),
            "noisy": lambda: Noisy(workload, spec.probability, seed, earlier_jobs(self.scenario).jobs, horizons),
        }
        # In a closed loop arrivals follow from the run: no source may read them off the trace.
        if history is not None and self.scenario.workload.closed:
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

    def _mixed(self, spec: ForecastSpec, parts: Collection[str]) -> Chosen:
        """Parts with the same source share it; all answer about the registry's horizons where it has a part."""
        wanted = {part: spec.part(part) for part in PARTS}
        chosen, made = Chosen(history=self._past()), dict[ForecastSpec, ForecastSource]()
        horizons: Sequence[float] = DEFAULT_HORIZONS_MIN
        of_registry = {part: one for part, one in wanted.items() if one.asks_registry}
        if of_registry:
            # One registry source for all its parts, so that history is kept once.
            chosen = self._registry({part: one for part, one in of_registry.items() if part in parts} or of_registry)
            assert chosen.source is not None
            horizons = chosen.source.horizons_min
            # Parts of the registry under whatever alias are answered by the one source.
            made = dict.fromkeys(of_registry.values(), chosen.source)
        for part in wanted.values():
            if part not in made:
                made[part] = self._plain(part, chosen.history, horizons)
        return replace(chosen, source=Mixed(*(made[wanted[part]] for part in PARTS)))

    def _registry(self, asked: Mapping[str, ForecastSpec]) -> Chosen:
        return self._or_nobody(lambda: self._registered(asked), RegistryError)

    def _plugin(self, name: str) -> Chosen:
        def installed() -> Chosen:
            history = self._history()
            return self._guarded(make_plugin(name, self.scenario.workload, history, self.ask.seed), history=history)

        return self._or_nobody(installed, ConfigError)

    def _or_nobody(self, make: Callable[[], Chosen], refusal: type[JobcastError]) -> Chosen:
        """What is made; where it is refused and `degrade` allows it, conservative answers that are told as such."""
        try:
            return make()
        except refusal as error:
            if self.ask.degrade is None:
                raise
            if not self.ask.degrade:
                raise refusal(f"{error}; or pass --degrade to go on with conservative answers") from error
            # It answers nothing: the guard around it puts the conservative answer in place.
            nobody = Nobody(str(error), DEFAULT_HORIZONS_MIN)
            return self._guarded(nobody, history=self._past(), degraded=(str(error),))

    def _guarded(
        self, source: ForecastSource, unseen: Mapping[str, Sequence[str]] | None = None, **others: Any
    ) -> Chosen:
        result = BadAnswers()
        guard = GuardedForecasts(source, self.scenario.workload, result, unseen)
        return Chosen(source=guard, guard=guard, tally=result, **others)

    def _registered(self, asked: Mapping[str, ForecastSpec]) -> Chosen:
        from jobcast.models.forecasts import RegistryForecasts
        from jobcast.models.registry import open_registry

        registry, ours = open_registry(self.ask.home), dict(zip(PARTS, PREDICTORS, strict=True))
        versions = [registry.asked(*spec.pinned(ours[part])) for part, spec in asked.items()]
        # Before models are loaded, which takes seconds.
        overlap = any(
            refuse_overlap(version, self.scenario.from_s, self.scenario.until_s, self.ask.allow_overlap)
            for version in versions
        )
        history = self._history()
        loaded = [loaded_version(self.ask.home, one.name, one.version) for one in versions]
        predictors = dict(zip(asked, loaded, strict=True))
        arrivals, loads, durations = (predictors.get(part) for part in PARTS)
        source = RegistryForecasts(history, arrivals, loads, durations, self.scenario.workload.pools)
        _warm_up((arrivals, loads, durations))
        # Without `degrade` a pool that is new is asked about all the same: models generalise.
        unseen, degraded = self._unseen(predictors) if self.ask.degrade else ({}, ())
        models = {one.name: one.version for one in versions}
        pools = self.scenario.trace.pools
        lines = tuple(line for pair in zip(versions, loaded, strict=True) for line in another_cluster(*pair, pools))
        return self._guarded(
            source,
            unseen,
            history=history,
            models=models,
            overlap=overlap,
            degraded=degraded,
            registered=source,
            elsewhere=lines,
        )

    def _unseen(self, predictors: Mapping[str, Any]) -> tuple[dict[str, list[str]], tuple[str, ...]]:
        """Pools that have not taught a predictor anything, by what it forecasts, and a line about each predictor.

        Durations are answered all the same: they know no pools by name, and learn from whose jobs they are asked about.
        """
        pools = [pool.name for pool in self.scenario.workload.pools]
        of_pools = {kind: predictors[kind] for kind in (ARRIVALS, LOADS) if kind in predictors}
        unseen = {
            kind: [pool for pool in pools if pool not in predictor.pools_] for kind, predictor in of_pools.items()
        }
        lines = [
            f"{predictor.name} has not learnt from pools {', '.join(unseen[kind])}"
            for kind, predictor in of_pools.items()
            if unseen[kind]
        ]
        return unseen, tuple(lines)


def earlier_jobs(scenario: RigidScenario) -> EarlierJobs:
    """What the trace did before the window; ends after its beginning become known as time reaches them."""
    # As the window's own jobs meet the cluster.
    earlier = in_one_pool(scenario.earlier, scenario.place.rules) if scenario.place.flat else scenario.earlier
    jobs, durations = earlier.to_jobs()
    return EarlierJobs(jobs, earlier.start_s, earlier.known_s, durations)


@lru_cache(maxsize=8)
def loaded_version(home: Path, name: str, version: int) -> Any:
    """A registered predictor, loaded once a process: a version never changes."""
    from jobcast.models.registry import open_registry

    registry = open_registry(home)
    found = registry.pinned(name, version)
    try:
        return registry.load(found)
    # Told well already, or nothing that training anew would mend.
    except (JobcastError, MemoryError):
        raise
    except Exception as error:  # files may be damaged in any way
        raise RegistryError(
            f"{found}: cannot be loaded ({type(error).__name__}: {error}); restore its files or train the model again"
        ) from error


def _warm_up(predictors: Sequence[Any]) -> None:
    """Ask each that is there once about nothing: what it imports and compiles then is no part of a policy's own run."""
    from jobcast.models.forecasts import RegistryForecasts

    nothing = np.empty(0)
    unguarded = RegistryForecasts(RunHistory([NOBODY], EarlierJobs((), nothing, nothing, nothing)), *predictors)
    source = GuardedForecasts(unguarded, Workload((), (), ()), BadAnswers())  # its answers are nobody's
    source.advance(0.0)
    horizon_s = 60.0 * source.horizons_min[0]
    arrivals, loads, durations = (one is not None for one in predictors)
    if arrivals:
        source.will_jobs_arrive(NOBODY, horizon_s)
    if loads:
        source.new_load(NOBODY, horizon_s)
    if durations:
        source.duration_bin(Job(0, NOBODY, NOBODY, 0.0, 1))


T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Believed(Generic[T]):
    """Answers, None where jobs are believed what they declare; versions behind them; bad answers; what to note."""

    answers: T | None = None
    models: Mapping[str, int] = field(default_factory=dict)
    overlap: bool = False
    tally: BadAnswers = field(default_factory=BadAnswers)
    notes: tuple[str, ...] = ()

    def beside(self, ran: "Simulated") -> "Simulated":
        """A run with what its forecasts rest on."""
        notes = (*ran.notes, *self.notes)
        return replace(ran, models=self.models, overlap=self.overlap, trust=trust(self.tally, self.models), notes=notes)


def believed(
    name: str,
    kind: str,
    scenario: Scenario[Any, Any],
    ask: Ask,
    answer: Callable[[Any, BadAnswers], T],
    conservative: Callable[[], T | None],
) -> Believed[T]:
    """What the champion of a predictor, or the version that a source names, answers about a scenario; else nothing.

    Parameters
    ----------
    name : of our predictor; see `sources.registered`
    kind : as what bad answers are counted
    answer : of a model; counts its bad answers
    conservative : what is believed where `degrade` allows that there is no version

    Raises RegistryError for a version that is not there, OverlapError for one that has seen the window.
    """
    if ask.source.kind != "registry":
        return Believed()
    result = BadAnswers()
    asked = registered(name, ask.source, ask.home, result, kind, ask.degrade)
    if asked is None:
        return Believed(conservative(), tally=result)
    overlap = seen_by(asked.version, scenario.trace, ask.allow_overlap)
    return Believed(answer(asked.model, result), asked.named, overlap, result)
