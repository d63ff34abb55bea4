"""What may be asked of an enrichment: facts by name, and the settings of its rules."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from jobcast.domain.errors import ConfigError
from jobcast.domain.gpu_types import GPU_TYPES, known_type
from jobcast.traces.generators.settings import Setting, check_ranges, parse_settings, setting
from jobcast.traces.throughputs import REFERENCE_GPU

FACTS: Mapping[str, str] = {
    "speedups": "elastic jobs: speedups by model and GPUs; 1 GPU is the least, those asked for are the most",
    "training": "training jobs: model, batch size, epochs and adaptation; throughputs, data sets, true batch sizes",
    "goodput": "jobs that scale with their batch size: step times and gradient noise",
    "tasks": "jobs of tasks: task graphs, accuracy by epoch, target accuracies, due dates",
    "epochs": "seconds an epoch by model, batch size, GPU type and number of GPUs",
    "due": "due dates and weights",
    "limits": "time limits",
}
"""Facts by name, and what they are."""
MIXED, STATIC, ACCORDION, GNS = "mixed", "static", "accordion", "gns"


@dataclass(frozen=True, slots=True)
class EnrichConfig:
    """Settings of the rules."""

    reference: str = setting(REFERENCE_GPU, "type of GPU that durations are taken to hold on")
    gpu_types: str = setting("v100,p100,t4,k80", "types of GPU in the tables, NAME or NAME:SPEED, a V100's speed is 1")
    regimes: str = setting(MIXED, f"how batch sizes change: {STATIC}, {ACCORDION}, {GNS}, or {MIXED}: a third each")
    epochs: tuple[int, ...] = setting((5, 100), "fewest and most epochs of a job", 1, 10_000)
    due: tuple[float, ...] = setting((1.2, 3.0), "due dates, as multiples of the duration, uniform", 1, 1000)
    weights: tuple[int, ...] = setting((1, 10), "least and greatest weight, uniform whole numbers", 0, 1000)
    limit_factor: tuple[float, ...] = setting(
        (1.1, 3.0), "a time limit is the next usual one above so many durations, uniform", 1, 1000
    )

    def __post_init__(self) -> None:
        check_ranges(self)
        for name in ("epochs", "due", "weights", "limit_factor"):
            pair = getattr(self, name)
            if len(pair) != 2 or pair[0] > pair[1]:
                raise ValueError(f"{name} must be two ascending numbers, got {pair}")
        if self.regimes not in (MIXED, STATIC, ACCORDION, GNS):
            raise ValueError(f"regimes must be {MIXED}, {STATIC}, {ACCORDION} or {GNS}, got {self.regimes}")
        if self.reference.lower() not in self.speeds:
            raise ValueError(f"gpu_types must name the reference, {self.reference}; got {self.gpu_types}")

    @property
    def speeds(self) -> dict[str, float]:
        """Speed of a GPU over the reference's by type in small letters, the reference first. Raises ValueError."""
        of_v100 = dict(_type_and_speed(part) for part in self.gpu_types.lower().split(","))
        first = self.reference.lower()
        order = ([first] if first in of_v100 else []) + [name for name in of_v100 if name != first]
        return {name: of_v100[name] / of_v100[order[0]] for name in order}


def parse_enrich(settings: Mapping[str, Setting]) -> EnrichConfig:
    """Read settings. Raises ConfigError."""
    return parse_settings(EnrichConfig, settings, "trace enrich")


def parse_facts(words: Sequence[str]) -> tuple[str, ...]:
    """Names of facts, each once, in the order of `FACTS`. Raises ConfigError for one that is none."""
    asked = [word.strip() for word in words if word.strip()]
    for word in asked:
        if word not in FACTS:
            near = get_close_matches(word, FACTS, 1)
            hint = f"did you mean {near[0]}? known are" if near else "choose from"
            raise ConfigError(f"--facts {word}: is not known; {hint} {', '.join(FACTS)}")
    if not asked:
        raise ConfigError(f"--facts: names nothing; choose from {', '.join(FACTS)}")
    return tuple(name for name in FACTS if name in asked)


def _type_and_speed(part: str) -> tuple[str, float]:
    name, _, told = part.strip().partition(":")
    known = known_type(name)
    try:
        speed = float(told) if told else known.speed if known is not None else 0.0
    except ValueError:
        speed = 0.0
    if not name or not 0.0 < speed < float("inf"):
        raise ValueError(
            f"gpu_types must give a speed above 0 as in {name or 'a100'}:2.5, got {part.strip()!r}; known without are "
            f"{', '.join(GPU_TYPES)}"
        )
    return name, speed
