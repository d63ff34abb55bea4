"""What `jobcast serve` beside a replayed Slurm tells of jobs that wait or run, and how much of it held."""

import http.client
import json
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import numpy as np

from jobcast.live.event_log import CLOCK, EventLog
from jobcast.live.news import Clock
from tests.live.slurm.calm_advisor import ServeProcess
from tests.live.slurm.slurm_cluster import SlurmCluster

EVERY_S = 10.0
START, END = "start", "end"


class EtaWatch:
    """A thread that asks about all jobs that wait or run, again and again.

    Parameters
    ----------
    cluster, server : of whose jobs who is asked
    log : that the server keeps

    Attributes
    ----------
    rows : of each question `at_s`, `job_id`, whether it is `pending`, what it waits for (`reason`) and `slurm_s`, when
        Slurm's squeue has it start, None for N/A; `status` and `ms` of the answer, `futures_age_s`, and where told
        (5 %, 95 %) of its `start` and `end`; seconds from the epoch of the cluster
    """

    def __init__(self, cluster: SlurmCluster, server: ServeProcess, log: EventLog) -> None:
        self._cluster, self._port, self._stop = cluster, server.port, threading.Event()
        (told,) = (one for _, one in log.since(0) if one.kind == CLOCK)
        self._clock = Clock(told.facts["scale"], told.facts["from_s"], told.at_s)
        self.rows: list[dict[str, Any]] = []
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def stop(self) -> list[dict[str, Any]]:
        """Ask no more; all that was asked."""
        self._stop.set()
        self._thread.join()
        return self.rows

    def _ask(self) -> None:
        while not self._stop.wait(EVERY_S):
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
            # Who waits first: it may start meanwhile.
            for job in sorted(self._jobs(), key=lambda one: not one["pending"]):
                self.rows.append(job | self._told(connection, job["job_id"]))
            connection.close()

    def _jobs(self) -> Iterable[dict[str, Any]]:
        words = ("squeue", "-h", "-t", "pending,running", "-o", "%i|%T|%r|%S")
        done = self._cluster.outcome(*words, environ={"SLURM_TIME_FORMAT": "%s"})
        for line in done.stdout.splitlines():
            name, state, reason, start = line.split("|")
            pending = state == "PENDING"
            slurm_s = float(start) if pending and start.isdigit() else None
            yield {"job_id": name, "pending": pending, "reason": reason, "slurm_s": slurm_s}

    def _told(self, connection: http.client.HTTPConnection, name: str) -> dict[str, Any]:
        at_s, begun_s = time.time(), time.perf_counter()
        connection.request("GET", f"/v1/jobs/{name}/eta")
        answer = connection.getresponse()
        data = answer.read()
        row: dict[str, Any] = {"at_s": at_s, "status": answer.status, "ms": 1e3 * (time.perf_counter() - begun_s)}
        if answer.status == 200:
            told = json.loads(data)
            row |= {"state": told["state"], "policy": told["policy"], "futures_age_s": told["futures_age_s"]}
            row |= {"degraded": told["degraded"], "why": told["why"]}
            row |= {kind: self._ends(told[kind]) for kind in (START, END) if told[kind] is not None}
        return row

    def _ends(self, spread: Mapping[str, str]) -> list[float]:
        return [self._clock.real(datetime.fromisoformat(spread[name]).timestamp()) for name in ("p5", "p95")]


def eta_figures(rows: Iterable[Mapping[str, Any]], came_s: Mapping[str, tuple[float, float]]) -> dict[str, Any]:
    """Shares of jobs that were answered, and of intervals that held, by question and by job (its first that was told).

    Parameters
    ----------
    rows : of `EtaWatch`
    came_s : start and end of each job, seconds from the epoch of the cluster
    """
    rows = [row for row in rows if row["job_id"] in came_s]
    # Who started, or ended, between squeue and the question was not waiting, or running, any more.
    waits = [row for row in rows if row["pending"] and came_s[row["job_id"]][0] > row["at_s"]]
    runs = [row for row in rows if came_s[row["job_id"]][1] > row["at_s"]]
    unanswered = [row for row in waits if START not in row]
    told = _firsts(row for row in waits if START in row)
    ms = [row["ms"] for row in rows]
    return {
        "jobs": len(_firsts(rows)),
        "pending": {
            "jobs": len(_firsts(waits)),
            "jobs_told": len(told),
            "questions": len(waits),
            "started_meanwhile": sum(row["pending"] for row in rows) - len(waits),
            "questions_unanswered": len(unanswered),
            "unanswered": Counter(f"{row['status']} {row.get('why', '')}" for row in unanswered),
            "jobs_with_slurms_own_start": len(_firsts(row for row in waits if row["slurm_s"] is not None)),
            "questions_by_reason": Counter(row["reason"] for row in waits),
            "questions_with_slurms_own_start": Counter(row["reason"] for row in waits if row["slurm_s"] is not None),
        },
        START: _held([row for row in waits if START in row], START, {name: one[0] for name, one in came_s.items()}),
        END: _held([row for row in runs if END in row], END, {name: one[1] for name, one in came_s.items()}),
        "policies": Counter(row["policy"] for row in rows if "policy" in row),
        "degraded": Counter(one for row in rows for one in row.get("degraded", ())),
        "ms": {name: round(float(np.quantile(ms, at)), 1) for name, at in (("p50", 0.5), ("p99", 0.99))},
    }


def _firsts(rows: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """The first row of each job."""
    found: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        found.setdefault(row["job_id"], row)
    return found


def _held(rows: list[Mapping[str, Any]], kind: str, came_s: Mapping[str, float]) -> dict[str, Any]:
    """Shares, %, of 90 % intervals within which it came, before which and after which."""
    return {"by_question": _shares(rows, kind, came_s), "by_job": _shares([*_firsts(rows).values()], kind, came_s)}


def _shares(rows: list[Mapping[str, Any]], kind: str, came_s: Mapping[str, float]) -> dict[str, Any]:
    low_s, high_s = np.array([row[kind] for row in rows]).reshape(-1, 2).T
    at_s = np.array([came_s[row["job_id"]] for row in rows])
    # Slurm tells the whole second in which something came.
    below, above = (100.0 * float(np.mean(one)) for one in (at_s + 1.0 <= low_s, at_s > high_s))
    shares = {"held_pct": 100.0 - below - above, "below_pct": below, "above_pct": above}
    return {"told": len(rows), **{name: round(one, 1) for name, one in shares.items()}}
