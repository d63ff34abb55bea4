"""Commands that are killed, terminated, or run out of disk at any moment: what is lost, and what is left behind.

    python benchmarks/crash_trials.py --work DIR [--trials 100] [--seed 0] [--stages run train] [--kinds kill term]

A campus of 700 jobs and a store with two versions of a predictor are made once in DIR. A trial copies them onto a file
system of its own in memory (mounting needs root), starts one of the commands, and disturbs it: `kill` -9 of the process
or of its whole group, `term` SIGTERM of either, `full` a file system with room for a part of what the command writes,
`readonly` one that may no longer be written to, from the start or from some moment. Moments are drawn from the seed,
or aimed: at the row of a run in the store, at the first draft of an output, at the lock. Then the same command is given
once more, undisturbed. Checked:

- right after: the database is whole, no version is lost or damaged, the aliases point where they did or where they
  should, outputs are whole or absent; a command that was terminated or had no room ends by itself with one line and its
  exit code;
- after the next start: it ends well, outputs equal those of an undisturbed run, no run is marked as running, there is
  no draft, no lock, no model without a version, no temporary file.

DIR/trials.jsonl keeps each trial; the same command goes on where it stopped. Exits with 1 when a check failed.
"""

import argparse
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

KINDS = ("kill", "term", "full", "readonly")
WEIGHTS = {"run": 0.08, "train": 0.24, "retrain": 0.18, "promote": 0.16, "backtest": 0.17, "search": 0.17}
SHARES = {"kill": 0.45, "term": 0.2, "full": 0.2, "readonly": 0.15}
TRAINED_UNTIL = "2024-01-05T00:00:00Z"
PARAMS = """\
prepare: {min_pool_jobs: 50}
featurize: {horizons_min: [5, 60], step_s: 1800.0, min_train_jobs: 50}
train:
  will_jobs_arrive: {algorithms: [lightgbm]}
  new_load: {algorithms: [sliding-max]}
  job_duration: {algorithms: [tag-pool-width]}
backtest:
  cells: [{policy: fcfs}, {policy: sia, forecasts: [oracle, registry]}]
  seeds: 1
  draws: 100
learn:
  regime: {algorithms: []}
  accuracy_curve: {algorithms: []}
  epoch_time: {algorithms: []}
  completion_time: {algorithms: []}
  job_size: {algorithms: []}
  goodput: {algorithms: []}
  queue_wait: {algorithms: []}
schedule:
  mlf_policy: {algorithms: []}
  device_rl: {algorithms: []}
"""
ALGORITHMS = {"new-load": "sliding-max", "will-jobs-arrive": "lightgbm", "job-duration": "tag-pool-width"}
"""As above: what is learned at once."""
TRAIN = ("new-load", "--algorithm", "sliding-max", "--trace", "{work}/week.parquet", "--min-jobs", "50")
TRAIN = ("train", *TRAIN, "--horizons", "5,60", "--json", "{out}/figures.json")
WINDOW = ("--trace", "{work}/week.parquet", "--pools", "{work}/pools.csv")
COMMANDS: dict[str, tuple[str, ...]] = {
    "run": ("run", *WINDOW, "--params", "{work}/params.yaml", "--out", "{out}/run"),
    "train": (*TRAIN, "--until", TRAINED_UNTIL, "--coverage", "0.8"),
    "retrain": (*TRAIN, "--retrain", "2d", "--first", "0.3"),
    "promote": ("models", "promote", "new-load:2", *WINDOW, "--json", "{out}/figures.json"),
    "backtest": (
        *("backtest", *WINDOW, "--from", TRAINED_UNTIL, "--policies", "fcfs,sia", "--forecasts", "oracle,registry"),
        *("--jobs", "2", "--out", "{out}/backtest", "--json", "{out}/figures.json"),
    ),
    "search": (
        *("search", "pcs", "--trace", "{work}/week.parquet", "--gpus", "16", "--evaluations", "24", "--samples", "1"),
        *("--test-samples", "1", "--sample-jobs", "60", "--jobs", "2", "--out", "{out}/front.parquet"),
    ),
}
ALIASES = {"train": ("1", "3"), "retrain": ("1", "5"), "promote": ("2", "2"), "run": ("1", "2")}
"""Champion and challenger of new-load when a command has ended, by number, where it changes them."""
VARYING = (
    "run_id",
    "wall_s",
    "cpu_s",
    "home",
    "path",
    "version",
    "versions",
    "new",
    "aliases",
    "registered_now",
    "compared",
    "against",
)
"""Keys of figures that tell which version it was or where, and so differ when a command is given twice."""
ROOM = 64_000_000  # bytes of a trial's file system where there is no want
PATIENCE_S = 600.0
AIMS = ("run row", "draft", "lock")
CODES = {"term": 128 + signal.SIGTERM, "full": 2, "readonly": 2}
NEEDLES = {"term": "terminated", "full": "no space left", "readonly": "read-only"}


@dataclass
class Trial:
    """What was done to which command, and every check that failed."""

    number: int
    stage: str
    kind: str
    moment: str
    disturbed: bool = False
    code: int = 0
    failed: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Bench:
    """The file system of a trial: home, outputs and temporary files on one device."""

    def __init__(self, work: Path) -> None:
        self.work, self.place = work, work / "device"
        self.home, self.out, self.temporary = (self.place / name for name in ("home", "out", "temporary"))

    @contextmanager
    def mounted(self) -> Iterator[None]:
        """A device in memory with a copy of the template's home."""
        self.place.mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", self.place], check=True)
        try:
            for folder in (self.out, self.temporary):
                folder.mkdir()
            shutil.copytree(self.work / "template", self.home)
            yield
        finally:
            subprocess.run(["umount", "-l", self.place], check=True)

    def remount(self, option: str) -> bool:
        """Whether the device took a new option; it is busy while somebody writes and is to be read-only."""
        done = subprocess.run(["mount", "-o", f"remount,{option}", self.place], capture_output=True, check=False)
        return done.returncode == 0

    def used(self) -> int:
        """Bytes that the device holds."""
        result = os.statvfs(self.place)
        return (result.f_blocks - result.f_bfree) * result.f_frsize

    def start(self, stage: str) -> subprocess.Popen[bytes]:
        """One of the commands, in a process group of its own; what it says goes to files off the device."""
        words = [word.format(work=self.work, out=self.out) for word in COMMANDS[stage]]
        environ = {**os.environ, "JOBCAST_HOME": str(self.home), "TMPDIR": str(self.temporary)}
        with (self.work / "stdout").open("wb") as out, (self.work / "stderr").open("wb") as err:
            return subprocess.Popen(
                [sys.executable, "-m", "jobcast", *words], stdout=out, stderr=err, env=environ, start_new_session=True
            )

    def said(self) -> str:
        """What the last command said on its standard error."""
        return (self.work / "stderr").read_text(errors="replace")


def database(home: Path, query: str) -> list[tuple[Any, ...]]:
    """Answers of the store's database; none where there is none yet."""
    file = home / "mlruns" / "mlflow.db"
    if not file.exists():
        return []
    connection = sqlite3.connect(file, timeout=60)
    try:
        return list(connection.execute(query))
    finally:
        connection.close()


def prepare(bench: Bench, stages: Sequence[str]) -> dict[str, float]:
    """Make the trace and the template, then outputs and seconds of each of some commands undisturbed, once."""
    kept = bench.work / "reference.json"
    if not kept.exists():
        make_template(bench.work)
        kept.write_text("{}")
    seconds: dict[str, float] = json.loads(kept.read_text())
    for stage in stages:
        if stage in seconds:
            continue
        with bench.mounted():
            before, began = bench.used(), time.monotonic()
            if bench.start(stage).wait(PATIENCE_S):
                raise SystemExit(f"{stage}, undisturbed: {bench.said()}")
            seconds[stage] = time.monotonic() - began
            seconds[f"{stage} bytes"] = bench.used() - before
            shutil.copytree(bench.out, bench.work / "reference" / stage, dirs_exist_ok=True)
        kept.write_text(json.dumps(seconds))
    return seconds


def make_template(work: Path) -> None:
    """The trace, and a home with two versions of new-load and one of the others."""
    work.mkdir(parents=True, exist_ok=True)
    (work / "params.yaml").write_text(PARAMS)
    jobcast = [sys.executable, "-m", "jobcast", "--quiet"]
    made = ["--out", work / "week.parquet", "--pools-out", work / "pools.csv"]
    sizes = [word for pair in ("weeks=1", "pools=2", "jobs=700", "widest=8") for word in ("--set", pair)]
    subprocess.run([*jobcast, "trace", "generate", "campus", *made, *sizes], check=True)
    environ = {**os.environ, "JOBCAST_HOME": str(work / "template")}
    for coverage in ("0.95", "0.9"):
        for predictor, algorithm in ALGORITHMS.items():
            if predictor == "new-load" or coverage == "0.95":
                words = [word.format(work=work, out=work) for word in TRAIN]
                words[1], words[3] = predictor, algorithm
                given = ["--until", TRAINED_UNTIL, "--coverage", coverage]
                subprocess.run([*jobcast, *words, *given], check=True, env=environ, stdout=subprocess.DEVNULL)


def outputs(folder: Path) -> dict[str, Any]:
    """What a command wrote, by name, without what may differ when it is given twice."""
    found: dict[str, Any] = {}
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = file.relative_to(folder).as_posix()
        if "receipts/" in name or name.endswith(("report.html", ".journal.jsonl")):
            continue
        if file.suffix == ".json":
            found[name] = _plain(json.loads(file.read_text()))
        elif file.suffix == ".parquet":
            found[name] = pl.read_parquet(file).rows()  # a front's metadata tell how many simulations were resumed
        else:
            found[name] = file.read_bytes()
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items() if key not in VARYING}
    return [_plain(one) for one in value] if isinstance(value, list) else value


def check_store(bench: Bench, stage: str, ended: bool) -> Iterator[str]:
    """What is wrong with the store, after a disturbance or (`ended`) after a command that ended well."""
    from jobcast.domain.errors import JobcastError
    from jobcast.models.registry import open_registry

    if (result := database(bench.home, "PRAGMA integrity_check")) != [("ok",)]:
        yield f"integrity: {result}"
    registry = open_registry(bench.home)
    versions = registry.list()
    if lost := {str(version) for version in open_registry(bench.work / "template").list()} - set(map(str, versions)):
        yield f"lost: {sorted(lost)}"
    for version in versions:
        try:
            registry.load(version)
        except JobcastError as error:
            yield f"{version}: {error}"
    aliases = registry.show("new-load").aliases
    champion, challenger = ALIASES.get(stage, ("1", "2"))
    newest = str(registry.show("new-load").versions[0].version)
    right = {("1", "2"), ("1", newest), (champion, challenger), (champion, newest)}
    have = (str(aliases.get("champion")), str(aliases.get("challenger")))
    if have not in right or (ended and (have[0] != champion or have[1] != newest)):
        yield f"aliases: {have}, of {newest} versions"


def champion_of(bench: Bench) -> str:
    """The version of new-load that is champion."""
    query = "SELECT version FROM registered_model_aliases WHERE name = 'new-load' AND alias = 'champion'"
    return str(database(bench.home, query)[0][0])


def check_clean(bench: Bench) -> Iterator[str]:
    """What is left behind, after the next start."""
    if running := database(bench.home, "SELECT run_uuid FROM runs WHERE status = 'RUNNING'"):
        yield f"running: {len(running)}"
    hidden = [path for root in (bench.home, bench.out) for path in root.rglob(".*")]
    if hidden or (hidden := list(bench.temporary.iterdir())):
        yield f"left: {', '.join(path.relative_to(bench.place).as_posix() for path in hidden)}"
    known = {uri.split("/")[-2] for (uri,) in database(bench.home, "SELECT source FROM model_versions")}
    folders = {path.name for path in bench.home.glob("mlruns/artifacts/*/models/*")}
    if stray := folders - known:
        yield f"models without version: {len(stray)}"


def check_words(bench: Bench, trial: Trial) -> Iterator[str]:
    """What a command that ended by itself should have said."""
    said = bench.said()
    if trial.kind == "term" and trial.code == -signal.SIGTERM and not said:
        return  # Python was still starting: nothing had begun
    lines = [line for line in said.splitlines() if line.startswith("jobcast:")]
    if trial.code != CODES[trial.kind]:
        yield f"code {trial.code}: {said[-300:]}"
    elif "Traceback" in said or len(lines) != 1 or NEEDLES[trial.kind] not in lines[0].lower():
        yield f"words: {said[-500:]}"


def wait_for(happened: Callable[[], bool], process: subprocess.Popen[bytes], every_s: float = 0.002) -> bool:
    """Whether it happened before the process ended."""
    until = time.monotonic() + PATIENCE_S
    while process.poll() is None and time.monotonic() < until:
        if happened():
            return True
        time.sleep(every_s)
    return False


def sign_of(bench: Bench, aim: str) -> Callable[[], bool]:
    """Whether an aim has come."""
    if aim == "run row":
        return lambda: bool(database(bench.home, "SELECT 1 FROM runs WHERE status = 'RUNNING'"))
    if aim == "lock":
        return (bench.home / "mlruns" / ".lock").exists
    return lambda: any(True for root in (bench.out, bench.home / "mlruns") for _ in root.rglob(".*.*.*"))


def disturb(bench: Bench, trial: Trial, process: subprocess.Popen[bytes], rng: np.random.Generator) -> bool:
    """Do it once the moment has come; whether the command was still there."""
    aim, _, after = trial.moment.partition(" + ")
    if aim in AIMS and not wait_for(sign_of(bench, aim), process):
        return False
    begun = time.monotonic()
    wait_for(lambda: time.monotonic() - begun >= float(after.split()[0]), process)
    if trial.kind == "readonly":
        return wait_for(lambda: bench.remount("ro"), process)
    if process.poll() is not None:
        return False
    number = signal.SIGKILL if trial.kind == "kill" else signal.SIGTERM
    if rng.random() < 0.5:
        os.killpg(process.pid, number)
    else:
        os.kill(process.pid, number)
    return True


def run_trial(bench: Bench, trial: Trial, reference: dict[str, float], rng: np.random.Generator) -> None:
    """A disturbed command, its checks, the next start, and the checks of that."""
    began = time.monotonic()
    with bench.mounted():
        if trial.kind == "full":
            bench.remount(f"size={int(bench.used() + float(trial.moment.split()[0]) * 1000)}")
        process = bench.start(trial.stage)
        trial.disturbed = trial.kind == "full" or disturb(bench, trial, process, rng)
        trial.code = process.wait(PATIENCE_S)
        ended = trial.code == 0
        trial.disturbed = trial.disturbed and not ended
        bench.remount(f"rw,size={ROOM}")
        trial.failed += check_store(bench, trial.stage, ended)
        if trial.kind != "kill" and not ended:
            trial.failed += check_words(bench, trial)
        partial, whole = outputs(bench.out), outputs(bench.work / "reference" / trial.stage)
        trial.failed += [
            f"half: {name}" for name in partial if "/." not in f"/{name}" and partial[name] != whole.get(name)
        ]
        settled = trial.stage == "promote" and champion_of(bench) == "2"  # then there is nothing to compare any more
        if code := bench.start(trial.stage).wait(PATIENCE_S):
            trial.failed.append(f"next start, code {code}: {bench.said()[-500:]}")
        trial.failed += check_store(bench, trial.stage, True)
        trial.failed += check_clean(bench)
        again = outputs(bench.out)
        if not settled:
            names = sorted(whole.keys() | again.keys())
            trial.failed += [f"differs: {name}" for name in names if whole.get(name) != again.get(name)]
    trial.seconds = round(time.monotonic() - began, 1)


def drawn(number: int, args: argparse.Namespace, reference: dict[str, float]) -> tuple[Trial, np.random.Generator]:
    """What a trial does, from the seed and its number."""
    rng = np.random.default_rng([args.seed, number])
    stages = np.array([WEIGHTS[stage] for stage in args.stages])
    kinds = np.array([SHARES[kind] for kind in args.kinds])
    stage = str(rng.choice(args.stages, p=stages / stages.sum()))
    kind = str(rng.choice(args.kinds, p=kinds / kinds.sum()))
    writes_store = stage in ("run", "train", "retrain", "promote")
    if kind == "full":
        moment = f"{rng.uniform(0, 0.9) * reference[f'{stage} bytes'] / 1000:.0f} kB free"
    elif kind == "readonly" and rng.random() < 0.3:
        moment = "start + 0.000 s"
    elif rng.random() < 0.5:
        aim = str(rng.choice(AIMS if writes_store else ["draft"]))
        moment = f"{aim} + {rng.choice([0.0, rng.uniform(0, 1.0)]):.3f} s"
    else:
        moment = f"start + {rng.uniform(0.05, 1.0) * reference[stage]:.3f} s"
    return Trial(number, stage, kind, moment), rng


def table(trials: list[Trial]) -> str:
    """Trials by command and kind: how many, how many hit a running command, how many failed a check."""
    lines = [f"{'':10}" + "".join(f"{kind:>18}" for kind in KINDS) + f"{'all':>18}"]
    for stage in (*COMMANDS, "all"):
        cells = []
        for kind in (*KINDS, "all"):
            some = [one for one in trials if stage in (one.stage, "all") and kind in (one.kind, "all")]
            cells.append(
                f"{len(some)} / {sum(one.disturbed for one in some)} / {sum(bool(one.failed) for one in some)}"
            )
        lines.append(f"{stage:10}" + "".join(f"{cell:>18}" for cell in cells))
    return "\n".join([*lines, "trials / that hit a running command / that failed a check"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="Number of the first trial.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--stages", nargs="+", choices=list(COMMANDS), default=list(COMMANDS))
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    args = parser.parse_args()
    bench = Bench(args.work.resolve())
    reference = prepare(bench, args.stages)
    journal = bench.work / "trials.jsonl"
    done = [Trial(**json.loads(line)) for line in journal.read_text().splitlines()] if journal.exists() else []
    for number in sorted(set(range(args.first, args.first + args.trials)) - {trial.number for trial in done}):
        trial, rng = drawn(number, args, reference)
        run_trial(bench, trial, reference, rng)
        done.append(trial)
        with journal.open("a") as lines:
            lines.write(json.dumps(trial.__dict__) + "\n")
        what = "; ".join(trial.failed) or ("ok" if trial.disturbed else "ok, ended first")
        print(
            f"{number:4} {trial.stage:9}{trial.kind:9}{trial.moment:24}{trial.code:4} {trial.seconds:6} s  {what}",
            flush=True,
        )
    print(table(done))
    sys.exit(any(trial.failed for trial in done))


if __name__ == "__main__":
    main()
