"""What a server knows of a Slurm that it looks at by itself: it reads, says what it would lend, and does nothing."""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any

from jobcast.domain.errors import ClusterError, LedgerError
from jobcast.domain.jobs import Pool
from jobcast.live.advice import Advice, advice_figures, lease_figures
from jobcast.live.advisor import Advisor
from jobcast.live.leases import pools_of
from jobcast.live.slurm import Snapshot
from jobcast.live.state import STALE_S

HEARD_S = 1.0
"""After a look began nobody looks anew for who asks about a job that is not known, nor waits longer for one."""
TYPE = "gpu "
"""What names of types of GPUs begin with, see `slurm_queue.named`."""
LOG = logging.getLogger(__name__)


class SlurmSide:
    """Looks at a Slurm again and again; what it saw last is what is told.

    Parameters
    ----------
    advisor : looks, and says what to do
    clock : the instant now, seconds from the epoch
    every_s : between two looks
    poll : looks for other versions first
    pools : with their quotas; as of the last look from then on
    """

    def __init__(
        self,
        advisor: Advisor,
        clock: Callable[[], float],
        every_s: float,
        poll: Callable[[], object],
        pools: Sequence[Pool] = (),
    ) -> None:
        self._advisor, self._clock, self.every_s, self._poll = advisor, clock, every_s, poll
        self._last: Advice | None = None
        self._trouble, self.pools = "", pools
        self._lock, self._seen_s = threading.Lock(), -inf
        self._notes: dict[str, str] = {}

    def look(self) -> None:
        """See the cluster, keep what is new of it, and work out what to do. What fails is logged, and told in short."""
        self._poll()
        with self._lock:
            self._see(self._advise)

    def hear(self) -> None:
        """See the cluster, and keep what is new of it, unless that was begun just before, or it does not answer."""
        asked_s = self._clock()
        # A Slurm that hangs must not hold up more than who asks about what nobody knows, and these not for long.
        if self._trouble or not self._lock.acquire(timeout=HEARD_S):
            return
        try:
            # Whoever waited finds that who was before them has seen it.
            if self._seen_s < asked_s - HEARD_S:
                self._see(lambda snapshot: None)
        finally:
            self._lock.release()

    def _see(self, then: Callable[[Snapshot], None]) -> None:
        self._seen_s = self._clock()
        try:
            snapshot = self._advisor.look(self._seen_s)
            self._notes = _notes(snapshot)
            then(snapshot)
            self._trouble = ""
        except (ClusterError, LedgerError) as error:
            if not self._trouble:
                LOG.warning("%s", error)
            self._trouble = "Slurm cannot be read; the server's log tells more"

    def _advise(self, snapshot: Snapshot) -> None:
        self.pools, self._last = pools_of(snapshot.qos), self._advisor.advise(snapshot)

    def waits_for(self, job_id: str) -> str:
        """What a job waits for that is other than its pool's quota; empty where it is not."""
        return self._notes.get(job_id, "")

    def advice(self) -> Mapping[str, Any]:
        """What would be done now, and why; nothing where the cluster was not seen for a minute."""
        last, now_s = self._last, self._clock()
        trouble = [self._trouble] if self._trouble else []
        if last is None:
            return {
                "as_of": None,
                "age_s": None,
                "degraded": trouble or ["nothing was seen of Slurm yet"],
                "actions": [],
            }
        figures = advice_figures(last) | {"age_s": now_s - last.at_s}
        figures["degraded"] = [*figures["degraded"], *trouble]
        return figures | ({"actions": []} if now_s - last.at_s > STALE_S else {})

    def leases(self) -> list[Mapping[str, Any]]:
        """What is lent to whom, and until when."""
        return [] if self._last is None else [lease_figures(one, self._clock()) for one in self._last.leases]


def _notes(snapshot: Snapshot) -> dict[str, str]:
    """By job that waits, what futures do not reckon with: nodes, and types of GPUs where there are several."""
    found: dict[str, str] = {}
    nodes = [node for node in snapshot.nodes.values() if node.up]
    several = len({one for node in nodes for one in node.names if one.startswith(TYPE)}) > 1
    for job in filter(lambda one: one.waits, snapshot.jobs):
        types, told = frozenset(one for names in job.asks for one in names if one.startswith(TYPE)), []
        if types and several:
            mine = [node for node in nodes if types <= node.names]
            held = (
                f"{sum(one.held for one in mine)} of {sum(one.gpus for one in mine)} GPUs of nodes with that are held"
            )
            names = ", ".join(sorted(one.removeprefix(TYPE) for one in types))
            told.append(f"it asks for {names}, and {held}; here any type would do, and it may start later than told")
        if job.reason == "Resources":
            told.append("no nodes that it may use have room, says Slurm; that is not reckoned with here")
        found[job.job_id] = "; ".join(told)
    return found
