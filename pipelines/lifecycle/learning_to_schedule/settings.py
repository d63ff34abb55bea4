"""The learned schedulers: what tells them from one another, and how long they are trained."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from jobcast.models.scheduling.learner import BETAS
from jobcast.models.scheduling.policy import DevicePolicy, MlfPolicy
from jobcast.pipelines.lifecycle.learning_to_schedule.episodes import EpisodeSettings
from jobcast.pipelines.lifecycle.learning_to_schedule.rewards import OBJECTIVES
from jobcast.schedulers.tasks.features import ML_FEATURES
from jobcast.schedulers.tasks.mlf_h import MlfHSettings
from jobcast.schedulers.tasks.mlf_rl import MlfRl
from jobcast.schedulers.tasks.network import networks_of

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
    """

    betas: tuple[float, ...]
    blank: tuple[str, ...]
    settings: MlfHSettings
    policy: type[Policy]


DEVICE_RL = MlfHSettings(overload=1.0, move_at=1.0, migration=False, preempt=False)
"""As `schedulers.tasks.mlf_rl.device_rl` runs by default: servers are filled, nothing leaves them."""
SCHEDULERS: Mapping[str, Kind] = {
    MlfPolicy.name: Kind(BETAS, (), MlfHSettings(), MlfPolicy),
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


def policy_of(predictor: Policy) -> MlfRl:
    """The scheduler of a trained or registered policy.

    Raises
    ------
    RegistryError
        Its weights are of another version's features.
    """
    names = {MlfPolicy.name: "mlf_rl", DevicePolicy.name: "device_rl"}
    return MlfRl(networks_of(predictor.arrays_), names[predictor.name], SCHEDULERS[predictor.name].settings)
