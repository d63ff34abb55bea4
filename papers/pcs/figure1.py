"""PCS, Figure 1 (section 2.2): three policies on four jobs and one GPU."""

import numpy as np
from matplotlib.axes import Axes

from jobcast.domain.elastic import Floats
from jobcast.pipelines.report.plots import WIDE
from jobcast.simulator.log import RunLog
from jobcast.simulator.metrics import errors_pct, excess_pct
from papers.pcs.plotting import style_of
from papers.pcs.toy import POLICIES, SIZES, SUBMIT, expected_ends, play_toy
from papers.plotting import panels
from papers.results import Claim, Page, claims, grid, number, numbers, result

NAMES = tuple(f"J{index + 1}" for index in range(len(SIZES)))
STEP = 8.0
"""Units by which J1 is put off at a time. PCS, section 2.2."""
PAPER = {"srsf": (11.25, 10, 46), "elastic_themis": (13.5, 0, 24), "elastic_fifo": (15.75, 500, 0)}
"""Mean JCT, peak unfairness % and mean prediction error %, of which the text prints the errors."""
HEAD = ("policy", "mean JCT", "peak unfairness %", "mean error %", "paper", "errors by job", "unfairness by job")
Ends = dict[str, list[list[float]]]
"""By policy, completions of all jobs that have arrived as expected at each arrival."""


def figure1(sources: object, page: Page) -> None:
    """Write the figure's page, table and plot into a folder; no source is read."""
    logs = {policy: play_toy(policy) for policy in POLICIES}
    ends = {policy: expected_ends(policy) for policy in POLICIES}
    _plot(page, ends)
    rows = [
        (policy, name, SUBMIT[job], SIZES[job], log.columns["predicted_end_s"][job], log.end_s[job])
        for policy, log in logs.items()
        for job, name in enumerate(NAMES)
    ]
    page.csv(("policy", "job", "submission", "size", "forecast_end", "end"), rows)
    jobs = ", ".join(f"{name} of {size:g} at {at:g}" for name, size, at in zip(NAMES, SIZES, SUBMIT, strict=True))
    shared_s = play_toy("elastic_fair").jct_s
    unfair = {policy: excess_pct(log, shared_s) for policy, log in logs.items()}
    summary = grid(HEAD, (_line(policy, log, unfair[policy]) for policy, log in logs.items()))
    page.write(jobs=jobs, summary=summary, expected=_expected(ends), **_found(logs, ends, unfair))


def _line(policy: str, log: RunLog, unfair: Floats) -> tuple[str, ...]:
    errors, paper = errors_pct(log), " / ".join(f"{value:g}" for value in PAPER[policy])
    peak, mean = (number(float(value), 1) for value in (unfair.max(), errors.mean()))
    return (
        POLICIES[policy],
        number(float(log.jct_s.mean())),
        peak,
        mean,
        paper,
        numbers(errors, 1),
        numbers(unfair, 1),
    )


def _expected(ends: Ends) -> str:
    head = ("policy", *(f"{name} arrives, at {at:g}" for name, at in zip(NAMES, SUBMIT, strict=True)))
    rows = [
        (POLICIES[policy], *(", ".join(f"{value:g}" for value in one) for one in found))
        for policy, found in ends.items()
    ]
    return grid(head, rows)


def _found(logs: dict[str, RunLog], ends: Ends, unfair: dict[str, Floats]) -> dict[str, str]:
    printed = []
    for name, (jct, peak, error) in PAPER.items():
        log, policy = logs[name], POLICIES[name]
        ours = float(log.jct_s.mean()), float(unfair[name].max()), float(errors_pct(log).mean())
        printed += [
            Claim(f"mean JCT of {policy}", f"{jct:g}", f"{ours[0]:g}", ours[0] == jct),
            Claim(f"peak unfairness of {policy}", f"{peak} %", f"{ours[1]:.1f} %", round(ours[1]) == peak),
            Claim(f"mean error of {policy}", f"{error} %", f"{ours[2]:.1f} %", round(ours[2]) == error),
        ]
    srsf, themis = (np.diff([found[0] for found in ends[policy]]) for policy in ("srsf", "elastic_themis"))
    return {
        "printed": claims(printed),
        "twice": result(f"{srsf.max():g}", srsf.max() == STEP),
        "once": result(f"{themis.max():g}", themis.max() == STEP),
    }


def _plot(page: Page, ends: Ends) -> None:
    labels = [f"{name}\nat {at:g}" for name, at in zip(NAMES, SUBMIT, strict=True)]

    def panel(axes: Axes, policy: str) -> None:
        for job, name in enumerate(NAMES):
            rows = [of[job] for of in ends[policy][job:]]
            axes.plot(range(job, len(NAMES)), rows, marker="o", label=name, **style_of(name, NAMES).line)
        axes.set_title(POLICIES[policy], loc="left")
        axes.set_xticks(range(len(NAMES)), labels)
        axes.set_xlabel("arrival")
        if policy == next(iter(ends)):
            axes.set_ylabel("end as expected then")

    def last(axes: Axes) -> None:
        axes.set_ylim(0, None)

    title = "Completion as expected at each arrival"
    panels(page, title, list(ends), panel, height=WIDE[1], columns=len(ends), last=last, sharey=True)
