"""Settings as users write them on a command line: `key=value`, one option each."""

from jobcast.domain.errors import ConfigError


def settings_of(pairs: tuple[str, ...], option: str = "--set", key_value: str = "key=value") -> dict[str, str]:
    """`--set key=value`, repeated; ConfigError names what is no pair."""
    settings = {}
    for pair in pairs:
        # At the first sign alone: values may hold others.
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise ConfigError(f"{option} {pair}: write {option} {key_value}")
        # The last would win silently, and the user would look for the effect of the first.
        if key in settings:
            raise ConfigError(f"{option} {key} is given twice; give it once")
        settings[key] = value
    return settings
