"""Why a job waited, in sentences: one a stretch of its wait."""

from math import inf

from jobcast.pipelines.explain.kinds import ONE_PILE, Sharing
from jobcast.pipelines.explain.telling_words import (
    Told,
    bin_words,
    came_words,
    gpus_of,
    instant,
    job_words,
    jobs_words,
    said_of,
    whose,
)
from jobcast.pipelines.explain.waits import (
    AHEAD,
    CLOCK,
    FEW_IDLE,
    LENT,
    ORDER,
    QUOTA,
    RESERVED,
    TOO_LONG,
    UNKNOWN,
)
from jobcast.pipelines.wording import counted

SHOWN_JOBS, SHOWN_POOLS = 3, 3
SHORT = {
    QUOTA: "too little of its pool's quota unused",
    LENT: "enough of its pool's quota unused, but others held the GPUs",
    AHEAD: "behind others of its queue",
    ORDER: "not chosen by the policy",
    CLOCK: "idle GPUs kept for jobs with earlier virtual starts",
    UNKNOWN: "reason unknown without quotas",
}
SHORT_SPARE = {
    FEW_IDLE: "too few GPUs idle",
    TOO_LONG: "forecast too long for any window",
    RESERVED: "spare GPUs reserved",
    AHEAD: "spare GPUs offered to the head of the queue",
    ORDER: "spare GPUs not given to it",
}


class WaitTeller:
    """Turns stretches of a wait into sentences.

    Parameters
    ----------
    told : the whole explanation
    """

    def __init__(self, told: Told) -> None:
        self._job = told["job"]
        self._forecasts = bool(told["run"]["forecasts"])
        self._sharing = told["run"]["sharing"]

    def short(self, row: Told) -> str:
        """Both reasons in a few words."""
        spare = row["spare_reason"]
        return SHORT[row["quota_reason"]] + (f"; {SHORT_SPARE[spare]}" if spare else "")

    def reasons(self, stretch: Told) -> list[str]:
        """Both reasons with their details at the stretch's longest moment, a line each and one a window."""
        quota = _QUOTA_WORDS[stretch["quota_reason"]](self, stretch["details"])
        behind = self._behind(stretch["details"]) if stretch["quota_reason"] in (QUOTA, LENT) else ""
        told_already = stretch["quota_reason"] in (LENT, ORDER) and stretch["spare_reason"] in (FEW_IDLE, ORDER)
        words = None if told_already else _SPARE_WORDS.get(stretch["spare_reason"])
        return [f"{quota}{behind}", *([] if words is None else words(self, stretch["details"]))]

    def _behind(self, details: Told) -> str:
        if not details["jobs_ahead"]:
            return ""
        head = job_words(details["head"] | {"started_s": None}, self._job["pool"], forecasts=False)
        return f"; {counted(details['jobs_ahead'], 'job')} of its queue before it, {head} first"

    def _holders(self, details: Told) -> str:
        return jobs_words(details["held_by"], SHOWN_JOBS, self._job["pool"])

    def _quota(self, details: Told) -> str:
        held, idle = details["held_by"], f"but only {details['idle_gpus']:g} idle, and "
        return (
            f"it needs {gpus_of(self._job['gpus'])}, {idle if self._sharing in ONE_PILE else ''}"
            f"{details['unused_quota_gpus']:g} of its pool's {details['quota_gpus']} were unused; "
            f"{counted(held['count'], 'job')} of its pool held {gpus_of(held['gpus'])}: {self._holders(details)}"
        )

    def _lent(self, details: Told) -> str:
        held = details["held_by"]
        return (
            f"it needs {gpus_of(self._job['gpus'])}, {details['unused_quota_gpus']:g} of its pool's "
            f"{details['quota_gpus']} were unused, but only {details['idle_gpus']:g} idle: "
            f"{counted(held['count'], 'job')} held {gpus_of(held['gpus'])} {whose(held)}: {self._holders(details)}"
        )

    def _ahead(self, details: Told) -> str:
        if not details["jobs_ahead"]:
            return "jobs of its queue went first"
        head = job_words(details["head"] | {"started_s": None}, self._job["pool"], forecasts=False)
        return (
            f"behind {counted(details['jobs_ahead'], 'job')} of its queue, with {head} at the head{self._room(details)}"
        )

    def _room(self, details: Told) -> str:
        """What the head of the queue found, by what may bound it: the quota, the idle GPUs, or both."""
        if "idle_gpus" not in details:
            return f"; its pool ran {counted(details['held_by']['count'], 'job')}: {self._holders(details)}"
        unused = f"{counted(int(details['unused_quota_gpus']), 'unused GPU')} of the quota"
        idle = counted(int(details["idle_gpus"]), "idle GPU")
        if self._sharing in ONE_PILE:
            unused = ""
        if self._sharing == Sharing.PRIVATE:
            idle = ""
        found = " and ".join(filter(None, (unused, idle)))
        room = min(details["unused_quota_gpus"] if unused else inf, details["idle_gpus"] if idle else inf)
        if details["head"]["gpus"] <= room:  # a stricter order, or GPUs too far apart on servers
            return f", not started either, with {found}"
        return f", for which {found} did not suffice"

    def _order(self, details: Told) -> str:
        fitted = f"{details['idle_gpus']:g} GPUs were idle and {details['unused_quota_gpus']:g} of its quota unused"
        if details["made_way"]["count"]:
            gone = jobs_words(details["made_way"], SHOWN_JOBS, self._job["pool"], forecasts=False)
            return f"{fitted}, but quotas are served before spare GPUs, and only then {gone} before it took some"
        return f"{fitted}, but the policy did not choose it"

    def _clock(self, details: Told) -> str:
        virtual, kept = details["virtual"], details["virtual"]["reserved_for"]
        return (
            f"{details['idle_gpus']:g} GPUs were idle, but at {instant(virtual['at_s'])} it would have held some that "
            f"others need: {gpus_of(kept['gpus'])} are kept for the virtual starts of {counted(kept['count'], 'job')}, "
            f"{jobs_words(kept, SHOWN_JOBS, forecasts=False)}"
        )

    def _unknown(self, details: Told) -> str:
        held = details["held_by"]
        return f"it was the first of its pool, which ran {counted(held['count'], 'job')}: {self._holders(details)}"

    def _few_idle(self, details: Told) -> list[str]:
        return [f"not on spare GPUs: {details['idle_gpus']:g} were idle, it needs {self._job['gpus']}"]

    def _too_long(self, details: Told) -> list[str]:
        return [f"not on spare GPUs: {bin_words(self._job)}, it ends within no window"]

    def _reserved(self, details: Told) -> list[str]:
        windows = [f"  {self._window(window)}" for window in details["windows"]]
        return [f"not on spare GPUs: of {details['idle_gpus']:g} idle ones too many were reserved", *windows]

    def _spare_ahead(self, details: Told) -> list[str]:
        return [f"not on spare GPUs: {details['idle_gpus']:g} were idle, offered to the head of its queue first"]

    def _spare_order(self, details: Told) -> list[str]:
        return [f"not on spare GPUs: {details['idle_gpus']:g} were idle, and the policy did not give it any"]

    def _window(self, window: Told) -> str:
        pools = "; ".join(
            f"pool {owner['pool']} {owner['reserved_gpus']:g} ({said_of(owner)}, {came_words(owner)})"
            for owner in window["pools"][:SHOWN_POOLS]
        )
        others = window["pools_reserved_for"] - SHOWN_POOLS
        more = f"; {counted(others, 'other pool')}" if others > 0 else ""
        return f"within {window['horizon_min']:g} min, {window['reserved_gpus']:g} reserved: {pools}{more}"


_QUOTA_WORDS = {
    QUOTA: WaitTeller._quota,
    LENT: WaitTeller._lent,
    AHEAD: WaitTeller._ahead,
    ORDER: WaitTeller._order,
    CLOCK: WaitTeller._clock,
    UNKNOWN: WaitTeller._unknown,
}
_SPARE_WORDS = {
    FEW_IDLE: WaitTeller._few_idle,
    TOO_LONG: WaitTeller._too_long,
    RESERVED: WaitTeller._reserved,
    AHEAD: WaitTeller._spare_ahead,
    ORDER: WaitTeller._spare_order,
}
