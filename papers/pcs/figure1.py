"""PCS, Figure 1 (section 2.2): three policies on four jobs and one GPU."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jobcast.pipelines.report.plots import WIDE
from jobcast.simulator.log import RunLog
from jobcast.simulator.metrics import errors_pct, unfairness_pct
from papers.page import Claim, claims, grid, number, numbers, result, write_csv, write_page
from papers.pcs.plotting import style_of
from papers.pcs.toy import POLICIES, SIZES, SUBMIT, expected_ends, play_toy
from papers.plotting import panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMES = tuple(f"J{index + 1}" for index in range(len(SIZES)))
STEP = 8.0
"""Units by which J1 is put off at a time. PCS, section 2.2."""
PAPER = {"srsf": 46, "elastic_themis": 24, "elastic_fifo": 0}
"""Mean prediction errors as printed, %."""
HEAD = ("policy", "mean JCT", "mean unfairness %", "by the mean over time", "mean error %", "paper", "by job")
Ends = Mapping[str, list[list[float]]]
"""By policy, completions of all jobs that have arrived as expected at each arrival."""


def figure1(sources: object, out: Path) -> None:
    """Write the figure's page, table and plot into a folder; no source is read."""
    logs = {policy: play_toy(policy) for policy in POLICIES}
    ends = {policy: expected_ends(policy) for policy in POLICIES}
    _plot(out, ends)
    rows = [
        (policy, name, SUBMIT[job], SIZES[job], log.columns["predicted_end_s"][job], log.end_s[job])
        for policy, log in logs.items()
        for job, name in enumerate(NAMES)
    ]
    write_csv(out, "figure1", ("policy", "job", "submission", "size", "forecast_end", "end"), rows)
    jobs = ", ".join(f"{name} of {size:g} at {at:g}" for name, size, at in zip(NAMES, SIZES, SUBMIT, strict=True))
    summary = grid(HEAD, (_line(policy, log) for policy, log in logs.items()))
    write_page(__file__, out, jobs=jobs, summary=summary, expected=_expected(ends), **_found(logs, ends))


def _line(policy: str, log: RunLog) -> tuple[str, ...]:
    errors = errors_pct(log)
    unfair = (float(unfairness_pct(log, over_time=over_time).mean()) for over_time in (False, True))
    means = (number(value, 1) for value in (*unfair, float(errors.mean())))
    return (POLICIES[policy], number(float(log.jct_s.mean())), *means, str(PAPER[policy]), numbers(errors, 1))


def _expected(ends: Ends) -> str:
    head = ("policy", *(f"{name} arrives, at {at:g}" for name, at in zip(NAMES, SUBMIT, strict=True)))
    rows = [
        (POLICIES[policy], *(", ".join(f"{value:g}" for value in one) for one in found))
        for policy, found in ends.items()
    ]
    return grid(head, rows)


def _found(logs: Mapping[str, RunLog], ends: Ends) -> Mapping[str, str]:
    errors = {policy: float(errors_pct(log).mean()) for policy, log in logs.items()}
    jcts = {policy: float(log.jct_s.mean()) for policy, log in logs.items()}
    unfair = {policy: float(unfairness_pct(log).mean()) for policy, log in logs.items()}
    srsf, themis = (np.diff([found[0] for found in ends[policy]]) for policy in ("srsf", "elastic_themis"))
    fifo, fair = unfair["elastic_fifo"], unfair["elastic_themis"]
    printed = [
        Claim(
            f"mean error of {POLICIES[name]}",
            f"{described} %",
            f"{errors[name]:.1f} %",
            round(errors[name]) == described,
        )
        for name, described in PAPER.items()
    ]
    return {
        "errors": claims(printed),
        "twice": result(f"{srsf[0]:g}, {srsf[2]:g}", srsf[0] == srsf[2] == STEP),
        "once": result(f"{themis[0]:g}", themis[0] == STEP),
        "lowest": result(f"{jcts['srsf']:g}", jcts["srsf"] == min(jcts.values())),
        "highest": result(f"{jcts['elastic_fifo']:g}", jcts["elastic_fifo"] == max(jcts.values())),
        "unfair": result(f"{fifo:.1f} %", fifo == max(unfair.values())),
        "fair": result(f"{fair:.1f} %", fair == 0),
    }


def _plot(out: Path, ends: Ends) -> None:
    labels = [f"{name}\nat {at:g}" for name, at in zip(NAMES, SUBMIT, strict=True)]

    def panel(axes: "Axes", policy: str) -> None:
        for job, name in enumerate(NAMES):
            rows = [of[job] for of in ends[policy][job:]]
            axes.plot(range(job, len(NAMES)), rows, marker="o", label=name, **style_of(name, NAMES).line)
        axes.set_title(POLICIES[policy], loc="left")
        axes.set_xticks(range(len(NAMES)), labels)
        axes.set_xlabel("arrival")
        if policy == next(iter(ends)):
            axes.set_ylabel("end as expected then")

    def last(axes: "Axes") -> None:
        axes.set_ylim(0, None)

    title = "Completion as expected at each arrival"
    panels(out, "figure1", title, list(ends), panel, height=WIDE[1], columns=len(ends), last=last, sharey=True)
