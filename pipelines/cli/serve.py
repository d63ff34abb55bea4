"""`jobcast serve`: forecasts by HTTP, beside a running cluster."""

import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jobcast.domain.errors import ClusterError, ConfigError
from jobcast.pipelines.cli import options
from jobcast.traces.files import reason

if TYPE_CHECKING:
    import socket as net

    from jobcast.domain.jobs import Pool
    from jobcast.live.news import Clock
    from jobcast.live.slurm import Slurm
    from jobcast.live.slurm_side import SlurmSide
    from jobcast.live.state import LogReader

TURN_S = 0.0002


@click.command(name="serve")
@click.option("--slurm", is_flag=True, help="Read the Slurm that SLURM_CONF or /etc names; it tells the pools, too.")
@click.option("--slurm-rest", help="Read slurmrestd instead of Slurm's commands: http://HOST:PORT or unix:PATH.")
@click.option("--slurm-token-file", type=options.FILE, help="Holds what `scontrol token` prints, for --slurm-rest.")
@click.option("--pools", "pools_path", type=options.FILE, help="Quotas: CSV pool,gpus; without --slurm.")
@options.pool_by_option
@click.option("--every", "every_s", type=options.Finite(min=0.5), default=5.0, show_default=True, help="Of Slurm, s.")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address; beyond this machine with tokens and TLS."
)
@click.option("--port", type=click.IntRange(0, 65_535), default=8765, show_default=True, help="Port.")
@click.option("--socket", type=options.FILE, help="Listen on a unix socket instead.")
@click.option("--token-file", type=options.FILE, help="Lines `role user token`; roles read, advise, apply; mode 0600.")
@click.option("--tls-cert", type=options.FILE, help="Certificate chain, PEM.")
@click.option("--tls-key", type=options.FILE, help="Its key, PEM.")
@click.option(
    "--policy", default="", help="That futures are played under; by default sia once jobs were lent to, or fcfs."
)
@click.option("--told", type=options.FILE, help="File for job_submit.lua: what is told at submission; see the docs.")
@options.clock_options
@click.option("--private", is_flag=True, help="Role read sees only its own user's jobs; with tokens.")
def command(
    host: str, socket: Path | None, pools_path: Path | None, token_file: Path | None, told: Path | None, **asked: Any
) -> None:
    """Answer by HTTP what the registry's champions forecast for a running cluster, and when its jobs start and end.

    GET / is a page for people, GET /docs lists the routes. What happens is read from Slurm, or comes by POST
    /v1/events, and is kept. Where nothing was heard for 60 s, or there is no champion, answers are conservative and
    say so. Slurm is never changed: `jobcast advise` does that.

    \b
    Example:
      jobcast serve --slurm
      jobcast serve --pools pools.csv
      jobcast serve --pools pools.csv --host 0.0.0.0 --token-file tokens --tls-cert cert.pem --tls-key key.pem
    """
    import uvicorn

    from jobcast.live.event_log import EventLog, kept_for_good
    from jobcast.live.server.access import Access, check_place, hosts_of, read_tokens
    from jobcast.live.server.app import REFRESH_S, make_app
    from jobcast.live.server.service import Service
    from jobcast.live.state import STALE_S, LogReader
    from jobcast.pipelines.cli.advise import clock_of
    from jobcast.traces.pools import read_pools

    tls_cert, tls_key, private = asked["tls_cert"], asked["tls_key"], asked["private"]
    if (tls_cert is None) != (tls_key is None):
        raise ConfigError("--tls-cert and --tls-key go together; give both or neither")
    if private and token_file is None:
        raise ConfigError("--private: nobody's user is known without tokens; give --token-file")
    access = Access() if token_file is None else read_tokens(token_file)
    if socket is not None and not socket.absolute().parent.is_dir():
        raise ConfigError(f"--socket {socket}: its folder is not there; make it, or name another")
    if socket is None:
        check_place(host, access, tls_cert is not None)
    home = options.home_of()
    log, registry = EventLog(home), options.registry_of()
    if told is not None and not os.access(told.absolute().parent, os.W_OK):
        raise ConfigError(f"--told {told}: its folder cannot be written to; make it, or name another")
    cluster = _cluster(asked["slurm"], asked["slurm_rest"], asked["slurm_token_file"])
    if cluster is not None and pools_path is not None:
        raise ConfigError("--slurm: Slurm tells the pools; leave --pools out")
    if cluster is None and pools_path is None:
        raise ConfigError("serve: knows no pools; add --slurm, or --pools FILE")
    clock = clock_of(log, asked["clock_scale"], asked["clock_start"])
    with kept_for_good():
        known = LogReader(log)
    side = None if cluster is None else _of_slurm(cluster, known, registry, asked, clock)

    def now_s() -> float:
        return clock.model(time.time())

    def quotas() -> "Sequence[Pool]":
        return side.pools if pools_path is None else read_pools(pools_path).at(now_s())  # type: ignore[union-attr]

    # Slurm starts what fits a pool's quota, past a job that does not.
    backfill, stale_s = cluster is not None, STALE_S * clock.scale
    with kept_for_good():
        service = Service(known, quotas(), registry, now_s, asked["policy"], private, side, quotas, backfill, stale_s)
    door = None if socket is not None else _door(host, asked["port"])
    hosts = None if socket is not None else hosts_of(host)
    app = make_app(service, access, hosts, told, REFRESH_S / clock.scale)
    # Requests take turns with the thread that plays futures: at 5 ms a turn, the default, they wait longest.
    sys.setswitchinterval(TURN_S)
    ours: dict[str, Any] = {
        "ssl_certfile": tls_cert,
        "ssl_keyfile": tls_key,
        "uds": None if socket is None else str(socket),
    }
    config = uvicorn.Config(app, log_level="warning", server_header=False, **ours)
    try:
        config.load()
    except OSError as error:
        raise ConfigError(f"--tls-cert {tls_cert}, --tls-key {tls_key}: no use ({reason(error)}); give PEM") from error
    # Last: what is refused leaves nothing behind.
    log.make()
    if door is not None:
        name, number = f"[{host}]" if ":" in host else host, door.getsockname()[1]
        options.console_of().result(f"listens on {'http' if tls_cert is None else 'https'}://{name}:{number}")
    uvicorn.Server(config).run(sockets=None if door is None else [door])


def _door(host: str, port: int) -> "net.socket":
    """A socket that listens at an address; port 0: any that is free."""
    import socket as net

    try:
        door = net.create_server((host, port), family=net.AF_INET6 if ":" in host else net.AF_INET)
        # Inherited by all connections, which asyncio leaves out for a socket that is handed to it: else the body of an
        # answer waits until its head is acknowledged, which takes 40 ms.
        door.setsockopt(net.IPPROTO_TCP, net.TCP_NODELAY, 1)
        return door
    except OSError as error:
        raise ConfigError(f"--port {port}: {reason(error)}; name another, or another --host") from error


def _cluster(slurm: bool, rest: str | None, token_file: Path | None) -> "Slurm | None":
    from jobcast.live.slurm import Slurm
    from jobcast.live.slurm_rest import SlurmRest

    if token_file is not None and rest is None:
        raise ConfigError("--slurm-token-file: goes with --slurm-rest; add it, or leave both out")
    if rest is not None:
        return SlurmRest(rest, token_file)
    return Slurm() if slurm else None


def _of_slurm(
    cluster: "Slurm", known: "LogReader", registry: Any, asked: Mapping[str, Any], clock: "Clock"
) -> "SlurmSide":
    """What looks at a Slurm from now on. Raises ClusterError where it does not answer now, and never was seen."""
    from jobcast.domain.jobs import Pool
    from jobcast.live.advisor import Rules
    from jobcast.live.leases import pools_of
    from jobcast.live.slurm_side import SlurmSide
    from jobcast.pipelines.cli.advise import advisor_of, lending_policy

    watch, advisor = advisor_of(cluster, known, registry, lending_policy("sia", {}), Rules(asked["pool_by"]), clock)
    try:
        pools: Sequence[Pool] = pools_of(advisor.look(time.time()).qos)
    except ClusterError as error:
        # A server that starts while Slurm is down goes on by what it knew, as one does that runs: both may start anew.
        pools = [Pool(name, gpus) for name, gpus in sorted(known.state.quotas.items())]
        if not pools:
            raise
        options.console_of().note(f"goes on by what was known of the cluster: {error}")
    return SlurmSide(advisor, time.time, asked["every_s"], watch.poll, pools)
