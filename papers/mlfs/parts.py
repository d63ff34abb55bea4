"""MLFS, Figures 6 to 8 (section 4.2.2): MLF-H with and without a part of it, by number of jobs."""

from pathlib import Path

from papers.mlfs.bench import SCALES, Bench, scaled
from papers.mlfs.measures import MEASURES, gain_pct, relative
from papers.mlfs.plotting import over_x, tables_over_x
from papers.mlfs.rows import MLF_H, SRTF, Row
from papers.results import HOLDS, REVERSED, Claim, Done, Means, Page, claims, means, number, of_case, read_rows

WHOLE = Row(MLF_H, "mlf_h")
MOST = "x = 3"
EFFECTS = read_rows(Path(__file__).with_suffix(".csv"))
"""What the paper says that a part does, by figure: the setting that leaves it out, and the range in % over loads."""


def figure6(bench: Bench, page: Page) -> None:
    """What urgency and deadlines in priorities are worth: the page, table and plot, into a folder."""
    _write(bench, page, "Figure 6: urgency and deadlines")


def figure7(bench: Bench, page: Page) -> None:
    """What bandwidth in placement and migration is worth: the page, table and plot, into a folder."""
    _write(bench, page, "Figure 7: bandwidth")


def figure8(bench: Bench, page: Page) -> None:
    """What moving tasks off overloaded servers is worth: the page, table and plot, into a folder."""
    _write(bench, page, "Figure 8: migration")


def _write(bench: Bench, page: Page, title: str) -> None:
    """Run MLF-H and what it is without the parts of a figure; write its page, table and plot."""
    effects = [row for row in EFFECTS if row["figure"] == page.name]
    measures = [MEASURES[key] for key in dict.fromkeys(row["measure"] for row in effects)]
    settings = {row["part"]: {row["setting"]: "false"} for row in effects}
    rows = [Row(f"without {part}", WHOLE.policy, setting) for part, setting in settings.items()]
    done = page.runs(bench.run([scaled(x) for x in SCALES], (WHOLE, Row(SRTF, "srtf"), *rows), bench.seeds))
    found = means(done)
    over_x(page, title, found, measures)
    shown = {"tables": tables_over_x(found, measures), "claims": claims(_claim(one, found, done) for one in effects)}
    page.write(draws=bench.facts["draws"], **shown)


def _claim(effect: dict[str, str], found: Means, done: list[Done]) -> Claim:
    """The range over x of what a part gains, and the interval at the highest load."""
    measure, without, worsens = MEASURES[effect["measure"]], f"without {effect['part']}", effect["worsens"] == "yes"
    cases = [of_case(found, f"x = {x}") for x in SCALES]
    over = sorted((-1 if worsens else 1) * gain_pct(measure, case[MLF_H], case[without]) for case in cases)
    at_most = relative(measure, done, MOST, MLF_H, without)
    verdict = {HOLDS: not worsens, REVERSED: worsens}.get(at_most.verdict)
    than, ends = ("higher", at_most.negative) if worsens else ("better", at_most)
    here = f"{number(over[0], 1)} to {number(over[-1], 1)} %; {MOST}: {ends.text()} %"
    return Claim(f"with {effect['part']}: {measure.word} {than} by", effect["paper"], here, verdict)
