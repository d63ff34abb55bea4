"""Answers about jobs as they are sent: for programs, and in a line for people.

At submission, where login nodes reach no server, by a small file, which `job_submit.lua` reads.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import Any

from jobcast.domain.clock import Clock
from jobcast.domain.times import iso
from jobcast.live.futures import Spread
from jobcast.live.job_record import by_submission
from jobcast.live.server.etas import Eta
from jobcast.live.server.service import Service
from jobcast.traces.files import replacing


def eta_figures(eta: Eta) -> dict[str, Any]:
    """What is told of a job; instants are ISO-8601 in UTC."""
    (job, start_s, end_s), answer = eta.known, eta.answer
    limit_s = None if job.requirements is None else job.requirements.time_limit_s
    return {
        "job_id": job.job_id,
        "pool": job.pool,
        "gpus": job.gpus,
        "time_limit_s": limit_s if limit_s is not None and limit_s < float("inf") else None,
        "state": state_of(eta),
        "submitted": iso(job.submit_s),
        "started": None if isnan(start_s) else iso(start_s),
        "ended": None if isnan(end_s) else iso(end_s),
        "start": None if answer is None or answer.start is None else _when(answer.start, eta.now_s),
        "end": None if answer is None else _when(answer.end, eta.now_s),
        "why": eta.why,
        "policy": eta.basis.policy,
        "sizes": eta.basis.sizes,
        "futures_age_s": None if answer is None or isnan(answer.age_s) else answer.age_s,
    }


def state_of(eta: Eta) -> str:
    """Whether a job is pending, running or ended."""
    if not isnan(eta.known.end_s):
        return "ended"
    return "pending" if isnan(eta.known.start_s) else "running"


def _when(spread: Spread, now_s: float) -> dict[str, Any]:
    half, most = (spread.intervals[place] for place in (0, -1))
    named = {"p5": most.low_s, "p25": half.low_s, "p50": spread.median_s, "p75": half.high_s, "p95": most.high_s}
    return {name: iso(now_s + seconds) for name, seconds in named.items()}


def eta_line(eta: Eta, named: str, degraded: Sequence[str] = ()) -> str:
    """What is told of a job, in a line; `named`: what it is called, `degraded`: why that is worse than it might be."""
    # Of what has ended nothing is forecast.
    told = () if state_of(eta) == "ended" else (eta.why, *degraded)
    asides = "; ".join(dict.fromkeys(filter(None, told)))
    text = f"{named}: {_sentence(eta, Clock(eta.now_s))}" + (f" ({asides})" if asides else "")
    return _printable(text)


def _sentence(eta: Eta, clock: Clock) -> str:
    state, answer = state_of(eta), eta.answer
    if state == "ended":
        return f"ended {clock.said(eta.known.end_s)}"
    if answer is None:
        return "nothing can be said of when it starts" if state == "pending" else "nothing can be said of when it ends"
    end = f"to end {said(answer.end, eta.now_s, clock)}"
    if answer.start is None:
        return f"runs since {clock.said(eta.known.start_s)}, expected {end}"
    return f"expected to start {said(answer.start, eta.now_s, clock)}, {end}"


def said(spread: Spread, now_s: float, clock: Clock) -> str:
    """The median and the widest interval of what comes so many seconds after an instant."""
    most = spread.intervals[-1]
    low, high = (clock.said(now_s + seconds) for seconds in (most.low_s, most.high_s))
    return f"{clock.said(now_s + spread.median_s)} ({100 * most.level:g} %: {low}-{high})"


def _printable(text: str) -> str:
    """Without what moves a terminal's cursor."""
    return "".join(one if one.isprintable() else "?" for one in text)


def lines(rows: Iterable[str]) -> str:
    """Each with its end."""
    return "".join(f"{row}\n" for row in rows)


TOLD_S = 120.0
"""After which what is told is over, if nothing newer is: a round of futures takes less."""
READABLE = 0o644
"""By slurmctld, whose user is another."""


def write_told(path: Path, service: Service, now_s: float) -> None:
    """Replace the file by what is known now; take it away where nothing is. Raises ConfigError where it cannot."""
    text = told(service, now_s)
    if text is None:
        path.unlink(missing_ok=True)
        return
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")
        draft.chmod(READABLE)


def told(service: Service, now_s: float) -> str | None:
    """Until when it holds, and a line a pool; None where nobody should be told."""
    if not service.sure(now_s):
        return None
    waiting = defaultdict[str, list[str]](list)
    for one in by_submission(service.state.active.values()):
        # Nobody waits behind who may start only later.
        if one.start is None and not one.held and service.etas.futures.knows(one.name):
            waiting[one.facts["pool"]].append(one.name)
    gpus = service.held(service.forecasts(now_s))
    at = Clock(now_s).said(now_s)
    # Names end at a blank there.
    names = [name for name in gpus if len(name.split()) == 1]
    lines = [f"{name} as of {at}: {_queue(service, waiting[name]) or _idle(gpus[name])}" for name in names]
    return "\n".join((f"until {int(now_s + TOLD_S)}", *lines, ""))


def _idle(gpus: Mapping[str, float]) -> str:
    return f"{gpus['idle']:g} of {gpus['quota']:g} GPUs are idle"


def _queue(service: Service, jobs: list[str]) -> str:
    """How many wait, and when the last of them starts; empty for nobody."""
    last = service.etas.of(jobs[-1]) if jobs else None
    if last is None or last.answer is None or last.answer.start is None:
        return ""
    starts = said(last.answer.start, last.now_s, Clock(last.now_s))
    return f"{len(jobs)} wait before you, and the last of them is expected to start {starts}"
