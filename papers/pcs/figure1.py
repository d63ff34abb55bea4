"""PCS, Figure 1 (section 2.2): three policies on four jobs and one GPU, the toy that tells them apart, as published."""

from functools import partial

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from jobcast.domain.arrays import Floats
from jobcast.domain.hardware import flat_cluster
from jobcast.pipelines.experiments.elastic.jobs import elastic_jobs
from jobcast.pipelines.experiments.scenarios import cut_scenario
from jobcast.pipelines.report.look import WIDE
from jobcast.schedulers.registry import make_policy
from jobcast.simulator.elastic.run import ElasticReplay, replay_elastic
from jobcast.simulator.log import RunLog
from jobcast.simulator.metrics import errors_pct, excess_pct
from jobcast.traces.table import Trace
from papers.pcs.plotting import style_of
from papers.plotting import panels
from papers.results import Claim, Page, claims, grid, number, numbers, result

SUBMIT = (0.0, 0.0, 1.0, 10.0)
SIZES = (10.0, 8.0, 1.0, 8.0)
"""The text prints none; these are of the published figure's data, `data/fig1/fig1a.json`."""
NAMES = tuple(f"J{index + 1}" for index in range(len(SIZES)))
LEASE = 1.0  # PCS, footnote 1
POLICIES = {"srsf": "Tiresias (SRSF)", "elastic_themis": "Themis", "elastic_fifo": "FIFO"}
"""In the order of the figure's rows."""


def play_toy(policy: str, arrived: int = len(SIZES)) -> RunLog:
    """The first `arrived` jobs under a policy, to their end, each with the forecast made at its submission.

    A unit of time is a second.
    """
    columns = {"job_id": NAMES, "pool": "all", "submit_time": SUBMIT, "duration": SIZES, "gpus": 1}
    trace = Trace.from_frame(pl.DataFrame(columns).head(arrived), name="toy")
    workload = elastic_jobs(cut_scenario(trace, flat_cluster(1))).workload
    jobs = workload.jobs._replace(least=np.zeros(arrived))  # a job may have any share of the GPU
    rule = make_policy(policy, None, {"lease_s": str(LEASE)} if policy == "elastic_themis" else {})
    return replay_elastic(ElasticReplay(jobs, workload.size_s, workload.cluster, rule), predict=True)


def expected_ends(policy: str) -> list[list[float]]:
    """Completions of all jobs that have arrived as expected at each arrival; row k has k + 1 of them."""
    return [play_toy(policy, arrived).end_s.tolist() for arrived in range(1, len(SIZES) + 1)]


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
    jct, peak, mean = number(float(log.jct_s.mean())), number(float(unfair.max()), 1), number(float(errors.mean()), 1)
    return (POLICIES[policy], jct, peak, mean, paper, numbers(errors, 1), numbers(unfair, 1))


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

    title, last = "Completion as expected at each arrival", partial(Axes.set_ylim, bottom=0)
    panels(page, title, list(ends), panel, height=WIDE[1], columns=len(ends), last=last, sharey=True)
