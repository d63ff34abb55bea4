"""PCS, Figure 1 (section 2.2): three policies on four jobs and one GPU."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jobcast.pipelines.elastic.figures import errors_pct, unfairness_pct
from jobcast.simulator.elastic.run import ElasticLog
from papers.pcs.plotting import save, style_of
from papers.pcs.toy import POLICIES, SIZES, SUBMIT, expected_ends, play_toy
from papers.sheets import Claim, claims, grid, number, picture, write_csv, write_page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = tuple(f"J{index + 1}" for index in range(len(SIZES)))
STEP = 8.0
"""Units by which J1 is put off at a time. PCS, section 2.2."""
PAPER = {"srsf": 46, "elastic_themis": 24, "elastic_fifo": 0}
"""Mean prediction errors as printed, %."""
ABOUT = (
    "One GPU; Themis by leases of one unit; sizes known to all. The text prints no sizes and submissions: those here ("
    + ", ".join(f"{name} of {size:g} at {at:g}" for name, size, at in zip(NAMES, SIZES, SUBMIT, strict=True))
    + ") are ours, found by trying whole numbers until the printed errors and J1's delays came out."
)

EXPECTED = (
    "Ends of J1, J2, ... as expected when each job arrives; the last of each is that job's forecast at submission:"
)


def figure1(data: Path, out: Path, fronts: Path) -> None:
    """Write the figure's page, table and plot into a folder."""
    logs = {policy: play_toy(policy) for policy in POLICIES}
    ends = {policy: expected_ends(policy) for policy in POLICIES}
    _plot(out, ends)
    write_csv(out, "figure1", ("policy", "job", "submission", "size", "forecast_end", "end"), _rows(logs))
    parts = ["# Figure 1: a toy of four jobs", ABOUT, _summary(logs), picture("figure1", "Expected ends by arrival")]
    parts += [EXPECTED]
    parts += [_expected(ends), "## Against the paper", claims(_claims(logs, ends))]
    write_page(out, "figure1", parts)


def _rows(logs: dict[str, ElasticLog]) -> list[tuple[object, ...]]:
    return [
        (policy, name, SUBMIT[job], SIZES[job], log.predicted_end_s[job], log.end_s[job])
        for policy, log in logs.items()
        for job, name in enumerate(NAMES)
    ]


def _summary(logs: dict[str, ElasticLog]) -> str:
    head = ("policy", "mean JCT", "mean unfairness %", "by the mean over time", "mean error %", "paper", "by job")
    rows = [
        (
            POLICIES[policy],
            number(float((log.end_s - log.submit_s).mean())),
            number(float(unfairness_pct(log).mean()), 1),
            number(float(unfairness_pct(log, over_time=True).mean()), 1),
            number(float(errors_pct(log).mean()), 1),
            str(PAPER[policy]),
            ", ".join(number(value, 1) for value in errors_pct(log)),
        )
        for policy, log in logs.items()
    ]
    return grid(head, rows)


def _expected(ends: dict[str, list[list[float]]]) -> str:
    head = ("policy", *(f"{name} arrives, at {at:g}" for name, at in zip(NAMES, SUBMIT, strict=True)))
    rows = [
        (POLICIES[policy], *(", ".join(f"{value:g}" for value in one) for one in found))
        for policy, found in ends.items()
    ]
    return grid(head, rows)


def _claims(logs: dict[str, ElasticLog], ends: dict[str, list[list[float]]]) -> list[Claim]:
    errors = {policy: float(errors_pct(log).mean()) for policy, log in logs.items()}
    jcts = {policy: float((log.end_s - log.submit_s).mean()) for policy, log in logs.items()}
    unfair = {policy: float(unfairness_pct(log).mean()) for policy, log in logs.items()}
    first = {policy: np.diff([found[0] for found in of]) for policy, of in ends.items()}
    twice = [float(first["srsf"][column]) for column in (0, 2)]
    made = [
        Claim(
            f"mean error of {POLICIES[policy]}", f"{told} %", f"{errors[policy]:.1f} %", round(errors[policy]) == told
        )
        for policy, told in PAPER.items()
    ]
    return [
        *made,
        Claim(
            "Tiresias: J1 put off when J2 and J4 arrive", "8, 8", f"{twice[0]:g}, {twice[1]:g}", twice == [STEP, STEP]
        ),
        Claim(
            "Themis: J1 put off when J2 arrives",
            "8",
            f"{first['elastic_themis'][0]:g}",
            first["elastic_themis"][0] == STEP,
        ),
        Claim("Tiresias has the lowest mean JCT", "yes", f"{jcts['srsf']:g}", jcts["srsf"] == min(jcts.values())),
        Claim(
            "FIFO has the highest mean JCT",
            "yes",
            f"{jcts['elastic_fifo']:g}",
            jcts["elastic_fifo"] == max(jcts.values()),
        ),
        Claim(
            "FIFO is the most unfair",
            "yes",
            f"{unfair['elastic_fifo']:.1f} %",
            unfair["elastic_fifo"] == max(unfair.values()),
        ),
        Claim(
            "Themis: all jobs end before their fair finish time",
            "0 %",
            f"{unfair['elastic_themis']:.1f} %",
            unfair["elastic_themis"] == 0,
        ),
    ]


def _plot(out: Path, ends: dict[str, list[list[float]]]) -> None:
    def paint(figure: "Figure") -> None:
        panels = figure.subplots(1, len(ends), sharey=True)
        for axes, (policy, found) in zip(panels, ends.items(), strict=True):
            for job, name in enumerate(NAMES):
                told = [of[job] for of in found[job:]]
                axes.plot(range(job, len(NAMES)), told, marker="o", label=name, **style_of(name, NAMES).line)
            axes.set_title(POLICIES[policy], loc="left")
            axes.set_xticks(range(len(NAMES)), [f"{name}\nat {at:g}" for name, at in zip(NAMES, SUBMIT, strict=True)])
            axes.set_xlabel("arrival")
        panels[0].set(ylabel="end as expected then", ylim=(0, None))
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center")

    save(out, "figure1", "Completion as expected at each arrival", paint)
