"""ANDREAS, Figures 2 and 3 (section V.B): the simulated campaign on a scenario, by number of nodes."""

from papers.andreas import measures as m
from papers.andreas.bench import EQUATION_1, OTHERS, OURS, ROWS, Bench, scenario
from papers.results import Claim, Done, Page, claims, draws_text, means, number, table

LONGEST_CALL = "decision_ms_max"


def figure2(bench: Bench, page: Page) -> None:
    """The second scenario: the page, table and plot, into a folder."""
    _write(bench, page, 2, "Figure 2: nodes of four V100 or two T4", 30.0, 25.0, ("a mean call takes", 10.0))


def figure3(bench: Bench, page: Page) -> None:
    """The first scenario: the page, table and plot, into a folder."""
    call = ("every call takes less than", 100.0)
    _write(bench, page, 1, "Figure 3: nodes of two V100 or one T4", 62.0, 30.0, call)


def _write(
    bench: Bench, page: Page, number: int, title: str, total_pct: float, bar_pct: float, call: tuple[str, float]
) -> None:
    """Run the campaign; write the figure's page, table and plot.

    Parameters
    ----------
    number : of the scenario, as the text counts
    total_pct, bar_pct : by how much less ANDREAS costs in all, as printed, and what is to be reached here
    call : what the paper says of every call or of a mean one, and the milliseconds below which it remains
    """
    cases = [str(nodes) for nodes in bench.nodes]
    done = page.runs(bench.run([scenario(number, nodes) for nodes in bench.nodes], ROWS, bench.draws()))
    m.over_nodes(page, title, done)
    page.write(
        draws=draws_text(bench.seeds, m.SINGLE),
        table=table(means(done), "N", m.SHOWN),
        savings=m.savings_tables(done, cases, OTHERS, "N"),
        claims=claims([*_saved(total_pct, bar_pct, done, cases), *_calls(*call, done, cases)]),
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


def _calls(said: str, call_ms: float, done: list[Done], cases: list[str]) -> list[Claim]:
    found = means(done)
    mean = [found[case, OURS][m.CALL.key] for case in cases]
    longest = max(each.figures[LONGEST_CALL] for each in done if each.name == OURS)
    others = max(found[case, other][m.CALL.key] for case in cases for other in OTHERS)
    here = longest if said.startswith("every") else sum(mean) / len(mean)
    known = f"{number(mean[0], 1)} to {number(mean[-1], 1)} ms in the mean, at most {number(longest, 1)}"
    than = f"{number(min(mean), 2)} against at most {number(others, 2)} ms"
    return [
        Claim(said, f"{call_ms:g} ms", known, here < call_ms),
        Claim("a call takes longer than those of the others", "yes", than, min(mean) > others),
    ]
