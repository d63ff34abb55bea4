"""Lists of nodes as Slurm writes them: gpu[01-04,7],login1."""

import re

MOST_NODES = 1_000_000
PART = re.compile(r"([^\[\],]*(?:\[[0-9,\-]+\][^\[\],]*)*)(?:,|$)")
RANGES = re.compile(r"\[([0-9,\-]+)\]")


def node_names(text: str) -> list[str] | None:
    """Names in a list of nodes; None where it is none, or too long to be one.

    >>> node_names("gpu[08-10,12],n1")
    ['gpu08', 'gpu09', 'gpu10', 'gpu12', 'n1']
    >>> node_names("r[1-2]n[1-2]"), node_names("a[1"), node_names("")
    (['r1n1', 'r1n2', 'r2n1', 'r2n2'], None, [])
    """
    names: list[str] = []
    place = 0
    while place < len(text):
        found = PART.match(text, place)
        if not found or found.end() == place:
            return None
        expanded = _expanded(found[1])
        if expanded is None or len(names) + len(expanded) > MOST_NODES:
            return None
        names += expanded
        place = found.end()
    return names


def count_nodes(text: str) -> int:
    """How many nodes a list names."""
    return len(node_names(text) or ())


def _expanded(part: str) -> list[str] | None:
    names = [""]
    fixed, ranges = RANGES.split(part)[::2], RANGES.findall(part)
    for index, text in enumerate(fixed):
        names = [name + text for name in names]
        if index < len(ranges):
            numbers = _numbers(ranges[index])
            if numbers is None or len(names) * len(numbers) > MOST_NODES:
                return None
            names = [name + number for name in names for number in numbers]
    return names


def _numbers(ranges: str) -> list[str] | None:
    """The numbers of 01-03,7, with their leading zeros."""
    numbers: list[str] = []
    for one in ranges.split(","):
        low, dash, high = one.partition("-")
        if not low.isdigit() or (dash and not high.isdigit()) or len(low) > 9 or len(high) > 9:
            return None
        last = int(high) if dash else int(low)
        if last < int(low) or last - int(low) > MOST_NODES:
            return None
        numbers += [str(number).zfill(len(low)) for number in range(int(low), last + 1)]
    return numbers
