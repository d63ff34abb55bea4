"""Random draws that are pure functions of what they are about: the order in which they are asked does not matter."""

from hashlib import blake2b
from struct import pack

DRAW_BITS = 53
"""Bits of a float's fraction: a draw is a whole number of 2^-53, so that it stays below 1."""
HASH_BYTES = 8


def uniform(key: bytes, instant_s: float = 0.0) -> float:
    """A number in [0, 1), the same for the same key and instant on every machine.

    >>> uniform(b"seed 0"), uniform(b"seed 0", 1.0), uniform(b"seed 1", 1.0)
    (0.43175322771903446, 0.04210898815374431, 0.8150768470903575)
    """
    # The order of bytes is fixed, so that big-endian machines draw the same.
    digest = blake2b(key + pack("<d", instant_s), digest_size=HASH_BYTES).digest()
    return (int.from_bytes(digest, "little") >> (8 * HASH_BYTES - DRAW_BITS)) * 2.0**-DRAW_BITS


def draw_key(*parts: object) -> bytes:
    """The key of a draw: seed, what is drawn, and whom it is about.

    >>> draw_key(0, "bin", "job-7")
    b"(0, 'bin', 'job-7')"
    """
    # Repr tells 1 from 1.0 and "1", and quotes keep neighbouring parts apart.
    return repr(parts).encode()
