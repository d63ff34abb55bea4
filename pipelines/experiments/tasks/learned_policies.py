"""Learned schedulers of tasks, from the registry to the policy that runs them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from jobcast.domain.bad_answers import BadAnswers
from jobcast.domain.errors import OverlapError, RegistryError
from jobcast.pipelines.experiments.forecast_specs import ForecastSpec
from jobcast.pipelines.experiments.sources import count_missing
from jobcast.pipelines.report.formatting import iso
from jobcast.schedulers.registry import find_policy
from jobcast.traces.table import Trace


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """What a policy has learned, the version behind it, and whether that saw the window.

    Attributes
    ----------
    networks : None where it runs without
    missed : whether it does so because there was nothing that could be used
    """

    networks: object | None = None
    models: Mapping[str, int] = field(default_factory=dict)
    overlap: bool = False
    missed: bool = False


def learned_or_missed(
    policy: str, spec: ForecastSpec, window: Trace, *, home: Path, allow_overlap: bool, tally: BadAnswers
) -> Learned:
    """As `learned_policy`, but where it would raise RegistryError, or a registry is damaged, that is counted."""
    try:
        return learned_policy(policy, spec, window, home=home, allow_overlap=allow_overlap)
    # Never degraded: it would hide that the answer is known.
    except OverlapError:
        raise
    except Exception as error:  # a registry may be damaged in any way: counted with its reason
        from jobcast.schedulers.tasks.mlf_rl import DECISIONS

        count_missing(tally, DECISIONS, error)
        return Learned(missed=True)


def learned_policy(policy: str, spec: ForecastSpec, window: Trace, *, home: Path, allow_overlap: bool) -> Learned:
    """What a policy has learned: the champion, or what `spec` names of the registry, an alias or a pinned version.

    Raises
    ------
    RegistryError
        The policy cannot run without, and none is registered.
    OverlapError
        It was trained on this trace, and on jobs of this window or later ones, and that is not allowed.
    """
    from jobcast.models.registry import open_registry
    from jobcast.pipelines.experiments.sources import loaded_version
    from jobcast.schedulers.tasks.learned_priorities import learned_from

    rule = find_policy(policy)
    # A policy that stands in for itself runs its heuristic until it has learned.
    name, alone = rule.learned, rule.instead == policy
    if not name or (alone and spec.versions and name not in dict(spec.versions)):
        return Learned()  # whoever pins versions means these alone
    registry = open_registry(home)
    if name not in {version.name for version in registry.list()}:
        if alone:
            return Learned()
        raise RegistryError(
            f"policy {policy}: no {name} is registered; train one: `jobcast train {name} --trace FILE --until TIME`, "
            "on jobs with --set tasks=FILE and curves=FILE or as `jobcast trace enrich --facts tasks` writes them"
        )
    version = registry.asked(*spec.pinned(name))
    model = loaded_version(home, name, version.version)
    # It runs the heuristic until a learned policy is better (MLFS, section 3.4), or one is named.
    if alone and not model.better_ and name not in dict(spec.versions):
        return Learned()
    overlap = version.trace_sha256 == window.source.sha256 and version.train_until_s > float(window.submit_s[0])
    if overlap and not allow_overlap:
        raise OverlapError(
            f"{name} version {version.version} was trained on jobs of this trace until {iso(version.train_until_s)}, "
            f"which reaches into the window from {iso(float(window.submit_s[0]))}; choose another version or a later "
            "--from, or pass --allow-overlap"
        )
    return Learned(learned_from(model.arrays_), {name: version.version}, overlap)
