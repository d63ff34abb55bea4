"""Which version is meant: `will-jobs-arrive`, `will-jobs-arrive@challenger`, `will-jobs-arrive:3`."""

import re

from jobcast.domain.errors import RegistryError

CHAMPION = "champion"
CHALLENGER = "challenger"

Ref = str | int | None
"""An alias, a version number (or its digits), or None for the champion."""
ALIAS = re.compile(r"[\w-]{1,255}")
NO_ALIAS = re.compile(r"latest|v?\d+", re.IGNORECASE)
"""What MLflow keeps for itself, and versions."""


def parse_reference(text: str) -> tuple[str, Ref]:
    """Name and reference of `NAME`, `NAME@ALIAS` or `NAME:VERSION`.

    >>> parse_reference("new-load"), parse_reference("new-load@challenger"), parse_reference("new-load:3")
    (('new-load', None), ('new-load', 'challenger'), ('new-load', 3))

    Raises RegistryError for anything else.
    """
    name, at, alias = text.partition("@")
    if at and name and alias:
        return name, alias
    name, colon, version = text.partition(":")
    if not at and colon and name and version.isdecimal():
        return name, int(version)
    if at or colon or not name:
        raise RegistryError(f"{text!r} names no model; write NAME, NAME@ALIAS or NAME:VERSION")
    return name, None


def check_alias(alias: str) -> None:
    """Raise a RegistryError for what cannot be an alias.

    >>> check_alias("night_shift-2")
    >>> check_alias("my alias")
    Traceback (most recent call last):
    jobcast.domain.errors.RegistryError: alias 'my alias': write letters, digits, - and _, and no version or 'latest'
    """
    if not ALIAS.fullmatch(alias) or NO_ALIAS.fullmatch(alias):
        raise RegistryError(f"alias {alias!r}: write letters, digits, - and _, and no version or 'latest'")
