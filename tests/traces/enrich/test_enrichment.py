"""What is supplied, what is kept, and what is said of it."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobcast.domain.errors import ConfigError, TraceError
from jobcast.traces.enrich.columns import (
    COLUMNS_OF,
    FACTS,
    USUAL_LIMITS_H,
    EnrichConfig,
    known_models,
)
from jobcast.traces.enrich.enrichment import SAYS, enrich, write_enriched
from jobcast.traces.facts import assumptions_beside, facts_beside, sentences
from jobcast.traces.readers import read_trace
from jobcast.traces.table import Trace
from tests.scenarios import frame_of
from tests.shared import refused

ALL = tuple(FACTS)
HOUR_S = 3600.0


def trace_of(gpus, duration, **more):
    return Trace.from_frame(frame_of(range(len(gpus)), duration=duration, gpus=gpus, **more), name="t")


def columns_of(trace, facts=ALL, config=None, seed=0):
    return enrich(trace, facts, config or EnrichConfig(), seed).trace.jobs


JOBS = st.lists(
    st.tuples(st.sampled_from([1, 2, 3, 4, 6, 8, 16, 64, 1024]), st.floats(1e-3, 1e7)), min_size=1, max_size=12
)


@settings(max_examples=20)
@given(JOBS, st.integers(0, 100))
def test_facts_of_a_job_do_not_hang_on_other_jobs(jobs, seed):
    gpus, duration = ([*column] for column in zip(*jobs, strict=True))
    whole = trace_of(gpus, duration)
    alone = replace(whole, jobs=whole.jobs.tail(1))
    assert columns_of(whole, seed=seed).tail(1).equals(columns_of(alone, seed=seed))


def test_jobs_that_no_rule_knows_the_size_of_stay_as_they_are():
    known = trace_of([2, 4], [100.0, 5000.0])
    ids = ["0000", "cpu", "0001", "runs"]
    mixed = trace_of([2, 0, 4, 8], [100.0, 7.0, 5000.0, None], job_id=ids, model=[None, "mine", None, None])
    made = enrich(mixed, ALL, EnrichConfig(), 3)
    assert made.assumptions["jobs"] == 2
    assert made.trace.jobs["job_id"].to_list() == ids
    assert made.trace.jobs["model"].to_list()[1::2] == ["mine", None]
    plain = columns_of(known, seed=3)
    drawn = sorted({name for fact in ALL for name in COLUMNS_OF[fact]} - {"deadline"})
    assert made.trace.jobs[[0, 2]].select(drawn).equals(plain.select(drawn))
    left = made.trace.jobs[[1, 3]].select(name for name in drawn if name != "model")
    assert set(left.null_count().row(0)) == {2}
    with pytest.raises(TraceError, match="no job asks for GPUs and has ended"):
        enrich(trace_of([0, 1], [5.0, None]), ALL, EnrichConfig(), 0)


@settings(max_examples=20)
@given(JOBS)
def test_models_fit_sizes_and_widths_and_batches_reach_each_gpu(jobs):
    gpus, duration = ([*column] for column in zip(*jobs, strict=True))
    made = columns_of(trace_of(gpus, duration))
    known = {model.name: model for model in known_models()}
    for row in made.iter_rows(named=True):
        model = known[row["model"]]
        hours = row["gpus"] * row["duration"] / HOUR_S
        size = "S" if hours < 1 else "M" if hours < 10 else "L" if hours < 100 else "XL"
        able = [one for one in known.values() if size in one.sizes]
        assert model in able
        assert model.measured_gpus >= min(row["gpus"], max(one.measured_gpus for one in able))
        assert row["batch_size"] >= row["gpus"] or row["batch_size"] in model.batch_sizes
        assert 5 <= row["epochs"] <= 100
        assert (row["min_gpus"], row["duration_gpus"]) == (1, row["gpus"])


def test_epochs_are_as_many_as_fit():
    resnet = next(model for model in known_models() if model.name == "ResNet-18")
    trace = trace_of([4], [2400.0], model="ResNet-18", batch_size=64)
    epoch_s = 50_000 / 64 * (resnet.overhead_s + 64 * resnet.sample_s) / 3.26
    assert columns_of(trace, ("training",))["epochs"].to_list() == [min(100, round(2400 / epoch_s))]


def test_limits_are_the_next_usual_one():
    trace = trace_of([1] * 4, [60.0, 3600.0, 100 * 3600.0, 200 * 3600.0])
    made = columns_of(trace, ("limits",), EnrichConfig(limit_factor=(1.2, 1.2)))
    assert made["time_limit_s"].to_list() == [hours * HOUR_S for hours in (1, 2, 168, 240)]
    assert USUAL_LIMITS_H[-1] == 168


def test_due_dates_and_weights_lie_in_their_ranges():
    trace = trace_of([1] * 500, [1000.0] * 500)
    made = columns_of(trace, ("due",), EnrichConfig(due=(1.5, 2.0), weights=(3, 5)))
    allowed_s = (made["deadline"] - made["submit_time"]).dt.total_microseconds().to_numpy() / 1e6
    assert 1500 <= allowed_s.min() < 1510 < 1990 < allowed_s.max() <= 2000
    assert set(made["weight"]) == {3.0, 4.0, 5.0}


def test_regimes_are_as_asked_for():
    trace = trace_of([1] * 300, [9000.0] * 300)
    assert set(columns_of(trace, ("training",))["adaptation"]) == {"static", "accordion", "gns"}
    assert set(columns_of(trace, ("training",), EnrichConfig(regimes="gns"))["adaptation"]) == {"gns"}
    assert "regimes" not in enrich(trace, ("training",), EnrichConfig(regimes="static"), 0).tables


def test_what_the_trace_has_is_kept_and_said():
    trace = trace_of([2, 2, 2], [50.0] * 3, model=["gpt-9", "bert", None], weight=[None, 7.0, None])
    made = enrich(trace, ("training", "due"), EnrichConfig(), 0)
    assert made.trace.jobs["model"].to_list()[:2] == ["gpt-9", "bert"]
    assert made.trace.jobs["weight"][1] == 7.0
    assert made.trace.jobs["weight"].null_count() == 0
    assert made.assumptions["columns"]["model"] == {"kept": 2, "drawn": 1}
    assert made.assumptions["models"]["bert"]["taken_for"] == "Transformer"
    told = "; ".join(made.notes)
    assert "column model: the trace's own, kept; 1 empty rows filled" in told
    assert "column weight: the trace's own, kept; 2 empty rows filled" in told
    assert "models that are not known are taken for others: gpt-9 (" in told


def test_what_is_the_traces_own_is_not_said_to_be_drawn():
    trace = trace_of([2, 2], [50.0, 60.0], time_limit_s=[100.0, 200.0], weight=[1.0, 2.0])
    made = enrich(trace, ("limits", "due"), EnrichConfig(), 0)
    assert sentences(made.assumptions) == ["Due dates are drawn, as multiples of the duration."]
    assert "column time_limit_s: the trace's own, kept" in made.notes
    some = trace_of([2, 2], [50.0, 60.0], time_limit_s=[100.0, None])
    assert sentences(enrich(some, ("limits",), EnrichConfig(), 0).assumptions)[0].startswith("Time limits are drawn")


def test_an_enriched_trace_may_be_enriched_again():
    first = enrich(trace_of([4, 1], [5000.0, 7.0]), ("speedups", "training"), EnrichConfig(), 3).trace
    again = enrich(first, ALL, EnrichConfig(), 3).trace
    assert again.jobs.select(first.jobs.columns).equals(first.jobs)


def test_what_was_drawn_before_is_no_column_of_the_traces_own(tmp_path):
    plain = trace_of([4, 1], [5000.0, 7.0], time_limit_s=[6000.0, 60.0])
    write_enriched(enrich(plain, ("due", "speedups", "limits"), EnrichConfig(), 3), tmp_path / "first")
    made = enrich(read_trace(tmp_path / "first" / "jobs.parquet"), ("due", "limits"), EnrichConfig(), 4)
    drawn = "Due dates are drawn, as multiples of the duration. Weights are drawn, uniformly."
    assert sentences(made.assumptions) == [drawn, SAYS["speedups"]]
    assert made.assumptions["facts"]["speedups"]["tables"] == []
    assert made.assumptions["before"]["seed"] == 3
    told = (
        "column time_limit_s: the trace's own, kept",
        "column deadline: of an earlier enrichment, kept",
        "column weight: of an earlier enrichment, kept",
    )
    assert made.notes == told
    write_enriched(made, tmp_path / "second")
    assert enrich(read_trace(tmp_path / "second" / "jobs.parquet"), ("due",), EnrichConfig(), 4).notes == told[1:]
    assert "before" not in enrich(plain, ("due",), EnrichConfig(), 3).assumptions


def test_the_reference_comes_first_with_speed_one():
    speeds = EnrichConfig(reference="A100", gpu_types="v100,a100:2,t4").speeds
    assert speeds == {"a100": 1.0, "v100": 0.5, "t4": 0.2}
    trace = trace_of([2], [60.0])
    made = enrich(trace, ("speedups", "epochs", "training"), EnrichConfig(reference="a100", gpu_types="a100:2,t4"), 0)
    assert made.assumptions["settings"]["reference"] == "a100"


def test_a_folder_holds_all_of_it_with_hashes(tmp_path):
    made = enrich(trace_of([2, 1, 8], [60.0, 9000.0, 400.0]), ALL, EnrichConfig(), 0)
    for _ in range(2):  # our own folder is replaced
        write_enriched(made, tmp_path / "made")
    written = read_trace(tmp_path / "made" / "jobs.parquet")
    assert written.jobs.equals(made.trace.jobs)
    assert set(facts_beside(tmp_path / "made" / "jobs.parquet")) == set(made.tables)
    told = assumptions_beside(tmp_path / "made" / "jobs.parquet")
    assert json.loads((tmp_path / "made" / "assumptions.json").read_text()) == told
    assert set(told["facts"]) == set(ALL)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("mine")
    refused(ConfigError, "something else than an enriched trace", write_enriched, made, tmp_path / "other")
    refused(ConfigError, "something else", write_enriched, made, tmp_path / "other" / "mine.txt")


def test_many_wide_jobs_stay_small(tmp_path):
    rng = np.random.default_rng(0)
    gpus = rng.choice([1, 2, 4, 8, 64, 1024], 2000, p=[0.5, 0.2, 0.15, 0.1, 0.049, 0.001])
    write_enriched(enrich(trace_of(gpus, rng.uniform(1, 1e5, 2000)), ALL, EnrichConfig(), 0), tmp_path / "many")
    sizes = {path.name: path.stat().st_size for path in (tmp_path / "many").iterdir()}
    for name in ("speedups.csv", "throughputs.csv", "step_times.csv", "profiles.csv", "training_curves.csv"):
        assert sizes[name] < 500_000
