"""Which predictors a command can do something with."""

from collections.abc import Iterable

from jobcast.domain.errors import ConfigError

CURVES = "accuracy-curve"
"""Learns from training curves and not from a trace of jobs."""
JCT = "jct"
"""Completion times are forecast by replaying a policy, not by a registered version."""


def check_known(command: str, name: str, known: Iterable[str], elsewhere: Iterable[str] = ()) -> None:
    """Raise a ConfigError for a name that is no predictor of a command, before any registry is asked for it.

    Parameters
    ----------
    command : as users type it
    name : of a predictor
    known : those that the caller answers for
    elsewhere : more that the command knows, to be listed

    >>> check_known("drift", "new-load", ("new-load",))
    """
    names = tuple(known)
    if name not in names:
        listed = ", ".join((*names, *elsewhere))
        raise ConfigError(f"{name!r} is no predictor of `jobcast {command}`; choose from {listed}")
