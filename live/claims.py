"""Who lends on a Slurm: one advisor at a time. A QOS that it changes tells so in Slurm, and what it was before.

So a second advisor sees that it is not alone, and what was changed can be put back by whoever looks, whatever became
of the advisor and its home.
"""

import hashlib
import os
import re
import socket
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from jobcast.domain.errors import ConfigError, LedgerError
from jobcast.live.slurm import Qos
from jobcast.models.registry.store_lock import lock_now
from jobcast.traces.files import unwritable

CLAIM = re.compile(r"(?:^| )jobcast by=(?P<by>\S+) before=(?P<before>\S*)$")
"""At the end of a QOS's description."""
NO_LIMIT = "none"


def place_of(log: Path) -> str:
    """What names begin with of advisors whose log lies here: a copy elsewhere, or on another host, is another's."""
    host = re.sub(r"[^\w.-]", "", socket.gethostname())
    return f"{host}-{hashlib.blake2s(bytes(log.resolve()), digest_size=4).hexdigest()}-".lower()


def new_name(place: str) -> str:
    """A name for an advisor that has none at a place; Slurm keeps descriptions in lower case."""
    return f"{place}{uuid.uuid4().hex[:8]}"


def claimed(qos: Qos, by: str, lends: bool) -> str:
    """The description of a QOS that an advisor is about to change; one that it changed before keeps what it tells.

    `lends`: whether its limit is changed, as of one of leases, or whose jobs it may stop, as of a pool's
    """
    if CLAIM.search(qos.told):
        return qos.told
    limit = NO_LIMIT if qos.gpus is None else str(qos.gpus)
    return f"{qos.told} jobcast by={by} before={limit if lends else ','.join(qos.preempts)}".lstrip()


def before(qos: Qos, lends: bool) -> Qos | None:
    """A QOS as it was before an advisor changed it; None where none did. `lends`: as of `claimed`."""
    claim = CLAIM.search(qos.told)
    if claim is None:
        return None
    told, was = qos.told[: claim.start()], claim["before"]
    if lends:
        return replace(qos, gpus=int(was) if was.isdecimal() else None, told=told)
    return replace(qos, preempts=tuple(filter(None, was.split(","))), told=told)


def claimants(qos: Mapping[str, Qos]) -> set[str]:
    """Names of the advisors that changed any."""
    return {claim["by"] for claim in (CLAIM.search(one.told) for one in qos.values()) if claim}


@contextmanager
def alone(home: Path) -> Iterator[None]:
    """Be the one process of a home that changes a cluster. The system lets go of one that dies, however it dies.

    Raises ConfigError where another one does so.
    """
    file = home / "live" / "advise.lock"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        number = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise LedgerError(unwritable(file, error)) from error
    try:
        if not lock_now(number):
            raise ConfigError(f"{file}: another `jobcast advise` of this home applies; end it first")
        yield
    finally:
        os.close(number)
