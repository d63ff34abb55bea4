"""Switches of sharing as a file: CSV with the columns pool, horizon_min, from, sharing (on or off)."""

import csv
import io
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from jobcast.domain.errors import ConfigError
from jobcast.domain.horizons import horizon_label
from jobcast.domain.switches import Switch, Switches
from jobcast.pipelines.report.formatting import iso, parse_time
from jobcast.traces.check import shown_columns
from jobcast.traces.files import reason, replacing

COLUMNS = ("pool", "horizon_min", "from", "sharing")
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
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for one in sorted(switches):
        # ISO-8601 has no beginning of time.
        since = "" if one.from_s == -math.inf else iso(one.from_s)
        writer.writerow([one.pool, f"{one.horizon_min:g}", since, "on" if one.sharing else "off"])
    with replacing(path) as draft:
        draft.write_text(text.getvalue(), encoding="utf-8", newline="")


def _parsed(rows: "csv.DictReader[str]", path: str) -> Switches:
    found = list(rows.fieldnames or [])
    missing = [name for name in COLUMNS if name not in found]
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
    horizon, since, state = ((row[name] or "").strip() for name in COLUMNS[1:])
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
