"""The small registry of the tests of models, for servers."""

from tests.models.conftest import card, predictors, registry, saved, small_trace, template_home, variant

__all__ = ["card", "predictors", "registry", "saved", "small_trace", "template_home", "variant"]
