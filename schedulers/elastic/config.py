"""A configuration of PCS: queues, their thresholds and weights, and the caps on demand. PCS, section 3.1."""

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import inf, isfinite, isnan, nan
from pathlib import Path
from typing import Any

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.elastic import ElasticPolicy
from jobcast.domain.errors import ConfigError
from jobcast.domain.times import parse_time

# Characters of a weight that is written as a fraction.
LONGEST_FRACTION = 40
# Step by which a cap is relaxed where none is given.
DELTA = 0.1


@dataclass(frozen=True, slots=True)
class WfqConfig:
    """Queues by size.

    Attributes
    ----------
    thresholds : the largest size of each queue, seconds on one GPU, ascending, the last one infinite
    rates : weights of the queues, more than 0
    clip_demand_factor : least efficiency speedup(g) / g up to which a job may take GPUs, at first
    delta : by how much it is lowered while a queue cannot use its share
    type_rates : weights by GPU type, where they differ; W_1 .. W_k of section 3.3
    """

    thresholds: tuple[float, ...] = (inf,)
    rates: tuple[float, ...] = (1.0,)
    clip_demand_factor: float = 0.0
    delta: float = DELTA
    type_rates: Mapping[str, tuple[float, ...]] | None = None

    def numbers(self, types: Sequence[str], *, whole: bool = False, monotone: bool = False) -> Floats:
        """What the rule `wfq.pcs` reads, (5 + n_queues x (1 + n_types),).

        Parameters
        ----------
        types : names of the GPU types, in the order of the capacity
        whole : whole GPUs only, as a real cluster needs; the published runs deal out fractions
        monotone : caps as the paper's formula has them, not at the first crossing
        """
        by_type = self.type_rates or {}
        rates = [rate for name in types for rate in by_type.get(name, self.rates)]
        head = [float(len(self.rates)), self.clip_demand_factor, self.delta, float(whole), float(monotone)]
        return np.array([*head, *self.thresholds, *rates])

    def policy(self, types: Sequence[str] = ("",), *, whole: bool = False, monotone: bool = False) -> ElasticPolicy:
        """PCS under this configuration; arguments as of `numbers`."""
        from jobcast.schedulers.elastic.wfq import pcs
        from jobcast.schedulers.elastic.worst_case import PROMISES

        numbers = self.numbers(types, whole=whole, monotone=monotone)
        return ElasticPolicy("pcs", pcs, numbers, integral=whole, promises=PROMISES)

    def to_json(self) -> dict[str, Any]:
        """As a configuration file holds it."""
        result: dict[str, Any] = {
            "num_classes": len(self.rates),
            "class_thresholds": [value if isfinite(value) else "inf" for value in self.thresholds],
            "class_rates": list(self.rates),
            "clip_demand_factor": self.clip_demand_factor,
            "delta": self.delta,
        }
        if self.type_rates:
            result["type_rates"] = {name: list(rates) for name, rates in self.type_rates.items()}
        return result


def read_config(path: Path) -> WfqConfig:
    """A configuration from a file of one JSON object. Raises ConfigError that says what is wrong where."""
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"config {path}: cannot be read ({error.strerror}); check the path") from error
    except (ValueError, RecursionError) as error:  # ValueError: of JSON, of UTF-8, and of numbers of 5,000 digits
        raise ConfigError(f"config {path}: not valid JSON ({error}); correct it") from error
    return parse_config(saved, str(path))


def read_changes(path: Path) -> tuple[tuple[float, WfqConfig], ...]:
    """Configurations by the instant from which each holds, seconds from the epoch, in order of time.

    A CSV of from, as times are written everywhere, and config, a file as `read_config` takes it,
    looked for beside the CSV. Raises ConfigError that names the line.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"configs {path}: cannot be read ({error}); check the file") from error
    changes = tuple(_change(row, path, line) for line, row in enumerate(rows, 2))
    if not changes or any(here[0] >= later[0] for here, later in pairwise(changes)):
        raise ConfigError(
            f"configs {path}: needs lines of from,config, each from a later instant on than the one before"
        )
    return changes


def _change(row: Mapping[str, str | None], path: Path, line: int) -> tuple[float, WfqConfig]:
    result, config = row.get("from") or "", row.get("config") or ""
    if not config:
        raise ConfigError(f"configs {path}, line {line}: names no config; write from,config")
    return parse_time(result, f"configs {path}, line {line}, from"), read_config(path.parent / config)


def parse_config(given: Any, place: str) -> WfqConfig:
    """A configuration from a JSON object; keys that begin with _ and unknown ones are ignored.

    Raises ConfigError that names `place` and the key.
    """
    if not isinstance(given, Mapping):
        raise ConfigError(f"config {place}: a JSON object is expected, with num_classes, class_thresholds, class_rates")
    # The published file holds one object for each workload.
    if "class_thresholds" not in given and any(
        isinstance(v, Mapping) and "class_thresholds" in v for v in given.values()
    ):
        names = ", ".join(key for key, value in given.items() if isinstance(value, Mapping))
        raise ConfigError(f"config {place}: holds several configurations ({names}); write one of them to a file")
    missing = [key for key in ("class_thresholds", "class_rates") if not isinstance(given.get(key), list)]
    if missing:
        raise ConfigError(f"config {place}: {missing[0]} is missing or no list; give one entry a queue")
    thresholds = tuple(_number(value, f"config {place}, class_thresholds") for value in given["class_thresholds"])
    rates = _rates(given["class_rates"], f"config {place}, class_rates")
    queues = given.get("num_classes", len(rates))
    if not queues == len(thresholds) == len(rates) or not rates:
        raise ConfigError(
            f"config {place}: num_classes is {queues}, with {len(thresholds)} thresholds and {len(rates)} rates; "
            "give one of each a queue"
        )
    if list(thresholds) != sorted(thresholds) or thresholds[-1] != inf:
        raise ConfigError(f'config {place}: class_thresholds must ascend and end with "inf", got {list(thresholds)}')
    clip = _number(given.get("clip_demand_factor", 0.0), f"config {place}, clip_demand_factor")
    delta = _number(given.get("delta", DELTA), f"config {place}, delta")
    if clip < 0.0 or delta < 0.0:
        raise ConfigError(
            f"config {place}: clip_demand_factor and delta must be at least 0, got {clip:g} and {delta:g}"
        )
    type_rates = given.get("type_rates") or {}
    if not isinstance(type_rates, Mapping):
        raise ConfigError(f"config {place}, type_rates: an object is expected, a list of weights for each GPU type")
    by_type = {str(name): _rates(values, f"config {place}, type_rates, {name}") for name, values in type_rates.items()}
    wrong = [name for name, values in by_type.items() if len(values) != len(rates)]
    if wrong:
        raise ConfigError(f"config {place}, type_rates, {wrong[0]}: {len(rates)} weights are expected, one a queue")
    return WfqConfig(thresholds, rates, clip, delta, by_type or None)


def _rates(values: Any, place: str) -> tuple[float, ...]:
    if not isinstance(values, list):
        raise ConfigError(f"{place}: a list is expected, one weight a queue")
    rates = tuple(_rate(value, place) for value in values)
    if any(not 0.0 < rate < inf for rate in rates):
        raise ConfigError(f"{place}: weights must be more than 0, got {list(rates)}")
    return rates


def _rate(value: Any, place: str) -> float:
    """A weight: a number, or an object with a fraction as text under `frac`, else a number under `float`."""
    if not isinstance(value, Mapping):
        return _number(value, place)
    if "frac" not in value:
        return _number(value.get("float"), place)
    text = str(value["frac"])
    try:
        if len(text) > LONGEST_FRACTION or "e" in text.lower():  # Python would write 1e999999999 out, digit by digit
            raise ValueError("too long")
        return float(Fraction(text))
    except (ValueError, ZeroDivisionError) as error:
        raise ConfigError(f"{place}: {text!r} is no fraction; write it as 19/20") from error


def _number(value: Any, place: str) -> float:
    try:
        # JSON's true would count as 1.
        number = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else nan
    except (ValueError, OverflowError):
        number = nan
    if isnan(number):
        raise ConfigError(f"{place}: {value!r} is no number; correct it")
    return number
