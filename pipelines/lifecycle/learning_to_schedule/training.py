"""MLF-RL and Device RL from a trace to a policy: imitation, weights of the reward, policy gradient, comparison."""

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.errors import ConfigError
from jobcast.domain.tasks import AccuracyForecast, TaskRule
from jobcast.models.scheduling.learner import BETAS, Explorer, Learner, need_torch, search_betas
from jobcast.models.scheduling.policy import DevicePolicy, MlfPolicy, Training
from jobcast.pipelines.lifecycle.learning_to_schedule.explorations import (
    Episodes,
    compare,
    is_better,
    objectives_beyond,
    spreads,
)
from jobcast.pipelines.lifecycle.learning_to_schedule.pick_by_pick import FEATURES, HOSTS, JOBS
from jobcast.pipelines.lifecycle.learning_to_schedule.policy_gradient import (
    RATE,
    Rollout,
    as_taught,
    best,
    imitate,
    improve,
    roll_out,
    sampling,
    worth,
)
from jobcast.pipelines.lifecycle.learning_to_schedule.task_courses import (
    OBJECTIVES,
    EpisodeSettings,
    TaskCourses,
    draw_episode,
    part_of,
)
from jobcast.schedulers.tasks.features import HOST_FEATURES, JOB_FEATURES, ML_FEATURES
from jobcast.schedulers.tasks.learned_priorities import RANK_FEATURES, LearnedPriorities, corrections_of
from jobcast.schedulers.tasks.mlf_h import MlfH
from jobcast.schedulers.tasks.mlf_rl import MlfRl
from jobcast.schedulers.tasks.mlfs_settings import HeuristicSettings
from jobcast.schedulers.tasks.network import Networks, networks_of
from jobcast.simulator.task_workload import TaskWorkload

Policy = MlfPolicy | DevicePolicy


@dataclass(frozen=True, slots=True)
class Kind:
    """What tells a predictor's training from another's.

    Attributes
    ----------
    betas : weights of the reward
    blank : columns of jobs that are not read
    settings : of MLF-H, as far as the policy shares them
    policy : the class that is registered
    explores : whether corrections of MLF-H are learned by changes of weights, not networks by drawn picks
    """

    betas: tuple[float, ...]
    blank: tuple[str, ...]
    settings: HeuristicSettings
    policy: type[Policy]
    explores: bool = False

    @property
    def lengths(self) -> "SchedulerSettings":
        """How long it is trained where nothing else is asked for."""
        return (
            SchedulerSettings(iterations=500, workloads=4, runs=2, checks=12) if self.explores else SchedulerSettings()
        )


DEVICE_RL = HeuristicSettings(h_r=1.0, migration=False, preempt=False)
"""As `schedulers.tasks.mlf_rl.device_rl` runs by default: servers are filled, nothing leaves them."""
SCHEDULERS: Mapping[str, Kind] = {
    MlfPolicy.name: Kind(BETAS, (), HeuristicSettings(), MlfPolicy, explores=True),
    DevicePolicy.name: Kind((1.0, *(0.0,) * (OBJECTIVES - 1)), ML_FEATURES, DEVICE_RL, DevicePolicy),
}
"""By predictor."""


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """How long to train.

    Attributes
    ----------
    iterations : of policy gradient
    workloads, runs : of an iteration: drawn workloads, and runs of each
    shown, imitation_steps : runs of MLF-H, and steps of learning from them
    checks : workloads of a check
    compared : workloads of the comparison
    tune : rounds of Bayesian optimisation for the weights of the reward; 0 keeps those of MLFS, section 4.1
    episode : what workloads are drawn
    """

    iterations: int = 80
    workloads: int = 3
    runs: int = 6
    shown: int = 16
    imitation_steps: int = 400
    checks: int = 8
    compared: int = 20
    tune: int = 0
    episode: EpisodeSettings = field(default_factory=lambda: EpisodeSettings())


STATE, WEIGHTS = "state.json", "learner.pt"


@dataclass(slots=True)
class Standing:
    """Where a training stands.

    Attributes
    ----------
    iteration : policy gradient iterations done
    betas : weights of the reward
    imitation : how well MLF-H is imitated, by head
    history : by iteration, what was earned
    checks : by check, the iteration and the reward on workloads kept apart
    best : weights of the best check
    start : weights after imitation
    tried : what the search for weights of the reward tried
    """

    iteration: int = 0
    betas: tuple[float, ...] = ()
    imitation: dict[str, float] = field(default_factory=dict)
    history: list[dict[str, float]] = field(default_factory=list)
    checks: list[tuple[int, float]] = field(default_factory=list)
    best: dict[str, list[Any]] = field(default_factory=dict)
    start: dict[str, list[Any]] = field(default_factory=dict)
    tried: list[dict[str, Any]] = field(default_factory=list)


def _listed(learner: Any) -> dict[str, list[Any]]:
    """Weights as JSON takes them."""
    return {name: values.tolist() for name, values in learner.arrays().items()}


def keep(folder: Path, asked: Mapping[str, Any], standing: Standing, learner: Learner | Explorer) -> None:
    """Write all of it; each file in place of the old one at once, the state last."""
    folder.mkdir(parents=True, exist_ok=True)
    # A new name each time: the old weights stay until the state names the new ones.
    fresh = folder / f"{WEIGHTS}.{standing.iteration}"
    learner.save(fresh)
    text = json.dumps({"asked": dict(asked), "weights": fresh.name, **asdict(standing)})
    part = folder / f"{STATE}.part"
    part.write_text(text, encoding="utf-8")
    # Whole or not at all.
    os.replace(part, folder / STATE)
    for old in folder.glob(f"{WEIGHTS}.*"):
        if old != fresh:
            old.unlink()


def resume(folder: Path, asked: Mapping[str, Any], learner: Learner | Explorer) -> Standing | None:
    """What `keep` wrote, the learner brought there; None where there is nothing.

    Raises
    ------
    ConfigError
        The folder holds a training that was asked for otherwise.
    """
    path = folder / STATE
    if not path.is_file():
        return None
    saved = json.loads(path.read_text(encoding="utf-8"))
    # Through JSON and back, for tuples are lists there.
    if saved.pop("asked") != json.loads(json.dumps(dict(asked))):
        raise ConfigError(f"{path}: a training with other settings or jobs; give another folder, or remove this one")
    learner.restore(folder / saved.pop("weights"))
    saved["betas"] = tuple(saved["betas"])
    saved["checks"] = [tuple(check) for check in saved["checks"]]
    return Standing(**saved)


TRAIN_SHARE = 0.7
"""Of the jobs, the earliest; the others are for the comparison."""
CHECK_EVERY = 5
"""Iterations between two checks on workloads kept apart; the weights of the best check are kept."""
STREAMS = {"shown": 0, "run": 1, "check": 2, "compare": 3, "tune": 4}
"""Draws that must not meet."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainedScheduler:
    """A policy, and what was seen on the way: by iteration what was earned, the checks, and the weights tried."""

    predictor: Policy
    history: tuple[Mapping[str, float], ...]
    checks: tuple[tuple[int, float], ...]
    tried: tuple[Mapping[str, Any], ...]


def train_scheduler(
    name: str,
    workload: TaskWorkload,
    folder: Path,
    *,
    seed: int = 0,
    settings: SchedulerSettings | None = None,
    forecast: AccuracyForecast | None = None,
    progress: Callable[[int, int], None] | None = None,
    note: Callable[[str], None] | None = None,
) -> TrainedScheduler:
    """Train `mlf-policy` or `device-rl`; goes on where the folder holds the same training unfinished.

    Parameters
    ----------
    workload : jobs of a trace, their tasks and curves, and the servers
    folder : for checkpoints
    seed : of everything
    forecast : of final accuracies; must tell them from the curves that it is shown, not from job numbers
    progress : called with (steps done, all)
    note : told what was found, a line at a time

    Raises
    ------
    ConfigError
        No such predictor, PyTorch is missing, or the folder holds another training.
    TrainingError
        There are too few jobs that fit on the servers.
    """
    if name not in SCHEDULERS:
        raise ConfigError(f"{name!r} is no learned scheduler; choose from {', '.join(SCHEDULERS)}")
    need_torch()
    workload.check()
    kind = SCHEDULERS[name]
    asked = (kind, settings or kind.lengths, seed, forecast)
    trainer = _Explorations if kind.explores else _Trainer
    return trainer(*asked, workload, folder, progress or _quiet, note or _quiet).run()


def _quiet(*_: object) -> None:
    """Tells nobody."""


@dataclass(eq=False)
class _Trainer:
    _kind: Kind
    _settings: SchedulerSettings
    _seed: int
    _forecast: AccuracyForecast | None
    _workload: TaskWorkload
    _folder: Path
    _progress: Callable[[int, int], None]
    _note: Callable[[str], None]

    def __post_init__(self) -> None:
        whole = self._workload
        count = max(int(TRAIN_SHARE * len(whole)), min(2, len(whole)))
        self._learnt = part_of(whole, np.arange(count))
        # An episode needs two jobs: where fewer are left, the comparison is on jobs that were learnt from.
        self._apart = part_of(whole, np.arange(count, len(whole))) if count + 2 <= len(whole) else None
        drawn = (self._learnt, self._kind.settings, self._forecast, self._settings.episode)
        self._courses, self._unscaled = TaskCourses(*drawn), TaskCourses(*drawn, scaled=False)

    def run(self) -> TrainedScheduler:
        """From the first step, or from the last checkpoint on, to the end."""
        learner = self._learner()
        standing = resume(self._folder, self._asked(), learner) or self._begin(learner)
        while standing.iteration < self._settings.iterations:
            self._iterate(learner, standing)
        return self._finish(standing)

    def _learner(self) -> Any:
        """One that has learnt nothing yet."""
        # Made again after an interrupt: they take seconds, and columns are blanked by them.
        self._runs = [self._shown(number) for number in range(max(self._settings.shown, 2))]
        return Learner(FEATURES, blank=self._blank(self._runs), seed=self._seed)

    def _asked(self) -> dict[str, Any]:
        jobs = self._workload.jobs
        result = hashlib.sha256(b"".join(np.ascontiguousarray(column).tobytes() for column in jobs)).hexdigest()
        # Those two may differ: a training may go on for longer, or be compared on more.
        length = asdict(replace(self._settings, iterations=0, compared=0))
        return {"name": self._kind.policy.name, "seed": self._seed, "jobs": result, "settings": length}

    def _rng(self, stream: str, *numbers: int) -> np.random.Generator:
        return np.random.default_rng([self._seed, STREAMS[stream], *numbers])

    def _seed_of(self, stream: str, *numbers: int) -> int:
        """Seed of an episode, another for other numbers."""
        # Numbers side by side, not added: no two streams ever share a seed.
        return sum(number << 32 * place for place, number in enumerate((self._seed, STREAMS[stream], *numbers)))

    def _shown(self, number: int) -> Rollout:
        self._progress(number, self._settings.shown)
        return roll_out(self._unscaled, self._seed_of("shown", number), as_taught)

    def _blank(self, shown: list[Rollout]) -> tuple[int, ...]:
        """Columns of jobs that are not to be read, and those that were never anything but 0."""
        # Weights of columns that were always 0 would stay as they were drawn, and speak up later.
        used = np.any([np.any(run.picks[JOBS].rows != 0.0, axis=0) for run in shown], axis=0)
        named = {JOB_FEATURES.index(name) for name in self._kind.blank}
        return tuple(sorted(named | set(np.flatnonzero(~used).tolist())))

    def _begin(self, learner: Any) -> Standing:
        """Imitation, and the search for weights of the reward where it was asked for."""
        imitation = self._imitated(learner)
        start, listed = learner.arrays(), _listed(learner)
        standing = Standing(betas=self._kind.betas, imitation=imitation, start=listed, best=listed)
        self._tune(learner, standing, start)
        standing.checks.append((0, self._check(start, standing.betas)))
        keep(self._folder, self._asked(), standing, learner)
        return standing

    def _imitated(self, learner: Any) -> dict[str, float]:
        """Learn MLF-H's picks; how well these are told, by head."""
        fits = imitate(learner, self._runs, self._settings.imitation_steps, self._seed, self._progress)
        self._note("imitation of MLF-H: " + ", ".join(f"{head} {fit.accuracy:.1%}" for head, fit in fits.items()))
        return {head: fit.accuracy for head, fit in fits.items()}

    def _tune(self, learner: Any, standing: Standing, start: Mapping[str, Floats]) -> None:
        """Weights of the reward, where they are to be looked for: each tried by a short training from the same start.

        Some by Bayesian optimisation, then small changes of the best.
        """
        if not self._settings.tune:
            return
        done, total = count(1), self._settings.tune + len(BETAS)

        def train(betas: tuple[float, ...]) -> float:
            learner.assign(start)
            for number in range(self._short):
                self._learn(learner, betas, "tune", number)
            self._progress(next(done), total)
            return worth(self._value(learner.arrays()))

        tried = search_betas(train, self._settings.tune, self._seed)
        standing.tried = [asdict(each) for each in tried]
        standing.betas = max(tried, key=lambda each: each.value).betas
        # Short trainings have changed the weights.
        learner.assign(start)

    def _groups(self, networks: Networks, stream: str, iteration: int) -> list[list[Rollout]]:
        """Runs of an iteration, those of one workload in a group."""
        groups = []
        for place in range(self._settings.workloads):
            seed = self._seed_of(stream, iteration, place)
            chances = [self._rng(stream, iteration, place, run) for run in range(self._settings.runs)]
            groups.append([roll_out(self._courses, seed, sampling(networks, rng)) for rng in chances])
        return groups

    def _learn(
        self, learner: Any, betas: tuple[float, ...], stream: str, iteration: int, falling: float = 1.0
    ) -> dict[str, float]:
        """Learn from an iteration's runs; what they earned."""
        groups = self._groups(networks_of(learner.arrays()), stream, iteration)
        reward, objectives = improve(learner, groups, betas, self._seed + iteration, RATE * falling)
        return {"reward": reward, "completion": float(objectives[0])}

    def _iterate(self, learner: Any, standing: Standing) -> None:
        # To a tenth at the end; small steps where little is left to gain.
        falling = 1.0 - 0.9 * standing.iteration / self._settings.iterations
        learnt = self._learn(learner, standing.betas, "run", standing.iteration, falling)
        # Explorations earn no reward of their own: that of the last check stands for it.
        standing.history.append({"reward": standing.checks[-1][1], **learnt})
        standing.iteration += 1
        if standing.iteration % self._every == 0 or standing.iteration == self._settings.iterations:
            value = self._check(learner.arrays(), standing.betas)
            # The first check is of imitation alone: whoever never beats it stays with that.
            if value > max(each for _, each in standing.checks):
                standing.best = _listed(learner)
            standing.checks.append((standing.iteration, value))
            self._note(f"iteration {standing.iteration}: reward {value:.4f}, imitation {standing.checks[0][1]:.4f}")
        keep(self._folder, self._asked(), standing, learner)
        self._progress(standing.iteration, self._settings.iterations)

    def _value(self, arrays: Mapping[str, Floats]) -> tuple[float, ...]:
        """Objectives on workloads kept apart, the highest scores picked; means."""
        networks = networks_of(arrays)
        seeds = [self._seed_of("check", number) for number in range(self._settings.checks)]
        totals = [roll_out(self._courses, seed, best(networks)).rewards.sum(axis=0) for seed in seeds]
        return tuple(np.mean(totals, axis=0).tolist())

    def _check(self, arrays: Mapping[str, Floats], betas: tuple[float, ...]) -> float:
        return float(np.asarray(self._value(arrays)) @ np.asarray(betas))

    _every: ClassVar[int] = CHECK_EVERY
    _short: ClassVar[int] = 4
    """Iterations of a short training."""
    _columns: ClassVar[Mapping[str, tuple[str, ...]]] = {JOBS: JOB_FEATURES, HOSTS: HOST_FEATURES}

    def _policy(self, arrays: Mapping[str, Floats]) -> TaskRule:
        return MlfRl(networks_of(arrays), settings=self._kind.settings)

    def _finish(self, standing: Standing) -> TrainedScheduler:
        """Compare with MLF-H on jobs that were not learnt from, and say whether to switch over."""
        arrays = {name: np.array(values, dtype=np.float64) for name, values in standing.best.items()}
        # Student's interval needs two.
        streams = [self._rng("compare", number) for number in range(max(self._settings.compared, 2))]
        source = self._learnt if self._apart is None else self._apart
        made = [(draw_episode(source, self._settings.episode, rng), int(rng.integers(2**31))) for rng in streams]
        found = compare(
            self._policy(arrays),
            MlfH(),
            [workload for workload, _ in made],
            [seed for _, seed in made],
            forecast=self._forecast,
            progress=self._progress,
        )
        submit_s = self._learnt.jobs.submit_s
        training = Training(
            seed=self._seed,
            iterations=standing.iteration,
            betas=standing.betas,
            servers=len(self._workload.cluster.capacity),
            jobs=len(self._learnt),
            imitation=standing.imitation,
            checks=tuple(standing.checks),
        )
        predictor = self._kind.policy().set(
            arrays,
            self._columns,
            training,
            found,
            is_better(found),
            float(submit_s[0]),
            float(submit_s[-1]),
        )
        return TrainedScheduler(predictor, tuple(standing.history), tuple(standing.checks), tuple(standing.tried))


EXPLORING_RATE = 0.06
"""Of Adam, in standard deviations of changes, falling to a tenth of it."""


class _Explorations(_Trainer):
    """Corrections of MLF-H, learned by changes of all weights for whole runs; no run is shown before."""

    _every: ClassVar[int] = 50
    _short: ClassVar[int] = 20
    _columns: ClassVar[Mapping[str, tuple[str, ...]]] = {JOBS: RANK_FEATURES}

    def _learner(self) -> Any:
        self._episodes = Episodes(self._learnt, self._settings.episode, self._kind.settings, self._forecast)
        return Explorer(spreads(self._episodes, [self._seed_of("shown", number) for number in range(4)]))

    def _imitated(self, learner: Any) -> dict[str, float]:
        return {}  # corrections begin at MLF-H itself

    def _policy(self, arrays: Mapping[str, Floats]) -> TaskRule:
        return LearnedPriorities(corrections_of(arrays), self._kind.settings)

    def _learn(
        self, learner: Any, betas: tuple[float, ...], stream: str, iteration: int, falling: float = 1.0
    ) -> dict[str, float]:
        """Try changes and their opposites, half as many as runs on each workload, and learn from them; their spread."""
        pairs = max(self._settings.runs // 2, 1)
        changes = learner.changes(self._rng(stream, iteration), self._settings.workloads * pairs)
        gains = np.empty(len(changes))
        for number, change in enumerate(changes):
            seed = self._seed_of(stream, iteration, number // pairs)
            both = [self._episodes.figures(self._policy(learner.changed(sign * change)), seed) for sign in (1.0, -1.0)]
            gains[number] = objectives_beyond(*both) @ np.asarray(betas)
        learner.learn(changes, gains, EXPLORING_RATE * falling)
        return {"spread": float(gains.std())}

    def _value(self, arrays: Mapping[str, Floats]) -> tuple[float, ...]:
        """Objectives on workloads kept apart, beyond those of MLF-H; means."""
        return self._episodes.beyond(
            self._policy(arrays), [self._seed_of("check", n) for n in range(self._settings.checks)]
        )
