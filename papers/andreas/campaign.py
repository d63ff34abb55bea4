"""ANDREAS, Figures 2 and 3 (section V.B): the simulated campaign on a scenario, by number of nodes."""

from papers.andreas import measures as m
from papers.andreas.bench import EQUATION_1, OTHERS, OURS, ROWS, Bench, scenario
from papers.results import Claim, Done, Page, claims, draws_text, means, number, table

LONGEST_CALL = "decision_ms_max"


def figure2(bench: Bench, page: Page) -> None:
    """The second scenario: the page, table and plot, into a folder."""
    _write(bench, page, 2, "Figure 2: nodes of four V100 or two T4", 30.0, 25.0, 10.0, always=False)


def figure3(bench: Bench, page: Page) -> None:
    """The first scenario: the page, table and plot, into a folder."""
    _write(bench, page, 1, "Figure 3: nodes of two V100 or one T4", 62.0, 30.0, 100.0, always=True)


def _write(
    bench: Bench, page: Page, number: int, title: str, total_pct: float, bar_pct: float, call_ms: float, *, always: bool
) -> None:
    """Run the campaign; write the figure's page, table and plot.

    Parameters
    ----------
    number : of the scenario, as the text counts
    total_pct, bar_pct : by how much less ANDREAS costs in all, as printed, and what is to be reached here
    call_ms : below which a call remains
    always : whether that is said of every call; else of the mean
    """
    cases = [str(nodes) for nodes in bench.nodes]
    done = page.runs(bench.run([scenario(number, nodes) for nodes in bench.nodes], ROWS, bench.draws()))
    m.over_nodes(page, title, done)
    page.write(
        draws=draws_text(bench.seeds, m.SINGLE),
        table=table(means(done), "N", m.SHOWN),
        savings=m.savings_tables(done, cases, OTHERS, "N"),
        claims=claims([*_saved(total_pct, bar_pct, done, cases), *_calls(call_ms, done, cases, always=always)]),
    )


def _saved(total_pct: float, bar_pct: float, done: list[Done], cases: list[str]) -> list[Claim]:
    """What the paper prints of costs beside what came out."""
    total, unprinted = m.over(m.TOTAL, done, cases, OTHERS), "plotted, not printed"
    result = (
        ("total cost reduced on average by", f"{total_pct:g} %", m.TOTAL, OTHERS),
        *((f"total cost below that of {other} by", "-", m.TOTAL, (other,)) for other in OTHERS),
        ("energy cost below that of the others by", unprinted, m.ENERGY, OTHERS),
        ("penalties of late jobs reduced by", "not printed", m.TARDINESS, OTHERS),
        ("time to execute all jobs reduced by", unprinted, m.MAKESPAN, OTHERS),
    )
    saved = [(said, paper, m.over(measure, done, cases, others)) for said, paper, measure, others in result]
    first, *others = [Claim(said, paper, f"{less.text()} %", m.holds(less)) for said, paper, less in saved]
    bar = Claim("at least, as jobcast's own bar", f"{bar_pct:g} %", first.here, total.mean >= bar_pct)
    of_1 = [(case, m.over(m.TOTAL, done, [case], [EQUATION_1.title])) for case in cases]
    beside = [
        Claim(f"N = {case}: below equation 1's by", "-", f"{less.text()} %", m.holds(less)) for case, less in of_1
    ]
    return [first, bar, *others, *beside]


def _calls(call_ms: float, done: list[Done], cases: list[str], *, always: bool) -> list[Claim]:
    found = means(done)
    mean = [found[case, OURS][m.CALL.key] for case in cases]
    longest = max(each.figures[LONGEST_CALL] for each in done if each.name == OURS)
    others = max(found[case, other][m.CALL.key] for case in cases for other in OTHERS)
    here, said = (longest, "every call takes less than") if always else (sum(mean) / len(mean), "a mean call takes")
    known = f"{number(mean[0], 1)} to {number(mean[-1], 1)} ms in the mean, at most {number(longest, 1)}"
    than = f"{number(min(mean), 2)} against at most {number(others, 2)} ms"
    return [
        Claim(said, f"{call_ms:g} ms", known, here < call_ms),
        Claim("a call takes longer than those of the others", "yes", than, min(mean) > others),
    ]
