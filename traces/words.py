"""Made-up words for names that nobody else should read."""

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np
import polars as pl

from jobcast.domain.hardware import PoolsTable
from jobcast.traces.table import Trace

CONSONANTS, VOWELS = "bdfgklmnprstvz", "aeiou"
SYLLABLES = 4
NAMES = ("pool", "user", "tag", "account", "qos", "partition", "model", "gpu_type")
"""Columns whose values are names; words are drawn column by column, and pools' serve their quotas too."""
STATES = frozenset(
    (
        "boot_fail",
        "cancelled",
        "completed",
        "completing",
        "deadline",
        "fail",
        "failed",
        "killed",
        "node_fail",
        "out_of_memory",
        "pass",
        "passed",
        "pending",
        "preempted",
        "running",
        "succeeded",
        "suspended",
        "terminated",
        "timeout",
        "waiting",
    )
)
"""States that tell nothing but what became of a job; a site's own ones are left out."""
Words = Mapping[str, str]


def secret_seed() -> int:
    """A seed that nobody can guess: who knows it knows which word stands for which place in the list of all names."""
    return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])


def made_up_words(names: Collection[str], taken: Collection[str], rng: np.random.Generator) -> Words:
    """A word a name, drawn at random: neither their order nor their letters tell the name.

    Parameters
    ----------
    names : what to replace
    taken : texts that no word may hold or be part of
    rng : of the draw

    >>> made_up_words(["vision"], (), np.random.default_rng(0))
    {'vision': 'tepanaga'}
    """
    used = {text.casefold() for text in (*names, *taken) if text}
    words: dict[str, str] = {}
    for name in sorted(names):
        while True:
            letters = zip(rng.choice(list(CONSONANTS), SYLLABLES), rng.choice(list(VOWELS), SYLLABLES), strict=True)
            word = "".join(map("".join, letters))
            if not any(word == other or (len(other) > SYLLABLES and other in word) for other in used):
                break
        used.add(word)
        words[name] = word
    return words


def renamed(
    trace: Trace, pools: PoolsTable | None, rng: np.random.Generator
) -> tuple[Trace, PoolsTable | None, Mapping[str, Words]]:
    """A trace whose names are made-up words, its quotas under the same, and the words by column."""
    quotas = pools.quotas if pools else ()
    told = {name: set(trace.jobs[name].drop_nulls().unique()) for name in NAMES if name in trace.jobs.columns}
    told["pool"] |= {quota.pool for quota in quotas}
    taken: set[str] = set().union(*told.values())
    words: dict[str, Words] = {}
    for name, names in told.items():
        words[name] = made_up_words(names, taken, rng)
        taken |= set(words[name].values())
    columns = [pl.col(name).replace_strict(dict(made), default=None) for name, made in words.items() if made]
    table = PoolsTable(tuple(replace(quota, pool=words["pool"][quota.pool]) for quota in quotas)) if pools else None
    return replace(trace, jobs=trace.jobs.with_columns(columns)), table, words


def public_states(states: pl.Series) -> pl.Series:
    """States of `STATES`, in whatever case; null for others.

    >>> public_states(pl.Series(["COMPLETED", "killed by bob"])).to_list()
    ['COMPLETED', None]
    """
    known = states.str.to_lowercase().is_in(list(STATES))
    return pl.select(pl.when(known).then(states).alias(states.name)).to_series()
