"""What is told at submission where login nodes reach no server: a small file, which `job_submit.lua` reads."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from jobcast.domain.clock import Clock
from jobcast.live.job_record import by_submission
from jobcast.live.server.eta_answers import said
from jobcast.live.server.service import Service
from jobcast.traces.files import replacing

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
