"""Settings of policies that are files: read before a policy is made, which itself reads nothing."""

from collections.abc import Callable, Mapping
from typing import Any

from jobcast.domain.errors import ConfigError
from jobcast.pipelines.experiments.forecast_specs import REGISTRY, ForecastSpec
from jobcast.pipelines.experiments.switches_file import read_switches
from jobcast.schedulers.policies import KINDS, STARTS, PolicySpec, split_settings
from jobcast.schedulers.registry import SHORT, find_policy, resolve_policy
from jobcast.traces.table import Trace

FILE_SETTINGS: Mapping[str, Callable[[str], object]] = {"switches": read_switches}
"""Setting -> reader of the file that its value names."""
FACTS, DECIDE = ("files", "site"), ("own", "cells", "mechanism")
"""Parts of a policy's settings: those that say what is replayed, and those that it decides by."""
Settings = tuple[tuple[str, str], ...]
"""Settings as they were written, `key=value` each."""


def loaded(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with the content of files in place of their names. Raises ConfigError for a file that is none."""
    return {
        # Read once: a content that was already loaded is passed on.
        name: FILE_SETTINGS[name](value) if name in FILE_SETTINGS and isinstance(value, str) else value
        for name, value in settings.items()
    }


def settings_for(policy: str, settings: Mapping[str, str], local: bool = False) -> Settings:
    """Those of some settings that a policy decides by; `local`: on servers, where some know others.

    >>> settings_for("fcfs", {"tick_s": "60"}), settings_for("sia", {"tick_s": "60"})
    ((), (('tick_s', '60'),))
    """
    spec = find_policy(policy)
    return tuple((name, value) for name, value in settings.items() if spec.decides_by(name, local))


def check_settings(policies: tuple[str, ...], settings: Mapping[str, str], local: bool = False) -> None:
    """Read each setting's file once; ConfigError for a setting that none of the policies knows."""
    for name in settings:
        if not any(settings_for(policy, {name: settings[name]}, local) for policy in policies):
            where = " with locality" if local else ""
            raise ConfigError(f"setting {name}: no policy of {', '.join(policies)} knows it{where}; leave it out")
    loaded(settings)


def check_forecasts(policy: str, spec: ForecastSpec | None) -> None:
    """ConfigError for a source that cannot tell what a policy must know; before any model is loaded.

    None is what nobody named: the registry, but where the trace's recorded starts are all that is asked.
    """
    rule = find_policy(policy)
    if spec is None and STARTS in rule.needs:
        return
    spec = REGISTRY if spec is None else spec
    if rule.needs_every_job and spec.kind != "oracle":
        raise ConfigError(
            f"policy {policy} needs every single job's future, which --forecasts {spec.label} does not tell; "
            "pass --forecasts oracle"
        )


def policies_meant(
    policy: str, baseline: str | None, settings: Mapping[str, str], trace: Trace | None
) -> tuple[PolicySpec, str | None, list[str]]:
    """The policy and the baseline that a user means, and notes on names that could have stood for others.

    A name may depend on whether the trace's own jobs are elastic. Raises ConfigError for a name that nobody knows.
    """
    # The column is looked at only where a short name leaves it open.
    elastic = trace is not None and bool({policy, baseline} & SHORT.keys()) and bool(trace.elastic.any())
    known = {"elastic": elastic, "profiles": "profiles" in settings}
    spec, note = resolve_policy(policy, **known)
    if baseline in (None, "none"):
        return spec, baseline, [] if note is None else [note]
    try:
        base, base_note = resolve_policy(str(baseline), **known)
    except ConfigError as error:
        raise ConfigError(f"--baseline {baseline}: {error}, or none") from None
    return spec, base.name, list(dict.fromkeys(one for one in (note, base_note) if one is not None))


def settings_apart(
    settings: Mapping[str, str], rule: PolicySpec, base: PolicySpec | None = None, local: bool = False
) -> tuple[dict[str, str], dict[str, str]]:
    """Settings that say what is replayed, and those that the policy decides by.

    Raises ConfigError for one that neither the policy nor, as a fact, the baseline knows.
    """
    facts_of = () if base is None else (KINDS[base.kind].files, KINDS[base.kind].site)
    # Facts are of the experiment: the baseline's count although the policy does not know them.
    theirs = {name: value for name, value in settings.items() if any(name in of.model_fields for of in facts_of)}
    known = rule.parts(local)
    mine = {
        name: value
        for name, value in settings.items()
        if name not in theirs or any(name in model.model_fields for model in known.values())
    }
    split = split_settings(rule, loaded(mine), local)
    facts, decide = ({name: mine[name] for name in split.plain(*parts)} for parts in (FACTS, DECIDE))
    return {**theirs, **facts}, decide
