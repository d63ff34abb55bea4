"""Scoring a registered version on a window of a trace: the figures of `jobcast evaluate`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jobcast.models.predictor import Known
from jobcast.models.registry import Registry, open_registry
from jobcast.models.registry.cards import ModelVersion
from jobcast.models.registry.references import Ref
from jobcast.pipelines.experiments.forecast_specs import JCT
from jobcast.pipelines.lifecycle.predictors import check_capable, find_predictor
from jobcast.pipelines.lifecycle.predictors.life import EVALUATE, Life, VersionAndData, Wishes
from jobcast.pipelines.lifecycle.predictors.traces import scored_pools, stretch_of
from jobcast.pipelines.report.console import Step
from jobcast.pipelines.report.model_tables import of_version
from jobcast.pipelines.report.predictor_plots import CurvePoints
from jobcast.traces.table import Trace

__all__ = ["Evaluated", "evaluate_known", "evaluate_version", "opened", "scored_pools", "stretch_of"]


@dataclass(frozen=True, slots=True)
class Evaluated:
    """Figures as `jobcast evaluate --json` tells them, and points for plots where they were wished for."""

    result: dict[str, Any]
    version: ModelVersion
    curves: CurvePoints = field(default_factory=CurvePoints)


def evaluate_version(
    reference: tuple[str, Ref],
    trace: Trace,
    from_s: float | None,
    until_s: float | None,
    *,
    home: Path,
    allow_overlap: bool = False,
    progress: Step | None = None,
    wishes: Wishes | None = None,
) -> Evaluated:
    """`evaluate_known` on [from, until) of a trace."""
    known = Known(trace, {}, from_s, until_s)
    return evaluate_known(
        reference, known, home=home, allow_overlap=allow_overlap, progress=progress, wishes=wishes or Wishes()
    )


def evaluate_known(
    reference: tuple[str, Ref],
    known: Known,
    *,
    home: Path,
    wishes: Wishes,
    allow_overlap: bool = False,
    progress: Step | None = None,
) -> Evaluated:
    """Figures of a version on data; by default of what came after its training.

    Raises RegistryError, OverlapError for a version that cannot be used, TrainingError when nothing can be scored,
    ConfigError for wishes that cannot be granted.
    """
    check_capable(EVALUATE, reference[0], (JCT,))
    predictor, version, registry = opened(reference, home)
    case = VersionAndData(known, version, registry, wishes, allow_overlap, progress)
    figures, curves = predictor.scored(case)
    return Evaluated({**of_version(version), **figures}, version, curves)


def opened(reference: tuple[str, Ref], home: Path) -> tuple[Life[Any], ModelVersion, Registry]:
    """A predictor with the model of a registered version. Raises RegistryError for one that is not there."""
    registry = open_registry(home)
    version = registry.resolve(*reference)
    predictor = find_predictor(reference[0])
    predictor.model_ = registry.load(version)
    return predictor, version, registry
