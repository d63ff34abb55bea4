"""Routes of the server: what is posted to them, and how their answers are put together.

Posted are events of the cluster, and jobs that are asked about before they are submitted.
"""

import html
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import Depends, FastAPI, HTTPException, Query, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from pydantic import BaseModel, ConfigDict, Field

from jobcast.live.advice import instant, stopped_figures
from jobcast.live.event_log import CHANGE, END, LOOK, START, SUBMIT, Event
from jobcast.live.server.access import Access, Asker, Role
from jobcast.live.server.etas import Eta, Question
from jobcast.live.server.metrics import exposition
from jobcast.live.server.service import Answers, Service
from jobcast.live.server.told import eta_figures, eta_line, lines

PAGE = {"/": "text/html", "/page.js": "text/javascript", "/page.css": "text/css"}
"""Files of the page for people, which hold nothing of the cluster: the page asks for the rest with its token."""
PARTS = 4
"""Of a job that has several are named to whoever asks for all."""
FACTS = {
    SUBMIT: ("time_limit_s", "held"),
    CHANGE: ("pool", "gpus", "user", "tag", "time_limit_s", "held"),
    START: ("dedicated",),
    END: ("duration_s",),
}
"""What may be told beside a job's name and the time, by kind of event."""
AHEAD_S = 60.0
"""Seconds that a sender's clock may be ahead of ours."""
Form = Annotated[Literal["json", "text", "hook"], Query(alias="format")]
MOST_EVENTS = 10_000
"""Events in one request."""
MOST_WIDTHS, MOST_ASKED = 8, 16
"""Of a job that is asked about, as many time limits, and of both together."""
Text = Field(default="", max_length=200)
Instant = Field(allow_inf_nan=False, ge=0, le=1e11)


class EventBody(BaseModel):
    """One event, as it is posted."""

    model_config = ConfigDict(extra="forbid")
    kind: Literal["submit", "change", "start", "requeue", "end", "look"]
    job_id: str = Text
    at_s: float = Instant
    known_s: float | None = Field(default=None, allow_inf_nan=False, ge=0, le=1e11)
    pool: str = Text
    gpus: int = Field(default=1, ge=0, le=1_000_000)
    user: str = Text
    tag: str = Text
    duration_s: float | None = Field(default=None, allow_inf_nan=False, ge=0, le=1e11)
    time_limit_s: float | None = Field(default=None, allow_inf_nan=False, gt=0, le=1e11)
    dedicated: bool | None = None
    held: bool | None = None


class EventsBody(BaseModel):
    """Events, as they are posted."""

    model_config = ConfigDict(extra="forbid")
    events: list[EventBody] = Field(max_length=MOST_EVENTS)


Gpus = Annotated[int, Field(ge=0, le=1_000_000)]
Limit = Annotated[float, Field(allow_inf_nan=False, gt=0, le=1e11)]


class EtaBody(BaseModel):
    """A job that is not submitted yet: every width with every limit."""

    model_config = ConfigDict(extra="forbid")
    pool: str = Text
    gpus: Gpus | Annotated[list[Gpus], Field(min_length=1, max_length=MOST_WIDTHS)]
    time_limit_s: Limit | Annotated[list[Limit], Field(min_length=1, max_length=MOST_WIDTHS)] | None = None
    user: str = Text
    tag: str = Text

    def questions(self) -> Iterator[Question]:
        """One for each width and limit."""
        widths = self.gpus if isinstance(self.gpus, list) else [self.gpus]
        limits = self.time_limit_s if isinstance(self.time_limit_s, list) else [self.time_limit_s or math.inf]
        if len(widths) * len(limits) > MOST_ASKED:
            raise HTTPException(422, f"more than {MOST_ASKED} widths times limits")
        for gpus, limit_s in product(widths, limits):
            yield Question(self.pool, gpus, limit_s, self.user, self.tag)


def add_forecasts(app: FastAPI, service: Service, access: Access) -> None:
    """What the champions say, and what they say it from."""
    read, advise = (Depends(_allowed(access, role)) for role in (Role.READ, Role.ADVISE))

    @app.get("/v1/forecasts", dependencies=[read])
    def forecasts(pools: str = "", horizons: str = "") -> Any:
        """Arrivals and loads by pool and window; `pools` and `horizons` are lists with commas, empty for all."""
        now_s = service.clock()
        answers = service.forecasts(now_s)
        told = {**_told(service, answers.degraded, now_s), "versions": dict(answers.versions)}
        return JSONResponse({**told, "pools": _chosen(answers, pools, horizons)})

    @app.post("/v1/events", dependencies=[advise])
    def events(body: EventsBody) -> Any:
        """Keep what happened; the same event may be sent again."""
        now_s = service.clock()
        new = service.take([_event(one, at, now_s, service) for at, one in enumerate(body.events)])
        return {"received": len(body.events), "new": new, "as_of": instant(now_s)}


def add_advice(app: FastAPI, service: Service, access: Access) -> None:
    """What an advisor would do, and what it has lent."""
    read = Depends(_allowed(access, Role.READ))

    @app.get("/v1/advice")
    def advice(asker: Annotated[Asker, read]) -> Any:
        """What the policy would do now, and why."""
        if service.advisor is None:
            raise HTTPException(404, "nobody advises here; start `jobcast advise`")
        if not service.sees_all(asker):
            raise HTTPException(403, "needs the role advise where jobs are private")
        return JSONResponse(dict(service.advisor.advice()))

    @app.get("/v1/leases")
    def leases(asker: Annotated[Asker, read]) -> Any:
        """What is lent to whom, and until when."""
        found = _leases(service, asker)
        if found is None:
            raise HTTPException(404, "nobody advises here; start `jobcast advise`")
        stopped = stopped_figures(service.state.record.stopped, service.clock())
        return JSONResponse({"leases": found, "stopped_7d": stopped})


def add_jobs(app: FastAPI, service: Service, access: Access) -> None:
    """When jobs start and end."""
    read = Depends(_allowed(access, Role.READ))

    @app.get("/v1/jobs/{job_id}/eta")
    def eta(job_id: str, asker: Annotated[Asker, read], form: Form = "json") -> Any:
        """When a job starts and ends; `format=text`: in a line, `hook`: in a line where it is sure, else nothing."""
        if form != "hook":  # which has no time
            service.hear(job_id)
        found = service.eta(job_id, asker)
        if found is None:
            raise HTTPException(404, _unknown(service.parts(job_id, asker)))
        if form != "json":
            return _text(service, form, found.now_s, lambda why: [eta_line(found, f"job {job_id}", why)])
        return JSONResponse({**_told_of(service, found), **eta_figures(found)})

    @app.post("/v1/eta")
    def eta_before(body: EtaBody, asker: Annotated[Asker, read], form: Form = "json") -> Any:
        """When a job would start and end that is not submitted yet, of several widths and time limits."""
        if body.pool not in {pool.name for pool in service.pools}:
            raise HTTPException(422, "a pool that has no quota here")
        found = [service.asked(one, asker) for one in body.questions()]
        answers = [one for one in found if one is not None]
        if len(answers) < len(found):
            raise HTTPException(503, "others are being answered; ask again", {"Retry-After": "10"})
        if form != "json":
            return _text(service, form, answers[0].now_s, lambda why: [_line_before(one, why) for one in answers])
        return JSONResponse({**_told_of(service, answers[0]), "answers": [eta_figures(one) for one in answers]})


def add_accounts(app: FastAPI, service: Service, access: Access) -> None:
    """What became of what was told, and what the page shows."""
    read = Depends(_allowed(access, Role.READ))

    @app.get("/v1/promises")
    def promises(asker: Annotated[Asker, read]) -> Any:
        """What became of what was told in the last 7 days, and how well the versions forecast."""
        told = _told(service, service.degraded(service.clock()), service.clock())
        last = service.promises.last(lambda job_id: service.may_see(job_id, asker), service.state)
        on_trial = service.challengers
        challenger = {"versions": dict(on_trial.current.versions), "trouble": on_trial.trouble}
        trial = {"forecasts": service.shadow.figures(), "challenger": challenger}
        return JSONResponse({**told, **service.promises.figures, **trial, "last": last})

    @app.get("/v1/overview")
    def overview(asker: Annotated[Asker, read]) -> Any:
        """What the page for people shows."""
        now_s = service.clock()
        answers = service.forecasts(now_s)
        gpus = service.held(answers)
        pools = {name: {**gpus[name], "forecasts": of} for name, of in answers.pools.items()}
        degraded = dict.fromkeys((*answers.degraded, *service.degraded(now_s)))
        told = {**_told(service, tuple(degraded), now_s), "versions": dict(answers.versions)}
        kept = service.promises.figures.get("kinds", [])
        return JSONResponse({**told, "pools": pools, "leases": _leases(service, asker), "promises": kept})


def add_health(app: FastAPI, service: Service, access: Access) -> None:
    """How the server is, and its routes."""
    read = Depends(_allowed(access, Role.READ))

    @app.get("/healthz")
    def healthz() -> Any:
        """Whether the server runs."""
        return {"status": "ok"}

    @app.get("/readyz")
    def readyz() -> Any:
        """Whether forecasts are other than conservative."""
        now_s = service.clock()
        answers = service.forecasts(now_s)
        return JSONResponse({"ready": not answers.degraded}, 503 if answers.degraded else 200)

    @app.get("/metrics", dependencies=[read])
    def metrics() -> Any:
        """Figures in Prometheus' text format."""
        return PlainTextResponse(exposition(service, service.clock()), media_type="text/plain; version=0.0.4")

    @app.get("/docs", dependencies=[read])
    def docs() -> Any:
        """The routes, without a script."""
        return HTMLResponse(_docs(app))


def add_page(app: FastAPI, tokens: bool) -> None:
    """The page for people; `tokens`: whether it is to ask for one."""
    for path, kind in PAGE.items():
        app.add_api_route(path, _file(path, kind, tokens), include_in_schema=False)


def _file(path: str, kind: str, tokens: bool) -> Callable[[], Response]:
    file = Path(__file__).with_name("page.html" if path == "/" else path.removeprefix("/"))
    text = file.read_text(encoding="utf-8").replace("{{tokens}}", "yes" if tokens else "no")
    return lambda: Response(text, media_type=kind)


def _allowed(access: Access, least: Role) -> Callable[[Request], Asker]:
    def check(request: Request) -> Asker:
        asker = access.asker(request.headers.get("authorization"))
        if asker is None or asker.role < least:
            raise HTTPException(403, f"needs the role {least.name.lower()}")
        return asker

    return check


def _event(body: EventBody, at: int, now_s: float, service: Service) -> Event:
    def refused(why: str) -> HTTPException:
        # One of thousands has all of them refused: which, its sender must be able to tell.
        return HTTPException(422, f"events[{at}]: {why}")

    # To the millisecond, which a trace can hold; not later than now, nor before it happened by a clock that is ahead.
    heard_s = max(math.floor(1e3 * now_s) / 1e3, min(body.at_s, now_s) if body.kind == LOOK else body.at_s)
    known_s = heard_s if body.known_s is None else body.known_s
    if max(known_s, body.at_s) > now_s + AHEAD_S:
        raise refused("an event of the future; times are seconds from the epoch, UTC")
    if known_s < body.at_s and body.kind != LOOK:
        raise refused("an event was known before it happened")
    if body.kind != LOOK and not body.job_id:
        raise refused("an event of a job needs job_id")
    given = body.kind == SUBMIT or (body.kind == CHANGE and "pool" in body.model_fields_set)
    if given and body.pool not in {pool.name for pool in service.pools}:
        raise refused("a submission to a pool that has no quota here")
    facts = {"pool": body.pool, "gpus": body.gpus, "user": body.user, "tag": body.tag} if body.kind == SUBMIT else {}
    for name in FACTS.get(body.kind, ()):
        # Of a change only what is told is another; a limit that is null is none from then on.
        if name in body.model_fields_set and (body.kind == CHANGE or getattr(body, name) is not None):
            facts[name] = getattr(body, name)
    return Event(known_s, body.kind, body.job_id, body.at_s, facts)


def _chosen(answers: Answers, pools: str, horizons: str) -> dict[str, Any]:
    some = next(iter(answers.pools.values()), {})
    names, windows = _listed(pools, list(answers.pools), "pool"), _listed(horizons, list(some), "horizon")
    return {pool: {window: answers.pools[pool][window] for window in windows} for pool in names}


def _listed(text: str, known: Sequence[str], what: str) -> Sequence[str]:
    asked = [name for name in text.split(",") if name]
    if any(name not in known for name in asked):
        raise HTTPException(404, f"unknown {what}")
    return asked or known


def _unknown(parts: Sequence[str]) -> str:
    if not parts:
        return "unknown job"
    more = f" and {len(parts) - PARTS} more" if len(parts) > PARTS else ""
    return f"a job of parts; ask for one of {', '.join(parts[:PARTS])}{more}"


def _told(service: Service, degraded: Sequence[str], now_s: float) -> dict[str, Any]:
    age_s = service.age_s(now_s)
    return {
        "as_of": instant(now_s),
        "age_s": age_s if math.isfinite(age_s) else None,
        "versions": dict(service.watch.current.versions),
        "degraded": list(degraded),
    }


def _told_of(service: Service, eta: Eta) -> dict[str, Any]:
    return {**_told(service, service.degraded(eta.now_s), eta.now_s), "versions": dict(eta.basis.versions)}


def _line_before(eta: Eta, degraded: Sequence[str]) -> str:
    job = eta.known.job
    limit_s = job.requirements.time_limit_s if job.requirements is not None else math.inf
    limited = f" for at most {limit_s / 3600.0:g} h" if limit_s < math.inf else ""
    return eta_line(eta, f"{job.gpus} GPUs{limited}", degraded)


def _text(service: Service, form: str, now_s: float, rows: Callable[[Sequence[str]], list[str]]) -> Response:
    """Rows from why they are worse than they might be, for people; for a hook nothing where that is not sure."""
    if form == "hook":
        return PlainTextResponse(lines(rows(()))) if service.sure(now_s) else Response(status_code=204)
    return PlainTextResponse(lines(rows(service.degraded(now_s))))


def _leases(service: Service, asker: Asker) -> list[Mapping[str, Any]] | None:
    """Those of jobs that somebody may see; None where nobody lends."""
    if service.advisor is None:
        return None
    return [one for one in service.advisor.leases() if service.may_see(str(one.get("job_id", "")), asker)]


def _docs(app: FastAPI) -> str:
    rows = [
        f"<dt>{html.escape(method.upper())} {html.escape(path)}</dt><dd>{html.escape(one.get('description', ''))}</dd>"
        for path, methods in app.openapi()["paths"].items()
        for method, one in methods.items()
    ]
    return f'<!doctype html><html lang="en"><title>jobcast</title><h1>jobcast</h1><dl>{"".join(rows)}</dl></html>'
