"""GPUs of Slurm's partitions: from `scontrol show partition`, `scontrol show node` or `sinfo -o "%P %D %G"`.

GPUs, cores and memory in the texts by which Slurm writes trackable and generic resources (TRES, GRES).
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from jobcast.domain.errors import PoolsError
from jobcast.domain.hardware import PoolsTable, Quota
from jobcast.traces.check import node_names, shown_columns, shown_value
from jobcast.traces.files import FileBytes
from jobcast.traces.readers.reading import Reading
from jobcast.traces.table import Trace

NOTHING = ("", "(null)", "none", "n/a", "unknown")
UNITS_GB = {"K": 2.0**-20, "M": 2.0**-10, "G": 1.0, "T": 2.0**10, "P": 2.0**20}
"""Units of memory; a bare number is megabytes."""
SOCKETS = re.compile(r"\([^()]*\)")
"""What follows a GRES's count: sockets (S:0-1) or indices (IDX:0-3)."""
COUNT = re.compile(r"\d{1,15}")
SIZE = re.compile(r"(\d{1,15}(?:\.\d+)?)([KMGTP]?)[nc]?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Resources:
    """What a text says; None where it says nothing.

    Attributes
    ----------
    gpus : GPUs in all
    gpu_type : kinds of them, joined by + where there are several
    cores : in all
    mem_gb : memory, GB
    valid : whether all that it says of GPUs, cores and memory could be read
    """

    gpus: int | None = None
    gpu_type: str | None = None
    cores: float | None = None
    mem_gb: float | None = None
    valid: bool = True


def parse_tres(text: str) -> Resources:
    """Resources of an AllocTRES, ReqTRES or TRES text.

    GPUs are the generic entry, else the sum of the typed ones: Slurm lists the same GPUs under both.

    >>> parse_tres("billing=8,cpu=8,gres/gpu:a100=4,gres/gpu=4,mem=64G,node=1")
    Resources(gpus=4, gpu_type='a100', cores=8.0, mem_gb=64.0, valid=True)
    >>> parse_tres("cpu=8,gres/gpu:a100=1,gres/gpu:v100=2").gpus
    3
    """
    # the type stands in the name (gres/gpu:a100=4), so the first = parts it from the count
    entries = [entry.strip().partition("=") for entry in text.split(",") if entry.strip()]
    generic: int | None = None
    typed: dict[str, int] = {}
    cores = mem_gb = None
    for name, equals, value in entries:
        if name == "gres/gpu" or name.startswith("gres/gpu:"):
            # a GPU count that cannot be read must not pass for none
            if not equals or not COUNT.fullmatch(value):
                return Resources(valid=False)
            if name == "gres/gpu":
                generic = int(value)
            else:
                kind = name.removeprefix("gres/gpu:")
                # one type may be listed twice, as of two sockets
                typed[kind] = typed.get(kind, 0) + int(value)
        # cores and memory are extras: unreadable ones are dropped, not refused
        elif name == "cpu":
            cores = float(value) if COUNT.fullmatch(value) else None
        elif name == "mem":
            mem_gb = _gb(value)
    return _resources(generic, typed, cores, mem_gb)


def parse_gres(text: str) -> Resources:
    """Resources of a GRES text: AllocGRES, ReqGRES, sinfo's %G, a node's Gres.

    >>> parse_gres("gpu:a100:4(S:0-1),nvme:1,gpu:v100:2")
    Resources(gpus=6, gpu_type='a100+v100', cores=None, mem_gb=None, valid=True)
    >>> [parse_gres(text).gpus for text in ("gpu:4", "gpu", "(null)", "lustre:1")]
    [4, 1, None, None]
    """
    generic: int | None = None
    typed: dict[str, int] = {}
    # sockets may hold commas, so they go before the text is split
    for entry in SOCKETS.sub("", text).split(","):
        name, *rest = entry.strip().removeprefix("gres:").removeprefix("gres/").split(":")
        if name != "gpu":
            continue
        # "gpu" alone stands for one; gpu:a100 without a count tells none
        counted = not rest or rest[-1].isdigit()
        if len(rest) > 2 or not counted or (rest and not COUNT.fullmatch(rest[-1])):
            return Resources(valid=False)
        count = int(rest[-1]) if rest else 1
        if len(rest) == 2:
            typed[rest[0]] = typed.get(rest[0], 0) + count
        else:
            generic = (generic or 0) + count
    # unlike in TRES, generic entries of GRES come beside the typed ones
    if generic is not None and typed:
        generic += sum(typed.values())
    return _resources(generic, typed, None, None)


_RESOURCE_TYPES = {
    "gpus": pl.Float64(), "gpu_type": pl.String(), "cores": pl.Float64(), "mem_gb": pl.Float64(), "valid": pl.Boolean(),
}  # fmt: skip


def resource_columns(texts: pl.Series, parse: Callable[[str], Resources]) -> pl.DataFrame:
    """Resources of a column of texts: gpus, gpu_type, cores, mem_gb, valid; each different text is read once."""
    # logs hold few different texts: parsing each once is what makes long logs quick
    different = texts.drop_nulls().unique(maintain_order=True)
    read = [parse(text) if text.strip().lower() not in NOTHING else Resources() for text in different.to_list()]
    known = pl.DataFrame({"text": different}).with_columns(
        pl.Series(name, [getattr(one, name) for one in read], dtype=dtype) for name, dtype in _RESOURCE_TYPES.items()
    )
    rows = pl.DataFrame({"text": texts}).join(known, on="text", how="left", maintain_order="left")
    return rows.drop("text").with_columns(pl.col("valid").fill_null(True))


def _resources(generic: int | None, typed: dict[str, int], cores: float | None, mem_gb: float | None) -> Resources:
    gpus = generic if generic is not None else sum(typed.values()) if typed else None
    # sorted, so that a100+v100 is one type whatever order Slurm lists them in
    kinds = sorted(kind for kind, count in typed.items() if count)
    return Resources(gpus, "+".join(kinds) or None, cores, mem_gb)


def _gb(text: str) -> float | None:
    found = SIZE.fullmatch(text)
    # a bare number is megabytes to Slurm
    return float(found[1]) * UNITS_GB[found[2].upper() or "M"] if found else None


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
    rows = []
    for file in files:
        text = file.text("write it again", error=PoolsError)
        parse = _parser(file.data)
        assert parse is not None
        rows.append(parse(text, file.path))
    return sorted(rows, key=lambda one: one.trust)


def with_quotas(trace: Trace, value: Sequence[Partitions]) -> Reading:
    """The trace with its partitions' GPUs as quotas, which hold at all times: Slurm tells those of today.

    A node in several partitions counts in each of them, since jobs of each may run on it; a note says how many do.
    Where no pool is a partition (pools are accounts in a log without partitions), there are no quotas.
    """
    gpus: dict[str, int] = {}
    nodes: dict[str, frozenset[str]] = {}
    for one in value:
        # later files are trusted more, but a 0 of theirs does not undo a count
        gpus |= {name: count or gpus.get(name, 0) for name, count in one.gpus.items()}
        nodes |= {name: names or nodes.get(name, names) for name, names in one.nodes.items()}
    quotas = {name: count for name, count in gpus.items() if count}
    notes = [f"quotas of {len(quotas)} partitions told as of today, taken to hold at all times"]
    if without := sorted(set(gpus) - set(quotas)):
        notes.append(f"partitions without GPUs have no quota: {_some(without)}")
    # the reader of quotas must know that they do not add up to the cluster
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
        # Gres is what the node has; CfgTRES stands in where it is not told
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
        # sinfo repeats its header in long outputs
        if fields == names:
            continue
        if len(fields) != len(names):
            counts = f"{len(fields)} fields where the header has {len(names)}"
            raise PoolsError(f"{path}, row {number}: {counts}; {SINFO}")
        name = _name(fields[columns["PARTITION"]].removesuffix(DEFAULT_MARK), path, number)
        gres = parse_gres(_told(fields[columns["GRES"]]))
        listed = next((fields[columns[key]] for key in ("NODELIST", "HOSTNAMES") if key in columns), "")
        nodes = _nodes(_told(listed), path, number)
        # node lists stand in for NODES where the export has no count
        many = (
            _sinfo_nodes(fields[columns["NODES"]], path, number)
            if "NODES" in columns
            else len(node_names(listed) or ())
        )
        each = _count(gres.gpus or 0, gres.valid, fields[columns["GRES"]], path, number)
        made.gpus[name] = _count(made.gpus.get(name, 0) + each * many, True, line, path, number)
        made.nodes[name] = made.nodes.get(name, frozenset()) | (frozenset(nodes) if each else frozenset())
    return _some_told(made, path)


def _fields(line: str) -> list[str]:
    return [part.strip() for part in line.split("|")] if "|" in line else line.split()


def _sinfo_nodes(text: str, path: str, line: int) -> int:
    """A number of nodes, or the last of allocated/idle/other/total."""
    count = text.rpartition("/")[2]
    # isdigit alone lets other scripts' digits pass, which int reads, too
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
