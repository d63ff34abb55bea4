"""Policies of jobs of tasks: settings and specs. Compiled code is imported when a policy is made."""

from typing import Any, Literal

from jobcast.domain.errors import ConfigError
from jobcast.domain.settings import AtLeastOne, AtLeastZero, Positive, Seconds, Settings, Share, setting
from jobcast.schedulers.policies import ACCURACIES, TASK_GRAPHS, TASKS, Make, PolicySpec, of_settings
from jobcast.schedulers.tasks.mlfs_settings import ControlSettings, HeuristicSettings

# Predictors that are policies.
MLF_POLICY, DEVICE_POLICY = "mlf-policy", "device-rl"


class SlaqSettings(Settings):
    """Of SLAQ."""

    interval_s: Seconds = setting(300.0, "how often running jobs make room for faster learning ones")


class TiresiasSettings(Settings):
    """Of Tiresias."""

    index: Literal["las", "gittins"] = setting(
        "las", "nothing is known of run times, or service of finished jobs tells what others may need"
    )
    queue_gpu_s: Positive = setting(
        3250.0, "GPU seconds after which a job falls to the second queue; the authors' simulator, jobs.py"
    )
    promote: AtLeastZero = setting(8.0, "times its service that a job waits before it rises again; 0: never")


class GandivaSettings(Settings):
    """Of Gandiva."""

    overload: AtLeastZero = setting(1.0, "load of a GPU beyond which a task leaves it")


class GrapheneSettings(Settings):
    """Of Graphene: weights of its aims; each term is a share of the largest among the waiting jobs."""

    srpt: AtLeastZero = setting(1.0, "weight of little remaining work")
    packing: AtLeastZero = setting(1.0, "weight of the alignment of a job's mean task with what is free")
    fairness: AtLeastZero = setting(1.0, "weight of what a job lacks of its fair share of GPU time")


class BorgFairSettings(Settings):
    """Of Borg's fair shares."""

    interval_s: AtLeastZero = setting(0.0, "how often jobs with a larger share make room; 0: never")


class HyperSchedSettings(Settings):
    """Of HyperSched."""

    least_gain: AtLeastZero = setting(0.01, "accuracy by the deadline; who gains less is paused for others")


class DeviceSettings(Settings):
    """Of learned placement."""

    filled: Share = setting(1.0, "share up to which servers and GPUs are filled")


class ShortestSettings(Settings):
    """Of shortest remaining time first."""

    hold: AtLeastOne = setting(
        2.0, "times the remaining time of a waiting job that a running one must have to give way"
    )


def _networks(name: str, learned: Any) -> Any:
    from jobcast.schedulers.tasks.network import Networks

    if not isinstance(learned, Networks):
        raise ConfigError(f"policy {name}: no learned weights were given; train it first")
    return learned


def _against_stragglers(policy: Any, own: HeuristicSettings) -> Any:
    """A policy that does something about slow servers, where that is wanted."""
    if own.slow_servers == "ignore":
        return policy
    from jobcast.schedulers.tasks.packing import limits_of
    from jobcast.schedulers.tasks.stragglers import COPY, MOVE, AgainstStragglers

    ways = (MOVE, COPY) if own.slow_servers == "both" else (own.slow_servers,)
    return AgainstStragglers(policy, ways, limits_of(own.h_r, own.h_r))


def _mlf_h(learned: Any, own: HeuristicSettings) -> Any:
    from jobcast.schedulers.tasks.mlf_h import MlfH

    return _against_stragglers(MlfH(own), own)


def _srtf(learned: Any, own: ShortestSettings) -> Any:
    from jobcast.schedulers.tasks.mlf_h import MlfH

    shortest = HeuristicSettings(alpha=0.0, gamma=0.0, gamma_w=0.0, deadline=False, hold=own.hold)
    return MlfH(shortest, "srtf")


def _mlf_rl(learned: Any, own: HeuristicSettings) -> Any:
    from jobcast.schedulers.tasks.learned_priorities import Corrections, LearnedPriorities
    from jobcast.schedulers.tasks.mlf_rl import MlfRl

    if isinstance(learned, Corrections):
        return _against_stragglers(LearnedPriorities(learned, own), own)
    # Of versions that were trained to pick one job and server after another.
    return _against_stragglers(MlfRl(_networks("mlf_rl", learned), settings=own), own)


def _mlf_c(learned: Any, own: ControlSettings) -> Any:
    from jobcast.schedulers.tasks.mlf_h import LoadControl

    return LoadControl(_mlf_h(None, own), "mlf_c", own)


def _mlfs(learned: Any, own: ControlSettings) -> Any:
    from jobcast.schedulers.tasks.mlf_h import LoadControl

    policy = _mlf_h(None, own) if learned is None else _mlf_rl(learned, own)
    return LoadControl(policy, "mlfs", own)


def _device_rl(learned: Any, own: DeviceSettings) -> Any:
    from jobcast.schedulers.tasks.mlf_rl import device_rl

    return device_rl(_networks("device_rl", learned), own.filled)


def _spec(name: str, make: Make | str, settings: type[Settings], summary: str, paper: str, **rest: Any) -> PolicySpec:
    how = make if callable(make) else of_settings(f"tasks.{make}")
    about = {"summary": summary, "paper": paper, "needs": (TASK_GRAPHS,)}
    return PolicySpec(name=name, kind=TASKS, make=how, settings=settings, **{**about, **rest})


MLFS, TIRESIAS = "MLFS (CoNEXT 2020)", "Tiresias (NSDI 2019)"
BY_RL: dict[str, Any] = {"asks": (ACCURACIES,), "learned": MLF_POLICY}
TASK_POLICIES = (
    _spec("mlf_h", _mlf_h, HeuristicSettings, "tasks by what they are worth to accuracy and deadlines", MLFS),
    _spec("mlf_c", _mlf_c, ControlSettings, "MLF-H; runs end early under overload", MLFS, asks=(ACCURACIES,)),
    _spec("mlf_rl", _mlf_rl, HeuristicSettings, "hosts chosen by a learned policy", MLFS, instead="mlf_h", **BY_RL),
    _spec("mlfs", _mlfs, ControlSettings, "MLF-C, by MLF-RL as soon as one is learned", MLFS, instead="mlfs", **BY_RL),
    _spec("srtf", _srtf, ShortestSettings, "least remaining time first, placed as MLF-H does", "Schrage (1968)"),
    _spec("slaq", "baselines:Slaq", SlaqSettings, "GPUs where quality grows fastest", "SLAQ (SoCC 2017)"),
    _spec("tiresias", "baselines:Tiresias", TiresiasSettings, "two queues by attained service", TIRESIAS),
    _spec("gandiva", "baselines:Gandiva", GandivaSettings, "in order; full GPUs shed tasks", "Gandiva (OSDI 2018)"),
    _spec(
        *("graphene", "baselines:Graphene", GrapheneSettings, "remaining work, packing and fairness"),
        paper="Graphene (OSDI 2016)",
        preempts=False,
    ),
    _spec("borg_fair", "baselines:BorgFair", BorgFairSettings, "the least received share first", "Borg (EuroSys 2015)"),
    _spec(
        *("hypersched", "baselines:HyperSched", HyperSchedSettings, "most accuracy by the deadline"),
        paper="HyperSched (SoCC 2019)",
    ),
    _spec(
        *("device_rl", _device_rl, DeviceSettings, "placement learned for completion times alone"),
        paper="Mirhoseini et al. (ICML 2017)",
        asks=(ACCURACIES,),
        learned=DEVICE_POLICY,
        instead="mlf_h",
        preempts=False,
    ),
)
