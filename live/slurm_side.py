"""What a server knows of a Slurm that it looks at by itself: it reads, says what it would lend, and does nothing."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jobcast.domain.errors import ClusterError, LedgerError
from jobcast.domain.jobs import Pool
from jobcast.live.advice import Advice, advice_figures, lease_figures
from jobcast.live.advisor import Advisor
from jobcast.live.leases import pools_of
from jobcast.live.state import STALE_S

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

    def look(self) -> None:
        """See the cluster, keep what is new of it, and work out what to do. What fails is logged, and told in short."""
        self._poll()
        try:
            snapshot = self._advisor.look(self._clock())
            self.pools = pools_of(snapshot.qos)
            self._last, self._trouble = self._advisor.advise(snapshot), ""
        except (ClusterError, LedgerError) as error:
            if not self._trouble:
                LOG.warning("%s", error)
            self._trouble = "Slurm cannot be read; the server's log tells more"

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
