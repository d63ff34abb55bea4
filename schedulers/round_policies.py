"""Policies that schedule by rounds, by their papers' names."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from jobcast.domain.errors import ConfigError
from jobcast.domain.rounds import RoundPolicy, SharePolicy
from jobcast.schedulers.allox import AlloX
from jobcast.schedulers.beside import Beside
from jobcast.schedulers.gandiva_fair import EQUAL, WIDTH, GandivaFair
from jobcast.schedulers.gavel import CENTRE, WATER, Gavel
from jobcast.schedulers.las import LeastAttained
from jobcast.schedulers.mst import EPOCHS, STEPS, MaxSumThroughput
from jobcast.schedulers.ossp import OpenShop
from jobcast.schedulers.rounds import RESTART_S, ROUND_S, Rounds, ShareRounds
from jobcast.schedulers.run_times import RunTimes
from jobcast.schedulers.seats import Seats
from jobcast.schedulers.settings import (
    Readers,
    at_least_zero,
    count,
    delay,
    flag,
    one_of,
    read_settings,
    seconds,
    share,
    whole,
)
from jobcast.schedulers.shockwave import Shockwave
from jobcast.schedulers.srpt import ShortestRemaining
from jobcast.schedulers.themis_filter import ThemisFilter

NO_SETTINGS: Mapping[str, object] = MappingProxyType({})
MECHANISM: Readers = MappingProxyType(
    {
        "round_s": seconds,
        "restart_s": delay,
        "mechanism": one_of("rounds", "gavel"),
        "solve": one_of("before", "beside"),
    }
)
"""What every policy of rounds understands: length of a round, what a start costs, which mechanism follows it, and
whether a round is planned before it begins, in no time, or beside the one before it."""
NOISE: Readers = MappingProxyType({"noise": at_least_zero, "noise_seed": whole})
"""What policies that ask for run times understand: how wrong these are made. Shockwave, section 8.10."""
DEFAULTS: Mapping[str, Any] = MappingProxyType(
    {"round_s": ROUND_S, "restart_s": RESTART_S, "mechanism": "rounds", "solve": "before"}
)


@dataclass(frozen=True, slots=True)
class RoundFactory:
    """Makes a policy of rounds from forecasts (`domain.forecasts.WorkForecasts`) and settings.

    Attributes
    ----------
    name : its paper's
    policy : its class; takes run times first if it uses forecasts, and its settings as keywords
    own : name -> reader of its own settings
    uses_forecasts : whether it asks how long jobs run
    memoryless : whether its choice depends on the state alone, so that it may be asked about free GPUs in between;
        others may have a method `fill` for that
    """

    name: str
    policy: Callable[..., RoundPolicy | SharePolicy]
    own: Readers = field(default_factory=dict)
    uses_forecasts: bool = True
    memoryless: bool = False

    @property
    def settings(self) -> Readers:
        """All settings that it knows: its own, those of rounds, and those of noise if it asks for run times."""
        return {**MECHANISM, **self.own, **(NOISE if self.uses_forecasts else {})}

    def mechanism(self, settings: Mapping[str, object]) -> dict[str, Any]:
        """Settings of rounds, with defaults for those that are not set; ConfigError where two exclude each other."""
        read = read_settings(self.name, self.settings, settings)
        found = {key: read.get(key, default) for key, default in DEFAULTS.items()}
        if found["mechanism"] == "gavel" and found["solve"] == "beside":
            raise ConfigError(
                f"policy {self.name}: solve=beside and mechanism=gavel exclude each other, the published mechanism "
                "plans when a round begins; leave one out"
            )
        return found

    def rule(self, forecasts: Any, settings: Mapping[str, object] = NO_SETTINGS) -> Any:
        """The bare rule, a `RoundPolicy` or a `SharePolicy`, for a mechanism other than the engine's."""
        read = read_settings(self.name, self.settings, settings)
        own = {key: value for key, value in read.items() if key in self.own}
        if not self.uses_forecasts:
            return self.policy(**own)
        if forecasts is None:
            raise ConfigError(f"policy {self.name} needs forecasts; pass --forecasts, such as oracle")
        run_times = RunTimes(forecasts, read.get("noise", 0.0), read.get("noise_seed", 0))
        return self.policy(run_times, **own)

    def __call__(
        self, forecasts: Any, settings: Mapping[str, object] = NO_SETTINGS, nodes: Sequence[int] = ()
    ) -> Rounds:
        """Make one that the engine can ask, and that seats jobs on nodes where their GPUs are given.

        Raises ConfigError for a setting that it does not know or cannot read.
        """
        mechanism = self.mechanism(settings)
        rule = self.rule(forecasts, settings)
        chooser: RoundPolicy = rule if hasattr(rule, "choose") else ShareRounds(rule)
        if mechanism["solve"] == "beside":
            fill = chooser.choose if self.memoryless else getattr(chooser, "fill", None)
            chooser = Beside(chooser, fill)
        seats = Seats(nodes) if nodes else None
        return Rounds(chooser, self.name, mechanism["round_s"], mechanism["restart_s"], seats)


_FACTORIES = (
    RoundFactory(
        "shockwave",
        Shockwave,
        {
            "k": at_least_zero,
            "lam": at_least_zero,
            "window": count,
            "mode": one_of("reactive", "lazy"),
            "time_limit_s": seconds,
        },
    ),
    RoundFactory("ossp", OpenShop, {"window": count, "gap": at_least_zero}),
    RoundFactory("allox", AlloX, {"filter": share}, memoryless=True),
    RoundFactory("themis_filter", ThemisFilter, {"filter": share}, memoryless=True),
    RoundFactory("gavel", Gavel, {"fill": one_of(CENTRE, WATER)}, uses_forecasts=False),
    RoundFactory("mst", MaxSumThroughput, {"unit": one_of(EPOCHS, STEPS)}, uses_forecasts=False),
    RoundFactory(
        "gandiva_fair",
        GandivaFair,
        {"tickets": one_of(EQUAL, WIDTH), "lottery": flag, "seed": whole},
        uses_forecasts=False,
    ),
    RoundFactory("srpt", ShortestRemaining, {"gpu_time": flag}, memoryless=True),
    RoundFactory("las", LeastAttained, uses_forecasts=False, memoryless=True),
)
ROUND_POLICIES: Mapping[str, RoundFactory] = MappingProxyType({one.name: one for one in _FACTORIES})
