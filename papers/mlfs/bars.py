"""The paper's orders in completion time, deadline and accuracy ratio, each with a confidence interval over draws."""

from papers.mlfs.bench import Bench, scaled
from papers.mlfs.measures import ACCURATE, DEADLINE, JCT, OVERHEAD, apart, relative
from papers.mlfs.rows import BASELINES, MLF_H, MLF_RL, MLFS, MLFS_EXACT, MLFS_HOPEFUL, MLFS_STRANGE, SRTF
from papers.results import HOLDS, OPEN, REVERSED, Done, Measure, Page, draws_text, grid, interval_of, names_of, number

SCALES = ("1", "3")
MEASURES = (JCT, DEADLINE, ACCURATE)
PAIRS = (
    (MLFS, MLF_RL),
    (MLFS, MLF_H),
    (MLF_RL, MLF_H),
    *((name, other) for name in (MLFS, MLF_RL, MLF_H) for other in (*BASELINES, SRTF)),
    *((name, other) for name in (MLFS_EXACT, MLFS_STRANGE, MLFS_HOPEFUL) for other in (MLF_RL, MLF_H, *BASELINES)),
)
"""Better and worse, by the paper, and against shortest remaining time first, which it lacks."""
MOST_MS, MOST_CPU_S = 20.0, 300.0
"""What a decision and a replay may take."""


def bars(bench: Bench, page: Page) -> None:
    """Write the page and its table into a folder."""
    done = page.runs(bench.run([scaled(x) for x in SCALES], bench.rows, bench.seeds))
    cases, names = names_of(done)
    pairs = [(better, worse) for better, worse in PAIRS if better in names and worse in names]
    shown = bench.facts | {"draws": draws_text(len(bench.seeds), "one draw, which has no intervals")}
    for x, case in zip(SCALES, cases, strict=True):
        shown |= {f"table{x}": _table(done, case, names), f"orders{x}": _orders(done, case, pairs)}
    page.write(**shown, times=_times(done, cases[-1], names))


def _table(done: list[Done], case: str, names: list[str]) -> str:
    rows = [(name, *(interval_of(one.of(done, case, name)).text(one.digits) for one in MEASURES)) for name in names]
    return grid(("policy", *(one.title for one in MEASURES)), rows)


def _orders(done: list[Done], case: str, pairs: list[tuple[str, str]]) -> str:
    """How many orders hold, and a row a pair."""
    rows, verdicts = [], []
    for better, worse in pairs:
        lines = [_told(measure, done, case, better, worse) for measure in MEASURES]
        verdicts += [verdict for _, verdict in lines]
        rows.append((f"{better} better than {worse}", *(cell for pair in lines for cell in pair)))
    if not rows:
        return "None of the pairs was run."
    hold, are_open, reversed_ = (verdicts.count(one) for one in (HOLDS, OPEN, REVERSED))
    head = ("order", "JCT, %", "holds", "deadline ratio, points", "holds", "accuracy ratio, points", "holds")
    said = f"Of {len(verdicts)} orders {hold} hold, {are_open} are open, {reversed_} are reversed."
    return f"{said}\n\n{grid(head, rows)}"


def _told(measure: Measure, done: list[Done], case: str, better: str, worse: str) -> tuple[str, str]:
    found = (relative if measure is JCT else apart)(measure, done, case, better, worse)
    return found.text(), found.verdict


def _times(done: list[Done], case: str, names: list[str]) -> str:
    """Milliseconds of a decision and seconds of a replay, in the draw where they are largest."""
    rows = []
    for name in names:
        own = [one.figures for one in done if (one.case, one.name) == (case, name)]
        ms, cpu_s = (max(one[key] for one in own) for key in (OVERHEAD.key, "cpu_s"))
        verdict = "yes" if ms <= MOST_MS and cpu_s <= MOST_CPU_S else "no"
        rows.append((name, number(ms), number(cpu_s, 0), verdict))
    head = ("policy", "decision, ms", "CPU of a replay, s", f"at most {MOST_MS:g} ms and {MOST_CPU_S:g} s")
    return grid(head, rows)
