"""How often the main job ends with champions on campuses of 2,000 to 15,000 jobs, and what these do there.

Each campus goes through the stages of `jobcast run` that decide (all but evaluate and report), in a home of its own,
with the default parameters, one algorithm a predictor. A row a campus is kept in --rows: a bench that was stopped goes
on where it was. Writes `docs/gate/campuses.md`; exits with 1 when a bar is missed: at least 7 of 10 have champions;
every champion slows at most 1 % of the test window's jobs and is at least 1.2 times as fast.

    python benchmarks/bench_gate.py
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jobcast.pipelines.report.console import Console
from jobcast.pipelines.report.files import read_json
from jobcast.pipelines.stages.config import Arrivals, Backtest, Cells, Durations, Loads, Params, Prepare, Train
from jobcast.pipelines.stages.context import Context
from jobcast.pipelines.stages.plan import steps

POOLS, WEEKS = 3, 4
SIZES = (2000, 4000, 7000, 10_000, 15_000)
"""Jobs of a campus; the generator's defaults otherwise."""
SEEDS = 10
LEAST_CHAMPIONS = 0.7
MOST_SLOWED_PCT, LEAST_SPEEDUP = 1.0, 1.2
LEFT_OUT = ("evaluate", "report")
FOLDER = Path(__file__).resolve().parent.parent
PAGE = FOLDER / "docs" / "gate" / "campuses.md"
ROWS = FOLDER / "docs" / "gate" / "campuses.jsonl"
Row = Mapping[str, Any]


def campus(jobs: int, pools: int, weeks: int, seed: int) -> Row:
    """What the main job makes of one campus."""
    params = Params(
        prepare=Prepare(trace="campus", seed=seed, settings={"jobs": jobs, "pools": pools, "weeks": weeks}),
        train=Train(
            will_jobs_arrive=Arrivals(algorithms=("average",)),
            new_load=Loads(algorithms=("quantile",)),
            job_duration=Durations(algorithms=("blended",)),
        ),
        backtest=Backtest(cells=(Cells(policy="sia", forecasts=("registry", "conservative")),)),
    )
    with tempfile.TemporaryDirectory(prefix="jobcast-gate-") as room:
        context = Context(params, Path(room) / "out", Path(room) / "home", Console())
        for stage, item in steps():
            if stage.name not in LEFT_OUT:
                stage.work(context, item)
        result = read_json(context.root / "processed/promotion.json")
        split = read_json(context.root / "interim/split.json")
    return {"jobs": split["jobs"], "asked": [jobs, pools, weeks, seed], **result}


def campuses(seeds: int, first_seed: int) -> list[tuple[int, int, int, int]]:
    """Jobs, pools, weeks and seed of each: the sizes take turns by seed."""
    return [(SIZES[seed % len(SIZES)], POOLS, WEEKS, seed) for seed in range(first_seed, first_seed + seeds)]


def line(row: Row) -> str:
    """A row of the table: of the last care tried, which became champion if any did."""
    last, (_, pools, weeks, seed) = row["tries"][-1], row["asked"]
    slowed = f"{last['slowed_pct']:.2f} ({last['slowed_pct_low']:.2f} to {last['slowed_pct_high']:.2f})"
    speedup = f"{last['speedup']:.2f} ({last['speedup_low']:.2f} to {last['speedup_high']:.2f})"
    first = f"{row['tries'][0]['slowed_pct']:.2f}, {row['tries'][0]['speedup']:.2f}"
    care = ", ".join(f"{value:g}" for value in last["care"].values())
    kept = "yes" if row["passed"] else "no"
    return (
        f"| {seed} | {row['jobs']:,} | {pools} | {weeks} | {last['jobs']:,} | {first} | {len(row['tries'])} | {kept} "
        f"| {slowed} | {speedup} | {care} |"
    )


def page(rows: Sequence[Row]) -> str:
    """Markdown."""
    passed = [row["tries"][-1] for row in rows if row["passed"]]
    head = (
        "| seed | jobs | pools | weeks | jobs tested | first try: slowed (%), speedup | tries | champion "
        "| slowed (%, 95 %) | speedup (95 %) | care |"
    )
    found = f"{len(passed)} of {len(rows)} campuses have champions."
    if passed:
        worst, least = max(one["slowed_pct"] for one in passed), min(one["speedup"] for one in passed)
        found += (
            f" These slow at most {worst:.2f} % of the test window's jobs and are at least {least:.2f} times as fast."
        )
    return "\n".join(
        [
            "# How often small campuses have champions",
            "",
            "`python benchmarks/bench_gate.py` sends campuses through the main job with its default parameters. The",
            "care of the forecasts is chosen on the end of the training time; the test window then lets a trio of",
            "predictors pass or not, and up to six cares are tried there in an order fixed before. Where more than one",
            "was tried, its figures are the best of a choice on that very window, and flatter it. Slowed and speedup",
            "are those of `sia` against lending nothing; care is the gate's miss share, the share of load windows",
            "that reservations cover, and the cost of a short duration bin.",
            "",
            found,
            "",
            head,
            "| ---: " * 11 + "|",
            *map(line, rows),
            "",
        ]
    )


def bars_of(rows: Sequence[Row]) -> dict[str, bool]:
    """Each bar with the figure that decides it, and whether it is met."""
    passed = [row["tries"][-1] for row in rows if row["passed"]]
    worst = max((one["slowed_pct"] for one in passed), default=0.0)
    least = min((one["speedup"] for one in passed), default=0.0)
    return {
        f"champions on at least {LEAST_CHAMPIONS:.0%}: {len(passed)} of {len(rows)}": len(passed)
        >= LEAST_CHAMPIONS * len(rows),
        f"every champion slows at most {MOST_SLOWED_PCT:g} %: {worst:.2f}": worst <= MOST_SLOWED_PCT,
        f"every champion speeds up by {LEAST_SPEEDUP:g}: {least:.2f}": least >= LEAST_SPEEDUP,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many campuses")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--rows", type=Path, default=ROWS, help="a row a campus, kept between calls")
    parser.add_argument("--page", type=Path, default=PAGE)
    asked = parser.parse_args()
    asked.rows.parent.mkdir(parents=True, exist_ok=True)
    known = [json.loads(text) for text in asked.rows.read_text().splitlines()] if asked.rows.is_file() else []
    wanted = [list(one) for one in campuses(asked.seeds, asked.first_seed)]
    for one in wanted:
        if one not in [row["asked"] for row in known]:
            known.append(campus(*one))
            with asked.rows.open("a", encoding="utf-8") as file:
                file.write(json.dumps(known[-1]) + "\n")
            print(line(known[-1]), flush=True)
    rows = [next(row for row in known if row["asked"] == one) for one in wanted]
    asked.page.parent.mkdir(parents=True, exist_ok=True)
    asked.page.write_text(page(rows), encoding="utf-8")
    bars = bars_of(rows)
    for bar, met in bars.items():
        print(f"{'met   ' if met else 'MISSED'}  {bar}")
    return 0 if all(bars.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
