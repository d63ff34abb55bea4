"""The one door to MLflow: register, look up, load, promote and export versions of predictors."""

from jobcast.models.registry.cards import ModelCard, ModelVersion, RegisteredModel, content_sha256
from jobcast.models.registry.folders import load_exported
from jobcast.models.registry.home import find_home
from jobcast.models.registry.references import CHALLENGER, CHAMPION, parse_reference
from jobcast.models.registry.registry import Registry, open_registry

__all__ = [
    "CHALLENGER",
    "CHAMPION",
    "ModelCard",
    "ModelVersion",
    "RegisteredModel",
    "Registry",
    "content_sha256",
    "find_home",
    "load_exported",
    "open_registry",
    "parse_reference",
]
