"""Life of schedulers of tasks that are learned from replays. MLFS, sections 3.4 and 4.1."""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, ClassVar

from jobcast import __version__
from jobcast.domain.bad_answers import BadAnswers
from jobcast.domain.errors import ConfigError
from jobcast.domain.forecasts import Question
from jobcast.models.predictor import Known
from jobcast.models.predictors import ours_for
from jobcast.models.registry.cards import ModelCard
from jobcast.models.scheduling.policy import SchedulingPolicy
from jobcast.pipelines.lifecycle.learning_to_schedule.training import SCHEDULERS, TrainedScheduler, train_scheduler
from jobcast.pipelines.lifecycle.predictors.life import TRAIN, Asked, Fitted, Life
from jobcast.pipelines.lifecycle.recipes.common import TrainSettings
from jobcast.pipelines.report.console import Step
from jobcast.pipelines.report.model_tables import card_of_table
from jobcast.traces.table import Source

COUNTS = ("iterations", "workloads", "runs", "shown", "imitation_steps", "checks", "compared")
"""Whole numbers that `--set` knows beside files and servers: how long to train a scheduler."""
FILES = ("tasks", "curves", "cluster")


class TaskOrder(Life[SchedulingPolicy]):
    """Which task first, and where? Trained by replays of drawn workloads; scored and asked by replays too."""

    needs: ClassVar[Sequence[str]] = ("trace", "tasks", "curves")
    commands: ClassVar[Collection[str]] = (TRAIN,)
    reads: ClassVar[Mapping[str, Collection[str]]] = {TRAIN: ("from_s", "until_s", "tune", "pairs", "seed")}
    reads_settings: ClassVar[bool] = True
    says: ClassVar[Mapping[str, str]] = {TRAIN: "lifecycle.predictors.task_order:scheduler_table"}

    @classmethod
    def settings_from(cls, asked: Asked) -> TrainSettings:
        """Rounds of tuning, a seed, and `--set`. Raises ConfigError for a setting that is not known."""
        known = (*FILES, "gpus", *COUNTS)
        for key, text in asked.given.items():
            if key not in known:
                raise ConfigError(f"--set {key}: {asked['predictor']} knows {', '.join(known)}; correct it")
            least = 2 if key == "runs" else 1  # a run is compared with the others of its workload
            if key not in FILES and (not text.isdecimal() or int(text) < least):
                raise ConfigError(f"--set {key}={text}: must be a whole number >= {least}")
        # Told before a trace is read, for that may take minutes.
        from jobcast.models.scheduling.learner import need_torch

        need_torch()
        return TrainSettings(seed=asked["seed"], tune=asked["tune"], given=asked.given)

    @classmethod
    def files(cls, asked: Asked) -> Sequence[Path]:
        """Tables and the cluster."""
        return [Path(text) for key, text in asked.given.items() if key in FILES]

    @classmethod
    def known(cls, command: str, asked: Asked) -> Known:
        """The finished jobs of the window as a case of tasks, and forecasts of accuracies where there are any."""
        from jobcast.pipelines.experiments.clusters import named_cluster
        from jobcast.pipelines.experiments.experiment import Experiment
        from jobcast.schedulers.policies import TASKS
        from jobcast.traces.readers import read_trace

        given, result = asked.given, BadAnswers()
        gpus, cluster = given.get("gpus"), given.get("cluster")
        from_s, until_s = asked.window
        whole = read_trace(asked.path)
        trace = whole if until_s is None else whole.ends_known(until_s)  # what ends later cannot be replayed
        place = named_cluster(
            trace,
            pools=None,
            cluster=Path(cluster) if cluster else None,
            gpus=int(gpus) if gpus else None,
            from_s=from_s,
        )
        # The cluster is no fact of the jobs: it goes its own way.
        tables = {key: given[key] for key in FILES if key in given and key != "cluster"}
        # a job that the servers of a training cannot hold teaches nothing there
        scenario = Experiment(
            trace=trace, cluster=place, from_s=from_s, until_s=until_s, drop_wide=True, given=tables
        ).scenario(TASKS)
        more = {"scenario": scenario, "accuracies": _accuracies(asked, result), "tally": result, "asked": asked}
        return Known(scenario.trace, more, from_s, until_s)

    def fitted(self, known: Known, progress: Step | None) -> Fitted:
        """By policy gradient, from MLF-H on; an interrupted training goes on."""
        scenario, asked, seed = known.tables["scenario"], known.tables["asked"], self.settings.seed
        counts: dict[str, Any] = {key: int(text) for key, text in self.settings.given.items() if key in COUNTS}
        # In the store, so that a second command finds it whatever folder it is given in.
        draft = asked.home / "mlruns" / "unfinished" / f"{self.name}-{self._named(known, counts)}"
        trained = train_scheduler(
            self.name,
            scenario.workload,
            draft,
            seed=seed,
            settings=replace(SCHEDULERS[self.name].lengths, tune=self.settings.tune, **counts),
            forecast=known.tables["accuracies"],
            progress=progress,
            note=asked.note,
        )
        policy = trained.predictor
        ended_s = float(known.jobs.end_s.max()) if known.until_s is None else known.until_s
        policy.trained_until_s_ = ended_s  # replays tell when jobs end, too
        result = {
            "training": asdict(policy.training_),
            "tried": [dict(each) for each in trained.tried],
            "checks": [{"iteration": iteration, "reward": reward} for iteration, reward in trained.checks],
            "against_mlf_h": None if policy.measured_ is None else asdict(policy.measured_),
            "better": policy.better_,
            "inputs": scenario.provenance(),
            "notes": [*scenario.notes, *(f"bad forecasts, {line}" for line in known.tables["tally"].lines())],
            "dropped": dict(scenario.dropped),
            "jobcast": __version__,
        }
        return Fitted(policy, scheduler_card(trained, scenario.trace.name, scenario.trace.source), result, draft=draft)

    def _named(self, known: Known, counts: Mapping[str, int]) -> str:
        """What tells this training from others, so that none goes on from another's folder."""
        # Jobs, servers, seed and lengths: all that the weights hang on.
        rows = [known.tables["scenario"].provenance(), self.settings.seed, self.settings.tune, dict(counts)]
        return hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()[:16]


def _accuracies(asked: Asked, tally: BadAnswers) -> Any:
    """Forecasts of training curves as far as they can be, bad ones counted; None where there is no model of these.

    The champion's, or those of the model that is asked for in its place.
    """
    from jobcast.models.curves.accuracy_curve import guarded_accuracies
    from jobcast.pipelines.experiments.tasks.simulation import by_model

    model = asked["accuracies"] if "accuracies" in asked.parameters else _champion(asked.home)
    return None if model is None else guarded_accuracies(by_model(model), tally)


def _champion(home: Path) -> Any:
    """The champion of training curves; None where there is none."""
    from jobcast.models.registry import open_registry
    from jobcast.pipelines.experiments.sources import loaded_version

    registry, name = open_registry(home), ours_for(Question.ACCURACIES)
    # Asking a registry for a champion that is not there is an error; here it is the usual case.
    if name not in {version.name for version in registry.list()}:
        return None
    return loaded_version(home, name, registry.resolve(name).version)


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
    return card_of_table(
        source,
        policy,
        training.seed,
        algorithm=policy.algorithm,
        trace_name=trace_name,
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
