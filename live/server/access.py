"""Who may ask what: bearer tokens with roles, and where a server may listen."""

import hmac
import ipaddress
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from jobcast.domain.errors import ConfigError
from jobcast.traces.files import reason

LEAST_CHARACTERS = 16
"""Of a token."""
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
"""Names of this machine."""


class Role(IntEnum):
    """What somebody may do; a later role may do all that those before it may."""

    READ = 1
    ADVISE = 2
    APPLY = 3


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks: a role, and the user whose jobs are their own."""

    role: Role
    user: str = ""


LOCAL = Asker(Role.APPLY)
"""Whoever reaches a server without tokens, which listens on this machine alone."""


@dataclass(frozen=True, slots=True)
class Access:
    """Askers by token; None where there is no token file."""

    askers: tuple[tuple[bytes, Asker], ...] | None = None

    def asker(self, authorization: str | None) -> Asker | None:
        """Whose token a header `Authorization: Bearer TOKEN` holds; None where it is nobody's."""
        if self.askers is None:
            return LOCAL
        scheme, _, token = (authorization or "").partition(" ")
        given = token.strip().encode() if scheme.lower() == "bearer" else b""
        found = None
        # All are compared: the time tells nothing of which one was near.
        for known, asker in self.askers:
            if hmac.compare_digest(known, given):
                found = asker
        return found


def read_tokens(path: Path) -> Access:
    """Read a token file: a line `role user token` for each, # for comments; for its owner alone (0600).

    Raises ConfigError for a file that others can read, or that holds anything else.
    """
    try:
        mode, lines = path.stat().st_mode, path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read as token file ({reason(error)})") from error
    if mode & 0o077:
        raise ConfigError(f"{path}: others may read this token file; chmod 600 {path}")
    rows = [(number, line.split()) for number, line in enumerate(lines, 1) if line.split("#")[0].strip()]
    askers = tuple(_token(path, number, words) for number, words in rows)
    if not askers:
        raise ConfigError(f"{path}: holds no token; give a line `role user token` for each")
    return Access(askers)


def _token(path: Path, number: int, words: list[str]) -> tuple[bytes, Asker]:
    roles = {role.name.lower(): role for role in Role}
    if len(words) != 3 or words[0] not in roles or len(words[2]) < LEAST_CHARACTERS:
        # The line itself is not told: it may hold a token.
        raise ConfigError(
            f"{path}, line {number}: not `role user token` with a role of {', '.join(roles)} and a token of at least "
            f"{LEAST_CHARACTERS} characters"
        )
    return words[2].encode(), Asker(roles[words[0]], words[1])


def check_place(host: str, access: Access, tls: bool) -> None:
    """Raise ConfigError for an address beyond this machine without tokens and TLS."""
    if not _loopback(host) and (access.askers is None or not tls):
        raise ConfigError(
            f"--host {host}: reaches beyond this machine; give --token-file, --tls-cert and --tls-key, "
            "or listen on 127.0.0.1"
        )


def _loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name, which may be anywhere
        return False


def hosts_of(host: str) -> frozenset[str]:
    """Names that requests may be addressed to where a server listens on an address.

    >>> sorted(hosts_of("::1")), sorted(hosts_of("gpu"))
    (['127.0.0.1', '[::1]', 'localhost'], ['127.0.0.1', '[::1]', 'gpu', 'localhost'])
    """
    return LOOPBACK | {f"[{host}]" if ":" in host else host.lower()}


def name_of(host: str) -> str:
    """The name in a header `Host: NAME:PORT`.

    >>> [name_of(host) for host in ("Localhost:8765", "127.0.0.1", "[::1]:80")]
    ['localhost', '127.0.0.1', '[::1]']
    """
    name, _, port = host.lower().rpartition(":")
    return name if port.isdigit() else host.lower()
