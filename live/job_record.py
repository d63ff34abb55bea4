"""What is known of one job of a cluster."""

from collections.abc import Iterable, Mapping
from math import inf, nan
from typing import Any, NamedTuple

from jobcast.domain.jobs import Job, Requirements
from jobcast.live.event_log import Event


class JobRecord(NamedTuple):
    """What is known of a job; another one takes its place when more is.

    Attributes
    ----------
    name : its id
    submit_s : seconds from the epoch, NaN where its submission is not known
    facts : of its submission, as changed since
    start : the last one that holds, None where it waits
    end : the last one, None where none is known
    last : what was told of it last
    place : how many jobs had been told of before it
    """

    name: str = ""
    submit_s: float = nan
    facts: Mapping[str, Any] = {}
    start: Event | None = None
    end: Event | None = None
    last: Event | None = None
    place: int = 0

    @property
    def came(self) -> bool:
        """Whether its submission is known."""
        return self.submit_s == self.submit_s

    @property
    def start_s(self) -> float:
        """When it started, seconds from the epoch, not before it came, whatever clocks say; NaN where it waits."""
        return nan if self.start is None else max(self.start.at_s, self.submit_s)

    @property
    def over(self) -> bool:
        """Whether it has ended; an end before its start was of an earlier run, or is a mistake."""
        return self.end is not None and (self.start is None or self.end.at_s >= self.start.at_s)

    @property
    def ended_s(self) -> float:
        """When it ended, seconds from the epoch; NaN where it has not, as far as anybody knows."""
        return nan if self.end is None or not self.over else self.end.at_s

    @property
    def times(self) -> tuple[float, float, float]:
        """Start, from when the end of a run is known, and run time, in seconds; NaN for what is not known."""
        if self.end is None or not self.over:
            return self.start_s, nan, nan
        run_s = self.end.facts.get("duration_s", nan if self.start is None else self.end.at_s - self.start.at_s)
        # Who was cancelled while it waited never ran, and tells nothing of run times; an end without a start may.
        return self.start_s, self.end.known_s if run_s == run_s else nan, run_s

    @property
    def runs(self) -> bool:
        """Whether it holds GPUs."""
        return self.start is not None and not self.over

    @property
    def holds(self) -> bool:
        """Whether GPUs are its own: it runs, or was granted some that it will start on."""
        return self.runs or (not self.over and not self.held and bool(self.facts.get("granted")))

    @property
    def held(self) -> bool:
        """Whether it may not start yet, whatever is free."""
        return bool(self.facts.get("held"))

    @property
    def suspended(self) -> bool:
        """Whether it holds GPUs, and does not get on."""
        return self.runs and self.facts.get("suspended_s") is not None

    def paused_s(self, now_s: float) -> float:
        """How long its run has been suspended by an instant, seconds."""
        since_s = self.facts.get("suspended_s")
        return float(self.facts.get("paused_s", 0.0)) + (0.0 if since_s is None else max(0.0, now_s - since_s))

    @property
    def dedicated(self) -> bool:
        """Whether the GPUs of its last start count against its pool's quota."""
        return self.start is None or bool(self.start.facts.get("dedicated", True))

    @property
    def limit_s(self) -> float:
        """Its time limit, seconds; infinite without one."""
        limit_s = self.facts.get("time_limit_s")
        return inf if limit_s is None else float(limit_s)

    def job(self, seq: int = 0) -> Job:
        """The job, numbered as is said."""
        facts = self.facts
        asks = Requirements(time_limit_s=facts["time_limit_s"]) if facts.get("time_limit_s") is not None else None
        user, tag = (facts.get(key, "") for key in ("user", "tag"))
        return Job(seq, self.name, facts["pool"], self.submit_s, facts["gpus"], user, tag, requirements=asks)


def by_submission(records: Iterable[JobRecord]) -> list[JobRecord]:
    """Those whose submission is known, by it and by name."""
    return sorted((one for one in records if one.came), key=lambda one: (one.submit_s, one.name))
