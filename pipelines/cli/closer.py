"""Where a page says how to look closer: the words of `simulate` that replay a row of its matrix."""

import shlex
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from jobcast.domain.times import iso
from jobcast.pipelines.cli.options import reading_words
from jobcast.pipelines.experiments.worlds import law_apart
from jobcast.schedulers.policies import KINDS, PolicySpec
from jobcast.schedulers.registry import find_policy

if TYPE_CHECKING:
    from jobcast.pipelines.cli.backtest_request import BacktestRequest
    from jobcast.pipelines.experiments.experiment import Experiment


def closer_words(
    request: "BacktestRequest", experiment: "Experiment", bases: Mapping[str, str], laws: Mapping[str, str]
) -> dict[str, str]:
    """By policy the words that name trace, window, cluster and world of its replay, and what it is compared with.

    None of a cluster that only a program knows.

    Parameters
    ----------
    bases : law -> the policy that its rows are compared with
    laws : policy -> the law that its jobs progress by
    """
    if experiment.cluster is not None and not experiment.named:
        return {}
    # The window is among them: predictors trained before it are refused of what came earlier.
    valued = {
        "--trace": experiment.trace.source.path,
        **{f"--{name}": value for name, value in experiment.named.items()},
        "--from": iso(experiment.from_s),
        "--until": iso(experiment.until_s),
        "--law": experiment.law,
        "--warmup": request.warmup_days or None,
        "--begin": "recorded" if experiment.recorded else None,
        "--max-think": experiment.max_think_s,
    }
    flags = {
        "--closed-loop": experiment.max_think_s is not None,
        "--drop-too-wide": experiment.drop_wide,
        "--pools-only": experiment.only_pools,
        "--allow-overlap": request.allow_overlap,
        "--degrade": request.degrade,
    }
    words = [word for option, value in valued.items() if value is not None for word in (option, str(value))]
    words += [*reading_words(), *(flag for flag, given in flags.items() if given)]
    return {
        policy: shlex.join(
            [*words, "--baseline", bases[law], *_facts(request.settings, experiment.law, policy, bases[law])]
        )
        for policy, law in laws.items()
        if law in bases
    }


def _facts(settings: Mapping[str, str], law: str | None, policy: str, baseline: str) -> Iterable[str]:
    """Settings that say what is replayed, of those that `simulate` takes of a policy beside its baseline."""
    costs, rest = law_apart(settings, law)
    known = {*_about_the_world(find_policy(policy)), *_about_the_world(find_policy(baseline))}
    facts = costs | {name: value for name, value in rest.items() if name in known}
    return [word for name, value in facts.items() for word in ("--set", f"{name}={value}")]


def _about_the_world(rule: PolicySpec) -> Iterable[str]:
    kind = KINDS[rule.kind]
    return [*kind.files.model_fields, *kind.site.model_fields]
