"""Words that a user may have meant."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A question about the names next to a word, capital letters aside; nothing where none is near.

    >>> did_you_mean("slak", ["slack", "order"]), did_you_mean("zzz", ["slack"])
    ('did you mean slack? ', '')
    """
    # `RHO` is near `rho`, which a comparison by letters does not see.
    names = {name.lower(): name for name in known}
    near = [names[one] for one in get_close_matches(word.lower(), names, cutoff=0.65)]
    return f"did you mean {or_list(near)}? " if near else ""


def or_list(names: Iterable[str]) -> str:
    """Names as a sentence lists them.

    >>> or_list(["a"]), or_list(["a", "b", "c"])
    ('a', 'a, b or c')
    """
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last
