"""Settings of policies that are files: read before a policy is made, which itself reads nothing.

Switches of sharing are a CSV with the columns pool, horizon_min, from, sharing (on or off).
"""

import csv
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jobcast.domain.errors import ConfigError
from jobcast.domain.horizons import horizon_label
from jobcast.domain.switches import Switch, Switches
from jobcast.pipelines.experiments.forecast_specs import REGISTRY, ForecastSpec
from jobcast.pipelines.report.files import csv_text, write_text
from jobcast.pipelines.report.formatting import iso, parse_time
from jobcast.schedulers.policies import KINDS, STARTS, PolicySpec, split_settings
from jobcast.schedulers.registry import SHORT, find_policy, resolve_policy
from jobcast.traces.check import shown_columns
from jobcast.traces.files import reason
from jobcast.traces.table import Trace

SWITCHES_COLUMNS = ("pool", "horizon_min", "from", "sharing")
STATES = {"on": True, "off": False}
GIVE = "give a CSV with the columns pool,horizon_min,from,sharing"


def read_switches(path: str | Path) -> Switches:
    """Read a file of switches; an empty `from` means always.

    Raises
    ------
    ConfigError
        The file cannot be read, or a row of it cannot be used; the line names the first such row.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            return _parsed(csv.DictReader(file), str(path))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file; {GIVE}, as `jobcast drift --switches-out` writes it") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"{path}: not readable as CSV ({reason(error)}); {GIVE}") from None


def check_horizons(switches: Switches, horizons_min: Sequence[float]) -> None:
    """Raise a ConfigError for a row of a horizon that nobody forecasts: it would never be obeyed."""
    for row in switches.rows:
        if row.horizon_min not in horizons_min:
            have = ", ".join(map(horizon_label, horizons_min))
            raise ConfigError(
                f"switches: pool {row.pool} is switched for windows of {horizon_label(row.horizon_min)}, forecasts are "
                f"of {have}; take switches and forecasts of the same horizons"
            )


def write_switches(switches: Iterable[Switch], path: Path) -> None:
    """Write a file of switches, by pool, horizon and instant, under a temporary name first."""
    rows: list[tuple[str, ...]] = [SWITCHES_COLUMNS]
    for one in sorted(switches):
        # ISO-8601 has no beginning of time.
        since = "" if one.from_s == -math.inf else str(iso(one.from_s))
        rows.append((one.pool, f"{one.horizon_min:g}", since, "on" if one.sharing else "off"))
    write_text(path, csv_text(rows))


def _parsed(rows: "csv.DictReader[str]", path: str) -> Switches:
    found = list(rows.fieldnames or [])
    missing = [name for name in SWITCHES_COLUMNS if name not in found]
    if missing:
        columns = "column" if len(missing) == 1 else "columns"
        raise ConfigError(f"{path}: {columns} {', '.join(missing)} missing, found {shown_columns(found)}; {GIVE}")
    read: dict[tuple[str, float, float], Switch] = {}
    for row in rows:
        where = f"{path}, row {rows.line_num}"
        switch = _switch(row, where)
        key = (switch.pool, switch.horizon_min, switch.from_s)
        # On or off at one instant: no order of rows could decide it.
        if key in read:
            raise ConfigError(f"{where}: this pool, horizon and instant is given twice; keep one row of it")
        read[key] = switch
    return Switches(tuple(read.values()))


def _switch(row: dict[str, str], where: str) -> Switch:
    # csv puts fields without a head under None.
    if None in row:
        raise ConfigError(f"{where}: more fields than the header has; quote names that hold commas")
    pool = row["pool"] or ""
    horizon, since, state = ((row[name] or "").strip() for name in SWITCHES_COLUMNS[1:])
    if not pool.strip():
        raise ConfigError(f"{where}, column pool: must not be empty; fill it in or drop the row")
    if state not in STATES:
        raise ConfigError(f"{where}, column sharing: must be on or off, got {state!r}; correct or drop the row")
    return Switch(pool, _minutes(horizon, where), _instant(since, where), STATES[state])


def _minutes(text: str, where: str) -> float:
    try:
        minutes = float(text)
    except ValueError:
        # NaN fails the comparison below, as it should.
        minutes = math.nan
    if not 0 < minutes < math.inf:
        raise ConfigError(f"{where}, column horizon_min: must be minutes > 0, got {text!r}; correct or drop the row")
    return minutes


def _instant(text: str, where: str) -> float:
    return parse_time(text, f"{where}, column from") if text else -math.inf


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
    """Read each setting's file once; ConfigError for a setting that no policy knows, or a value that none takes."""
    knowing = {name: [one for one in policies if find_policy(one).decides_by(name, local)] for name in settings}
    for name, those in knowing.items():
        if not those:
            where = " with locality" if local else ""
            raise ConfigError(f"setting {name}: no policy of {', '.join(policies)} knows it{where}; leave it out")
    for name, value in loaded(settings).items():
        refused = [why for policy in knowing[name] if (why := _refusal(policy, name, value, local)) is not None]
        # A value that some take is no mistake: the others lack what it asks for.
        if len(refused) == len(knowing[name]):
            raise refused[0]


def _refusal(policy: str, name: str, value: object, local: bool) -> ConfigError | None:
    """Why a policy does not take a value of a setting that it knows; None where it does."""
    try:
        split_settings(find_policy(policy), {name: value}, local)
    except ConfigError as error:
        return error
    return None


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
