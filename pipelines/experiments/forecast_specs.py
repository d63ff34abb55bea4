"""Forecast sources as users write them: `oracle`, `registry:challenger`, `noisy:0.2`, ...; and the predictors.

Sources of forecasts that installed packages bring through the entry point group `jobcast.forecasts`.

Which predictors a command can do something with.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

from jobcast.domain.errors import ConfigError
from jobcast.domain.forecasts import ForecastSource, Question
from jobcast.domain.plugins import points_of
from jobcast.domain.suggestions import did_you_mean
from jobcast.models.predictors import OURS, answers_of
from jobcast.models.predictors import PREDICTORS as MODELS

if TYPE_CHECKING:  # the command line reads names here, and starts without numpy
    from jobcast.simulator.history import RunHistory
    from jobcast.simulator.workload import Workload

ENTRY_POINTS = "jobcast.forecasts"
"""An entry point names a class, or any callable of (workload, history, seed), that makes a `ForecastSource`."""


def plugin_names() -> list[str]:
    """Names of the installed sources, ascending."""
    return sorted(_installed())


def make_plugin(name: str, workload: "Workload", history: "RunHistory", seed: int) -> ForecastSource:
    """A source by name, for one run.

    Parameters
    ----------
    workload : what is replayed
    history : the run's past, growing with it; reaches to the instant that the source is moved to
    seed : of its draws

    Raises
    ------
    ConfigError
        The package does not load, or makes nothing.
    """
    entry = _installed()[name]
    try:
        source = entry.load()(workload, history, seed)
    # Not the plug-in's fault, and nothing that another source would mend.
    except MemoryError:
        raise
    except Exception as error:  # another package's code may fail in any way
        why = f"{type(error).__name__}: {error}"
    else:
        # A callable may well return nothing; that would fail much later, and be told less well.
        if source is not None:
            return cast(ForecastSource, source)
        why = "makes nothing"
    raise ConfigError(f"--forecasts {name}: the plug-in {entry.value} cannot be used ({why}); mend it or take another")


_installed = points_of(ENTRY_POINTS)


CURVES = "accuracy-curve"
"""Learns from training curves and not from a trace of jobs."""
JCT, COMPLETION_TIME, QUEUE_WAIT = "jct", "completion-time", "queue-wait"
"""Completion times are forecast by replaying a policy: by what was seen until then, or by what a version has learnt."""


def check_known(command: str, name: str, known: Iterable[str], elsewhere: Iterable[str] = ()) -> None:
    """Raise a ConfigError for a name that is no predictor of a command, before any registry is asked for it.

    Parameters
    ----------
    command : as users type it
    name : of a predictor
    known : those that the caller answers for
    elsewhere : more that the command knows, to be listed

    >>> check_known("drift", "new-load", ("new-load",))
    """
    names = tuple(known)
    if name not in names:
        listed = ", ".join((*names, *elsewhere))
        raise ConfigError(f"{name!r} is no predictor of `jobcast {command}`; choose from {listed}")


def check_answers(command: str, name: str, questions: Iterable[Question]) -> None:
    """Raise a ConfigError for a predictor that answers none of the questions that a command knows.

    >>> check_answers("drift", "new-load", [Question.LOADS])
    """
    wanted = tuple(questions)
    if name not in MODELS or answers_of(name) not in wanted:
        ours = (one for one, place in OURS.items() if place.answers in wanted)
        check_known(command, name, (*ours, *(one for one in MODELS if one not in OURS and one != name)))


PREDICTORS = ("will-jobs-arrive", "new-load", "job-duration")
"""What a scheduler asks of the registry, by name."""

REGIME = "regime"
"""What a scheduler of training jobs asks of the registry."""
ACCURACY_CURVE = "accuracy-curve"
"""What a scheduler that goes by accuracies asks of the registry."""
EPOCH_TIME = "epoch-time"
"""What a scheduler of energy asks of the registry."""
REGIME_KINDS = ("restatement", "bayes", "greedy")
"""Rules that forecast regimes without any training. Shockwave, section 5."""
PLAIN_KINDS = ("oracle", "conservative", "random", *REGIME_KINDS)
PARTS = ("arrivals", "loads", "durations")
"""What a mixed source asks different sources about."""
PART_KINDS = ("oracle", "registry", "random", "conservative", "noisy")
"""Sources that may answer for a part."""
HELP = (
    "oracle, registry, registry:ALIAS, registry:NAME=VERSION,..., conservative, random, noisy:P, "
    "mixed:arrivals=SOURCE,loads=SOURCE,durations=SOURCE, an installed one, and for training jobs restatement, bayes, "
    "greedy"
)


@dataclass(frozen=True, slots=True)
class ForecastSpec:
    """A source and what was written behind its colon.

    Attributes
    ----------
    kind : oracle, registry, conservative, random, noisy, mixed, restatement, bayes, greedy, or an installed one
    alias : of the registry's models that are not pinned
    versions : (predictor, version) pairs that are pinned
    probability : of noise
    parts : of a mixed source: (one of `PARTS`, its source) pairs in the order of `PARTS`, without those not written
    installed : whether another package brings it
    found : (predictor, version) pairs that the alias was found to point at; see `as_found`
    """

    kind: str
    alias: str = "champion"
    versions: tuple[tuple[str, int], ...] = ()
    probability: float = 0.0
    parts: tuple[tuple[str, "ForecastSpec"], ...] = ()
    installed: bool = False
    found: tuple[tuple[str, int], ...] = field(default=(), compare=False)

    @property
    def draws(self) -> bool:
        """Whether the answers depend on the seed; those of an installed source may."""
        return self.installed or self.kind in ("random", "noisy") or any(spec.draws for _, spec in self.parts)

    @property
    def future(self) -> bool:
        """Whether any answer is read off the trace's future, which nobody has."""
        mixed = self.kind == "mixed" and any(self.part(name).future for name in PARTS)
        return self.kind in ("oracle", "noisy") or mixed

    @property
    def asks_registry(self) -> bool:
        """Whether any answer is a registered model's."""
        return self.kind == "registry" or any(spec.asks_registry for _, spec in self.parts)

    def pinned(self, name: str) -> tuple[str, int | str]:
        """Which predictor and version is asked in place of one of ours: what is pinned of its question, else itself.

        >>> parse_forecasts("registry:new-load=2").pinned("new-load"), REGISTRY.pinned("new-load")
        (('new-load', 2), ('new-load', 'champion'))
        """
        # A predictor of somebody else may answer the same question, and be pinned in place of ours.
        question = answers_of(name)
        # A pin goes before what an alias was found to point at.
        named = ((other, version) for other, version in self.versions if answers_of(other) == question)
        return next(named, (name, dict(self.found).get(name, self.alias)))

    def as_found(self, pointed: Collection[tuple[str, str, int]]) -> "ForecastSpec":
        """The same source, its aliases looked up once for all who ask it.

        Parameters
        ----------
        pointed : (predictor, alias, version) of a registry

        >>> REGISTRY.as_found([("new-load", "champion", 3), ("new-load", "challenger", 4)]).pinned("new-load")
        ('new-load', 3)
        """
        found = tuple((name, version) for name, alias, version in pointed if alias == self.alias)
        return replace(self, found=found, parts=tuple((part, spec.as_found(pointed)) for part, spec in self.parts))

    def part(self, name: str) -> "ForecastSpec":
        """What answers for a part: the oracle for one that was not written."""
        return dict(self.parts).get(name, ForecastSpec("oracle"))

    @property
    def label(self) -> str:
        """The source as it was written.

        >>> parse_forecasts("registry:new-load=2").label
        'registry:new-load=2'
        """
        if self.versions:
            return "registry:" + ",".join(f"{name}={version}" for name, version in self.versions)
        if self.kind == "mixed":
            return "mixed:" + ",".join(f"{name}={spec.label}" for name, spec in self.parts)
        if self.kind == "registry":
            return "registry" if self.alias == "champion" else f"registry:{self.alias}"
        return f"noisy:{self.probability:g}" if self.kind == "noisy" else self.kind


ORACLE, REGISTRY, RESTATEMENT = ForecastSpec("oracle"), ForecastSpec("registry"), ForecastSpec("restatement")
CONSERVATIVE = ForecastSpec("conservative")


def parse_forecasts(text: str) -> ForecastSpec:
    """One source; ConfigError lists the kinds when it is none.

    >>> parse_forecasts("noisy:0.25")
    ForecastSpec(kind='noisy', alias='champion', versions=(), probability=0.25, parts=(), installed=False, found=())
    """
    kind, _, argument = text.strip().partition(":")
    # An argument makes it another word, which no plain source knows.
    if kind in PLAIN_KINDS and not argument:
        return ForecastSpec(kind)
    if kind == "noisy":
        return ForecastSpec(kind, probability=_probability(text, argument))
    if kind == "registry":
        if "=" in argument:
            return ForecastSpec(kind, versions=_versions(text, argument))
        return ForecastSpec(kind, alias=argument or "champion")
    if kind == "mixed":
        return ForecastSpec(kind, parts=_parts(text, argument))
    installed = plugin_names()
    if text.strip() in installed:
        return ForecastSpec(text.strip(), installed=True)
    near = did_you_mean(kind, [*PLAIN_KINDS, "noisy", "registry", "mixed", *installed])
    raise ConfigError(f"--forecasts {text}: unknown source; {near}choose from {', '.join((HELP, *installed))}")


def split_forecasts(text: str) -> list[ForecastSpec]:
    """Several sources between commas; pins of one registry source and parts of a mixed one are kept together.

    >>> [spec.label for spec in split_forecasts("oracle,registry:new-load=2,job-duration=1,random")]
    ['oracle', 'registry:new-load=2,job-duration=1', 'random']
    >>> [spec.label for spec in split_forecasts("mixed:arrivals=random,loads=noisy:0.5,oracle")]
    ['mixed:arrivals=random,loads=noisy:0.5', 'oracle']
    """
    words: list[str] = []
    for word in (word.strip() for word in text.split(",")):
        name, equals, _ = word.partition("=")
        # `a=2` without a colon goes on with the source before it; with one it begins another.
        if equals and ":" not in name and words:
            words[-1] += f",{word}"
        elif word:
            words.append(word)
    if not words:
        raise ConfigError(f"--forecasts: nothing named; choose from {HELP}")
    return [parse_forecasts(word) for word in words]


def _probability(text: str, argument: str) -> float:
    try:
        probability = float(argument)
    except ValueError:
        # What is no number fails the same check below; so does NaN, which no comparison holds for.
        probability = -1.0
    if not 0 <= probability <= 1:
        raise ConfigError(f"--forecasts {text}: noisy takes a probability between 0 and 1, as in noisy:0.2")
    return probability


def _versions(text: str, argument: str) -> tuple[tuple[str, int], ...]:
    pairs: list[tuple[str, int]] = []
    for word in argument.split(","):
        name, _, version = word.partition("=")
        if name not in MODELS or not (version.isascii() and version.isdecimal()):
            raise ConfigError(
                f"--forecasts {text}: {word!r} is no NAME=VERSION; versions are numbers, names are {', '.join(MODELS)}"
            )
        if name in dict(pairs):
            raise ConfigError(f"--forecasts {text}: {name} is given twice; name one version of it")
        # Two models for one question: nobody could say which was asked.
        if rival := next((one for one, _ in pairs if answers_of(one) == answers_of(name)), None):
            raise ConfigError(f"--forecasts {text}: {rival} and {name} both answer {answers_of(name)}; name one")
        pairs.append((name, int(version)))
    return tuple(pairs)


def _parts(text: str, argument: str) -> tuple[tuple[str, ForecastSpec], ...]:
    parts: dict[str, ForecastSpec] = {}
    for word in argument.split(","):
        name, _, source = (one.strip() for one in word.partition("="))
        if name not in PARTS or source.partition(":")[0] not in PART_KINDS:
            raise ConfigError(
                f"--forecasts {text}: {word!r} is no PART=SOURCE; parts are {', '.join(PARTS)}, sources are oracle, "
                "registry, random, conservative and noisy:P"
            )
        if name in parts:
            raise ConfigError(f"--forecasts {text}: {name} is given twice; name one source of it")
        parts[name] = _part(text, source)
    # In one order whatever was written first: equal specs are one cell of a backtest.
    return tuple((name, parts[name]) for name in PARTS if name in parts)


def _part(text: str, source: str) -> ForecastSpec:
    try:
        return parse_forecasts(source)
    except ConfigError as error:
        raise ConfigError(f"--forecasts {text}: {str(error).removeprefix('--forecasts ')}") from error
