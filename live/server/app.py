"""Routes of the server: forecasts, starts and ends of jobs, promises, events, health, and a page for people."""

import html
import logging
import math
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import Depends, FastAPI, HTTPException, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from pydantic import BaseModel, ConfigDict, Field

from jobcast import __version__
from jobcast.domain.clock import Clock
from jobcast.live.event_log import END, LOOK, START, SUBMIT, Event
from jobcast.live.server.access import LOOPBACK, Access, Asker, Role, name_of
from jobcast.live.server.champions import POLL_S
from jobcast.live.server.eta_answers import eta_figures, eta_line, lines
from jobcast.live.server.etas import Eta, Question
from jobcast.live.server.metrics import exposition
from jobcast.live.server.service import Answers, Service

MOST_EVENTS = 10_000
"""Events in one request."""
MOST_BYTES = 8_000_000
"""Of the body of a request."""
MOST_TOLD = 10
"""Mistakes of one request."""
PAGE = {"/": "text/html", "/page.js": "text/javascript", "/page.css": "text/css"}
"""Files of the page for people, which hold nothing of the cluster: the page asks for the rest with its token."""
OPEN = ("/healthz", "/readyz", *PAGE)
"""Answered without a token."""
REFRESH_S, IDLE_SHARE = 15.0, 4.0
"""Between two rounds of futures: seconds at least, and so many times the CPU time that the last one took."""
MOST_WIDTHS, MOST_ASKED = 8, 16
"""Of a job that is asked about, as many time limits, and of both together."""
LOG = logging.getLogger(__name__)
AHEAD_S = 60.0
"""Seconds that a sender's clock may be ahead of ours."""
Text = Field(default="", max_length=200)
Instant = Field(allow_inf_nan=False, ge=0, le=1e11)
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


class EventBody(BaseModel):
    """One event, as it is posted."""

    model_config = ConfigDict(extra="forbid")
    kind: Literal["submit", "start", "end", "look"]
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


def make_app(service: Service, access: Access, hosts: frozenset[str] | None = LOOPBACK) -> FastAPI:
    """The application; while it runs, threads look the versions up and play futures.

    `hosts`: names that requests without tokens may be addressed to; None for all, as on a unix socket.
    """
    app = FastAPI(title="jobcast", version=__version__, docs_url=None, redoc_url=None, lifespan=_threads(service))
    app.add_middleware(BoundedBodies)
    _guard(app, access, hosts)
    _answer_errors(app)
    _routes_of_forecasts(app, service, access)
    _routes_of_jobs(app, service, access)
    _routes_of_health(app, service, access)
    return app


def _guard(app: FastAPI, access: Access, hosts: frozenset[str] | None) -> None:
    @app.middleware("http")
    async def headers(request: Request, call_next: Callable[[Request], Any]) -> Response:
        # A page of somebody else's that had its own name point here would ask in the name of who looks at it.
        if access.askers is None and hosts is not None and name_of(request.headers.get("host", "")) not in hosts:
            return JSONResponse({"detail": "addressed to another host; give --host its name"}, 421, HEADERS)
        # Before a body is read: who has no token learns nothing of what would be wrong with it.
        if request.url.path not in OPEN and access.asker(request.headers.get("authorization")) is None:
            detail = {"detail": "give a token: Authorization: Bearer TOKEN"}
            return JSONResponse(detail, 401, {**HEADERS, "WWW-Authenticate": "Bearer"})
        response: Response = await call_next(request)
        response.headers.update(HEADERS)
        return response


def _answer_errors(app: FastAPI) -> None:
    @app.exception_handler(RequestValidationError)
    async def refused(request: Request, error: RequestValidationError) -> Response:
        # What was sent is not sent back: it may be no JSON (NaN), or of any size.
        told = [{"where": [str(part) for part in one["loc"]], "what": one["msg"]} for one in error.errors()[:MOST_TOLD]]
        return JSONResponse({"detail": told}, 422)

    @app.exception_handler(Exception)
    async def ours(request: Request, error: Exception) -> Response:
        return JSONResponse({"detail": "an error of the server; its log tells more"}, 500, HEADERS)


def _routes_of_forecasts(app: FastAPI, service: Service, access: Access) -> None:
    read, advise = (Depends(_allowed(access, role)) for role in (Role.READ, Role.ADVISE))

    @app.get("/v1/forecasts", dependencies=[read])
    def forecasts(pools: str = "", horizons: str = "") -> Any:
        """Arrivals and loads by pool and window; `pools` and `horizons` are lists with commas, empty for all."""
        now_s = service.clock()
        answers = service.forecasts(now_s)
        return JSONResponse({**_told(service, answers.degraded, now_s), "pools": _chosen(answers, pools, horizons)})

    @app.post("/v1/events", dependencies=[advise])
    def events(body: EventsBody) -> Any:
        """Keep what happened; the same event may be sent again."""
        now_s = service.clock()
        new = service.take([_event(one, now_s, service) for one in body.events])
        return {"received": len(body.events), "new": new, "as_of": _iso(now_s)}

    @app.get("/v1/advice", dependencies=[read])
    def advice() -> Any:
        """What the policy would do now, and why."""
        if service.advisor is None:
            raise HTTPException(404, "nobody advises here; start `jobcast advise`")
        return JSONResponse(dict(service.advisor.advice()))

    @app.get("/v1/leases")
    def leases(asker: Annotated[Asker, read]) -> Any:
        """What is lent to whom, and until when."""
        found = _leases(service, asker)
        if found is None:
            raise HTTPException(404, "nobody advises here; start `jobcast advise`")
        return JSONResponse({"leases": found})


def _routes_of_jobs(app: FastAPI, service: Service, access: Access) -> None:
    read = Depends(_allowed(access, Role.READ))

    @app.get("/v1/jobs/{job_id}/eta")
    def eta(job_id: str, asker: Annotated[Asker, read], form: Form = "json") -> Any:
        """When a job starts and ends, with `format=text` in a line."""
        found = service.eta(job_id, asker)
        if found is None:
            raise HTTPException(404, "unknown job")
        if form == "text":
            return PlainTextResponse(lines([eta_line(found, Clock(found.now_s), f"job {job_id}")]))
        return JSONResponse({**_told_of(service, found), **eta_figures(found)})

    @app.post("/v1/eta")
    def eta_before(body: EtaBody, asker: Annotated[Asker, read], form: Form = "json") -> Any:
        """When a job would start and end that is not submitted yet, of several widths and time limits."""
        if body.pool not in {pool.name for pool in service.pools}:
            raise HTTPException(422, "a pool that is not in the file of pools")
        found = [service.asked(one, asker) for one in body.questions()]
        answers = [one for one in found if one is not None]
        if len(answers) < len(found):
            raise HTTPException(503, "others are being answered; ask again", {"Retry-After": "10"})
        if form == "text":
            return PlainTextResponse(lines(_line_before(one) for one in answers))
        return JSONResponse({**_told_of(service, answers[0]), "answers": [eta_figures(one) for one in answers]})

    @app.get("/v1/promises")
    def promises(asker: Annotated[Asker, read]) -> Any:
        """What became of what was told in the last 7 days, and how well the versions forecast."""
        told = _told(service, service.degraded(service.clock()), service.clock())
        last = service.promises.last(lambda job_id: service.may_see(job_id, asker), service.state)
        trial = {"forecasts": service.shadow.figures(), "challenger": _challenger(service)}
        return JSONResponse({**told, **service.promises.figures, **trial, "last": last})

    @app.get("/v1/overview")
    def overview(asker: Annotated[Asker, read]) -> Any:
        """What the page for people shows."""
        now_s = service.clock()
        answers = service.forecasts(now_s)
        gpus = service.held(answers)
        pools = {name: {**gpus[name], "forecasts": of} for name, of in answers.pools.items()}
        degraded = dict.fromkeys((*answers.degraded, *service.degraded(now_s)))
        told = _told(service, tuple(degraded), now_s)
        kept = service.promises.figures.get("kinds", [])
        return JSONResponse({**told, "pools": pools, "leases": _leases(service, asker), "promises": kept})


def _routes_of_health(app: FastAPI, service: Service, access: Access) -> None:
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

    for path, kind in PAGE.items():
        app.add_api_route(path, _file(path, kind, access.askers is not None), include_in_schema=False)


def _file(path: str, kind: str, tokens: bool) -> Callable[[], Response]:
    file = Path(__file__).with_name("page.html" if path == "/" else path.removeprefix("/"))
    text = file.read_text(encoding="utf-8").replace("{{tokens}}", "yes" if tokens else "no")
    return lambda: Response(text, media_type=kind)


class BoundedBodies:
    """Refuses bodies of more than `MOST_BYTES`, told or found out while they come."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on; the body is read once, up to the bound."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        parts, size, more = [], 0, True
        while more and size <= MOST_BYTES:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            parts.append(message.get("body", b""))
            size, more = size + len(parts[-1]), message.get("more_body", False)
        if size > MOST_BYTES:
            await JSONResponse({"detail": f"more than {MOST_BYTES} bytes"}, 413, HEADERS)(scope, receive, send)
            return
        whole = iter([{"type": "http.request", "body": b"".join(parts), "more_body": False}])

        async def replayed() -> Any:
            return next(whole, None) or await receive()

        await self._app(scope, replayed, send)


def _threads(service: Service) -> Any:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        stop = threading.Event()

        def versions() -> float:
            service.look()
            return POLL_S

        def futures() -> float:
            return max(REFRESH_S, IDLE_SHARE * service.refresh())

        threads = [
            threading.Thread(target=_again, args=(work, stop), name=work.__name__, daemon=True)
            for work in (versions, futures)
        ]
        for thread in threads:
            thread.start()
        yield
        stop.set()
        for thread in threads:
            thread.join(POLL_S)

    return lifespan


def _again(work: Callable[[], float], stop: threading.Event) -> None:
    """Do it again and again, as many seconds apart as it says."""
    while True:
        pause_s = REFRESH_S
        try:
            pause_s = work()
        except Exception:  # the thread must outlive whatever goes wrong once
            LOG.exception("%s", threading.current_thread().name)
        if stop.wait(pause_s):
            return


Form = Annotated[Literal["json", "text"], Query(alias="format")]


def _allowed(access: Access, least: Role) -> Callable[[Request], Asker]:
    def check(request: Request) -> Asker:
        asker = access.asker(request.headers.get("authorization"))
        if asker is None or asker.role < least:
            raise HTTPException(403, f"needs the role {least.name.lower()}")
        return asker

    return check


def _event(body: EventBody, now_s: float, service: Service) -> Event:
    known_s = now_s if body.known_s is None else body.known_s
    if max(known_s, body.at_s) > now_s + AHEAD_S:
        raise HTTPException(422, "an event of the future; times are seconds from the epoch, UTC")
    if known_s < body.at_s and body.kind != LOOK:
        raise HTTPException(422, "an event was known before it happened")
    if body.kind != LOOK and not body.job_id:
        raise HTTPException(422, "an event of a job needs job_id")
    if body.kind == SUBMIT and body.pool not in {pool.name for pool in service.pools}:
        raise HTTPException(422, "a submission to a pool that is not in the file of pools")
    facts = {"pool": body.pool, "gpus": body.gpus, "user": body.user, "tag": body.tag} if body.kind == SUBMIT else {}
    for name, kind in (("time_limit_s", SUBMIT), ("dedicated", START), ("duration_s", END)):
        if body.kind == kind and getattr(body, name) is not None:
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


def _told(service: Service, degraded: Sequence[str], now_s: float) -> dict[str, Any]:
    age_s = service.age_s(now_s)
    return {
        "as_of": _iso(now_s),
        "age_s": age_s if math.isfinite(age_s) else None,
        "versions": dict(service.watch.current.versions),
        "degraded": list(degraded),
    }


def _told_of(service: Service, eta: Eta) -> dict[str, Any]:
    return {**_told(service, service.degraded(eta.now_s), eta.now_s), "versions": dict(eta.basis.versions)}


def _line_before(eta: Eta) -> str:
    job = eta.known.job
    limit_s = job.requirements.time_limit_s if job.requirements is not None else math.inf
    limited = f" for at most {limit_s / 3600.0:g} h" if limit_s < math.inf else ""
    return eta_line(eta, Clock(eta.now_s), f"{job.gpus} GPUs{limited}")


def _leases(service: Service, asker: Asker) -> list[Mapping[str, Any]] | None:
    """Those of jobs that somebody may see; None where nobody lends."""
    if service.advisor is None:
        return None
    return [one for one in service.advisor.leases() if service.may_see(str(one.get("job_id", "")), asker)]


def _challenger(service: Service) -> dict[str, Any]:
    return {"versions": dict(service.challengers.current.versions), "trouble": service.challengers.trouble}


def _iso(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat()


def _docs(app: FastAPI) -> str:
    rows = [
        f"<dt>{html.escape(method.upper())} {html.escape(path)}</dt><dd>{html.escape(one.get('description', ''))}</dd>"
        for path, methods in app.openapi()["paths"].items()
        for method, one in methods.items()
    ]
    return f'<!doctype html><html lang="en"><title>jobcast</title><h1>jobcast</h1><dl>{"".join(rows)}</dl></html>'
