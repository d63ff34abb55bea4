"""Who is compared, by the names of the paper, and what each of them goes by."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jobcast.domain.errors import ConfigError, RegistryError
from jobcast.schedulers.registry import find_policy
from papers import bench
from papers.results import read_rows

BY_EARLIER, BY_MEASURED, EXACT, UNTOLD = "earlier", "measured", "oracle", "none"
"""Where forecasts of accuracies come from: a model of the curves of earlier jobs, one of measured curves of other
applications, the truth, nowhere."""
BY_MODEL = (BY_EARLIER, BY_MEASURED)
MLFS, MLFS_EXACT, MLF_RL, MLF_H = "MLFS", "MLFS, exact forecasts", "MLF-RL", "MLF-H"
MLFS_STRANGE, MLFS_HOPEFUL = "MLFS, forecasts from other applications", "MLFS, the same, never gives up"
MLF_H_C = "MLF-H with MLF-C"
GRAPHENE, TIRESIAS, HYPERSCHED, RL = "Graphene", "Tiresias", "HyperSched", "RL"
GANDIVA, TENSORFLOW, SLAQ, SRTF = "Gandiva", "TensorFlow (Borg)", "SLAQ", "SRTF"
BASELINES = (GRAPHENE, TIRESIAS, HYPERSCHED, RL, GANDIVA, TENSORFLOW, SLAQ)


@dataclass(frozen=True, slots=True)
class Row(bench.Row):
    """A policy, as it is run.

    Attributes
    ----------
    forecasts : `BY_EARLIER`, `BY_MEASURED`, `EXACT` or `UNTOLD`
    versions : (predictor, version) pairs of the registry that it runs
    """

    forecasts: str = UNTOLD
    versions: tuple[tuple[str, int], ...] = ()

    @property
    def facts(self) -> dict[str, Any]:
        """Its forecasts and versions."""
        return {"forecasts": self.forecasts, "versions": dict(self.versions)}


ROWS = tuple(
    Row(row["title"], row["policy"], bench.read_settings(row["settings"]), row["forecasts"])
    for row in read_rows(Path(__file__).with_suffix(".csv"))
)
POLICIES = tuple(dict.fromkeys(row.policy for row in ROWS))


def rows_of(home: Path, policies: Collection[str] = ()) -> tuple[tuple[Row, ...], tuple[str, ...]]:
    """Those that can be run, with the versions that they run, and a line on each that is left out or runs without.

    Parameters
    ----------
    home : whose registry holds learned policies
    policies : names to which the rows are confined; none: all

    Raises ConfigError for an unknown name.
    """
    unknown = [name for name in policies if name not in POLICIES]
    if unknown:
        raise ConfigError(f"--policies {unknown[0]}: no such policy; choose from {', '.join(POLICIES)}")
    rows, notes = [], []
    for row in ROWS:
        if policies and row.policy not in policies:
            continue
        try:
            rows.append(replace(row, versions=_versions(row.policy, home)))
        except RegistryError:
            name = find_policy(row.policy).learned
            notes.append(f"{row.title} is left out: no champion of {name} is registered, `jobcast train {name}`.")
    without = [row for row in rows if row.policy == "mlfs" and not row.versions]
    if without:
        notes.append(f"{MLFS} schedules by MLF-H: no learned policy is registered that was measured to be better.")
        rows = [row for row in rows if row.title != MLF_H_C]  # the same then
    return tuple(rows), tuple(notes)


def _versions(policy: str, home: Path) -> tuple[tuple[str, int], ...]:
    """The champion that a policy runs, if it runs one. Raises RegistryError where it cannot run without."""
    from jobcast.models.registry import open_registry
    from jobcast.pipelines.experiments.sources import loaded_version

    rule = find_policy(policy)
    name, alone = rule.learned, rule.instead == policy
    if not name:
        return ()
    try:
        version = open_registry(home).resolve(name).version
    except RegistryError:
        if alone:
            return ()
        raise
    if alone and not loaded_version(home, name, version).better_:
        return ()
    return ((name, version),)
