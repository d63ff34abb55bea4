"""Settings of policies that are files: read before a policy is made, which itself reads nothing."""

from collections.abc import Callable, Mapping
from typing import Any

from jobcast.domain.errors import ConfigError
from jobcast.pipelines.forecast_specs import ForecastSpec
from jobcast.pipelines.lifecycle.switches_file import read_switches
from jobcast.schedulers.cells.policies import CELL_SETTINGS
from jobcast.schedulers.policies import find_factory, needs_every_job

FILE_SETTINGS: Mapping[str, Callable[[str], object]] = {"switches": read_switches}
"""Setting -> reader of the file that its value names."""
Settings = tuple[tuple[str, str], ...]
"""Settings as they were written, `key=value` each."""


def loaded(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with the content of files in place of their names. Raises ConfigError for a file that is none."""
    return {
        name: FILE_SETTINGS[name](value) if name in FILE_SETTINGS and isinstance(value, str) else value
        for name, value in settings.items()
    }


def settings_for(policy: str, settings: Mapping[str, str], local: bool = False) -> Settings:
    """Those of some settings that a policy knows; `local`: on servers, where some know others.

    >>> settings_for("fcfs", {"tick_s": "60"}), settings_for("sia", {"tick_s": "60"})
    ((), (('tick_s', '60'),))
    """
    factory = find_factory(policy)
    known = (
        CELL_SETTINGS.get(policy, {}) if local else getattr(factory, "known", getattr(factory, "settings", settings))
    )
    return tuple((name, value) for name, value in settings.items() if name in known)


def check_settings(policies: tuple[str, ...], settings: Mapping[str, str], local: bool = False) -> None:
    """Read each setting's file once; ConfigError for a setting that none of the policies knows."""
    for name in settings:
        if not any(settings_for(policy, {name: settings[name]}, local) for policy in policies):
            where = " with locality" if local else ""
            raise ConfigError(f"setting {name}: no policy of {', '.join(policies)} knows it{where}; leave it out")
    loaded(settings)


def check_forecasts(policy: str, spec: ForecastSpec) -> None:
    """ConfigError for a source that cannot tell what a policy must know; before any model is loaded."""
    if needs_every_job(policy) and spec.kind != "oracle":
        raise ConfigError(
            f"policy {policy} needs every single job's future, which --forecasts {spec.label} does not tell; "
            "pass --forecasts oracle"
        )
