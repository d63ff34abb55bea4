"""`--set key=value`, numbers of options, and words of options: every policy's settings, every generator's.

`input_of(folder, KIND, SEED)` makes the words of one command again; the message of a failing test holds both.
"""

import random
from pathlib import Path

import pytest

from jobcast.schedulers.registry import BUILT_IN
from jobcast.traces.generators import GENERATORS
from tests.fuzz.command_line import FIGURES, JOBS, check_inputs
from tests.fuzz.mutations import WORDS, mutate_text
from tests.fuzz.test_fuzz_files import words_of

FEW, MANY = 50, 350
LEARNED = ("mlf_rl", "device_rl")
"""Policies that need weights that somebody trained."""
NUMBERS = (
    "0", "-0", "1", "-1", "0.5", "1.5", "60", "1e-9", "1e-300", "5e-324", "1e9", "1e30", "1e308", "1e400", "-1e400",
    "nan", "inf", "-inf", str(10**30), "9" * 5_000, "0x10", "1_000", "\u0663", "1,2", "5,60", "3,2,1", "1e5,1e6", "",
    " 7 ", "true", "false", "maybe", "2**31", str(2**31), str(2**63), str(2**64),
)  # fmt: skip
TINY = ("1e-9", "1e-300", "5e-324")
STEPS = ("round_s", "tick_s", "period_s", "grid_s", "lease_s", "interval_s")
WORDS_OF = {
    "order": ("share", "shortest", "narrow"), "mechanism": ("rounds", "gavel"), "solve": ("before", "beside"),
    "mode": ("lazy", "reactive"), "fill": ("centre", "water"), "unit": ("epochs", "steps"), "index": ("las", "gittins"),
    "tickets": ("equal", "width"), "caps": ("crossing", "monotone"), "evict": ("stay", "queue"),
}  # fmt: skip
POOLED = "simulate --trace jobs.csv --pools pools.csv --baseline none --policy"
ROUNDS = "simulate --trace training.csv --gpus 2 --baseline none --set throughputs=throughputs.csv --policy"
ELASTIC = "simulate --trace elastic.csv --gpus 4 --baseline none --policy"
TASKED = (
    "simulate --trace tasks.jobs.parquet --gpus 4 --baseline none --set tasks=tasks.parquet "
    "--set curves=curves.parquet --policy"
)
TIMED = (
    "simulate --trace energy.jobs.parquet --cluster energy.yaml --baseline none --set profiles=profiles.csv --policy"
)
OPTIONS = (
    *("--limit", "--seed", "--warmup", "--gpus", "--from", "--until", "--forecasts", "--baseline", "--max-think-min"),
    *("--pools", "--cluster", "--policy"),
)


COMMANDS = {"pools": POOLED, "rounds": ROUNDS, "elastic": ELASTIC, "tasks": TASKED, "energy": TIMED}
"""Of each kind of policies that these files do for."""


def _settings(spec):
    names = [name for part in ("own", "mechanism", "site") for name in spec.parts()[part].model_fields]
    return [*names, *(["noise"] if spec.kind == "elastic" else [])]


POLICIES = {
    f"{spec.kind} {name}": (f"{COMMANDS[spec.kind]} {name}", _settings(spec))
    for name, spec in BUILT_IN.items()
    if spec.kind in COMMANDS and name not in LEARNED
}
"""Name -> the command without settings, and the settings that there are."""
SMALL = {"jobs": "5", "weeks": "1", "pools": "2", "nodes": "2", "trials": "3", "apps": "2", "hours": "2"}
"""Of generators: sound values that keep a trace small where they are known."""
KINDS = {"policies": POLICIES, "generators": GENERATORS, "options": OPTIONS}


def value_of(rng: random.Random, key: str) -> str:
    """A value for a setting: a number that is hard to take, a word that fits, damage.

    Steps of time are no shorter than half a second: a run goes through all of them, and nobody waits for that.
    """
    kind = rng.random()
    if kind < 0.65:
        return rng.choice([number for number in NUMBERS if key not in STEPS or number not in TINY])
    if kind < 0.8:
        return rng.choice(WORDS_OF.get(key, ("true", "2")))
    return rng.choice((rng.choice(WORDS), mutate_text(rng.choice(NUMBERS[:12]), rng)[:3_000])).replace("\0", "")


def input_of(folder: Path, kind: str, seed: int) -> tuple[bytes, str, list[str]]:
    """The words of a command; no file is damaged."""
    rng = random.Random(f"{kind} {seed}")
    words = {"policies": _policy, "generators": _generator, "options": _option}[kind](rng, folder)
    return b"", "", ["--quiet", *words]


def _policy(rng: random.Random, folder: Path) -> list[str]:
    command, keys = POLICIES[rng.choice(sorted(POLICIES))]
    words = words_of(command, folder, "")
    for key in rng.sample(keys, min(len(keys), rng.choice((1, 1, 2, 3)))) or ["pace"]:
        words += ["--set", f"{key}={value_of(rng, key)}"]
    return [*words, *_outputs(rng, folder)]


def _generator(rng: random.Random, folder: Path) -> list[str]:
    kind = rng.choice(sorted(GENERATORS))
    keys = sorted(GENERATORS[kind].config_type.__dataclass_fields__)
    given = {key: value for key, value in SMALL.items() if key in keys}
    files = {"throughputs": "throughputs.csv", "trace": "elastic.csv", "speedups": "speedups.csv"}
    given |= {key: f"{folder}/{name}" for key, name in files.items() if key in keys}
    given |= {key: value_of(rng, key) for key in rng.sample(keys, rng.choice((1, 1, 2)))}
    pairs = [word for key, value in given.items() for word in ("--set", f"{key}={value}")]
    out = f"{folder}/out/jobs.{rng.choice(('csv', 'parquet'))}"
    seed = "1" if rng.random() < 0.8 else rng.choice(NUMBERS)
    return ["trace", "generate", kind, "--out", out, "--seed", seed, *pairs]


def _option(rng: random.Random, folder: Path) -> list[str]:
    command = rng.choice((f"{POOLED} fcfs", f"{POOLED} sia", f"{ELASTIC} srsf", f"{ROUNDS} srpt", f"{TIMED} edf"))
    words = words_of(command, folder, "")
    for option in rng.sample(OPTIONS, rng.choice((1, 1, 2))):
        value = rng.choice((*NUMBERS, *WORDS)).replace("\0", "")
        if option in ("--from", "--until"):
            value = rng.choice((value, "1970-01-01", "1970-01-01T00:01:00Z", "2024-02-30", "now", "1e18", "-5"))
        words += [option, value]
    return [*words, *_outputs(rng, folder)]


def _outputs(rng: random.Random, folder: Path) -> list[str]:
    out = ["--out", f"{folder}/out/{JOBS}"] if rng.random() < 0.3 else []
    return ["--json", f"{folder}/out/{FIGURES}", *out]


@pytest.mark.parametrize("seeds", [range(FEW), pytest.param(range(FEW, MANY), marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_settings_are_obeyed_or_refused_in_one_line(folder, at_home, kind, seeds):
    check_inputs(folder, input_of, kind, seeds)
