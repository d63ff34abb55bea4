"""What Figures 6 to 8 share: MLF-H with and without a part of it, by number of jobs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from papers.bench import Done
from papers.measures import HOLDS, REVERSED, Measure
from papers.mlfs.bench import Bench
from papers.mlfs.measures import gain_pct, relative
from papers.mlfs.plotting import over_x, tables_over_x
from papers.mlfs.rows import MLF_H, SRTF, Row
from papers.mlfs.workloads import SCALES, scaled
from papers.page import Claim, claims, number, write_page, write_runs
from papers.runs import Means, means, of_case

WHOLE = Row(MLF_H, "mlf_h")
MOST = "x = 3"


@dataclass(frozen=True, slots=True)
class Effect:
    """What the paper says that a part does: the row without it, the measure, the range in % over loads."""

    without: str
    measure: Measure
    paper: str
    worsens: bool = False


def without(title: str, setting: str) -> Row:
    """MLF-H with a part of it left out."""
    return Row(title, WHOLE.policy, {setting: "false"})


def write_parts(
    bench: Bench, out: Path, name: str, title: str, about: str, rows: Sequence[Row], effects: Sequence[Effect]
) -> None:
    """Run MLF-H and the rows without parts of it; write the figure's page, table and plot into a folder."""
    measures = list(dict.fromkeys(one.measure for one in effects))
    done = bench.run([scaled(x) for x in SCALES], (WHOLE, Row(SRTF, "srtf"), *rows), bench.seeds)
    found = means(done)
    write_runs(out, name, done)
    over_x(out, name, title, found, measures)
    shown = {"tables": tables_over_x(found, measures), "claims": claims(_claim(one, found, done) for one in effects)}
    write_page(__file__, out, name, title=title, about=about, draws=bench.facts["draws"], **shown)


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
