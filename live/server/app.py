"""The application: who may ask, bounded bodies, errors, and the threads behind it."""

import logging
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from jobcast import __version__
from jobcast.domain.errors import LedgerError
from jobcast.live.champions import POLL_S
from jobcast.live.server import routes
from jobcast.live.server.access import LOOPBACK, Access, name_of
from jobcast.live.server.service import Service
from jobcast.live.server.told import write_told

MOST_BYTES = 8_000_000
"""Of the body of a request."""
MOST_TOLD = 10
"""Mistakes of one request."""
OPEN = ("/healthz", "/readyz", *routes.PAGE)
"""Answered without a token."""
REFRESH_S, IDLE_SHARE = 15.0, 4.0
"""Between two rounds of futures: seconds at least, and so many times the CPU time that the last one took."""
LOG = logging.getLogger(__name__)
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


def make_app(
    service: Service,
    access: Access,
    hosts: frozenset[str] | None = LOOPBACK,
    told: Path | None = None,
    refresh_s: float = REFRESH_S,
) -> FastAPI:
    """The application; while it runs, threads look the versions up and play futures.

    `hosts`: names that requests without tokens may be addressed to; None for all, as on a unix socket. `told`: a file
    that is written after each round of futures, see `told.write_told`. `refresh_s`: between two rounds, at least.
    """
    threads = _threads(service, told, refresh_s)
    app = FastAPI(title="jobcast", version=__version__, docs_url=None, redoc_url=None, lifespan=threads)
    app.add_middleware(BoundedBodies)
    _guard(app, access, hosts)
    _answer_errors(app)
    for add in (routes.add_forecasts, routes.add_advice, routes.add_jobs, routes.add_accounts, routes.add_health):
        add(app, service, access)
    routes.add_page(app, tokens=access.askers is not None)
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

    @app.exception_handler(LedgerError)
    async def unkept(request: Request, error: LedgerError) -> Response:
        LOG.warning("%s", error)
        return JSONResponse({"detail": "nothing can be kept now; the server's log tells why"}, 503)

    @app.exception_handler(Exception)
    async def ours(request: Request, error: Exception) -> Response:
        return JSONResponse({"detail": "an error of the server; its log tells more"}, 500, HEADERS)


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


def _threads(service: Service, told: Path | None, refresh_s: float) -> Any:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        stop, looked = threading.Event(), threading.Event()

        def versions() -> float:
            try:
                service.look()
            finally:
                looked.set()
            return POLL_S

        def futures() -> float:
            # The first would be played without champions, which take seconds to load; a registry may take longer.
            looked.wait(refresh_s)
            took_s = service.refresh()
            if told is not None:
                write_told(told, service, service.clock())
            return max(refresh_s, IDLE_SHARE * took_s)

        def cluster() -> float:
            assert service.advisor is not None
            service.advisor.look()
            return service.advisor.every_s

        works = (versions, futures) if service.advisor is None else (versions, futures, cluster)
        threads = [
            threading.Thread(target=_again, args=(work, stop), name=work.__name__, daemon=True) for work in works
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
