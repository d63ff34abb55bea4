"""From data to a registered version: a predictor is fitted, saved, registered; all of them by this one path."""

import shutil
from pathlib import Path
from typing import Any

from jobcast.models.predictor import Known
from jobcast.models.registry import open_registry
from jobcast.models.registry.references import CHAMPION
from jobcast.pipelines.lifecycle.model_files import drawn_card
from jobcast.pipelines.lifecycle.predictors import find_predictor
from jobcast.pipelines.lifecycle.predictors.life import Life
from jobcast.pipelines.lifecycle.recipes.common import TrainSettings
from jobcast.pipelines.report.console import Step
from jobcast.pipelines.report.model_tables import of_training, saved
from jobcast.traces.table import Trace


def train_version(predictor: Life[Any], known: Known, *, home: Path, progress: Step | None = None) -> dict[str, Any]:
    """Fit a predictor on what is known and register it as a new version; what to tell the user.

    Raises ConfigError, TrainingError for what cannot be trained, RegistryError for a store that cannot be used.
    """
    fitted = predictor.fit(known, progress).fitted_
    # The folder is registered whole: what lies beside the model is part of the version's content.
    with saved(fitted.model) as folder, drawn_card(fitted.card, fitted.curves, fitted.tables) as card:
        fitted.beside(folder)
        version = open_registry(home).register(folder, card)
    # Not before the version is safe: until then the next command goes on from it.
    if fitted.draft is not None:
        shutil.rmtree(fitted.draft)
    # The first version of a name is champion without anything to compare it with; that is said.
    first = version.is_new and version.instead_of is None
    gated = {"gated": False} if first and CHAMPION in version.aliases else {}
    return {**of_training(version, home, predictor.settings.seed), **gated, **fitted.figures}


def train_and_register(
    predictor: str,
    algorithm: str | None,
    trace: Trace,
    from_s: float | None,
    until_s: float | None,
    settings: TrainSettings,
    *,
    home: Path,
    progress: Step | None = None,
) -> dict[str, Any]:
    """`train_version` of a predictor by its name on [from, until) of a trace."""
    known = Known(trace, {}, from_s, until_s)
    return train_version(find_predictor(predictor, algorithm, settings), known, home=home, progress=progress)
