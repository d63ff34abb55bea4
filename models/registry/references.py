"""Which version is meant: `will-jobs-arrive`, `will-jobs-arrive@challenger`, `will-jobs-arrive:3`."""

from jobcast.domain.errors import RegistryError

CHAMPION = "champion"
CHALLENGER = "challenger"

Ref = str | int | None
"""An alias, a version number (or its digits), or None for the champion."""


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
