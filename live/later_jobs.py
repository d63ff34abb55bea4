"""Jobs that may not start yet: whom ends of others or an instant let in, and whom people alone."""

import re
from collections import defaultdict
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace

from jobcast.domain.times import iso
from jobcast.live.job_record import JobRecord
from jobcast.simulator.arrival_streams import Later

TASKS, BEGIN, OTHERS = "JobArrayTaskLimit", "BeginTime", "Dependency"
"""Reasons of Slurm's; slurm.schedmd.com/squeue.html, "Job Reasons"."""
LIMITS = re.compile(
    r"(?:Assoc|QOS)Grp(?:\w+RunMinutes|(?!\w*Minutes)\w+)(?:Limit)?|\w*Max\w+Per(?:User|Account)(?:Limit)?"
    r"|(?:Assoc|QOS)MaxJobs\w*|Licenses|ReqNodeNotAvail\b.*"
)
"""Reasons that pass as other jobs end, by limits and of nodes that futures do not know."""
AFTER = re.compile(r"after(?:any|ok|corr):(\d+(?:_(?:\d+|\*))?)(?:\(\w+\))?")
"""One of the jobs that must have ended. Where others may do instead, or fail, or start, nobody knows when that is."""


@dataclass(frozen=True, slots=True)
class Turns:
    """Who may start when.

    Attributes
    ----------
    ready : by id, jobs that run, or may start as soon as there is room
    later : by id, those that may once others have ended, or from an instant on
    why : by id, of either, why they wait, beside GPUs
    never : by id, why others may not start until somebody does something
    """

    ready: dict[str, JobRecord] = field(default_factory=dict)
    later: dict[str, Later] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)
    never: dict[str, str] = field(default_factory=dict)

    def among(self, there: Set[str], left_out: Set[str], first: int) -> list[Later]:
        """Those that come to a run in which some jobs are, numbered from `first` on; who waits for others never does.

        `left_out`: ids of those that never can
        """
        for name in left_out & self.later.keys():
            del self.later[name]
        while lost := self._lost(there):
            for name in lost:
                del self.later[name]
                self.never[name] = self.why.pop(name)
        return [one._replace(job=replace(one.job, seq=seq)) for seq, one in enumerate(self.later.values(), first)]

    def _lost(self, there: Set[str]) -> list[str]:
        # Thousands of tasks of an array share one set.
        sets, known = {id(one.after): one.after for one in self.later.values()}, there | self.later.keys()
        never = {mine for mine, names in sets.items() if names - known}
        return [name for name, one in self.later.items() if id(one.after) in never]


def turns_of(active: Mapping[str, JobRecord], now_s: float) -> Turns:
    """Of jobs that have not ended, by id."""
    turns = Turns()
    for name, one in active.items():
        _sort(turns, name, one, active, now_s)
    _bound(turns, now_s)
    return turns


def _sort(turns: Turns, name: str, one: JobRecord, active: Mapping[str, JobRecord], now_s: float) -> None:
    facts, reason = one.facts, one.facts.get("waits_for", "")
    if not one.held:
        turns.ready[name] = one
    elif reason == TASKS and facts.get("at_once"):
        turns.ready[name] = _let_in(one)
    elif reason == BEGIN and "eligible_s" in facts:
        turns.later[name] = Later(one.job(), max(now_s, facts["eligible_s"]))
        turns.why[name] = f"it may start from {iso(facts['eligible_s'])} on ({BEGIN})"
    elif reason == OTHERS and (others := _awaited(facts.get("after", ""), active)):
        turns.later[name] = Later(one.job(), now_s, others, len(others))
        turns.why[name] = f"it waits for others to end ({facts['after']})"
    elif LIMITS.fullmatch(reason):
        turns.ready[name] = _let_in(one)
        turns.why[name] = f"Slurm says {reason}: that is not reckoned with here, and it may start later"
    else:
        turns.never[name] = f"it is held, and may not start yet{f' ({reason})' if reason else ''}"


def _let_in(one: JobRecord) -> JobRecord:
    return one._replace(facts={**one.facts, "held": False})


def _awaited(after: str, active: Mapping[str, JobRecord]) -> frozenset[str]:
    """Ids of the jobs that must end, none where not all are known, or something else must come."""
    found = set[str]()
    for part in after.split(","):
        told = AFTER.fullmatch(part)
        if told is None:
            return frozenset()
        array, _, task = told[1].partition("_")
        names = {name for name in active if name.startswith(f"{array}_")} if task == "*" else {told[1]} & active.keys()
        if not names:
            return frozenset()
        found |= names
    return frozenset(found)


def _bound(turns: Turns, now_s: float) -> None:
    """Of arrays of which so many tasks may run at a time, others come as these end, in order."""
    tasks = defaultdict[str, list[JobRecord]](list)
    for name, one in turns.ready.items():
        if "_" in name:
            tasks[name.partition("_")[0]].append(one)
    for mine in tasks.values():
        # Who runs comes first, then by number.
        mine.sort(key=lambda one: (not one.holds, len(one.name), one.name))
        names, most = frozenset(one.name for one in mine), mine[-1].facts.get("at_once", 0)
        for rank, one in enumerate(mine[most:], 1):
            if most and not one.holds:
                # Those that come later end in their turn, too.
                turns.later[one.name] = Later(turns.ready.pop(one.name).job(), now_s, names, rank)
                turns.why[one.name] = f"no more than {most} tasks of its array may run at a time"
