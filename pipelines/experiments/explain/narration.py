"""Why a job waited, was helped or was slowed, in sentences; made of what `explanation.explain` found."""

from math import inf

from jobcast.pipelines.experiments.explain.cluster_history import ONE_PILE, Sharing
from jobcast.pipelines.experiments.explain.holdings import tell_forecast, tell_held, tell_waiting
from jobcast.pipelines.experiments.explain.phrases import (
    Told,
    bin_words,
    came_words,
    gpus_of,
    job_words,
    jobs_words,
    length,
    said_of,
    whose,
)
from jobcast.pipelines.experiments.explain.waits import (
    AHEAD,
    CLOCK,
    FEW_IDLE,
    LENT,
    LIMIT,
    ORDER,
    QUOTA,
    RESERVED,
    TOO_LONG,
    UNKNOWN,
)
from jobcast.pipelines.report.formatting import counted, forecasts_in_words, instant

SHOWN_JOBS, SHOWN_CULPRITS, SHOWN_POOLS = 3, 6, 3
MADE_ROOM = {
    "earlier_jobs_on_spare": "ran on spare GPUs instead",
    "earlier_jobs_done": "had ended already, having started earlier than without sharing",
    "overtook": "still waited, overtaken",
}


def tell(explained: Told) -> str:
    """The explanation as text, a part for each question."""
    # Runs that are not by pools' quotas have no such part.
    if "waits" not in explained:
        parts = (_plain_summary, tell_held, tell_waiting, tell_forecast, _what_if)
        return "\n".join(line for part in parts for line in part(explained))
    lines = [*_summary(explained), *_waits(explained)]
    # A single stretch is told by start and end already.
    if explained["held"][1:]:
        lines += tell_held(explained)
    if explained["helped"] is not None:
        lines += ["Why it was helped", *_helped(explained)]
    if explained["slowed"] is not None:
        lines += ["Why it was slowed", *_slowed(explained)]
    return "\n".join([*lines, *tell_waiting(explained), *tell_forecast(explained), *_what_if(explained)])


def _summary(explained: Told) -> list[str]:
    job, summary, run = explained["job"], explained["summary"], explained["run"]
    policy = run["policy"] or "policy unknown"
    source = f" with {_source(run)}" if run["forecasts"] else ""
    label = f" ({bin_words(job)})" if job["duration_bin"] else ""
    lines = [
        f"Job {job['job_id']} of pool {job['pool']}: {gpus_of(job['gpus'])} for {length(job['duration_s'])}{label}; "
        f"{policy}{source}",
        _when(summary),
    ]
    if summary["started_s"] is None:
        return lines
    where = ", on its pool's quota" if job["dedicated"] else ", on spare GPUs"
    if job["dedicated"] and run["sharing"] in ONE_PILE:
        where = ""  # quotas are no bounds there, and nobody's GPUs are told apart
    stops = f", stopped {counted(job['preemptions'], 'time')} meanwhile" if job["preemptions"] else ""
    lines.append(f"  waited {length(summary['wait_s'])}, done after {length(summary['jct_s'])}{where}{stops}")
    if summary["fcfs_started_s"] is not None:
        by = length(abs(summary["earlier_than_fcfs_s"]))
        verdict = {"helped": f"helped by {by}", "slowed": f"slowed by {by}"}.get(summary["verdict"], "no difference")
        lines.append(f"  without sharing (fcfs) it would have started {instant(summary['fcfs_started_s'])}: {verdict}")
    return lines


def _plain_summary(explained: Told) -> list[str]:
    """Of runs in rounds, of elastic jobs, tasks, nodes: widths and run times are not what was held."""
    job, summary, run = explained["job"], explained["summary"], explained["run"]
    policy = run["policy"] or "policy unknown"
    stops = f", stopped or narrowed {counted(job['preemptions'], 'time')}" if job["preemptions"] else ""
    return [
        f"Job {job['job_id']} of pool {job['pool']}: {gpus_of(job['gpus'])}; {policy}",
        _when(summary),
        f"  waited {length(summary['wait_s'])} for its first GPUs, done after {length(summary['jct_s'])}{stops}",
    ]


def _when(summary: Told) -> str:
    submitted, started, ended = (instant(summary[f"{name}_s"]) for name in ("submitted", "started", "ended"))
    return f"  submitted {submitted}, started {started}, ended {ended}"


def _source(run: Told) -> str:
    """The forecasts in words; the oracle's are coarse only to policies that ask by windows and bins."""
    exact = run["forecasts"] == "oracle" and run["sharing"] != Sharing.WINDOWS
    return "exact forecasts" if exact else forecasts_in_words(run["forecasts"])


def _waits(explained: Told) -> list[str]:
    stretches, teller = explained["waits"], WaitTeller(explained)
    if not stretches:
        return ["It did not wait."]
    lines = ["Why it waited"]
    for stretch in stretches:
        if stretch["details"] is not None:
            span = f"{instant(stretch['from_s'])} to {instant(stretch['until_s'])} ({length(stretch['seconds'])})"
            first, *others = teller.reasons(stretch)
            lines += [f"  {span}: {first}", *(f"    {other}" for other in others)]
    if any(stretch["details"] is None for stretch in stretches):
        lines.append(f"  Those are the longest of {len(stretches):,} stretches; in all:")
        lines += [f"    {length(row['seconds'])}: {teller.short(row)}" for row in explained["wait_by_reason"]]
    return lines


def _helped(explained: Told) -> list[str]:
    helped = explained["helped"]
    if helped["loan"] is not None:
        lines = _loan(helped["loan"])
    else:
        lines = [
            f"  It started on its pool's quota ({helped['dedicated_gpus']:g} of {helped['quota_gpus']} GPUs taken with "
            "it), for jobs before it did not take it."
        ]
    for key, what in MADE_ROOM.items():
        group = helped[key]
        if group["count"]:
            who = f"{counted(group['count'], 'job')} ({gpus_of(group['gpus'])})"
            shown = jobs_words(group, SHOWN_JOBS, explained["job"]["pool"])
            lines.append(f"  Of those that would have come before it, {who} {what}: {shown}")
    return lines


def _loan(loan: Told) -> list[str]:
    window = f", to end within {loan['window_min']:g} min," if loan["window_min"] else ""
    lenders = counted(loan["count"], "pool")
    lines = [f"  It started at {instant(loan['at_s'])}{window} on GPUs that {lenders} did not use:"]
    for lender in loan["lenders"][:SHOWN_POOLS]:
        kept = f", {lender['reserved_gpus']:g} reserved ({said_of(lender)})" if "reserved_gpus" in lender else ""
        came = lender["before_its_end"]
        first = f", job {came['first']['job_id']} first at {instant(came['first']['at_s'])}" if came["first"] else ""
        after = came_words({"arrived_jobs": came["jobs"], "arrived_gpus": came["gpus"]})
        lines.append(
            f"    pool {lender['pool']}: {lender['unused_quota_gpus']:g} unused{kept}; before it ended {after}{first}"
        )
    if loan["count"] > SHOWN_POOLS:
        lines.append(f"    and {counted(loan['count'] - SHOWN_POOLS, 'other pool')}")
    return lines


def _slowed(explained: Told) -> list[str]:
    slowed, pool = explained["slowed"], explained["job"]["pool"]
    lines, root, held = _chain(slowed), slowed["first_late"], slowed["held_by"]
    lines.append(
        f"  At {instant(slowed['at_s'])}, when job {root['job_id']} ({gpus_of(root['gpus'])}) was due, "
        f"{slowed['unused_quota_gpus']:g} of the {slowed['quota_gpus']} GPUs of its quota were unused, and "
        f"{slowed['idle_gpus']:g} of the cluster idle."
    )
    if slowed["limit"] is not None:
        lines.append(f"  First come, first served knows no limits; {limit_words(slowed['limit'], root)}")
    if slowed["overtaken_by"]["count"]:
        lines.append(f"  Later jobs of its queue went first: {jobs_words(slowed['overtaken_by'], SHOWN_JOBS, pool)}")
    lines += [
        f"  Pool {row['pool']} held {row['allocated_gpus']:g} GPUs, its quota is {row['quota_gpus']}."
        for row in slowed.get("pools_beyond_quota", ())[:SHOWN_POOLS]
    ]
    if held["count"]:
        most = ", first those that held most until it started" if held["count"] > 1 else ""
        lines.append(f"  {counted(held['count'], 'job')} {whose(held)} held {gpus_of(held['gpus'])}{most}:")
        lines += [f"    {_culprit(mention, pool)}" for mention in held["jobs"][:SHOWN_CULPRITS]]
    if held["count"] > SHOWN_CULPRITS:
        lines.append(f"    and {counted(held['count'] - SHOWN_CULPRITS, 'other')}")
    return lines


def _chain(slowed: Told) -> list[str]:
    if not slowed["chain"]:
        return []
    late, more = slowed["chain"][0], len(slowed["chain"]) - 1
    others = f", and that one for {counted(more, 'other')}" if more else ""
    return [
        f"  It waited for job {late['job_id']} of its pool, which was {length(late['later_s'])} late itself{others}. "
        f"The first of them was job {slowed['first_late']['job_id']}."
    ]


def _culprit(mention: Told, pool: str) -> str:
    text, let_in = job_words(mention), mention["let_in"]
    if let_in is None or let_in["window_min"] is None:
        return text
    owner = let_in["owner"]
    text += (
        f"; let in for {let_in['window_min']:g} min when pool {pool} had {owner['unused_quota_gpus']:g} unused, "
        f"{owner['reserved_gpus']:g} reserved ({said_of(owner)})"
    )
    if not owner["missed"]:
        return f"{text}; {came_words(owner)}"
    late = owner["first_beyond_forecast"]
    return f"{text}; but {came_words(owner)}, too many with job {late['job_id']} at {instant(late['at_s'])}"


def _what_if(explained: Told) -> list[str]:
    """The forecasts in words."""
    found = explained.get("what_if")
    if not found:
        return []
    lines = ["What if it had asked for something else: forecasts at its submission"]
    for one in found:
        when = "no forecast"
        if one["end_s"] is not None:
            start = "" if one["start_s"] is None else f"start {instant(one['start_s'])}, "
            when = f"would {start}end {instant(one['end_s'])}, after {length(one['jct_s'])}"
        lines.append(f"  {one['change']} ({gpus_of(one['gpus'])}, pool {one['pool']}): {when}")
    return lines


def limit_words(limit: Told, job: Told) -> str:
    """Which limit held a job, and who was in it."""
    whose = f"{limit['of']} {limit['name']}" if limit["of"] == "account" else f"QOS {limit['name']}"
    whose = whose if limit["user"] is None else f"user {limit['user']} in {whose}"
    held = limit["held_by"]
    most, now = gpus_of(limit["most_gpus"] or 0.0), gpus_of(held["gpus"])
    said = f"{whose} may hold {most} and held {now}, it needs {gpus_of(job['gpus'])}"
    if limit["most_jobs"] is not None and held["count"] >= limit["most_jobs"]:
        said = f"{whose} may run {counted(int(limit['most_jobs']), 'job')} at once and ran {held['count']}"
    shown = f": {jobs_words(held, SHOWN_JOBS, job['pool'])}" if held["count"] else ""
    return f"a limit held it: {said}{shown}"


SHORT = {
    QUOTA: "too little of its pool's quota unused",
    LENT: "enough of its pool's quota unused, but others held the GPUs",
    AHEAD: "behind others of its queue",
    ORDER: "not chosen by the policy",
    CLOCK: "idle GPUs kept for jobs with earlier virtual starts",
    LIMIT: "held by a limit of its account, QOS or user",
    UNKNOWN: "reason unknown without quotas",
}
SHORT_SPARE = {
    FEW_IDLE: "too few GPUs idle",
    TOO_LONG: "forecast too long for any window",
    RESERVED: "spare GPUs reserved",
    AHEAD: "spare GPUs offered to the head of the queue",
    ORDER: "spare GPUs not given to it",
}
SPARE_IN_WORDS = {
    FEW_IDLE: "{idle} were idle, it needs {needs}",
    TOO_LONG: "{forecast}, it ends within no window",
    RESERVED: "of {idle} idle ones too many were reserved",
    AHEAD: "{idle} were idle, offered to the head of its queue first",
    ORDER: "{idle} were idle, and the policy did not give it any",
}


class WaitTeller:
    """Turns stretches of a wait into sentences.

    Parameters
    ----------
    explained : the whole explanation
    """

    def __init__(self, explained: Told) -> None:
        self._job = explained["job"]
        self._forecasts = bool(explained["run"]["forecasts"])
        self._sharing = explained["run"]["sharing"]

    def short(self, row: Told) -> str:
        """Both reasons in a few words."""
        spare = row["spare_reason"]
        return SHORT[row["quota_reason"]] + (f"; {SHORT_SPARE[spare]}" if spare else "")

    def reasons(self, stretch: Told) -> list[str]:
        """Both reasons with their details at the stretch's longest moment, a line each and one a window."""
        quota = _QUOTA_WORDS[stretch["quota_reason"]](self, stretch["details"])
        behind = self._behind(stretch["details"]) if stretch["quota_reason"] in (QUOTA, LENT) else ""
        # Both reasons would name the same idle GPUs.
        told_already = stretch["quota_reason"] in (LENT, ORDER) and stretch["spare_reason"] in (FEW_IDLE, ORDER)
        spare = None if told_already else stretch["spare_reason"]
        return [f"{quota}{behind}", *(self._spare(spare, stretch["details"]) if spare else ())]

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

    def _limit(self, details: Told) -> str:
        return limit_words(details["limit"], self._job)

    def _unknown(self, details: Told) -> str:
        held = details["held_by"]
        return f"it was the first of its pool, which ran {counted(held['count'], 'job')}: {self._holders(details)}"

    def _spare(self, reason: str, details: Told) -> list[str]:
        found = {"idle": f"{details['idle_gpus']:g}", "needs": self._job["gpus"], "forecast": bin_words(self._job)}
        windows = details["windows"] if reason == RESERVED else ()
        why = SPARE_IN_WORDS[reason].format(**found)
        return [f"not on spare GPUs: {why}", *(f"  {self._window(window)}" for window in windows)]

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
    LIMIT: WaitTeller._limit,
    UNKNOWN: WaitTeller._unknown,
}
