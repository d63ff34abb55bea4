"""Learned schedulers of tasks, from the registry to the policy that runs them."""

from collections.abc import Mapping
from pathlib import Path

from jobcast.domain.errors import RegistryError
from jobcast.pipelines.forecast_specs import DEVICE_POLICY, MLF_POLICY, ForecastSpec

LEARNED: Mapping[str, str] = {"mlf_rl": MLF_POLICY, "device_rl": DEVICE_POLICY, "mlfs": MLF_POLICY}
"""Policy -> the predictor that it runs."""
SWITCHING = "mlfs"
"""Runs the heuristic until a learned policy was measured to be better. MLFS, section 3.4."""


def learned_policy(policy: str, spec: ForecastSpec, home: Path) -> tuple[object | None, dict[str, int]]:
    """What a policy has learned, None where it runs without, and the concrete version behind it.

    The version is the champion, or what `spec` names of the registry: an alias, or a version that it pins.

    Raises RegistryError where a policy cannot run without and none is registered.
    """
    from jobcast.models.registry import open_registry
    from jobcast.pipelines.sources import loaded_version
    from jobcast.schedulers.tasks.network import networks_of

    name = LEARNED.get(policy)
    if name is None:
        return None, {}
    registry = open_registry(home)
    if name not in {version.name for version in registry.list()}:
        if policy == SWITCHING:
            return None, {}
        raise RegistryError(
            f"policy {policy}: no {name} is registered; train one: `jobcast train {name} --trace FILE --set tasks=FILE "
            "--set curves=FILE`"
        )
    version = registry.resolve(name, dict(spec.versions).get(name, spec.alias))
    model = loaded_version(home, name, version.version)
    if policy == SWITCHING and not model.better_:
        return None, {}
    return networks_of(model.arrays_), {name: version.version}
