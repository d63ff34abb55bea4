"""CPU seconds of simulations of every kind of job, and how many times as long as another checkout they take.

    JOBCAST_DATA=<folder of traces> python benchmarks/bench_engine.py [CASE ...] [--against PATH] [--repeat 3]

Philly's jobs from 2017-10-02 to 2017-11-12, a million drawn ones, the 2,465 elastic jobs of PCS with forecasts, 900 of
Shockwave, a week of MLFS and a campaign of ANDREAS on 100 nodes. With `--against` both trees run by turns, each in
processes of its own, and the ratio is that of the quickest runs. Exits with 1 where it is above the bar. What a process
compiles the first time is measured too, so take at least two repeats.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parents[1]
BAR = 1.15


class Case(NamedTuple):
    """A simulation: its command, and the topic whose files it needs."""

    topic: str
    words: str


MADE = {
    "philly": ("trace convert philly {data}/philly/philly_jobs.csv --out philly.parquet",),
    "pcs": ("trace convert pcs {data}/pcs/trace_0e4a51.csv --out pcs.parquet",),
    "shockwave": (
        "trace generate gavel --out jobs900.csv --regimes-out regimes900.csv --seed 1 --set jobs=900 --set gpus=256 "
        "--set throughputs={data}/shockwave/throughputs_tacc.csv",
    ),
    "mlfs": (
        "trace convert philly {data}/philly/philly_jobs.csv --out philly.parquet",
        "trace generate mlfs --out week.parquet --tasks-out tasks.parquet --curves-out curves.parquet --seed 1 "
        "--set jobs=620 --set arrivals=philly.parquet",
    ),
    "andreas": (
        "trace generate andreas --out campaign.parquet --profiles-out profiles.csv --cluster-out nodes.yaml --seed 1 "
        "--set nodes=100",
    ),
}
PHILLY = (
    "--trace philly.parquet --pools {data}/philly/pools_oct02_nov12.csv --pools-only --from 2017-10-02 "
    "--until 2017-11-13 --policy"
)
ROUNDS = (
    "--trace jobs900.csv --gpus 256 --set throughputs={data}/shockwave/throughputs_tacc.csv "
    "--set regimes=regimes900.csv --policy"
)
TASKS = "--trace week.parquet --gpus 80 --set tasks=tasks.parquet --set curves=curves.parquet --policy"
ENERGY = "--trace campaign.parquet --cluster nodes.yaml --set profiles=profiles.csv --forecasts oracle --policy"
CASES = {
    **{
        name: Case("philly", f"{PHILLY} {name} --forecasts oracle")
        for name in ("fcfs", "mmfs", "gssf", "sia", "sia_vc", "sia_risk")
    },
    "pcs": Case("pcs", "--trace pcs.parquet --gpus 64 --set speedups={data}/pcs/speedups.csv --policy srsf --predict"),
    "shockwave": Case("shockwave", f"{ROUNDS} shockwave --forecasts restatement --set time_limit_s=600"),
    "las": Case("shockwave", f"{ROUNDS} las"),
    "mlfs": Case("mlfs", f"{TASKS} mlfs --forecasts oracle"),
    "tiresias": Case("mlfs", f"{TASKS} tiresias"),
    "andreas": Case("andreas", f"{ENERGY} andreas --set max_iterations=100"),
    "edf": Case("andreas", f"{ENERGY} edf"),
}
GROWTH = {f"million {policy}": policy for policy in ("fcfs", "mmfs", "sia")}
"""Cases of `bench_growth.py`."""


def tree(path: Path) -> dict[str, str]:
    """Environment in which a checkout's package is the one that is imported."""
    return os.environ | {"PYTHONPATH": f"{path / 'src'}:{path}"}


def typed(words: str, data: str, folder: Path, env: dict[str, str]) -> None:
    """Run a command of jobcast in a folder."""
    command = [sys.executable, "-m", "jobcast", *words.format(data=data).split()]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{words}: {done.stderr.strip()}")


def cpu_s(case: str, data: str, folder: Path, env: dict[str, str]) -> float:
    """CPU seconds of one run of a case in a process of its own."""
    if case in GROWTH:
        script = "import json, sys, bench_growth as b; print(json.dumps(b.one_run(sys.argv[1], 1_000_000, 16, 0)))"
        path = f"{env['PYTHONPATH']}:{env['PYTHONPATH'].split(':')[1]}/benchmarks"
        command = [sys.executable, "-c", script, GROWTH[case]]
        result = subprocess.run(command, env=env | {"PYTHONPATH": path}, check=True, capture_output=True, text=True)
        found = json.loads(result.stdout)
    else:
        typed(f"simulate {CASES[case].words} --baseline none --json told.json", data, folder, env)
        found = json.loads((folder / "told.json").read_text())
    return float(found["cpu_s"])


def main() -> int:
    """Print one row a case."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("cases", nargs="*", help=f"of {', '.join((*CASES, *GROWTH))}; all by default")
    asked.add_argument("--against", type=Path, help="another checkout")
    asked.add_argument("--repeat", type=int, default=3)
    given = asked.parse_args()
    if unknown := [case for case in given.cases if case not in (*CASES, *GROWTH)]:
        asked.error(f"no such case: {', '.join(unknown)}; give any of {', '.join((*CASES, *GROWTH))}")
    data = os.environ.get("JOBCAST_DATA")
    if not data:
        sys.exit("JOBCAST_DATA is not set: the benchmark needs the folder that holds philly/, pcs/ and shockwave/")
    trees = [HERE] if given.against is None else [HERE, given.against.resolve()]
    missed, made = 0, set()
    with tempfile.TemporaryDirectory() as name:
        for case in given.cases or (*CASES, *GROWTH):
            for words in () if case in GROWTH else MADE[CASES[case].topic]:
                if words not in made:
                    typed(words, data, Path(name), tree(trees[-1]))
                    made.add(words)
            runs = [[cpu_s(case, data, Path(name), tree(path)) for path in trees] for _ in range(given.repeat)]
            best = [min(of_tree) for of_tree in zip(*runs, strict=True)]
            ratio = f"{best[0] / best[1]:6.2f}" if len(best) > 1 else ""
            missed += len(best) > 1 and best[0] / best[1] > BAR
            print(f"{case:14}" + "".join(f"{seconds:9.2f} s" for seconds in best) + f"  {ratio}", flush=True)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
