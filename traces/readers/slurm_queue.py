"""Jobs as `squeue --json` tells them, for whoever looks at a running cluster again and again."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf, isfinite, nan
from typing import Any

from jobcast.domain.clock import MINUTE_S
from jobcast.traces.check import Place
from jobcast.traces.files import FileBytes
from jobcast.traces.readers.sacct_jobs import NOT_ENDED, WAITING, task_names
from jobcast.traces.readers.sacct_pools import parse_tres
from jobcast.traces.readers.slurm_json import (
    AGAIN,
    QUEUE,
    job_figures,
    job_name,
    listed_jobs,
    number_of,
    plain_text,
    resources_text,
    state_of,
)

TRES = ("tres_per_job", "tres_per_node", "tres_per_socket", "tres_per_task", "tres_req_str")
GPU_TYPE = re.compile(r"gpu:([^:=,(]*[^\d:=,(][^:=,(]*|\d+(?=[:=]))")
"""The type in a text of GPUs, gpu:a100:2 or gres/gpu:a100=2; of gpu:2 there is none."""
WAITS = frozenset({"", "None", "Priority", "Resources", "QOSGrpGRES", "QOSGrpGRESLimit", "QOSResourceLimit"})
"""Reasons of jobs that wait for GPUs; slurm.schedmd.com/squeue.html, "Job Reasons". Others wait for something else."""


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """A job that Slurm's controller knows of.

    Attributes
    ----------
    job_id : as sacct writes it: 7, 7_3 of an array, 7+1 of several parts
    state : in one word
    reason : why it waits, as squeue writes it
    gpus : in all, that it asks for; None where it does not say
    nodes : that it asks for
    submit_s, start_s, end_s : seconds from the epoch, NaN where there is none
    limit_s : seconds, infinite where there is none
    mark, comment : of administrators, of its user
    asks : of each node one of each: its partitions, a type of GPUs, features where these are joined by & or | alone
    at_once : how many tasks of its array may run at a time; 0 without a bound
    eligible_s : from when it may start where it waits for its time (`BeginTime`), seconds from the epoch; else NaN
    after : jobs that it waits for, as squeue writes it
    paused_s, pause_s : how long it had been suspended when it was last suspended or resumed, and when that was, seconds
        from the epoch; NaN where it never was
    """

    job_id: str
    state: str
    reason: str
    user: str
    account: str
    qos: str
    partition: str
    name: str
    gpus: int | None
    nodes: int
    submit_s: float
    start_s: float
    end_s: float
    limit_s: float
    mark: str
    comment: str
    asks: tuple[frozenset[str], ...] = ()
    at_once: int = 0
    eligible_s: float = nan
    after: str = ""
    paused_s: float = 0.0
    pause_s: float = nan

    @property
    def array(self) -> str:
        """Number of the array that it is a task of; empty where it is of none."""
        number, _, task = self.job_id.partition("_")
        return number if task else ""

    @property
    def whole(self) -> str:
        """Number of the job of several parts that it is a part of; empty where it is of none."""
        number, _, part = self.job_id.partition("+")
        return number if part else ""

    @property
    def waits(self) -> bool:
        """Whether it will run, and does not yet."""
        return self.state in WAITING

    @property
    def runs(self) -> bool:
        """Whether it holds GPUs."""
        return self.state in NOT_ENDED and not self.waits

    @property
    def suspended(self) -> bool:
        """Whether it holds GPUs, and does not get on."""
        return self.state == "SUSPENDED"

    @property
    def held(self) -> bool:
        """Whether it waits for something else than GPUs."""
        return self.waits and self.reason not in WAITS


def queued_jobs(file: FileBytes) -> list[QueuedJob]:
    """Jobs of one document, tasks of arrays that wait each by itself; jobs without a name or a submission are left out.

    Raises
    ------
    TraceError
        The document is none of `squeue --json`, or a field cannot be read.
    """
    rows = listed_jobs(file)
    place = Place(file.path, lambda index: f"job {index + 1}", QUEUE)
    return [one for number, row in enumerate(rows) for one in _jobs_of(row, place, number)]


def _jobs_of(row: Any, place: Place, number: int) -> Iterator[QueuedJob]:
    figures = job_figures(row, place, number)
    state = state_of(figures["state"])
    name = job_name([figures[key] for key in ("jobid", "array", "task", "het", "offset")], figures["tasks"])
    if name is None or state is None or not 0.0 < figures["submit"] < inf:
        return
    waits, over = state in WAITING, state not in NOT_ENDED
    # Of a job that was cancelled while it waited Slurm tells as its start when that was.
    never = over and figures["end"] <= figures["start"] and not resources_text(figures["alloctres"])
    minutes, reason = figures["timelimit"], _text(row.get("state_reason"))
    pause_s, ran_s = (number_of(row.get(key)) or 0.0 for key in ("suspend_time", "pre_sus_time"))
    pause_s = pause_s if 0.0 < pause_s < inf else nan
    job = QueuedJob(
        job_id=name,
        state=state,
        reason=reason,
        **{key: _text(figures[theirs]) for key, theirs in NAMES.items()},
        gpus=_gpus(figures, waits, place, number),
        nodes=_count(row.get("node_count"), 1),
        submit_s=figures["submit"],
        # of a job that waits both are Slurm's own forecast, and so is the end of one that runs
        start_s=figures["start"] if not (waits or never) and 0.0 < figures["start"] < inf else float("nan"),
        end_s=figures["end"] if over and 0.0 < figures["end"] < inf else float("nan"),
        limit_s=minutes * MINUTE_S if isfinite(minutes) else inf,
        mark=_text(row.get("admin_comment")),
        comment=_text(row.get("comment")),
        asks=tuple(_asks(row, _text(figures["partition"]))),
        at_once=_count(row.get("array_max_tasks"), 0),
        eligible_s=figures["eligible"] if reason == "BeginTime" and 0.0 < figures["eligible"] < inf else nan,
        after=_text(row.get("dependency")),
        paused_s=max(0.0, pause_s - figures["start"] - ran_s),  # 0 where any is not known
        pause_s=pause_s,
    )
    yield from (replace(job, job_id=one) for one in task_names(name)) if waits else (job,)


NAMES = {"user": "user", "account": "account", "qos": "qos", "partition": "partition", "name": "jobname"}
"""Fields of a job that are text, and how sacct calls them."""


def _gpus(figures: Mapping[str, Any], waits: bool, place: Place, number: int) -> int | None:
    """What it holds, else what it asks for."""
    for key in ("reqtres",) if waits else ("alloctres", "reqtres"):
        if text := resources_text(figures[key]):
            found = parse_tres(text)
            if not found.valid:
                place.fail(number, key, "counts of GPUs cannot be read", text, AGAIN)
            # A text of resources lists all that a job has: one without GPUs tells of none.
            return found.gpus or 0
    return None


def _asks(row: Mapping[str, Any], partitions: str) -> Iterator[frozenset[str]]:
    yield frozenset(named("partition", partitions.split(",")))
    texts = [resources_text(row.get(key)) or "" for key in TRES]
    yield from (frozenset((one,)) for one in named("gpu", GPU_TYPE.findall(",".join(texts))))
    features = _text(row.get("features"))
    if re.fullmatch(r"[\w.-]+(\|[\w.-]+)*|[\w.-]+([&,][\w.-]+)*", features):
        yield from (frozenset(named("feature", one.split("|"))) for one in re.split("[&,]", features))


def named(kind: str, names: Iterable[str]) -> list[str]:
    """Names of partitions, types of GPUs (`gpu`) or features, so that they are told from one another.

    >>> named("gpu", GPU_TYPE.findall("gres:gpu:A100:4,gres/gpu:3090=1,gres/gpu=5,gpu:8(S:0-1)"))
    ['gpu a100', 'gpu 3090']
    """
    return [f"{kind} {name.lower()}" for name in names if name]


def _text(value: Any) -> str:
    return plain_text(value) or ""


def _count(value: Any, otherwise: int) -> int:
    """A number from 1 on as any of Slurm's parsers writes it; another where it is none.

    >>> _count(2, 1), _count({"set": True, "infinite": False, "number": 3}, 1), _count(None, 1)
    (2, 3, 1)
    """
    number = value.get("number") if isinstance(value, dict) else value
    return number if type(number) is int and 0 < number < 10**6 else otherwise
