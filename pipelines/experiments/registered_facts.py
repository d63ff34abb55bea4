"""What a registered model tells a policy in the place of what jobs declare."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from jobcast.domain.bad_answers import BadAnswers
from jobcast.pipelines.experiments.forecast_specs import ForecastSpec
from jobcast.pipelines.experiments.scenarios import Scenario
from jobcast.pipelines.experiments.seen_data import seen_by
from jobcast.pipelines.experiments.sources import registered, trust

if TYPE_CHECKING:
    from jobcast.pipelines.experiments.simulation import Simulated

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Believed(Generic[T]):
    """Answers, None where jobs are believed what they declare; versions behind them; bad answers."""

    answers: T | None = None
    models: Mapping[str, int] = field(default_factory=dict)
    overlap: bool = False
    told: BadAnswers = field(default_factory=BadAnswers)

    def beside(self, ran: "Simulated") -> "Simulated":
        """A run with what its forecasts rest on."""
        return replace(ran, models=self.models, overlap=self.overlap, trust=trust(self.told, self.models))


def believed(
    name: str,
    kind: str,
    spec: ForecastSpec,
    scenario: Scenario[Any, Any],
    ask: Callable[[Any, BadAnswers], T],
    conservative: Callable[[], T],
    *,
    home: Path,
    allow_overlap: bool,
    degrade: bool | None,
) -> Believed[T]:
    """What the champion of a predictor, or the version that a source names, answers about a scenario; else nothing.

    Parameters
    ----------
    name : of our predictor; see `sources.registered`
    kind : as what bad answers are counted
    ask : of a model; counts its bad answers
    conservative : what is believed where `degrade` allows that there is no version

    Raises RegistryError for a version that is not there, OverlapError for one that has seen the window.
    """
    if spec.kind != "registry":
        return Believed()
    told = BadAnswers()
    asked = registered(name, spec, home, told, kind, degrade)
    if asked is None:
        return Believed(conservative(), told=told)
    overlap = seen_by(asked.version, scenario.trace, allow_overlap)
    return Believed(ask(asked.model, told), {asked.version.name: asked.version.version}, overlap, told)
