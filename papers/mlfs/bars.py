"""The paper's orders in completion time, deadline and accuracy ratio, each with a confidence interval over draws."""

from collections.abc import Sequence
from pathlib import Path

from papers.confidence import HOLDS, OPEN, REVERSED, interval_of
from papers.mlfs.bench import Bench
from papers.mlfs.intervals import apart, relative, values_of
from papers.mlfs.measures import ACCURATE, DEADLINE, JCT, OVERHEAD, Measure
from papers.mlfs.rows import (
    BASELINES,
    MLF_H,
    MLF_RL,
    MLFS,
    MLFS_EXACT,
    MLFS_HOPEFUL,
    MLFS_STRANGE,
)
from papers.mlfs.tables import noted, write_runs
from papers.mlfs.units import Done
from papers.mlfs.workloads import scaled
from papers.sheets import grid, number, write_page

CASES = ("1", "3")
MEASURES = (JCT, DEADLINE, ACCURATE)
PAIRS = (
    (MLFS, MLF_RL),
    (MLFS, MLF_H),
    (MLF_RL, MLF_H),
    *((name, other) for name in (MLFS, MLF_RL, MLF_H) for other in BASELINES),
    *((name, other) for name in (MLFS_EXACT, MLFS_STRANGE, MLFS_HOPEFUL) for other in (MLF_RL, MLF_H, *BASELINES)),
)
"""Better and worse, by the paper."""
MOST_MS, MOST_CPU_S = 20.0, 300.0
"""What a decision and a replay may take."""
ABOUT = (
    "620x jobs of one week of Philly on 20 servers of 4 GPUs, {draws}. All policies run on the same draws. Means with "
    "95 % intervals by Student's t over draws."
)
HOW = (
    "By how much the first is better than the second on the same draws: completion times as |y - z| / z in the "
    "geometric mean, ratios in percentage points. yes: the interval is above 0. no: it is below 0. open: neither."
)


def bars(bench: Bench, out: Path) -> None:
    """Write the page and its table into a folder."""
    done = bench.run([scaled(x) for x in CASES], bench.rows)
    write_runs(out, "bars", done)
    draws = f"{len(bench.seeds)} draws" if len(bench.seeds) > 1 else "one draw, which has no intervals"
    names = list(dict.fromkeys(one.name for one in done))
    parts = ["# Orders of policies, with confidence", ABOUT.format(draws=draws), *noted(bench.notes)]
    for case in (f"x = {x}" for x in CASES):
        pairs = [(better, worse) for better, worse in PAIRS if better in names and worse in names]
        parts += [f"## {case}", _table(done, case, names), f"### Orders at {case}", HOW, *_orders(done, case, pairs)]
    last = f"x = {CASES[-1]}"
    told = f"At {last}, of the draw in which they are largest: mean time of a decision, and CPU of a whole replay."
    write_page(out, "bars", [*parts, "## Time", told, _times(done, last, names)])


def _table(done: Sequence[Done], case: str, names: Sequence[str]) -> str:
    rows = [
        (name, *(interval_of(values_of(one, done, case, name)).text(one.digits) for one in MEASURES)) for name in names
    ]
    return grid(("policy", *(one.title for one in MEASURES)), rows)


def _orders(done: Sequence[Done], case: str, pairs: Sequence[tuple[str, str]]) -> list[str]:
    """How many orders hold, and a row a pair."""
    rows, verdicts = [], []
    for better, worse in pairs:
        told = [_told(measure, done, case, better, worse) for measure in MEASURES]
        verdicts += [verdict for _, verdict in told]
        rows.append((f"{better} better than {worse}", *(cell for pair in told for cell in pair)))
    if not rows:
        return ["None of the pairs was run."]
    counted = {one: verdicts.count(one) for one in (HOLDS, OPEN, REVERSED)}
    head = ("order", "JCT, %", "holds", "deadline ratio, points", "holds", "accuracy ratio, points", "holds")
    said = (
        f"Of {len(verdicts)} orders {counted[HOLDS]} hold, {counted[OPEN]} are open, {counted[REVERSED]} are reversed."
    )
    return [said, grid(head, rows)]


def _told(measure: Measure, done: Sequence[Done], case: str, better: str, worse: str) -> tuple[str, str]:
    found = (relative if measure is JCT else apart)(measure, done, case, better, worse)
    return found.text(), found.verdict


def _times(done: Sequence[Done], case: str, names: Sequence[str]) -> str:
    """Milliseconds of a decision and seconds of a replay, in the draw where they are largest."""
    rows = []
    for name in names:
        own = [one.figures for one in done if (one.case, one.name) == (case, name)]
        ms, cpu_s = (max(one[key] for one in own) for key in (OVERHEAD.key, "cpu_s"))
        verdict = "yes" if ms <= MOST_MS and cpu_s <= MOST_CPU_S else "no"
        rows.append((name, number(ms), number(cpu_s, 0), verdict))
    head = ("policy", "decision, ms", "CPU of a replay, s", f"at most {MOST_MS:g} ms and {MOST_CPU_S:g} s")
    return grid(head, rows)
