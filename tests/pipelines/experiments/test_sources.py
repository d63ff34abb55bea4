from dataclasses import replace
from types import SimpleNamespace

import pytest

from jobcast.domain.errors import OverlapError, RegistryError
from jobcast.models.job_duration import JobDuration
from jobcast.models.new_load import NewLoad
from jobcast.models.will_jobs_arrive import WillJobsArrive
from jobcast.pipelines.experiments.forecast_specs import PARTS, parse_forecasts
from jobcast.pipelines.experiments.seen_data import refuse_overlap
from jobcast.pipelines.experiments.simulation import parts_of
from jobcast.pipelines.experiments.sources import Ask, Sources, earlier_jobs
from jobcast.schedulers.registry import find_policy
from jobcast.simulator.forecast_sources import Oracle, Random
from jobcast.traces.pools import read_pools
from jobcast.traces.readers import read_trace
from tests.scenarios import pool_scenario
from tests.shared import refused


def made(scenario, home, **how):
    """Makes sources of a policy that asks for all."""
    return Sources(scenario, Ask(policy="sia", home=home, **how))


@pytest.mark.parametrize("text", ["oracle", "conservative", "random", "noisy:0.3"])
def test_sources_without_models_need_no_past(scenario, tmp_path, text):
    """What they answer is looked at where they are made, in the simulator."""
    chosen = made(scenario, tmp_path).make(parse_forecasts(text))
    assert (chosen.history, dict(chosen.models), chosen.overlap) == (None, {}, False)


def test_the_registry_answers_with_concrete_versions_that_are_warm(run, scenario, monkeypatch):
    """Each predictor has been asked before the replay begins: what it compiles is no part of the policy's own time."""
    asked = []
    for predictor, question in ((WillJobsArrive, "horizon_proba"), (NewLoad, "lend_rows"), (JobDuration, "choose")):
        answer = getattr(predictor, question)
        monkeypatch.setattr(
            predictor, question, lambda self, *given, answer=answer: asked.append(self.name) or answer(self, *given)
        )
    chosen = made(scenario, run.home).make(parse_forecasts("registry"))
    assert asked == ["will-jobs-arrive", "new-load", "job-duration"]
    assert chosen.models == {"will-jobs-arrive": 1, "new-load": 1, "job-duration": 1}
    assert chosen.overlap is False
    assert chosen.source.horizons_min == (5, 60)
    assert chosen.history is not None


def test_who_was_trained_on_another_cluster_is_named(run, scenario):
    assert "another_cluster" not in made(scenario, run.home).make(parse_forecasts("registry")).trust()
    jobs = scenario.trace.jobs.with_columns(pool="elsewhere " + scenario.trace.jobs["pool"])
    other = replace(scenario, trace=replace(scenario.trace, jobs=jobs))
    lines = made(other, run.home).make(parse_forecasts("registry")).trust()["another_cluster"]
    named = [line.split(" was trained on another cluster (")[0] for line in lines]
    assert named == ["will-jobs-arrive 1", "new-load 1", "job-duration 1"]


def told(source, scenario, part):
    """All answers of a source about a part, through the window."""
    found = []
    for job in scenario.workload.jobs:
        source.advance(job.submit_s)
        if part == "durations":
            found.append(source.duration_bin(job))
            continue
        ask = source.will_jobs_arrive if part == "arrivals" else source.new_load
        found += [ask(pool.name, 60.0 * k) for pool in scenario.workload.pools for k in source.horizons_min]
    return found


def test_draws_are_those_of_the_seed(scenario, tmp_path):
    def drawn(seed):
        sources = made(scenario, tmp_path, seed=seed)
        return [told(sources.make(parse_forecasts("random")).source, scenario, part) for part in PARTS]

    assert drawn(1) == drawn(1) != drawn(2)


def test_a_mixed_source_answers_each_part_as_its_source_does(run, scenario):
    """The models were trained for two horizons: the other parts answer about those too."""
    sources = made(scenario, run.home, seed=3)
    spec = parse_forecasts("mixed:arrivals=random,durations=registry")
    mixed = sources.make(spec)
    assert mixed.source.horizons_min == (5, 60)
    assert mixed.models == {"job-duration": 1}
    workload = scenario.workload
    drawn = Random(workload, 3, earlier_jobs(scenario).jobs, (5, 60))
    alone = {"arrivals": drawn, "loads": Oracle(workload, (5, 60))}
    for part, source in alone.items():
        assert told(sources.make(spec).source, scenario, part) == told(source, scenario, part)
    registry = sources.make(parse_forecasts("registry"))
    registry.history.advance(scenario.from_s)
    mixed.history.advance(scenario.from_s)
    assert told(mixed.source, scenario, "durations") == told(registry.source, scenario, "durations")


def test_parts_of_the_registry_take_their_own_pins(run, scenario):
    sources = made(scenario, run.home)
    spec = parse_forecasts("mixed:loads=registry:new-load=1,durations=registry:challenger")
    assert sources.make(spec).models == {"new-load": 1, "job-duration": 1}
    with pytest.raises(RegistryError, match="job-duration has no version 7"):
        sources.make(parse_forecasts("mixed:durations=registry:job-duration=7"))


def test_no_model_is_needed_of_what_nobody_asks(run, scenario):
    asked = parts_of(find_policy("ssf"), run_times=False)
    chosen = made(scenario, run.home).make(parse_forecasts("registry"), asked)
    assert chosen.models == {"job-duration": 1}
    whole = made(scenario, run.home).make(parse_forecasts("registry"))
    for one in (chosen, whole):
        one.history.advance(scenario.from_s)
    assert told(chosen.source, scenario, "durations") == told(whole.source, scenario, "durations")
    with pytest.raises(RegistryError, match="arrivals were asked for, which the policy does not say"):
        chosen.source.will_jobs_arrive(scenario.workload.pools[0].name, 300.0)
    with pytest.raises(RegistryError, match="loads were asked for, which the policy does not say"):
        chosen.source.new_load(scenario.workload.pools[0].name, 300.0)


def test_aliases_are_looked_up_once_for_all_who_ask(run, scenario):
    """A version that becomes champion while a backtest runs has no part in it."""
    pointed = [("new-load", "champion", 1), ("new-load", "challenger", 7), ("job-duration", "champion", 7)]
    spec = parse_forecasts("registry").as_found(pointed)
    assert spec == parse_forecasts("registry")
    assert (spec.label, spec.pinned("new-load")) == ("registry", ("new-load", 1))
    refused(RegistryError, "job-duration has no version 7", made(scenario, run.home).make, spec)
    mixed = parse_forecasts("mixed:loads=registry:challenger,arrivals=random").as_found(pointed)
    assert mixed.part("loads").pinned("new-load") == ("new-load", 7)
    assert parse_forecasts("registry:new-load=2").as_found(pointed).pinned("new-load") == ("new-load", 2)


def test_a_window_that_training_reached_into_is_refused_unless_allowed(run):
    early = pool_scenario(read_trace(run.trace), read_pools(run.pools).at(0.0), from_s=1704412799.0)
    with pytest.raises(OverlapError, match=r"will-jobs-arrive version 1 .* until 2024-01-05T00:00:00Z, which reaches"):
        made(early, run.home).make(parse_forecasts("registry"))
    assert made(early, run.home, allow_overlap=True).make(parse_forecasts("registry")).overlap is True


def test_traces_without_a_calendar_are_apart_unless_they_are_one():
    version = SimpleNamespace(name="regime", version=1, train_from_s=0.0, train_until_s=100.0, trace_sha256="a")
    assert refuse_overlap(version, 0.0, 50.0, allowed=False, trace_sha256="b") is False
    refused(OverlapError, "regime version 1", refuse_overlap, version, 0.0, 50.0, allowed=False, trace_sha256="a")
    version.train_from_s, version.train_until_s = 1.7e9, 1.7e9 + 100
    refused(OverlapError, "regime version 1", refuse_overlap, version, 1.7e9, None, allowed=False, trace_sha256="b")


def test_overlap_is_training_that_ends_after_the_window_begins():
    version = SimpleNamespace(name="new-load", version=3, train_until_s=100.0)
    assert refuse_overlap(version, 100.0, None, allowed=False) is False
    assert refuse_overlap(version, 99.0, 200.0, allowed=True) is True
    with pytest.raises(OverlapError, match="to the end; choose another version or a later --from"):
        refuse_overlap(version, 99.0, float("inf"), allowed=False)
    with pytest.raises(OverlapError, match="new-load version 3"):
        refuse_overlap(version, 10.0, 50.0, allowed=False)  # trained on what came after the window, too
