"""Policies that schedule by rounds, of training jobs and of jobs that scale: settings and specs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from jobcast.domain.settings import (
    AtLeastZero,
    Belief,
    Count,
    Delay,
    Exponent,
    Flag,
    From0To1,
    Positive,
    RoundLength,
    Seconds,
    Settings,
    Share,
    Whole,
    setting,
)
from jobcast.schedulers.policies import (
    DURATIONS,
    GOODPUT,
    GOODPUT_TABLES,
    GOODPUTS,
    REGIMES,
    ROUNDS,
    Make,
    PolicySpec,
    RoundMechanism,
    of_class,
)

if TYPE_CHECKING:
    from jobcast.schedulers.rounds import Rounds


class NoiseSettings(Settings):
    """Of all that ask for run times: how wrong these are made. Shockwave, section 8.10."""

    noise: AtLeastZero = setting(0.0, "share by which run times are wrong at most")
    noise_seed: Whole = setting(0, "of that draw")


class ShockwaveSettings(NoiseSettings):
    """Of Shockwave."""

    # Shockwave, section 6.1.
    k: AtLeastZero = setting(5.0, "exponent of the fairness in the weights")
    # Lambda, inside appendix G.2's range of 0.1 to 10. A round of D seconds of the job that decides the makespan is
    # worth lambda D / Z0; one of an average job, of run time Z0 / N, at most rho^k D / (Z0 M floor). So while rho^k
    # stays below lambda M floor, some hundreds, the deciding job goes first, and fairness arbitrates among the
    # others; section 6.1's 1e-3 would hardly be felt. On four generated workloads 3 kept makespans as short as 10 and
    # treated fewer jobs unfairly.
    lam: AtLeastZero = setting(3.0, "weight of the makespan")
    # Shockwave, appendix G. Section 6.1 says 20, which stops jobs a quarter more often on generated traces.
    window: Count = setting(30, "rounds to plan")
    mode: Literal["reactive", "lazy"] = setting("reactive", "plan anew when a batch size changes, or not")
    # Of the bound of equation 10: who has as much left binds the makespan. What it leaves is time for forecasts that
    # are wrong, restarts and gangs that do not fit; on generated workloads .9 to .94 end within .4 %, at .9 jobs take
    # longer.
    share: Share = setting(0.92, "of the makespan's bound: jobs that may have as much left come first")
    quantile: Belief = setting(0.9, "level at which the longest jobs' time left is counted, where forecasts tell it")
    hedge: From0To1 = setting(1.0, "elsewhere, share of the way from the forecast to the present batch size")
    # Utility before the first epoch, where all epochs are 1: log((floor + UTIL) / (floor + 1)). Finite at no
    # progress, and never steep: a new job has no claim to a round at once, which costs a restart, and one near its
    # end is not forsaken. On the same workloads smaller floors (a round's progress, 0.1, 0.3, 1) shared time more and
    # treated more jobs unfairly.
    floor: Positive = setting(3.0, "added to each utility, share of epochs, before its logarithm is taken")
    time_limit_s: Seconds = setting(60.0, "of the solver, a guard")
    workers: Literal["asked", "elastic"] = setting("asked", "GPUs of jobs with min_gpus: as asked, or as pays best")


class OsspSettings(NoiseSettings):
    """Of the open shop."""

    window: Count = setting(10, "rounds to plan")
    gap: AtLeastZero = setting(0.01, "share of the makespan that may be lost before the solver is asked")


class AlloxSettings(NoiseSettings):
    """Of AlloX."""

    filter: Share = setting(1.0, "share of the jobs, the worst off, that are scheduled")


class FilterSettings(NoiseSettings):
    """Of Themis."""

    filter: Share = setting(0.2, "share of the jobs, the worst off, that a round is offered to")


class SrptSettings(NoiseSettings):
    """Of the shortest remaining time."""

    gpu_time: Flag = setting(False, "rank by GPUs x time left")


class LongestThenSrptSettings(NoiseSettings):
    """Of the longest jobs first, then the shortest."""

    share: Share = setting(0.8, "of the makespan's bound: jobs that have as much left come first")


class GavelSettings(Settings):
    """Of Gavel."""

    fill: Literal["centre", "water"] = setting("centre", "which of the fair shares: their centre, or filled")


class MstSettings(Settings):
    """Of the greatest throughput."""

    unit: Literal["epochs", "steps"] = setting("epochs", "of throughput")


class GandivaFairSettings(Settings):
    """Of Gandiva_fair."""

    tickets: Literal["equal", "width"] = setting("width", "of a job: all the same, or as many as GPUs")
    lottery: Flag = setting(False, "draw by tickets, else by strides")
    seed: Whole = setting(0, "of the lottery")


class PolluxSettings(Settings):
    """Of Pollux."""

    p: Exponent = setting(-1.0, "exponent of the mean of speedups")
    round_s: RoundLength = setting(60.0, "length of a round")
    restart_s: Delay = setting(30.0, "what a change of GPUs costs")


def _of_run_times(place: str) -> Make:
    """What makes a rule that asks how long jobs run."""
    make_rule = of_class(place, without=NoiseSettings.model_fields)

    def make(forecasts: Any, own: NoiseSettings) -> Any:
        from jobcast.schedulers.run_times import RunTimes

        return make_rule(RunTimes(forecasts, own.noise, own.noise_seed), own)

    return make


def by_rounds(rule: Any, name: str, mechanism: RoundMechanism, nodes: Sequence[int] = ()) -> "Rounds":
    """A rule as the engine can ask it; it seats jobs on nodes where their GPUs are given."""
    from jobcast.schedulers.placement import NodePlacement
    from jobcast.schedulers.rounds import OneRoundLate, Rounds, ShareRounds

    # Some rules can do both, such as Gandiva_fair: their own choice goes before their shares.
    chooser = rule if hasattr(rule, "choose") else ShareRounds(rule)
    if mechanism.solve == "beside":
        # Only who keeps nothing between rounds may be asked about free GPUs in between.
        memoryless = getattr(chooser, "memoryless", False)
        chooser = OneRoundLate(chooser, chooser.choose if memoryless else getattr(chooser, "fill", None))
    return Rounds(chooser, name, mechanism.round_s, mechanism.restart_s, NodePlacement(nodes) if nodes else None)


def _spec(name: str, place: str, settings: type[Settings], summary: str, paper: str) -> PolicySpec:
    asks = (REGIMES, DURATIONS) if issubclass(settings, NoiseSettings) else ()
    make = _of_run_times(place) if asks else of_class(place, given=False)
    return PolicySpec(name=name, kind=ROUNDS, make=make, settings=settings, summary=summary, paper=paper, asks=asks)


ROUND_POLICIES = (
    _spec(
        *("shockwave", "shockwave:Shockwave", ShockwaveSettings, "welfare over a window of rounds, regimes foreseen"),
        "Shockwave (NSDI 2023)",
    ),
    _spec("ossp", "ossp:OpenShop", OsspSettings, "the least makespan of the active jobs", "Shockwave"),
    _spec(
        *("allox", "round_rules:AlloX", AlloxSettings, "the least mean completion time, by matching"),
        "AlloX (EuroSys 2020)",
    ),
    _spec(
        *("themis_filter", "round_rules:ThemisFilter", FilterSettings, "each round to the worst off"),
        "Themis (NSDI 2020)",
    ),
    _spec("gavel", "gavel:Gavel", GavelSettings, "max-min fair shares of the time", "Gavel (OSDI 2020)"),
    _spec("mst", "round_rules:MaxSumThroughput", MstSettings, "the greatest sum of throughputs", "Gavel; Shockwave"),
    _spec(
        *("gandiva_fair", "round_rules:GandivaFair", GandivaFairSettings, "rounds in proportion to tickets"),
        "Gandiva_fair (EuroSys 2020)",
    ),
    _spec("srpt", "round_rules:ShortestRemaining", SrptSettings, "the shortest remaining time first", ""),
    _spec(
        *("longest_then_srpt", "round_rules:LongestThenSrpt", LongestThenSrptSettings),
        *("jobs that bind the makespan first, then the shortest remaining time", ""),
    ),
    _spec(
        *("las", "round_rules:LeastAttained", Settings, "the least GPU time held for its weight first"),
        "Tiresias (NSDI 2019)",
    ),
    PolicySpec(
        name="pollux",
        kind=GOODPUT,
        make=of_class("pollux:Pollux", given=False),
        settings=PolluxSettings,
        needs=(GOODPUT_TABLES,),
        asks=(GOODPUTS,),
        summary="GPUs and batch sizes that make the most of goodput",
        paper="Pollux (OSDI 2021)",
    ),
)
