"""Which predictors a command can do something with."""

from collections.abc import Iterable

from jobcast.domain.errors import ConfigError


def check_known(command: str, name: str, known: Iterable[str]) -> None:
    """Raise a ConfigError for a name that is no predictor of a command, before any registry is asked for it.

    >>> check_known("drift", "new-load", ("new-load",))
    """
    names = tuple(known)
    if name not in names:
        raise ConfigError(f"{name!r} is no predictor of `jobcast {command}`; choose from {', '.join(names)}")
