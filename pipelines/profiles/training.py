"""`jobcast train epoch-time`: from a table of profiles to a registered version."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jobcast.models.epoch_time.epoch_time import EpochTime
from jobcast.models.epoch_time.plans import HALF, MOST, ONE, PLANS
from jobcast.models.registry.cards import ModelCard
from jobcast.pipelines.console import Step
from jobcast.pipelines.model_tables import made_from, of_training, save_and_register
from jobcast.traces.profiles import ProfileTable

GPUS = {ONE: "the fewest GPUs", HALF: "the middle number of GPUs", MOST: "the most GPUs"}
"""What a plan's words mean."""


def train_and_register_epoch_time(
    table: ProfileTable, seed: int = 0, *, home: Path, progress: Step | None = None
) -> dict[str, Any]:
    """Learn from a table of profiles and register a new version; what to tell the user.

    A table of a window's jobs says so in what is registered: a run of jobs before its end is refused.

    Raises TrainingError for profiles of one model only, RegistryError for a store that cannot be used.
    """
    model = EpochTime(seed).fit(table, tick=progress or (lambda done, total: None))
    version = save_and_register(home, model, _card(table, model, seed))
    return {
        **of_training(version, home, seed),
        "training": {"rows": len(table), "models": list(table.models), "gpu_types": list(table.gpu_types)},
        "plan": model.plan_,
        "points": [f"{size} batch size on {GPUS[gpus]}" for size, gpus in PLANS[model.plan_]],
        "batch_sizes": dict(model.counts_),
        "validation": {"left_out": "application", "mape_by_plan": dict(model.validation_)},
        **made_from(table, table.notes),
    }


def training_table(result: Mapping[str, Any]) -> str:
    """What `train` says."""
    training, spreads = result["training"], result["batch_sizes"]
    by_plan = ", ".join(f"{plan} {share:.1%}" for plan, share in result["validation"]["mape_by_plan"].items())
    return "\n".join(
        [
            f"{result['predictor']} version {result['version']} ({', '.join(result['aliases'])})",
            f"trained on {training['rows']} profiles of {', '.join(training['models'])}",
            f"batch sizes are a GPU's in {spreads['gpu']} models, the job's in {spreads['job']}",
            f"mean error of models left out, by the three points that are profiled: {by_plan}",
            f"profile by {result['plan']}: {'; '.join(result['points'])}",
        ]
    )


def _card(table: ProfileTable, model: EpochTime, seed: int) -> ModelCard:
    """What the registry is told; its metrics are of models that were left out."""
    name = Path(table.path).stem
    return ModelCard(
        name=model.name,
        algorithm=model.algorithm,
        seed=seed,
        trace_name=name,
        trace_sha256=table.sha256,
        trace_rows=table.rows,
        train_from_s=model.trained_from_s_,
        train_until_s=model.trained_until_s_,
        parameters={"models": ", ".join(table.models), "gpu_types": ", ".join(table.gpu_types), "plan": model.plan_},
        metrics={"validation": {plan: {"mape": share} for plan, share in model.validation_.items()}},
        description=f"{model.algorithm}, trained on {len(table)} profiles of {name}; metrics are of models left out",
    )
