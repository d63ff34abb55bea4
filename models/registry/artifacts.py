"""MLflow's door to our artifacts: `jobcast:/artifacts/...`, resolved against the home at the time of use.

MLflow finds it through the entry point group `mlflow.artifact_repository`, so that `mlflow ui` and
`mlflow models serve` see the same files.
"""

from typing import Any

from mlflow.store.artifact.local_artifact_repo import LocalArtifactRepository

from jobcast.models.registry.home import SCHEME, artifact_folder, home_of_database, shared_artifact_folder


class JobcastArtifactRepository(LocalArtifactRepository):
    """Local files whose place follows the store: beside the tracking database, else where artifacts are shared."""

    def __init__(self, artifact_uri: str, tracking_uri: str | None = None, registry_uri: str | None = None) -> None:
        home = home_of_database(tracking_uri) or home_of_database(registry_uri)
        folder = artifact_folder(home, artifact_uri) if home else shared_artifact_folder(artifact_uri)
        super().__init__(folder.as_uri(), tracking_uri, registry_uri)


def register_scheme() -> None:
    """Make the scheme known in this process, where the entry point is not installed."""
    from mlflow.store.artifact import artifact_repository_registry

    known: Any = artifact_repository_registry._artifact_repository_registry
    known.register(SCHEME, JobcastArtifactRepository)
