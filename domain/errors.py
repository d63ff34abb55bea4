"""Errors in the domain's words; each message says what is wrong, where, and what to do."""

from collections.abc import Callable, Iterable
from typing import Any


class JobcastError(Exception):
    """Root of all errors that jobcast raises on purpose."""


class UserError(JobcastError):
    """A mistake of the user's: one clear line, exit code 2."""


class TraceError(UserError):
    """A trace that cannot be read, or rows in it that cannot be used."""


class NoJobsError(TraceError):
    """A trace none of whose rows is a job that ran."""


class PoolsError(UserError):
    """A pools file that cannot be read, or that does not fit the trace."""


class ConfigError(UserError):
    """A parameter, option or file of settings that cannot be used."""


class TrainingError(UserError):
    """A trace that does not hold what a predictor needs to be trained or scored."""


class RegistryError(UserError):
    """A model, alias or version that the registry does not hold, or that does not fit what asks for it."""


class LedgerError(UserError):
    """A promise ledger that cannot be read or added to."""


class ClusterError(UserError):
    """A running cluster that does not answer, or refuses what it is asked."""


class PromotionError(UserError):
    """A version that did worse than the one whose place it would take."""


class OverlapError(UserError):
    """A model whose training data reach into the window that it is asked about."""


class MemoryLimitError(UserError):
    """Work that would need more memory than it may take, refused before it is asked for."""


class DecisionError(JobcastError):
    """A policy's answer that the cluster cannot carry out: a bug in the policy, not the user's mistake."""


def refuse_first(rules: Iterable[tuple[Any, str]], name: Callable[[int], str]) -> None:
    """Raise TraceError for the first rule that is broken anywhere, naming the first row that breaks it.

    `rules` : (boolean array of the rows that break it, what is wrong with such a row)
    """
    # In the order of the rules: later ones may mean nothing where an earlier one is broken.
    for broken, words in rules:
        if broken.any():
            raise TraceError(f"{name(int(broken.argmax()))} {words}")
