"""Routes of the server: forecasts, events, health, metrics."""

import html
import math
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Literal

from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from pydantic import BaseModel, ConfigDict, Field

from jobcast import __version__
from jobcast.live.champions import POLL_S
from jobcast.live.event_log import LOOK, SUBMIT, Event
from jobcast.live.server.access import Access, Role
from jobcast.live.server.metrics import exposition
from jobcast.live.server.service import Answers, Service

MOST_EVENTS = 10_000
"""Events in one request."""
MOST_BYTES = 8_000_000
"""Of the body of a request."""
MOST_TOLD = 10
"""Mistakes of one request."""
OPEN = ("/healthz", "/readyz")
"""Answered without a token."""
AHEAD_S = 60.0
"""Seconds that a sender's clock may be ahead of ours."""
Text = Field(default="", max_length=200)
Instant = Field(allow_inf_nan=False, ge=0, le=1e11)
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
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


class EventsBody(BaseModel):
    """Events, as they are posted."""

    model_config = ConfigDict(extra="forbid")
    events: list[EventBody] = Field(max_length=MOST_EVENTS)


def make_app(service: Service, access: Access) -> FastAPI:
    """The application; while it runs, a thread looks the champions up."""
    app = FastAPI(title="jobcast", version=__version__, docs_url=None, redoc_url=None, lifespan=_polling(service))
    app.add_middleware(BoundedBodies)
    read, advise = (Depends(_allowed(access, role)) for role in (Role.READ, Role.ADVISE))

    @app.middleware("http")
    async def headers(request: Request, call_next: Callable[[Request], Any]) -> Response:
        # Before a body is read: who has no token learns nothing of what would be wrong with it.
        if request.url.path not in OPEN and access.asker(request.headers.get("authorization")) is None:
            detail = {"detail": "give a token: Authorization: Bearer TOKEN"}
            return JSONResponse(detail, 401, {**HEADERS, "WWW-Authenticate": "Bearer"})
        response: Response = await call_next(request)
        response.headers.update(HEADERS)
        return response

    @app.exception_handler(RequestValidationError)
    async def refused(request: Request, error: RequestValidationError) -> Response:
        # What was sent is not sent back: it may be no JSON (NaN), or of any size.
        told = [{"where": [str(part) for part in one["loc"]], "what": one["msg"]} for one in error.errors()[:MOST_TOLD]]
        return JSONResponse({"detail": told}, 422)

    @app.exception_handler(Exception)
    async def ours(request: Request, error: Exception) -> Response:
        return JSONResponse({"detail": "an error of the server; its log tells more"}, 500, HEADERS)

    @app.get("/v1/forecasts", dependencies=[read])
    def forecasts(pools: str = "", horizons: str = "") -> Any:
        """Arrivals and loads by pool and window; `pools` and `horizons` are lists with commas, empty for all."""
        now_s = service.clock()
        answers = service.forecasts(now_s)
        return JSONResponse({**_told(service, answers, now_s), "pools": _chosen(answers, pools, horizons)})

    @app.post("/v1/events", dependencies=[advise])
    def events(body: EventsBody) -> Any:
        """Keep what happened; the same event may be sent again."""
        now_s = service.clock()
        new = service.take([_event(one, now_s, service) for one in body.events])
        return {"received": len(body.events), "new": new, "as_of": _iso(now_s)}

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

    return app


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


def _polling(service: Service) -> Any:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        stop = threading.Event()

        def look() -> None:
            while True:
                service.watch.poll()
                if stop.wait(POLL_S):
                    return

        thread = threading.Thread(target=look, name="champions", daemon=True)
        thread.start()
        yield
        stop.set()
        thread.join(POLL_S)

    return lifespan


def _allowed(access: Access, least: Role) -> Callable[[Request], None]:
    def check(request: Request) -> None:
        asker = access.asker(request.headers.get("authorization"))
        if asker is None or asker.role < least:
            raise HTTPException(403, f"needs the role {least.name.lower()}")

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
    if body.duration_s is not None:
        facts["duration_s"] = body.duration_s
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


def _told(service: Service, answers: Answers, now_s: float) -> dict[str, Any]:
    age_s = service.age_s(now_s)
    return {
        "as_of": _iso(now_s),
        "age_s": age_s if math.isfinite(age_s) else None,
        "versions": dict(service.watch.current.versions),
        "degraded": list(answers.degraded),
    }


def _iso(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat()


def _docs(app: FastAPI) -> str:
    rows = [
        f"<dt>{html.escape(method.upper())} {html.escape(path)}</dt><dd>{html.escape(one.get('description', ''))}</dd>"
        for path, methods in app.openapi()["paths"].items()
        for method, one in methods.items()
    ]
    return f'<!doctype html><html lang="en"><title>jobcast</title><h1>jobcast</h1><dl>{"".join(rows)}</dl></html>'
