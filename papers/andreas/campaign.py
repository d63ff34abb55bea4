"""What Figures 2 and 3 share: the simulated campaign on a scenario, by number of nodes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from papers.andreas.bench import Bench
from papers.andreas.measures import (
    CALL,
    ENERGY,
    MAKESPAN,
    TARDINESS,
    TOTAL,
    draws_text,
    over,
    savings_tables,
    table,
    write_runs,
)
from papers.andreas.plotting import over_nodes
from papers.andreas.units import OTHERS, OURS, ROWS, Done
from papers.andreas.workloads import scenario
from papers.confidence import Interval
from papers.runs import Means, means
from papers.sheets import Claim, claims, number, picture, write_page

ABOUT = (
    "N {held}, half of them with V100; 10 N jobs, {draws}; every policy runs on the same draws. The text of section "
    "V.B calls this the {ordinal} scenario and refers to Figure {figure} for it; the figures' captions have the two "
    "scenarios the other way round. Jobs, seconds an epoch and watts are assumptions of jobcast's, so that what "
    "compares are orders and relative changes."
)
SAVED = (
    "Savings are 1 - ANDREAS / other, on the same draw, in the mean over draws with a 95 % interval by Student's t; "
    "over several N or policies, of the draw's mean."
)
LONGEST_CALL = "decision_ms_max"
MS = "A call's milliseconds are of one core's CPU."


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario and what the paper says of it.

    Attributes
    ----------
    number : of the scenario, as the text counts
    figure : that the text refers to
    held : GPUs of the nodes, in words
    total_pct : by how much less ANDREAS costs in all
    bar_pct : what is to be reached here
    call_ms : below which a call remains
    always : whether that is said of every call; else of the mean
    """

    number: int
    figure: int
    held: str
    total_pct: float
    bar_pct: float
    call_ms: float
    always: bool


def write_campaign(bench: Bench, out: Path, one: Scenario) -> None:
    """Run the campaign; write the figure's page, table and plot into a folder."""
    name = f"figure{one.figure}"
    done = bench.run([scenario(one.number, nodes) for nodes in bench.nodes], ROWS, bench.draws())
    cases = [str(nodes) for nodes in bench.nodes]
    title = f"Figure {one.figure}: {one.held}"
    write_runs(out, name, done)
    over_nodes(out, name, title, done)
    about = ABOUT.format(
        held=one.held,
        draws=draws_text(len(bench.draws())),
        ordinal=("first", "second")[one.number - 1],
        figure=one.figure,
    )
    found = means(done)
    parts = [
        f"# {title}",
        about,
        picture(name, "Costs, makespan and time of a call by nodes"),
        "## By number of nodes",
        f"Means over draws. {MS}",
        table(found, "N"),
        "## What ANDREAS saves",
        SAVED,
        *savings_tables(done, cases, OTHERS, "N"),
        "## Against the paper",
        claims(_claims(one, done, found, cases)),
    ]
    write_page(out, name, parts)


def _claims(one: Scenario, done: Sequence[Done], found: Means, cases: Sequence[str]) -> list[Claim]:
    """What the paper prints beside what came out."""
    total, unprinted = over(TOTAL, done, cases, OTHERS), "plotted, not printed"
    told = (
        *((f"total cost below that of {other} by", "-", TOTAL, (other,)) for other in OTHERS),
        ("energy cost below that of the others by", unprinted, ENERGY, OTHERS),
        ("penalties of late jobs reduced by", "not printed", TARDINESS, OTHERS),
        ("time to execute all jobs reduced by", unprinted, MAKESPAN, OTHERS),
    )
    saved = [(said, paper, over(measure, done, cases, others)) for said, paper, measure, others in told]
    return [
        Claim("total cost reduced on average by", f"{one.total_pct:g} %", f"{total.text()} %", holds(total)),
        Claim("at least, as jobcast's own bar", f"{one.bar_pct:g} %", f"{total.text()} %", total.mean >= one.bar_pct),
        *(Claim(said, paper, f"{less.text()} %", holds(less)) for said, paper, less in saved),
        *_call_claims(one, done, found, cases),
    ]


def _call_claims(one: Scenario, done: Sequence[Done], found: Means, cases: Sequence[str]) -> list[Claim]:
    mean = [found[case, OURS][CALL.key] for case in cases]
    longest = max(each.figures[LONGEST_CALL] for each in done if each.name == OURS)
    others = max(found[case, other][CALL.key] for case in cases for other in OTHERS)
    here, said = (longest, "every call takes less than") if one.always else (sum(mean) / len(mean), "a mean call takes")
    known = f"{number(mean[0], 1)} to {number(mean[-1], 1)} ms in the mean, at most {number(longest, 1)}"
    than = f"{number(min(mean), 2)} against at most {number(others, 2)} ms"
    return [
        Claim(said, f"{one.call_ms:g} ms", known, here < one.call_ms),
        Claim("a call takes longer than those of the others", "yes", than, min(mean) > others),
    ]


def holds(saved: Interval) -> bool | None:
    """Whether something is saved: with confidence; open where the interval holds 0; by the mean for a single draw."""
    if saved.low != saved.low:
        return saved.mean > 0
    return {"yes": True, "no": False}.get(saved.verdict)
