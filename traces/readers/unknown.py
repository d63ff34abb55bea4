"""What to say of a file that no reader recognises."""

from collections.abc import Sequence
from typing import Protocol

from jobcast.traces.check import shown_columns
from jobcast.traces.csv_table import header_of

PACKED = {b"\x1f\x8b": "gzip", b"PK\x03\x04": "zip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
"""How compressed files begin."""


class Named(Protocol):
    """What of a reader is told."""

    @property
    def name(self) -> str:
        """What users call the format."""
        ...

    @property
    def needs(self) -> Sequence[str]:
        """Columns that a file of this format has."""
        ...


def described(head: bytes, readers: Sequence[Named]) -> str:
    """What a file holds that begins with `head`, what the nearest format wants, and what to do, in one line."""
    names = ", ".join(reader.name for reader in readers)
    for magic, packer in PACKED.items():
        if head.startswith(magic):
            return f"it is compressed ({packer}); unpack it first"
    found = header_of(head)
    if not any(found):
        return f"neither CSV text nor Parquet; name its format to `jobcast trace convert` ({names})"
    nearest = max(readers, key=lambda reader: _share(reader.needs, found))
    missing = ", ".join(column for column in nearest.needs if column not in found)
    return (
        f"found {'column' if len(found) == 1 else 'columns'} {shown_columns(found)}; nearest is {nearest.name}"
        f"{', which also needs ' if missing else ''}{missing}; rename the columns, "
        f"or name the format to `jobcast trace convert` ({names})"
    )


def _share(needs: Sequence[str], found: Sequence[str]) -> float:
    return sum(column in found for column in needs) / len(needs) if needs else 0.0
