"""GPUs of Slurm's partitions: from `scontrol show partition`, `scontrol show node` or `sinfo -o "%P %D %G"`."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from jobcast.domain.errors import PoolsError
from jobcast.domain.hardware import PoolsTable, Quota
from jobcast.traces.check import shown_columns, shown_value
from jobcast.traces.files import FileBytes
from jobcast.traces.node_lists import count_nodes, node_names
from jobcast.traces.readers.reading import Reading
from jobcast.traces.readers.sacct_tres import NOTHING, parse_gres, parse_tres
from jobcast.traces.table import Trace

DEFAULT_MARK = "*"
SINFO = 'write sinfo -o "%P %D %G %N"'
PAIR = re.compile(r"(?:^|\s)([A-Za-z][A-Za-z/()]*)=(\S*)")
MOST_GPUS = 10**9
SHOWN = 5


@dataclass(frozen=True, slots=True)
class Partitions:
    """What one file says of partitions.

    Attributes
    ----------
    trust : of two files that tell of one partition, the one with more counts
    gpus : GPUs by partition; 0 = it has none
    nodes : names of nodes with GPUs by partition, where told
    """

    trust: int
    gpus: dict[str, int] = field(default_factory=dict)
    nodes: dict[str, frozenset[str]] = field(default_factory=dict)


def is_pools(head: bytes) -> bool:
    """Whether a file is of partitions or nodes, by how it begins.

    >>> is_pools(b"PARTITION NODES GRES\\n"), is_pools(b"PartitionName=a\\n"), is_pools(b"JobID|State\\n")
    (True, True, False)
    """
    return _parser(head) is not None


def read_quotas(files: Sequence[FileBytes]) -> list[Partitions]:
    """What files say of partitions, the least trusted first: sinfo, then nodes, then partitions.

    Raises
    ------
    PoolsError
        A file cannot be read; the line names the first such row.
    """
    told = []
    for file in files:
        text = file.text("write it again", error=PoolsError)
        parse = _parser(file.data)
        assert parse is not None
        told.append(parse(text, file.path))
    return sorted(told, key=lambda one: one.trust)


def with_quotas(trace: Trace, told: Sequence[Partitions]) -> Reading:
    """The trace with its partitions' GPUs as quotas, which hold at all times: Slurm tells those of today.

    A node in several partitions counts in each of them, since jobs of each may run on it; a note says how many do.
    Where no pool is a partition (pools are accounts in a log without partitions), there are no quotas.
    """
    gpus: dict[str, int] = {}
    nodes: dict[str, frozenset[str]] = {}
    for one in told:
        gpus |= {name: count or gpus.get(name, 0) for name, count in one.gpus.items()}
        nodes |= {name: names or nodes.get(name, names) for name, names in one.nodes.items()}
    quotas = {name: count for name, count in gpus.items() if count}
    notes = [f"quotas of {len(quotas)} partitions told as of today, taken to hold at all times"]
    if without := sorted(set(gpus) - set(quotas)):
        notes.append(f"partitions without GPUs have no quota: {_some(without)}")
    if shared := _shared({name: nodes[name] for name in quotas if name in nodes}):
        notes.append(f"nodes of several partitions count in each: {shared}; the quotas add up to more than the cluster")
    pools = trace.on_gpus.pools
    if untold := [name for name in pools if name not in quotas]:
        notes.append(f"no quota told for {len(untold)} of {len(pools)} pools: {_some(untold)}")
    fits = any(name in quotas for name in pools)
    table = PoolsTable(tuple(Quota(name, quotas[name]) for name in sorted(quotas))) if fits else None
    return Reading(replace(trace, notes=(*trace.notes, *notes)), table)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")


def _shared(nodes: dict[str, frozenset[str]]) -> int:
    """How many nodes are in more than one partition."""
    seen: set[str] = set()
    twice: set[str] = set()
    for names in nodes.values():
        twice |= seen & names
        seen |= names
    return len(twice)


def _parser(data: bytes) -> Callable[[str, str], Partitions] | None:
    first = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    if first.startswith(b"PartitionName="):
        return _from_partitions
    if first.startswith(b"NodeName="):
        return _from_nodes
    words = first.partition(b"\n")[0].replace(b"|", b" ").split()
    return _from_sinfo if b"PARTITION" in words and b"JOBID" not in words else None


def _records(text: str, key: str) -> Iterable[tuple[int, dict[str, str]]]:
    """Records of scontrol, each from the line that begins with `key`=, with that line's number."""
    start, pairs = 0, dict[str, str]()
    for line, content in enumerate(text.splitlines(), start=1):
        if content.startswith(f"{key}="):
            if pairs:
                yield start, pairs
            start, pairs = line, {}
        pairs |= dict(PAIR.findall(content))
    if pairs:
        yield start, pairs


def _from_partitions(text: str, path: str) -> Partitions:
    made = Partitions(trust=2)
    for line, pairs in _records(text, "PartitionName"):
        name = _name(pairs.get("PartitionName", ""), path, line)
        if name in made.gpus:
            raise PoolsError(f"{path}, row {line}: partition {shown_value(name)} is given twice; keep one")
        if "TRES" not in pairs:
            raise PoolsError(
                f"{path}, row {line}: partition {shown_value(name)} has no TRES=; write scontrol show partition again"
            )
        resources = parse_tres(_told(pairs["TRES"]))
        made.gpus[name] = _count(resources.gpus or 0, resources.valid, pairs["TRES"], path, line)
        made.nodes[name] = frozenset(_nodes(_told(pairs.get("Nodes", "")), path, line))
    return _some_told(made, path)


def _from_nodes(text: str, path: str) -> Partitions:
    made, seen = Partitions(trust=1), set[str]()
    for line, pairs in _records(text, "NodeName"):
        node = _name(pairs.get("NodeName", ""), path, line)
        if node in seen:
            raise PoolsError(f"{path}, row {line}: node {node!r} is given twice; keep one")
        seen.add(node)
        gres = parse_gres(_told(pairs.get("Gres", "")))
        tres = parse_tres(_told(pairs.get("CfgTRES", "")))
        count = tres.gpus if gres.gpus is None else gres.gpus
        gpus = _count(count or 0, gres.valid and tres.valid, pairs.get("Gres", ""), path, line)
        for name in filter(None, _told(pairs.get("Partitions", "")).split(",")):
            made.gpus[name] = made.gpus.get(name, 0) + gpus
            made.nodes[name] = made.nodes.get(name, frozenset()) | (frozenset({node}) if gpus else frozenset())
    return _some_told(made, path)


def _from_sinfo(text: str, path: str) -> Partitions:
    lines = [(number, line) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
    names = _fields(lines[0][1])
    columns = {name.partition("(")[0].rstrip(":"): place for place, name in enumerate(names)}
    if "GRES" not in columns or not {"NODES", "NODELIST", "HOSTNAMES"} & set(columns):
        raise PoolsError(
            f"{path}, row {lines[0][0]}: needs PARTITION, GRES and NODES, found {shown_columns(names)}; {SINFO}"
        )
    made = Partitions(trust=0)
    for number, line in lines[1:]:
        fields = _fields(line)
        if fields == names:
            continue
        if len(fields) != len(names):
            counts = f"{len(fields)} fields where the header has {len(names)}"
            raise PoolsError(f"{path}, row {number}: {counts}; {SINFO}")
        name = _name(fields[columns["PARTITION"]].removesuffix(DEFAULT_MARK), path, number)
        gres = parse_gres(_told(fields[columns["GRES"]]))
        listed = next((fields[columns[key]] for key in ("NODELIST", "HOSTNAMES") if key in columns), "")
        nodes = _nodes(_told(listed), path, number)
        many = _sinfo_nodes(fields[columns["NODES"]], path, number) if "NODES" in columns else count_nodes(listed)
        each = _count(gres.gpus or 0, gres.valid, fields[columns["GRES"]], path, number)
        made.gpus[name] = _count(made.gpus.get(name, 0) + each * many, True, line, path, number)
        made.nodes[name] = made.nodes.get(name, frozenset()) | (frozenset(nodes) if each else frozenset())
    return _some_told(made, path)


def _fields(line: str) -> list[str]:
    return [part.strip() for part in line.split("|")] if "|" in line else line.split()


def _sinfo_nodes(text: str, path: str, line: int) -> int:
    """A number of nodes, or the last of allocated/idle/other/total."""
    count = text.rpartition("/")[2]
    if not count.isascii() or not count.isdigit() or len(count) > 9:
        raise PoolsError(f"{path}, row {line}: must be a number of nodes, got {shown_value(text)}; {SINFO}")
    return int(count)


def _told(text: str) -> str:
    return "" if text.strip().lower() in NOTHING else text


def _name(text: str, path: str, line: int) -> str:
    if not text:
        raise PoolsError(f"{path}, row {line}: a name is missing; write the file again")
    return text


def _nodes(text: str, path: str, line: int) -> list[str]:
    names = node_names(text)
    if names is None:
        raise PoolsError(f"{path}, row {line}: must be a list of nodes, got {shown_value(text)}; write the file again")
    return names


def _count(gpus: int, valid: bool, text: str, path: str, line: int) -> int:
    if not valid or gpus > MOST_GPUS:
        raise PoolsError(
            f"{path}, row {line}: counts of GPUs cannot be read, got {shown_value(text)}; write the file again"
        )
    return gpus


def _some_told(made: Partitions, path: str) -> Partitions:
    if not made.gpus:
        raise PoolsError(f"{path}: names no partition; write scontrol show partition, or sinfo with %P")
    return made
