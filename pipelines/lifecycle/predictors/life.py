"""The life of a predictor: the one path from data to a registered version, to its figures and its answers."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from jobcast.domain.errors import ConfigError
from jobcast.domain.forecasts import Question
from jobcast.models.evaluation.intervals import DRAWS
from jobcast.models.predictor import Known, Model
from jobcast.models.registry import ModelCard, Registry
from jobcast.models.registry.cards import ModelVersion
from jobcast.pipelines.lifecycle.recipes.common import TrainSettings, parse_horizons
from jobcast.pipelines.report.console import Step
from jobcast.pipelines.report.predictor_plots import CurvePoints

if TYPE_CHECKING:
    import polars as pl

    from jobcast.models.promise_ledger import Promise

TRAIN, EVALUATE, PREDICT = "train", "evaluate", "predict"
# Text, not functions: training would else import all that draws and lays out tables.
TABLES: Mapping[str, str] = {
    TRAIN: "report.model_tables:training_table",
    EVALUATE: "lifecycle.evaluation_files:evaluation_table",
    PREDICT: "lifecycle.evaluation:prediction_table",
}
"""Command -> what makes a table of its result for a person, `module:function` of pipelines."""
M = TypeVar("M")
Told = dict[str, Any]


def told_by(module: str) -> dict[str, str]:
    """The three tables of a module of pipelines, which has a function of the name of each of ours."""
    return {command: f"{module}:{place.partition(':')[2]}" for command, place in TABLES.items()}


@dataclass(frozen=True, slots=True)
class Fitted:
    """A fitted model and what is told of it.

    Attributes
    ----------
    model : fitted on all of the training time
    card : what the registry is told
    figures : what a user is told, beside which version it became
    curves, tables : drawn and written beside the run: file name -> CSV text
    beside : writes more files into the model's folder
    draft : folder that an interrupted training goes on from; not needed once the version is registered
    """

    model: Model
    card: ModelCard
    figures: Mapping[str, Any]
    curves: CurvePoints = field(default_factory=CurvePoints)
    tables: Mapping[str, str] = field(default_factory=dict)
    # Most models are whole as they save themselves.
    beside: Callable[[Path], None] = lambda folder: None
    draft: Path | None = None


@dataclass(frozen=True, slots=True)
class Wishes:
    """What is asked of an evaluation beside its figures; each predictor reads its own.

    Attributes
    ----------
    without : pools to leave out of one more set of figures
    ablation : train twins anew that look at less
    paper_recipe : train the paper's recipe as a rule to beat, where the trace holds the training time
    smoothing : fit statsforecast's models as rules to beat
    curves : points for plots too
    draws, seed : of the intervals; 0 draws = none
    given : what `--set` told, for a predictor that reads more than the trace
    prefix : share of each run that is seen
    points : known of each job and GPU type; None: as many as can be
    every_days : train anew so often on the way, on what was known then; None: the version stays
    """

    without: tuple[str, ...] = ()
    ablation: bool = False
    paper_recipe: bool = True
    smoothing: bool = False
    curves: bool = False
    draws: int = DRAWS
    seed: int = 0
    given: Mapping[str, str] = field(default_factory=dict)
    prefix: float = 0.2
    points: int | None = None
    every_days: float | None = None


@dataclass(frozen=True, slots=True)
class VersionAndData:
    """A version before data that it shall be scored on or asked about.

    Attributes
    ----------
    known : the data
    version : as the registry knows it
    registry : that holds the other predictors, where a predictor is also scored together with one
    """

    known: Known
    version: ModelVersion
    registry: Registry
    wishes: Wishes = field(default_factory=Wishes)
    allow_overlap: bool = False
    progress: Step | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """A command as it was typed: its parameters by name, the home, and where notes go."""

    parameters: Mapping[str, Any]
    home: Path
    note: Callable[[str], None] = lambda line: None

    def __getitem__(self, name: str) -> Any:
        return self.parameters[name]

    @property
    def path(self) -> Path:
        """`--trace`."""
        found: Path = self.parameters["trace_path"]
        return found

    @property
    def window(self) -> tuple[float | None, float | None]:
        """`--from` and `--until`, seconds from the epoch."""
        return self.parameters.get("from_s"), self.parameters.get("until_s")

    @property
    def given(self) -> dict[str, str]:
        """`--set key=value`."""
        # Text is parsed anew each time it is asked for: a bad pair is told by whoever reads it first.
        from jobcast.domain.pairs import settings_of

        return settings_of(self.parameters["pairs"])


class Life(ABC, Generic[M]):
    """Implements `models.predictor.Predictor` for all models that answer a question.

    Parameters
    ----------
    model : the class that is trained
    algorithm : one of `algorithms`; None takes the default
    settings : of the training; None takes the defaults

    Attributes
    ----------
    needs : what it is fitted on: `trace`, and tables by the names of `Known.tables`
    commands : those that it can be asked by
    reads : command -> options that go with it, beside those of every predictor; absent: all but others' own
    reads_settings : whether `--set` tells it anything
    walks : whether it can be trained anew week by week
    ablates : whether twins can learn from less
    why : option -> why it does not go with it, where a user may wonder
    says : as `TABLES`
    model_, fitted_ : what was learned, and what is told of it
    """

    needs: ClassVar[Sequence[str]] = ("trace",)
    commands: ClassVar[Collection[str]] = (TRAIN, EVALUATE, PREDICT)
    reads: ClassVar[Mapping[str, Collection[str]]] = {}
    reads_settings: ClassVar[bool] = False
    walks: ClassVar[bool] = False
    why: ClassVar[Mapping[str, str]] = {}
    untuned: ClassVar[Collection[str]] = ()
    says: ClassVar[Mapping[str, str]] = TABLES

    def __init__(self, model: type[Model], algorithm: str | None = None, settings: TrainSettings | None = None) -> None:
        self.model, self.settings = model, settings or TrainSettings()
        if algorithm is not None and algorithm not in self.algorithms:
            raise ConfigError(f"--algorithm {algorithm}: {self.name} knows {', '.join(self.algorithms)}")
        # The first of the algorithms is the default everywhere: in help, in stages, in the registry.
        self.algorithm = algorithm or self.algorithms[0]

    @classmethod
    def asked(cls, model: type[Model], asked: Asked) -> Self:
        """As `jobcast train` was asked for it. Raises ConfigError for what it does not know."""
        one = cls(model, asked["algorithm"], cls.settings_from(asked))
        one.check_tune()
        return one

    @classmethod
    def settings_from(cls, asked: Asked) -> TrainSettings:
        """Settings from the options of `jobcast train`."""
        # Named as options of `jobcast train` are; what one predictor does not read another does.
        names = ("coverage", "miss_share", "under_cost", "seed", "min_train_jobs", "tune")
        horizons = parse_horizons(asked["horizons"])
        return TrainSettings(horizons_min=horizons, given=asked.given, **{name: asked[name] for name in names})

    def check_tune(self) -> None:
        """Raise a ConfigError for a search of what has no settings."""
        # Refused rather than ignored: who asks for a search expects that settings were searched.
        if self.settings.tune and self.algorithm in self.untuned:
            text = f"--tune {self.settings.tune}: {self.algorithm} of {self.name}"
            raise ConfigError(f"{text} has no settings to search; leave it out")

    @property
    def name(self) -> str:
        """Under which versions are registered."""
        return self.model.name

    @property
    def answers(self) -> Question:
        """Its question."""
        return self.model.answers

    @property
    def algorithms(self) -> Sequence[str]:
        """The default first."""
        return self.model.algorithms

    def fit(self, known: Known, progress: Step | None = None) -> Self:
        """Learn from what was known before `known.until_s`. Raises TrainingError where that tells too little."""
        self.fitted_ = self.fitted(known, progress)
        self.model_: Any = self.fitted_.model
        return self

    def save(self, folder: Path) -> None:
        """Write the model; equal models give equal bytes."""
        self.model_.save(folder)

    def load(self, folder: Path) -> Self:
        """Take over what `save` wrote. Raises RegistryError for a folder of another model, or of another schema."""
        self.model_ = self.model.load(folder)
        return self

    def predict(self, known: Known) -> "pl.DataFrame":
        """Answers as of `known.until_s`, a row each. Raises ConfigError where nobody can ask it."""
        # No NotImplementedError: who asks from a notebook is a user, and is told what to do instead.
        raise ConfigError(f"{self.name}: is asked by schedulers alone; simulate with its policy")

    @classmethod
    def promised(cls, result: Told) -> "Sequence[Promise]":
        """What `jobcast predict` keeps of an answer in the promise ledger."""
        return ()

    def evaluate(self, known: Known) -> Told:
        """Figures of forecasts made in [known.from_s, known.until_s), without intervals; see `predict`."""
        raise ConfigError(f"{self.name}: is scored by replays alone; backtest its policy")

    @abstractmethod
    def fitted(self, known: Known, progress: Step | None) -> Fitted:
        """Train, and validate on a part that was left out."""

    @classmethod
    @abstractmethod
    def known(cls, command: str, asked: Asked) -> Known:
        """What a command names: the trace and the tables. Raises TraceError, ConfigError for what does not fit."""

    @classmethod
    def options(cls, command: str, asked: Asked) -> Collection[str] | None:
        """Options that go with a command; None: all but others' own. Raises ConfigError for a setting not known."""
        return cls.reads.get(command)

    @classmethod
    def files(cls, asked: Asked) -> Sequence[Path]:
        """Files that a training reads beside the trace."""
        return ()

    def scored(self, case: VersionAndData) -> tuple[Told, CurvePoints]:
        """Figures of a version, as `jobcast evaluate --json` tells them, and points for plots."""
        raise NotImplementedError

    def walked(self, known: Known, wishes: Wishes, progress: Step | None = None) -> Told:
        """Figures of models trained anew every `wishes.every_days`, on what was known then, and not kept."""
        raise NotImplementedError

    def answered(self, case: VersionAndData, asked: Mapping[str, Any]) -> Told:
        """Answers of a version, as `jobcast predict --json` tells them; `asked` are the options of the question."""
        raise NotImplementedError

    @classmethod
    def said(cls, command: str, result: Mapping[str, Any]) -> str:
        """What a command says to a person."""
        # Resolved when there is something to say, from below jobcast.pipelines.
        found: str = resolve_name(f"jobcast.pipelines.{cls.says[command]}")(result)
        return found
