"""Every policy under one name: ours, and those that installed packages bring through `jobcast.policies`."""

from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import EntryPoint
from types import MappingProxyType
from typing import Any, TypeVar

from jobcast.domain.errors import ConfigError, DecisionError, JobcastError
from jobcast.domain.plugins import WithInstalled, broken, load_point, points_of
from jobcast.domain.settings import Settings
from jobcast.domain.suggestions import did_you_mean, or_list
from jobcast.schedulers.elastic.policies import ELASTIC_POLICIES
from jobcast.schedulers.energy.policies import ENERGY_POLICIES, by_calls
from jobcast.schedulers.policies import (
    BACKFILL,
    ENERGY,
    KINDS,
    NO_SETTINGS,
    POOL,
    POOLS,
    ROUNDS,
    Local,
    PolicySpec,
    adopted,
    split_settings,
)
from jobcast.schedulers.pool_policies import POOL_POLICIES
from jobcast.schedulers.round_policies import ROUND_POLICIES, by_rounds
from jobcast.schedulers.tasks.policies import TASK_POLICIES

ENTRY_POINTS, KIND = "jobcast.policies", "policy"
Made = TypeVar("Made", bound=Callable[..., Any])
BUILT_IN: Mapping[str, PolicySpec] = MappingProxyType(
    {spec.name: spec for spec in (*POOL_POLICIES, *ROUND_POLICIES, *ELASTIC_POLICIES, *TASK_POLICIES, *ENERGY_POLICIES)}
)
# Names that papers share -> what they may stand for; the first one where a trace by itself is elastic.
SHORT: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "fifo": ("elastic_fifo", "energy_fifo", "fcfs"),
        "las": ("elastic_las", "las"),
        "themis": ("elastic_themis", "themis_np", "themis_filter"),
        "fair": ("elastic_fair", "borg_fair", "gandiva_fair"),
    }
)


# Policies of this process alone, that the decorator `policy` registered.
DECLARED: dict[str, PolicySpec] = {}
_OURS: Mapping[str, PolicySpec] = ChainMap(DECLARED, dict(BUILT_IN))
_installed = points_of(ENTRY_POINTS)


def _loaded(point: EntryPoint) -> PolicySpec:
    """What an entry point names, a `PolicySpec` or a callable of (forecasts, settings) that makes one over pools."""
    found = load_point(KIND, point)
    if isinstance(found, PolicySpec):
        return replace(found, name=point.name)
    if not callable(found):
        raise broken(KIND, point, f"is {found!r} and makes no policy")
    return adopted(point.name, found)


# Our policies, those declared, then installed ones.
# `_installed` is looked up at each call, so that tests may put another in its place.
POLICIES: Mapping[str, PolicySpec] = WithInstalled(_OURS, lambda name: _OURS[name], lambda: _installed(), _loaded)


def policy(
    name: str,
    *,
    kind: str = POOLS,
    settings: type[Settings] = Settings,
    asks: tuple[str, ...] = (),
    scope: str = POOL,
    preempts: bool = False,
    summary: str = "",
) -> Callable[[Made], Made]:
    """Register a policy for this process: a class, or whatever makes one.

    It is called with its settings as keywords and, where it asks forecasts, with these first. Registered anew under the
    same name, as a notebook's cell does, it takes the place of what was there. A package names its policies by entry
    points instead; see docs/plugins.md.

    Parameters
    ----------
    name : unlike those of ours and of installed packages
    kind : of `schedulers.policies.KINDS`: pools, rounds, elastic, tasks, energy or goodput
    settings : its own, a pydantic model
    asks : what it asks of forecasts: arrivals, loads, durations, ...; nothing else is put before it
    scope : `pool` where it keeps to quotas, else `cluster`
    preempts : whether it stops running jobs, or changes what they hold
    summary : one plain line; by default the first of the docstring

    Raises
    ------
    ConfigError
        The name is taken, or there is no such kind.
    """
    # Declared ones may be declared anew: a cell of a notebook is run many times.
    if name in BUILT_IN or name in _installed():
        raise ConfigError(f"policy {name}: there is one of that name; choose another")
    if kind not in KINDS:
        raise ConfigError(f"policy {name}: there is no kind {kind!r}; choose from {', '.join(KINDS)}")

    def register(made: Made) -> Made:
        def make(given: Any, own: Settings) -> Any:
            return made(given, **dict(own)) if asks else made(**dict(own))

        line = summary or (made.__doc__ or "declared in this process").strip().splitlines()[0]
        how: dict[str, Any] = {"settings": settings, "asks": asks, "scope": scope, "preempts": preempts}
        DECLARED[name] = PolicySpec(name=name, kind=kind, make=make, summary=line, **how)
        return made

    return register


@contextmanager
def plugin_named(name: str) -> Iterator[None]:
    """While a policy is made or asked: what an installed one raises names it. Ours raise as they are.

    Raises
    ------
    DecisionError
        Where an installed policy raised anything that is no error of jobcast's own.
    """
    try:
        yield
    # Errors of ours say what to do already; a lack of memory is nobody's fault.
    except (JobcastError, MemoryError):
        raise
    except Exception as error:
        if name in BUILT_IN or name not in _installed():
            raise
        what = f"{type(error).__name__}: {error}"
        raise DecisionError(f"policy {name}: the plug-in {_installed()[name].value} raised {what}; mend it") from error


def find_policy(name: str) -> PolicySpec:
    """A policy by its name. Raises ConfigError that tells the names next to an unknown one, or all."""
    if name in POLICIES:
        return POLICIES[name]
    if name in SHORT:
        first, *others = SHORT[name]
        raise ConfigError(
            f"unknown policy {name}: several papers have one; did you mean {or_list(SHORT[name])}? it stands for "
            f"{first} where the trace's own columns make jobs elastic"
            + (f", and for {others[0]} with --set profiles=FILE" if name == "fifo" else "")
        )
    # Somebody who forgets the comma gets the whole line right at once.
    words = name.replace(",", " ").split()
    if len(words) > 1 and all(word in POLICIES for word in words):
        raise ConfigError(f"unknown policy {name}; write commas between policies: {','.join(words)}")
    near = did_you_mean(name, POLICIES)
    raise ConfigError(
        f"unknown policy {name}; {near}`jobcast policies` lists all"
        if near
        else f"unknown policy {name}; known policies: {', '.join(POLICIES)}"
    )


def names_of(*kinds: str) -> tuple[str, ...]:
    """Names of ours of some kinds."""
    return tuple(name for name, spec in BUILT_IN.items() if spec.kind in kinds)


def find_of_kind(name: str, *kinds: str) -> PolicySpec:
    """A policy of some kinds. Raises ConfigError as `find_policy`, and for one of another kind."""
    spec = find_policy(name)
    if spec.kind not in kinds:
        known = ", ".join(names_of(*kinds))
        raise ConfigError(f"policy {name} is of {spec.kind}, not of {or_list(kinds)}; choose from {known}")
    return spec


def resolve_policy(name: str, *, elastic: bool = False, profiles: bool = False) -> tuple[PolicySpec, str | None]:
    """The policy that a user means, and a note where the name could have stood for another.

    Parameters
    ----------
    name : a policy's, or a short one of `SHORT`
    elastic : whether the trace by itself has jobs that may run on fewer or more GPUs
    profiles : whether seconds an epoch are given

    Raises ConfigError as `find_policy`.
    """
    meant = name
    # Profiles are asked for on the command line, elastic columns just happen to be in a trace.
    if name == "fifo" and profiles:
        meant = "energy_fifo"
    elif name in SHORT and elastic:
        meant = SHORT[name][0]
    why = "profiles are given" if meant == "energy_fifo" else "the trace's jobs are elastic"
    return find_policy(meant), None if meant == name else f"policy {name}: taken for {meant}, as {why}"


def make_rule(name: str, given: Any = None, settings: Mapping[str, object] = NO_SETTINGS) -> Any:
    """A policy as its own module makes it; of rounds and of energy the bare rule.

    Parameters
    ----------
    name : of the policy
    given : forecasts, of elastic policies the names of the GPU types, of learned ones their networks
    settings : its own and its mechanism's; others are read and left

    Raises ConfigError for an unknown name or setting, lacking forecasts, and an installed policy that makes none.
    """
    spec = find_policy(name)
    return _rule(spec, given, split_settings(spec, settings).own)


def make_policy(
    name: str,
    given: Any = None,
    settings: Mapping[str, object] = NO_SETTINGS,
    nodes: Sequence[int] = (),
    cells: Mapping[str, tuple[int, ...]] | None = None,
) -> Any:
    """A policy as its engine asks it, made for one run; see `make_rule`.

    `nodes`: GPUs of each, on which rounds seat jobs. `cells`: place jobs in cells of servers; quotas as cells, of
    pools that tell them. Raises ConfigError too for a policy that knows no locality.
    """
    spec = find_policy(name)
    split = split_settings(spec, settings, local=cells is not None)
    rule = _rule(spec, given, split.own)
    if cells is not None:
        local = local_of(name)
        if local.turns and getattr(split.own, BACKFILL, False):
            wrong = "with locality jobs start when their turn comes; leave one of both out"
            raise ConfigError(f"policy {name}: setting {BACKFILL}: {wrong}")
        # Set on the instance, over the class's own: other runs of the same policy stay without cells.
        rule.placer = local.placer(cells, split.cells)
    if spec.kind == ROUNDS:
        return by_rounds(rule, name, split.mechanism, nodes)
    if spec.kind == ENERGY:
        return by_calls(rule, name, split.mechanism)
    return rule


def local_of(name: str) -> Local:
    """What places a policy's jobs on servers. Raises ConfigError for one that knows no locality, and says why."""
    spec = find_policy(name)
    if spec.local is None:
        because = f" ({spec.not_local})" if spec.not_local else ""
        raise ConfigError(f"policy {name} knows no locality{because}; choose from {', '.join(local_policies())}")
    return spec.local


def local_policies() -> tuple[str, ...]:
    """Names of those that can place jobs on servers."""
    return tuple(name for name, spec in BUILT_IN.items() if spec.local is not None)


def _rule(spec: PolicySpec, given: Any, own: Settings) -> Any:
    if spec.kind in (POOLS, ROUNDS) and spec.asks and given is None:
        raise ConfigError(f"policy {spec.name} needs forecasts; pass --forecasts, such as oracle")
    if spec.name in _OURS:
        return spec.make(given, own)
    point = _installed()[spec.name]
    try:
        policy = spec.make(given, own)
    except (JobcastError, MemoryError):
        raise
    except Exception as error:  # another package's code may fail in any way
        raise broken(KIND, point, f"cannot be made ({type(error).__name__}: {error})") from error
    lacking = [part for part in KINDS[spec.kind].methods if not callable(getattr(policy, part, None))]
    if lacking:
        raise broken(KIND, point, f"makes {type(policy).__name__}, which has no {', '.join(lacking)}")
    return policy
