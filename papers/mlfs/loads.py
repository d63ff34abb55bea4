"""MLFS, Figures 4 to 8 (section 4.2), by number of jobs: policies on 20 servers and on 550; MLF-H without its parts."""

from pathlib import Path

from papers.mlfs import measures as m
from papers.mlfs.bench import A_WEEK, SCALES, Bench, philly_week, scaled
from papers.mlfs.plotting import jct_cdfs, over_x, tables_over_x
from papers.mlfs.rows import HYPERSCHED, MLF_H, MLF_RL, MLFS, SLAQ, SRTF, TENSORFLOW, TIRESIAS, Row
from papers.results import HOLDS, REVERSED, Claim, Done, Means, Page, claims, means, number, of_case, read_rows

LEAST, ONE, MOST = "x = 1/4", "x = 1", "x = 3"
SHARES = {"1/2": 0.5, "1": 1.0, "2": 2.0}
SEEDS = (0, 1, 2)
NAMES = (MLFS, MLF_RL, MLF_H, TIRESIAS, HYPERSCHED, TENSORFLOW, SLAQ, SRTF)
"""Shares of a week of Philly, draws of it, and those who are compared on it."""
WHOLE = Row(MLF_H, "mlf_h")
EFFECTS = read_rows(Path(__file__).with_name("parts.csv"))
"""What the paper says that a part does, by figure: the setting that leaves it out, and the range in % over loads."""


def figure4(bench: Bench, page: Page) -> None:
    """All policies on 20 servers: the page, table and plots, into a folder."""
    done = page.runs(bench.run([scaled(x) for x in SCALES], bench.rows, bench.seeds))
    found = means(done)
    said = [*m.load_claims(LEAST, MOST, found, real=True), *m.overhead_claims(MOST, m.PRINTED_MS, of_case(found, MOST))]
    _plot(page, "20 servers of 4 GPUs", done, (ONE, MOST))
    page.write(**bench.facts, tables=tables_over_x(found, m.SHOWN), claims=claims(said))


def figure5(bench: Bench, page: Page) -> None:
    """One week of Philly on 550 servers with 2,474 GPUs: the page, table and plots, into a folder."""
    rows = [row for row in bench.rows if row.title in NAMES]
    done = page.runs(bench.run([philly_week(x, share) for x, share in SHARES.items()], rows, SEEDS))
    found, (least, *_, most) = means(done), (f"x = {x}" for x in SHARES)
    _plot(page, "550 servers", done, (most,), ", 2,474 GPUs")
    drawn = ", ".join(f"{round(share * A_WEEK):,} (x = {x})" for x, share in SHARES.items())
    tables, said = tables_over_x(found, m.SHOWN), m.load_claims(least, most, found, real=False)
    page.write(week=A_WEEK, drawn=drawn, notes=bench.facts["notes"], tables=tables, claims=claims(said))


def _plot(page: Page, servers: str, done: list[Done], cases: tuple[str, ...], more: str = "") -> None:
    over_x(page, f"{servers}{more}, by x", means(done), m.SHOWN)
    jct_cdfs(page.named(f"{page.name}-jct"), f"Completion times on {servers}", done, cases)


def figure6(bench: Bench, page: Page) -> None:
    """What urgency and deadlines in priorities are worth: the page, table and plot, into a folder."""
    _parts(bench, page, "Figure 6: urgency and deadlines")


def figure7(bench: Bench, page: Page) -> None:
    """What bandwidth in placement and migration is worth: the page, table and plot, into a folder."""
    _parts(bench, page, "Figure 7: bandwidth")


def figure8(bench: Bench, page: Page) -> None:
    """What moving tasks off overloaded servers is worth: the page, table and plot, into a folder."""
    _parts(bench, page, "Figure 8: migration")


def _parts(bench: Bench, page: Page, title: str) -> None:
    """Run MLF-H and what it is without the parts of a figure; write its page, table and plot."""
    effects = [row for row in EFFECTS if row["figure"] == page.name]
    measures = [m.MEASURES[key] for key in dict.fromkeys(row["measure"] for row in effects)]
    settings = {row["part"]: {row["setting"]: "false"} for row in effects}
    rows = [Row(f"without {part}", WHOLE.policy, setting) for part, setting in settings.items()]
    done = page.runs(bench.run([scaled(x) for x in SCALES], (WHOLE, Row(SRTF, "srtf"), *rows), bench.seeds))
    found = means(done)
    over_x(page, title, found, measures)
    tables, said = tables_over_x(found, measures), claims(_part_claim(one, found, done) for one in effects)
    page.write(draws=bench.facts["draws"], tables=tables, claims=said)


def _part_claim(effect: dict[str, str], found: Means, done: list[Done]) -> Claim:
    """The range over x of what a part gains, and the interval at the highest load."""
    measure, without, worsens = m.MEASURES[effect["measure"]], f"without {effect['part']}", effect["worsens"] == "yes"
    cases = [of_case(found, f"x = {x}") for x in SCALES]
    over = sorted((-1 if worsens else 1) * m.gain_pct(measure, case[MLF_H], case[without]) for case in cases)
    at_most = m.relative(measure, done, MOST, MLF_H, without)
    verdict = {HOLDS: not worsens, REVERSED: worsens}.get(at_most.verdict)
    than, ends = ("higher", at_most.negative) if worsens else ("better", at_most)
    here = f"{number(over[0], 1)} to {number(over[-1], 1)} %; {MOST}: {ends.text()} %"
    return Claim(f"with {effect['part']}: {measure.word} {than} by", effect["paper"], here, verdict)
