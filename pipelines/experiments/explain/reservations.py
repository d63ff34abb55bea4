"""What a policy had been told about pools, and the GPUs that it reserved for them. SIA, section 5.3, Figure 8."""

import re
from bisect import bisect_right
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from jobcast.domain.arrays import Bools, Floats, Ints
from jobcast.domain.bad_answers import ARRIVALS, LOADS
from jobcast.domain.clock import MINUTE_S
from jobcast.domain.horizons import DEFAULT_HORIZONS_MIN, bin_labels
from jobcast.pipelines.experiments.explain.cluster_history import ClusterPast
from jobcast.pipelines.experiments.explain.run_table import RunTable, on_grid
from jobcast.pipelines.experiments.forecast_recording import ARRIVES, LOAD, QUANTILE

MOST = 10
"""Jobs and pools that a list names; the rest is counted."""
SHOWN_LEVEL = 0.9
"""Of several quantiles of a load, the one whose level is nearest to this is shown."""

NUMBERS = re.compile(r"\d+(?:\.\d+)?")

Rows = tuple[Floats, Floats]
"""(instants, answers), by instant."""


class Answers:
    """Forecasts of a run as they were last told, at any instant.

    Parameters
    ----------
    table : the run

    Attributes
    ----------
    horizons_min : horizons of the forecasts, ascending; those of SIA where the record tells none
    windows_min : those of them that the policy used as windows
    slack : share of each quota that the policy kept free beside what was pending and forecast
    """

    def __init__(self, table: RunTable) -> None:
        record = table.record
        self.horizons_min: tuple[float, ...] = tuple(table.figures.get("horizons_min") or DEFAULT_HORIZONS_MIN)
        settings = (table.figures.get("configuration") or {}).get("settings") or {}
        self.slack = float(settings.get("slack", 0.0))
        # The setting may be text or a list, by how the run was started.
        used = [float(text) for text in NUMBERS.findall(str(settings.get("windows_min", "")))]
        self.windows_min = tuple(horizon for horizon in self.horizons_min if not used or horizon in used)
        self._labels = bin_labels(self.horizons_min)
        self._rows: dict[tuple[str, str, float], Rows] = {}
        self._levels: dict[tuple[str, float], float] = {}
        self._switches = None if record is None else record.switches
        self._replaced: dict[tuple[str, str, float], list[tuple[float, str | None]]] = {}
        self._replaced_jobs: dict[str, str] = {}
        if record is not None and record.answers is not None:
            self._read(record.answers)
        if record is not None and record.replaced is not None:
            self._read_replaced(record.replaced)

    @property
    def known(self) -> bool:
        """Whether anything was told."""
        return bool(self._rows)

    @cached_property
    def instants_s(self) -> Floats:
        """Instants at which an answer changed, ascending."""
        return np.unique(np.concatenate([at_s for at_s, _ in self._rows.values()])) if self._rows else np.empty(0)

    def bin_index(self, label: str | None) -> int | None:
        """Index of a duration bin, None for an unknown one."""
        return self._labels.index(label) if label in self._labels else None

    def windows_of(self, label: str | None) -> list[float]:
        """Windows, in minutes, that a job of a duration bin ends within; all for an unknown bin."""
        least = self.bin_index(label) or 0
        return [horizon for horizon in self.horizons_min[least:] if horizon in self.windows_min]

    def bin_end_s(self, label: str | None) -> float | None:
        """Longest run time of a bin in seconds, infinite for the last one, None for an unknown one."""
        index = self.bin_index(label)
        if index is None:
            return None
        return MINUTE_S * self.horizons_min[index] if index < len(self.horizons_min) else np.inf

    def future_gpus(self, pool: str, horizon_min: float, instants_s: Any) -> Floats:
        """Load that was forecast for (t, t + horizon] at each instant; infinite where sharing was switched off.

        Not-a-number before anything was asked.
        """
        at_s = np.atleast_1d(np.asarray(instants_s, dtype=np.float64))
        gpus = self._last((LOAD, pool, horizon_min), at_s)
        if (ARRIVES, pool, horizon_min) in self._rows:
            arrives = self._last((ARRIVES, pool, horizon_min), at_s)
            gpus = np.where(np.isnan(arrives), np.nan, np.where(arrives > 0, gpus, 0.0))
        elif (QUANTILE, pool, horizon_min) in self._rows:
            gpus = self._last((QUANTILE, pool, horizon_min), at_s)
        # Switched off counts as everybody coming: nothing is lent.
        off = self._off(pool, horizon_min, at_s)
        return np.where(off, np.inf, gpus)

    def told_s(self, pool: str, horizon_min: float, at_s: float) -> float | None:
        """Instant of the newest answer that `future_gpus` goes by at an instant, None where nothing was asked yet."""
        questions = (ARRIVES, LOAD) if (ARRIVES, pool, horizon_min) in self._rows else (LOAD, QUANTILE)
        instants = [
            self._rows[key][0] for question in questions if (key := (question, pool, horizon_min)) in self._rows
        ]
        rows = [float(row[place - 1]) for row in instants if (place := int(np.searchsorted(row, at_s, side="right")))]
        return max(rows, default=None)

    def replaced(self, pool: str, horizon_min: float, at_s: float) -> dict[str, str]:
        """Kinds of forecast about a pool whose last answer was a conservative one in place of a bad one, and why."""
        found = {}
        for kind in (ARRIVALS, LOADS):
            rows = self._replaced.get((kind, pool, horizon_min), [])
            place = bisect_right(rows, at_s, key=lambda row: row[0])
            why = rows[place - 1][1] if place else None
            if why is not None:
                found[kind] = why
        return found

    def bin_replaced(self, job_id: str) -> str | None:
        """Why a job's duration bin is the longest one in place of a bad answer, None where it is a forecast."""
        return self._replaced_jobs.get(job_id)

    def level(self, pool: str, horizon_min: float) -> float | None:
        """Level of the quantile that stands for the load, None where a single number was forecast."""
        return self._levels.get((pool, horizon_min))

    def _off(self, pool: str, horizon_min: float, at_s: Floats) -> Bools:
        if self._switches is None or not self._switches.rows:
            return np.zeros(len(at_s), dtype=np.bool_)
        shares = self._switches.shares
        return np.array([not shares(pool, MINUTE_S * horizon_min, now_s) for now_s in at_s.tolist()], dtype=np.bool_)

    def _last(self, key: tuple[str, str, float], at_s: Floats) -> Floats:
        if key not in self._rows:
            return np.full(len(at_s), np.nan)
        instants, answers = self._rows[key]
        place = np.searchsorted(instants, at_s, side="right") - 1
        return np.where(place >= 0, answers[np.maximum(place, 0)], np.nan)

    def _read_replaced(self, rows: pl.DataFrame) -> None:
        for row in rows.iter_rows(named=True):
            why = None if row["reason"] is None else f"{row['reason']}: {row['what']}"
            if row["job_id"] is not None:
                self._replaced_jobs.setdefault(row["job_id"], str(why))
                continue
            key = (row["kind"], row["pool"], row["horizon_s"] / MINUTE_S)
            self._replaced.setdefault(key, []).append((float(on_grid(row["at_s"])), why))

    def _read(self, rows: pl.DataFrame) -> None:
        groups = rows.partition_by("question", "pool", "horizon_min", "level", as_dict=True, maintain_order=True)
        for (question, pool, horizon_min, level), part in sorted(groups.items(), key=lambda item: str(item[0])):
            if question == QUANTILE:
                known = self._levels.get((pool, horizon_min))
                # Of several levels the one nearest to what is usually asked.
                if known is not None and abs(known - SHOWN_LEVEL) <= abs(level - SHOWN_LEVEL):
                    continue
                self._levels[pool, horizon_min] = level
            self._rows[question, pool, horizon_min] = on_grid(part["at_s"].to_numpy()), part["answer"].to_numpy()


class Reservations:
    """What was reserved for the pools that own idle GPUs.

    Parameters
    ----------
    past : the cluster over time
    answers : what had been forecast
    """

    def __init__(self, past: ClusterPast, answers: Answers) -> None:
        self._past = past
        self._answers = answers

    def reserved(self, pool: int, horizon_min: float | None, instants_s: Any) -> Floats:
        """GPUs of a pool's unused quota kept for it; for pending jobs alone without a horizon."""
        at_s = np.atleast_1d(np.asarray(instants_s, dtype=np.float64))
        unused = np.maximum(self._past.unused(pool, at_s), 0.0)
        # SIA, Figure 8: pending jobs first, then slack, then who is forecast.
        wanted = self._past.pending(pool, at_s) + self._answers.slack * self._past.quota(pool)
        if horizon_min is not None:
            wanted = wanted + np.nan_to_num(
                self._answers.future_gpus(self._past.table.pools[pool], horizon_min, at_s), nan=0.0, posinf=np.inf
            )
        # No more than the pool owns and does not use.
        return np.minimum(wanted, unused)

    def usable(self, horizon_min: float, instants_s: Any) -> Floats:
        """Idle GPUs that were not reserved in a window."""
        at_s = np.atleast_1d(np.asarray(instants_s, dtype=np.float64))
        kept = sum(self.reserved(pool, horizon_min, at_s) for pool in range(len(self._past.table.pools)))
        return np.asarray(self._past.idle(at_s) - kept, dtype=np.float64)

    def window(self, horizon_min: float, at_s: float, width: int = 0) -> dict[str, Any]:
        """Idle, reserved and usable GPUs of a window at an instant, and for whom most of them were reserved.

        Where what is pending leaves less than `width` GPUs, nobody is asked for forecasts: older ones are left out.
        """
        owners = range(len(self._past.table.pools))
        left = float(self._past.idle(at_s)) - sum(float(self.reserved(pool, None, at_s)[0]) for pool in owners)
        every = [self.of_pool(pool, horizon_min, at_s, alone=left < width) for pool in owners]
        pools = sorted(
            (value for value in every if value["reserved_gpus"] > 0), key=lambda value: -float(value["reserved_gpus"])
        )
        return {
            "horizon_min": horizon_min,
            "at_s": at_s,
            "idle_gpus": float(self._past.idle(at_s)),
            "reserved_gpus": sum(value["reserved_gpus"] for value in pools),
            "usable_gpus": float(self._past.idle(at_s)) - sum(value["reserved_gpus"] for value in pools),
            "pools": pools[:MOST],
            "pools_reserved_for": len(pools),
        }

    def of_pool(self, pool: int, horizon_min: float, at_s: float, alone: bool = False) -> dict[str, Any]:
        """What was kept for one pool at an instant, why, and who then came; `alone`: for pending jobs, unless asked."""
        table = self._past.table
        name = table.pools[pool]
        told_s = self._answers.told_s(name, horizon_min, at_s)
        # An answer of the instant itself was asked for, whatever was pending.
        needed = not alone or told_s == at_s
        forecast = float(self._answers.future_gpus(name, horizon_min, at_s)[0])
        unused = max(float(self._past.unused(pool, at_s)), 0.0)
        reserved = float(self.reserved(pool, horizon_min if needed or forecast == np.inf else None, at_s)[0])
        mine = (table.pool == pool) & (table.submit_s > at_s) & (table.submit_s <= at_s + MINUTE_S * horizon_min)
        came = np.flatnonzero(mine)
        return {
            "pool": name,
            "unused_quota_gpus": unused,
            "pending_gpus": float(self._past.pending(pool, at_s)),
            "forecast_gpus": None if not np.isfinite(forecast) else forecast,
            "sharing_off": forecast == np.inf,
            "replaced": self._answers.replaced(name, horizon_min, at_s),
            "asked": not np.isnan(forecast),
            "at_s": at_s,
            "forecast_at_s": told_s,
            "needed": needed,
            "quantile": self._answers.level(name, horizon_min),
            "reserved_gpus": reserved,
            "lent_gpus": unused - reserved,
            "missed": bool(table.gpus[came].sum() > np.nan_to_num(forecast, nan=0.0, posinf=np.inf)),
            "arrived_jobs": len(came),
            "arrived_gpus": int(table.gpus[came].sum()),
            "first_arrival": self._arrival(came, 0.0),
            "first_beyond_forecast": self._arrival(came, float(np.nan_to_num(forecast, nan=0.0, posinf=np.inf))),
        }

    def _arrival(self, came: Ints, gpus: float) -> dict[str, Any] | None:
        """The first of some arrivals with which more than so many GPUs are asked for."""
        table = self._past.table
        beyond = np.flatnonzero(np.cumsum(table.gpus[came]) > gpus)
        if not len(beyond):
            return None
        job = int(came[beyond[0]])
        return {"job_id": table.job_ids[job], "at_s": float(table.submit_s[job])}
