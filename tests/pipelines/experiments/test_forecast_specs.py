import pytest

from jobcast.domain.errors import ConfigError
from jobcast.pipelines.experiments.forecast_specs import ForecastSpec, parse_forecasts
from tests.shared import refused


def registry(**pins):
    return ForecastSpec("registry", versions=tuple((name.replace("_", "-"), version) for name, version in pins.items()))


def mixed(**parts):
    return ForecastSpec("mixed", parts=tuple(parts.items()))


CHALLENGER = ForecastSpec("registry", alias="challenger")
QUARTER = ForecastSpec("noisy", probability=0.25)


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("oracle", ForecastSpec("oracle")),
        (" conservative ", ForecastSpec("conservative")),
        ("random", ForecastSpec("random")),
        ("noisy:0", ForecastSpec("noisy", probability=0.0)),
        ("noisy:1", ForecastSpec("noisy", probability=1.0)),
        ("registry", ForecastSpec("registry")),
        ("registry:challenger", CHALLENGER),
        ("registry:new-load=2,will-jobs-arrive=13", registry(new_load=2, will_jobs_arrive=13)),
        (
            "mixed:arrivals=random,loads=noisy:0.25,durations=registry:challenger",
            mixed(arrivals=ForecastSpec("random"), loads=QUARTER, durations=CHALLENGER),
        ),
        (
            "mixed: durations=registry:job-duration=2, arrivals=conservative",
            mixed(arrivals=ForecastSpec("conservative"), durations=registry(job_duration=2)),
        ),
    ],
)
def test_sources_as_users_write_them(text, spec):
    assert parse_forecasts(text) == spec
    assert parse_forecasts(spec.label) == spec


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "unknown source; choose from oracle, registry"),
        ("oracle:2", "unknown source"),
        ("noisy", "probability between 0 and 1"),
        ("noisy:1.1", "probability between 0 and 1"),
        ("registry:nosuch=1", "'nosuch=1' is no NAME=VERSION; versions are numbers, names are will-jobs-arrive, new-"),
        ("registry:new-load=²", "is no NAME=VERSION"),
        ("registry:new-load=1,", "'' is no NAME=VERSION"),
        ("registry:new-load=1,new-load=2", "new-load is given twice"),
        ("mixed", "'' is no PART=SOURCE; parts are arrivals, loads, durations, sources are oracle, registry, random"),
        ("mixed:widths=oracle", "'widths=oracle' is no PART=SOURCE"),
        ("mixed:loads=bayes", "'loads=bayes' is no PART=SOURCE"),
        ("mixed:loads=oracle,loads=random", "loads is given twice"),
        ("mixed:loads=noisy:2", "noisy:2: noisy takes a probability between 0 and 1"),
        ("mixed:loads=oracle:1", "oracle:1: unknown source"),
    ],
)
def test_what_is_no_source_is_told_with_what_was_written(text, message):
    assert refused(ConfigError, message, parse_forecasts, text).startswith(f"--forecasts {text}: ")


def test_parts_that_are_not_written_are_the_oracles():
    spec = parse_forecasts("mixed:loads=registry")
    assert [spec.part(name).kind for name in ("arrivals", "loads", "durations")] == ["oracle", "registry", "oracle"]
    assert (spec.draws, spec.asks_registry) == (False, True)
    spec = parse_forecasts("mixed:durations=random")
    assert (spec.draws, spec.asks_registry) == (True, False)
