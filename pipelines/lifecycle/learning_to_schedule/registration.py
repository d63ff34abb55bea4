"""What a training of a scheduler found, for the registry and for a person."""

from collections.abc import Mapping
from typing import Any

from jobcast.models.registry.cards import ModelCard
from jobcast.pipelines.lifecycle.learning_to_schedule.training import TrainedScheduler
from jobcast.traces.table import Source


def scheduler_table(result: Mapping[str, Any]) -> str:
    """The version, how well MLF-H was imitated, and what the policy reached against it; a line each."""
    lines = [f"{result['predictor']} {result['version']} ({', '.join(result['aliases'])}): {result['algorithm']}"]
    lines += [f"imitation, {name:<12} {value:.3f}" for name, value in result["training"]["imitation"].items()]
    found = result["against_mlf_h"]
    if found:
        lines.append(f"against MLF-H on {found['workloads']} workloads, mean change (95 %):")
        for name, mean in found["means"].items():
            lines.append(f"  {name:<16} {mean:+.4f} ({found['lows'][name]:+.4f} to {found['highs'][name]:+.4f})")
    lines.append("mlfs uses it" if result["better"] else "not measured to be better than MLF-H: mlfs goes on with that")
    return "\n".join(lines)


def scheduler_card(trained: TrainedScheduler, trace_name: str, source: Source) -> ModelCard:
    """What the registry is told: how it was trained, and what it reached against MLF-H on jobs that it had not seen."""
    policy, training, found = trained.predictor, trained.predictor.training_, trained.predictor.measured_
    metrics: dict[str, object] = {"imitation": dict(training.imitation)}
    if found is not None:
        metrics["against_mlf_h"] = {"mean": dict(found.means), "low": dict(found.lows), "high": dict(found.highs)}
    verdict = "measured to be better than" if policy.better_ else "not measured to be better than"
    return ModelCard(
        name=policy.name,
        algorithm=policy.algorithm,
        seed=training.seed,
        trace_name=trace_name,
        trace_sha256=source.sha256,
        trace_rows=source.rows,
        train_from_s=policy.trained_from_s_,
        train_until_s=policy.trained_until_s_,
        feature_names=policy.columns_["jobs"],
        parameters={
            "iterations": training.iterations,
            "jobs": training.jobs,
            "servers": training.servers,
            "better": policy.better_,
            **{f"beta_{number}": beta for number, beta in enumerate(training.betas, start=1)},
        },
        metrics=metrics,
        series={
            "reward": tuple(step["reward"] for step in trained.history),
            "check": tuple(value for _, value in trained.checks),
        },
        description=f"{policy.algorithm}, trained on {training.jobs} jobs of {trace_name}; {verdict} MLF-H",
    )
