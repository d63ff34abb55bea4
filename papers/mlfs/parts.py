"""MLFS, Figures 6 to 8 (section 4.2.2): MLF-H with and without a part of it, by number of jobs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from papers.mlfs.bench import SCALES, Bench, scaled
from papers.mlfs.measures import ACCURACY, BANDWIDTH, DEADLINE, JCT, OVERLOADS, URGENT, gain_pct, relative
from papers.mlfs.plotting import over_x, tables_over_x
from papers.mlfs.rows import MLF_H, SRTF, Row
from papers.results import HOLDS, REVERSED, Claim, Done, Means, Measure, Page, claims, means, number, of_case

WHOLE = Row(MLF_H, "mlf_h")
MOST = "x = 3"


@dataclass(frozen=True, slots=True)
class Effect:
    """What the paper says that a part does: the row without it, the measure, the range in % over loads."""

    without: str
    measure: Measure
    paper: str
    worsens: bool = False


def figure6(bench: Bench, page: Page) -> None:
    """What urgency and deadlines in priorities are worth: the page, table and plot, into a folder."""
    about = (
        "MLF-H whose priorities leave out the urgency of a job (equation 2, `--set urgency=false`) or its deadline "
        "(equation 4, `--set deadline=false`). Jobs above level 8 of 10 are urgent."
    )
    urgency, deadline = "without urgency", "without deadlines"
    effects: tuple[Effect, ...] = (Effect(urgency, URGENT, "22 to 30 %"), Effect(deadline, DEADLINE, "13 to 25 %"))
    effects += (Effect(urgency, JCT, ""), Effect(deadline, JCT, ""))
    parts = {urgency: "urgency", deadline: "deadline"}
    _write(bench, page, "Figure 6: urgency and deadlines", about, parts, effects)


def figure7(bench: Bench, page: Page) -> None:
    """What bandwidth in placement and migration is worth: the page, table and plot, into a folder."""
    about = (
        "MLF-H that leaves the cost of bandwidth out when it chooses servers and tasks to move "
        "(`--set bandwidth=false`). The paper names equation 2 for it, which knows no bandwidth; the ideal virtual "
        "host and the ideal virtual task of section 3.3 do."
    )
    off = "without bandwidth"
    effects = (Effect(off, JCT, "5 to 15 %"), Effect(off, BANDWIDTH, "20 to 35 %"))
    _write(bench, page, "Figure 7: bandwidth", about, {off: "bandwidth"}, effects)


def figure8(bench: Bench, page: Page) -> None:
    """What moving tasks off overloaded servers is worth: the page, table and plot, into a folder."""
    about = (
        "MLF-H that leaves tasks on overloaded servers (`--set migration=false`). Overloads: servers with an "
        "overloaded resource after a decision, added up over decisions."
    )
    off = "without migration"
    effects: tuple[Effect, ...] = (Effect(off, OVERLOADS, "36 to 60 %"),)
    effects += (Effect(off, BANDWIDTH, "10 to 14 %", worsens=True),)
    effects += (Effect(off, ACCURACY, "8 to 10 %"), Effect(off, JCT, "15 to 24 %"))
    _write(bench, page, "Figure 8: migration", about, {off: "migration"}, effects)


def _write(
    bench: Bench, page: Page, title: str, about: str, parts: Mapping[str, str], effects: Sequence[Effect]
) -> None:
    """Run MLF-H and what it is without parts of it, by title and setting; write a figure's page, table and plot."""
    measures = list(dict.fromkeys(one.measure for one in effects))
    rows = [Row(title, WHOLE.policy, {setting: "false"}) for title, setting in parts.items()]
    done = page.runs(bench.run([scaled(x) for x in SCALES], (WHOLE, Row(SRTF, "srtf"), *rows), bench.seeds))
    found = means(done)
    over_x(page, title, found, measures)
    shown = {"tables": tables_over_x(found, measures), "claims": claims(_claim(one, found, done) for one in effects)}
    page.write(title=title, about=about, draws=bench.facts["draws"], **shown)


def _claim(effect: Effect, found: Means, done: Sequence[Done]) -> Claim:
    """The range over x of what a part gains, and the interval at the highest load."""
    sign = -1 if effect.worsens else 1
    cases = [of_case(found, f"x = {x}") for x in SCALES]
    over = sorted(sign * gain_pct(effect.measure, case[MLF_H], case[effect.without]) for case in cases)
    at_most = relative(effect.measure, done, MOST, MLF_H, effect.without)
    verdict = {HOLDS: not effect.worsens, REVERSED: effect.worsens}.get(at_most.verdict)
    than, ends = ("higher", at_most.negative) if effect.worsens else ("better", at_most)
    here = f"{number(over[0], 1)} to {number(over[-1], 1)} %; {MOST}: {ends.text()} %"
    part = effect.without.removeprefix("without ")
    return Claim(f"with {part}: {effect.measure.word} {than} by", effect.paper, here, verdict)
