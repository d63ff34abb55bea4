"""Which store a home's commands work on."""

from functools import lru_cache
from pathlib import Path

from jobcast.models.registry.home import Address, registry_address
from jobcast.models.registry.store import Store


def store_of(home: Path) -> Store:
    """The store that a home's commands work on: the one that the environment names, else the home's own.

    Raises RegistryError where the environment names none that can be used.
    """
    address = registry_address()
    if isinstance(address, Address):
        return _remote(address, home)
    from jobcast.models.registry.sqlite_store import SqliteStore

    return SqliteStore(home if address is None else address)


@lru_cache(maxsize=8)
def _remote(address: Address, home: Path) -> Store:
    """One a process: it remembers for a while that nobody answers."""
    from jobcast.models.registry.remote_store import RemoteStore

    return RemoteStore(address, home)
