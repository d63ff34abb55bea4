"""A registered predictor to ask, or nobody where that is allowed."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobcast.domain.answer_checks import shown
from jobcast.domain.bad_answers import BadAnswers, Reason
from jobcast.domain.errors import JobcastError, RegistryError
from jobcast.pipelines.forecast_specs import ForecastSpec


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
    from jobcast.pipelines.sources import loaded_version

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
