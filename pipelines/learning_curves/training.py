"""`jobcast train accuracy-curve`: from a file of curves to a registered version."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jobcast.domain.errors import ConfigError, TrainingError
from jobcast.models.curves.accuracy_curve import AccuracyCurve
from jobcast.models.registry.cards import ModelCard
from jobcast.pipelines.console import Step
from jobcast.pipelines.learning_curves.algorithms import ALGORITHMS, fitted
from jobcast.pipelines.learning_curves.fingerprints import write_trained
from jobcast.pipelines.learning_curves.held_out import Twins, held_out, part_of
from jobcast.pipelines.model_tables import made_from, of_training, save_and_register
from jobcast.traces.learning_curves import CurveTable, LearningCurve


def train_and_register_curves(
    table: CurveTable,
    algorithm: str | None = None,
    seed: int = 0,
    *,
    home: Path,
    progress: Step | None = None,
) -> dict[str, Any]:
    """Learn from a file's curves and register a new version; what to tell the user.

    Raises ConfigError for an algorithm that is not known, TrainingError for curves that nothing can be learned from,
    RegistryError for a store that cannot be used.
    """
    chosen = algorithm or next(iter(ALGORITHMS))
    if chosen not in ALGORITHMS:
        raise ConfigError(f"--algorithm {chosen}: {AccuracyCurve.name} knows {', '.join(ALGORITHMS)}")
    try:
        model = fitted(chosen, table.curves, seed, part_of(progress, 0, 2))
        model.trained_from_s_, model.trained_until_s_ = table.from_s, table.until_s
    except TrainingError as error:
        raise TrainingError(f"{table.path}: {error}") from error
    twins = held_out(table.curves, lambda curves, step: fitted(chosen, curves, seed, step), part_of(progress, 1, 2))
    card = _card(table, model, chosen, seed, twins)
    version = save_and_register(home, model, card, lambda folder: write_trained(folder, table.curves))
    return {
        **of_training(version, home, seed),
        "training": {**counts(table.curves), "apps": apps_of(table.curves)},
        "validation": {"left_out": twins.left_out, "prefixes": twins.figures},
        **made_from(table, (*table.notes, *twins.notes)),
    }


def apps_of(curves: Sequence[LearningCurve]) -> list[str]:
    """Applications of some curves, ascending."""
    return sorted({curve.app for curve in curves})


def counts(curves: Sequence[LearningCurve]) -> dict[str, int]:
    """How much there is to learn from or to score."""
    scheduled = sum(bool(curve.lr_milestones) for curve in curves)
    return {"curves": len(curves), "epochs": sum(map(len, curves)), "curves_with_lr_milestones": scheduled}


def _card(table: CurveTable, model: AccuracyCurve, algorithm: str, seed: int, twins: Twins) -> ModelCard:
    """What the registry is told; its metrics are of twins that did not see what they were scored on."""
    apps = ", ".join(apps_of(table.curves))
    told: Mapping[str, Any] = counts(table.curves)
    name = Path(table.path).stem
    return ModelCard(
        name=model.name,
        algorithm=algorithm,
        seed=seed,
        trace_name=name,
        trace_sha256=table.sha256,
        trace_rows=table.rows,
        train_from_s=model.trained_from_s_,
        train_until_s=model.trained_until_s_,
        parameters={**told, "apps": apps, "twins": twins.left_out},
        metrics={"validation": {f"prefix_{share}": figures for share, figures in twins.figures.items()}},
        description=f"{algorithm}, trained on {told['curves']} curves of {name} ({apps}); metrics are {twins.said}",
    )
