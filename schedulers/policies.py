"""What a policy says of itself: its settings, what it needs and asks, and what carries it out."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pkgutil import resolve_name
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import PlainValidator, create_model, model_validator

from jobcast.domain import law as laws
from jobcast.domain.errors import ConfigError
from jobcast.domain.settings import (
    AnySettings,
    AtLeastOne,
    AtLeastZero,
    Count,
    Delay,
    File,
    Flag,
    From0To1,
    Positive,
    Seconds,
    Settings,
    Share,
    Text,
    Whole,
    read_settings,
    setting,
    unknown_setting,
)

NO_SETTINGS: Mapping[str, object] = MappingProxyType({})
# Kinds: which engine carries a policy out.
POOLS, ROUNDS, GOODPUT, ELASTIC, TASKS, ENERGY = "pools", "rounds", "goodput", "elastic", "tasks", "energy"
# Setting of policies that can start what fits behind a job that does not.
BACKFILL = "backfill"
# Kinds whose jobs are those of `simulator.workload`, whole and listed one by one.
WHOLE_JOBS = (POOLS, ROUNDS, GOODPUT)
# Facts that a policy cannot do without: step times and noise by application; tasks, edges and curves; seconds an epoch
# by GPU type and number; what nodes draw; limits of run times; when jobs started.
GOODPUT_TABLES, TASK_GRAPHS, EPOCH_TIMES, WATTS = "goodput", "tasks", "epochs", "watts"
TIME_LIMITS, STARTS = "time limits", "recorded starts"
ARRIVALS, LOADS, DURATIONS, REGIMES, SIZES = "arrivals", "loads", "durations", "regimes", "sizes"
ACCURACIES, TIMES, FUTURE, ANYTHING = "accuracies", "epoch times", "every job's future", "whatever it asks"
# What a policy asks of forecasts: whether jobs arrive and with what load, run times of jobs that were submitted, batch
# sizes to come, declared sizes, final accuracies, seconds an epoch, goodput on other numbers of GPUs; of the oracle
# alone all that will come; a plug-in that does not say.
GOODPUTS = "goodput"
# Scopes: one quota each, or the cluster as one, quotas ignored.
POOL, CLUSTER = "pool", "cluster"
# From what a policy is given (forecasts, run times, GPU types, learned networks, by its kind) and its settings.
Make = Callable[[Any, Any], Any]


class TrainingFiles(Settings):
    """What training jobs do, and how they scale."""

    throughputs: File | None = setting(None, "steps a second: gpu_type, model, batch_size, gpus")
    regimes: File | None = setting(None, "true batch sizes: job_id, epoch, batch_size")
    datasets: File | None = setting(None, "sizes of data sets: model, samples")
    gpu_type: Text | None = setting(None, "whose throughputs count")
    planned: File | None = setting(None, "batch sizes as planned, by which fairness is measured")
    step_times: File | None = setting(None, "step times by application, of jobs that scale")
    training_curves: File | None = setting(None, "progress and noise by application and batch size")
    scale_to: Text = setting("cluster", "how far jobs scale: cluster, or as many GPUs as asked for")


class SizeFiles(Settings):
    """How elastic jobs scale, and how wrong their sizes are declared."""

    speedups: File | None = setting(None, "speedup by number of GPUs: model, gpus, speedup")
    noise: AtLeastZero = setting(0.0, "share by which declared sizes are wrong at most")
    noise_seed: Whole = setting(0, "of that draw")


class TaskFiles(Settings):
    """What jobs of tasks consist of."""

    tasks: File | None = setting(None, "tasks of each job, and what they send to each other")
    curves: File | None = setting(None, "true accuracies")


class ProfileFiles(Settings):
    """How long epochs take."""

    profiles: File | None = setting(None, "true seconds an epoch by GPU type and number")
    known: File | None = setting(None, "the few measurements that forecasts go by")
    segments: Text | None = setting(None, "where to write who held what when")


class RoundMechanism(Settings):
    """How rounds are carried out."""

    round_s: Seconds = setting(120.0, "length of a round; Shockwave, section 6.1")
    restart_s: Delay = setting(20.0, "what each start after an absence costs, the first too")
    mechanism: Literal["rounds", "gavel"] = setting("rounds", "the engine's, or Gavel's as published")
    solve: Literal["before", "beside"] = setting("before", "plan before a round, or beside the one before")

    @model_validator(mode="after")
    def _go_together(self) -> "RoundMechanism":
        if self.mechanism == "gavel" and self.solve == "beside":
            raise ValueError(
                "solve=beside and mechanism=gavel exclude each other, the published mechanism plans when a round "
                "begins; leave one out"
            )
        return self


class ElasticMechanism(Settings):
    """What a change of GPUs costs elastic jobs."""

    preempt_s: AtLeastZero = setting(0.0, "seconds of progress that a change of a running job's GPUs costs")
    pending_lease: Flag = setting(True, "forecasts keep the lease that runs when they are made")


class TaskMechanism(Settings):
    """How servers of tasks run."""

    round_s: Seconds = setting(60.0, "between two decisions")
    fluctuation: AtLeastZero = setting(0.2, "standard deviation of what a task uses over its mean")
    restart_s: Delay = setting(10.0, "that a job stands still when a task of it moved, or after a stop")
    forecast_every: Share = setting(0.1, "share of a job's epochs between two forecasts of its accuracy")
    stragglers: From0To1 = setting(0.0, "share of servers that are slow at a time")
    straggler_factor: AtLeastOne = setting(2.0, "times as long that tasks compute on a slow server")
    straggler_h: Positive = setting(6.0, "hours that a server is slow at a time, or is not")


class EnergyMechanism(Settings):
    """When energy policies are asked, and what an interruption costs."""

    period_s: Seconds = setting(300.0, "between two calls at the latest; ANDREAS, appendix B")
    on_events: Flag = setting(True, "also called at submissions and completions")
    snapshot_epochs: Count = setting(1, "whole epochs between two snapshots")
    restart_s: Delay = setting(0.0, "that a job holds its GPUs without progress when it starts anew")
    profile_s: Delay = setting(0.0, "that a new application runs on each number of GPUs to be measured; 0: it is known")


class LocalitySite(Settings):
    """Where whole jobs are placed."""

    locality: Flag = setting(False, "place jobs in cells of servers; docs/locality.md tells who can")


class PowerSite(Settings):
    """What energy costs; the cluster file's where it is not set."""

    price_eur_kwh: AtLeastZero | None = setting(None, "tariff, EUR a kWh")
    pue: AtLeastOne | None = setting(None, "energy of the site over that of its nodes")


@dataclass(frozen=True, slots=True)
class Kind:
    """What policies of a kind share: their title, law, settings beside their own, and the methods of each."""

    title: str
    law: str
    files: type[Settings] = Settings
    mechanism: type[Settings] = Settings
    site: type[Settings] = Settings
    methods: tuple[str, ...] = ("decide",)


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        POOLS: Kind("over pools", laws.RUNTIME, TrainingFiles, site=LocalitySite),
        ROUNDS: Kind("by rounds", laws.RUNTIME, TrainingFiles, RoundMechanism, LocalitySite, methods=()),
        GOODPUT: Kind("of jobs that scale", laws.GOODPUT, TrainingFiles, site=LocalitySite, methods=()),
        ELASTIC: Kind("of elastic jobs", laws.SPEEDUP, SizeFiles, ElasticMechanism, methods=()),
        TASKS: Kind("of tasks", laws.TASKS, TaskFiles, TaskMechanism),
        ENERGY: Kind("of energy", laws.EPOCHS, ProfileFiles, EnergyMechanism, PowerSite, methods=()),
    }
)


@dataclass(frozen=True, slots=True)
class Local:
    """What places a policy's jobs on servers: its class, `module:Class` below schedulers, and its settings.

    `turns`: whether jobs start when their turn comes, so that nobody overtakes in a quota.
    """

    place: str
    settings: type[Settings] = Settings
    turns: bool = False

    def placer(self, cells: Mapping[str, tuple[int, ...]], settings: Settings) -> Any:
        """One for a run. `cells`: quotas as cells, of pools that tell them."""
        return resolve_name(f"jobcast.schedulers.{self.place}")(cells, **dict(settings))


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySpec:
    """A policy as the registry knows it.

    Attributes
    ----------
    name : unique over all kinds
    kind : of `KINDS`
    summary : one plain line
    paper : where it comes from
    make : makes one; what it computes with is imported then
    settings : its own
    needs : facts without which it cannot run
    asks : what it asks of forecasts
    scope : `POOL` or `CLUSTER`
    preempts : whether it stops running jobs, or changes what they hold
    learned, instead : predictor that it runs, and the policy whose place that takes; itself where it runs without too
    local, not_local : what places its jobs on servers; why nothing does, where that is not plain
    most_jobs : of a trace on which it answers within minutes, None where there is no such bound
    """

    name: str
    kind: str
    make: Make
    summary: str
    paper: str = ""
    settings: type[Settings] = Settings
    needs: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    scope: str = CLUSTER
    preempts: bool = True
    learned: str = ""
    instead: str = ""
    local: Local | None = None
    not_local: str = ""
    most_jobs: int | None = None

    @property
    def law(self) -> str:
        """How jobs progress under it."""
        return KINDS[self.kind].law

    @property
    def needs_every_job(self) -> bool:
        """Whether it must know each single job's future, which the oracle alone tells."""
        return FUTURE in self.asks

    @property
    def overtaking(self) -> dict[str, str]:
        """Settings with which it starts what fits behind a job that does not; none where it has no such setting."""
        return {BACKFILL: "true"} if BACKFILL in self.settings.model_fields else {}

    def parts(self, local: bool = False) -> dict[str, type[Settings]]:
        """Models of all settings that a user may set for it, by what they are about."""
        kind = KINDS[self.kind]
        cells = self.local.settings if local and self.local is not None else Settings
        own = {"own": self.settings, "cells": cells}
        return {**own, "mechanism": kind.mechanism, "files": kind.files, "site": kind.site}

    def decides_by(self, setting: str, local: bool = False) -> bool:
        """Whether a setting is its own, or of what carries it out."""
        parts = self.parts(local)
        known = any(setting in parts[part].model_fields for part in ("own", "cells", "mechanism"))
        return known or parts["own"].model_config["extra"] == "allow"


@dataclass(frozen=True, slots=True)
class Split:
    """A user's settings, read, by what they are about; the `bag` holds them as they were given."""

    own: Any
    cells: Any
    mechanism: Any
    files: Any
    site: Any
    bag: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def plain(self, *parts: str) -> dict[str, Any]:
        """The settings of some parts as they were given."""
        return {name: value for part in parts for name, value in self.bag[part].items()}


def split_settings(spec: PolicySpec, settings: Mapping[str, object] = NO_SETTINGS, local: bool = False) -> Split:
    """Settings of a policy by what they are about; `local`: on servers, where some policies know more.

    Raises ConfigError for the first that is not known or cannot be read.
    """
    models = spec.parts(local)
    bag: dict[str, dict[str, object]] = {part: {} for part in models}
    who = f"policy {spec.name} with locality" if local else f"policy {spec.name}"
    # A plug-in of `AnySettings` reads its own: what nobody else knows is handed to it.
    anything = models["own"].model_config["extra"] == "allow"
    for name, value in settings.items():
        # No name is in two parts, which a test holds for all policies of ours.
        part = next((part for part, model in models.items() if name in model.model_fields), None)
        if part is None and not anything:
            known = [field for one in ("own", "cells", "mechanism") for field in models[one].model_fields]
            beside = [*models["files"].model_fields, *models["site"].model_fields]
            raise ConfigError(f"{who}: {unknown_setting(name, known, beside)}")
        bag[part or "own"][name] = value
    return Split(**{part: read_settings(who, model, bag[part]) for part, model in models.items()}, bag=bag)


def of_class(place: str, *, given: bool = True, without: Iterable[str] = ()) -> Make:
    """What makes a policy of a class, `module:Class` below schedulers, with its settings as keywords.

    `given`: whether it takes what it is given first; `without`: settings that are not its.
    """

    def make(asked: Any, own: Settings) -> Any:
        policy = resolve_name(f"jobcast.schedulers.{place}")
        settings = {name: value for name, value in own if name not in without}
        return policy(asked, **settings) if given else policy(**settings)

    return make


def of_settings(place: str) -> Make:
    """What makes a policy of a class that takes its settings as they are."""
    return lambda given, own: resolve_name(f"jobcast.schedulers.{place}")(own)


@dataclass(frozen=True, slots=True)
class PolicyFactory:
    """A plug-in over pools, as an entry point may name it beside a `PolicySpec`.

    Attributes
    ----------
    policy : its class; takes the settings as keywords, and the forecasts first if it uses any
    settings : name -> reader of its value, which raises ValueError
    uses_forecasts : whether it asks them anything
    every_job : whether it must know each single job's future, which the oracle alone tells
    scenario : settings that tell what is replayed, and not how the policy decides
    """

    policy: Callable[..., Any]
    settings: Mapping[str, Callable[[object], Any]] = field(default_factory=dict)
    uses_forecasts: bool = True
    scenario: Mapping[str, Callable[[object], Any]] = field(default_factory=dict)
    every_job: bool = False

    def __call__(self, forecasts: Any, settings: Mapping[str, object] = NO_SETTINGS) -> Any:
        """Make one, of settings that were read."""
        own = {name: value for name, value in settings.items() if name in self.settings}
        return self.policy(forecasts, **own) if self.uses_forecasts else self.policy(**own)


def adopted(name: str, factory: Callable[..., Any]) -> PolicySpec:
    """A plug-in's factory over pools, any callable of (forecasts, settings), as a spec."""
    settings: type[Settings] = AnySettings
    if isinstance(factory, PolicyFactory):
        readers = {**factory.settings, **factory.scenario}
        fields: dict[str, Any] = {one: (Annotated[Any, PlainValidator(read)], None) for one, read in readers.items()}
        settings = create_model("Theirs", __base__=Settings, **fields)
    # What an old factory asks is not known beforehand, so that all forecasts are made.
    asks = (FUTURE,) if getattr(factory, "every_job", False) else (ANYTHING,)
    return PolicySpec(
        name=name,
        kind=POOLS,
        make=lambda forecasts, own: factory(forecasts, own.given()),
        summary="installed",
        settings=settings,
        asks=asks if getattr(factory, "uses_forecasts", True) else (),
        scope=POOL,
        preempts=False,
    )
