"""Draws by (seed, job id).

The table of models, and its formula.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobcast.traces.enrich.columns import Draws, EnrichConfig, enriched_jobs, known_models, model_rows
from jobcast.traces.generators.gavel import BATCH_SIZES
from jobcast.traces.generators.mlfs_tasks import ALGORITHMS
from jobcast.traces.table import Trace
from jobcast.traces.trainings import SAMPLES
from tests.scenarios import frame_of

NAMES = st.lists(st.text(max_size=8), min_size=1, max_size=20, unique=True)


@settings(max_examples=20)
@given(NAMES, st.integers(0, 2**31))
def test_a_job_is_drawn_the_same_whoever_else_is_there(names, seed):
    counts = np.arange(len(names)) % 4
    among = Draws(seed, names)
    alone = Draws(seed, names[-1:])
    assert among.uniform("x", 2.0, 3.0)[-1] == alone.uniform("x", 2.0, 3.0)[0]
    assert among.choice("x", 7)[-1] == alone.choice("x", 7)[0]
    last = int(counts[-1])
    assert among.normal("x", counts)[int(counts[:-1].sum()) :].tolist() == (
        alone.normal("x", np.array([last])).tolist()
    )


def test_quantities_and_seeds_are_streams_of_their_own():
    names = [str(number) for number in range(20_000)]
    draws = Draws(1, names)
    one, two, other = draws.uniform("one"), draws.uniform("two"), Draws(2, names).uniform("one")
    for left, right in ((one, two), (one, other), (one[:-1], one[1:])):
        assert abs(np.corrcoef(left, right)[0, 1]) < 0.03
    assert 0.0 <= one.min() <= one.max() < 1.0
    shares = np.histogram(one, 10, (0, 1))[0] / 20_000
    assert ((shares > 0.09) & (shares < 0.11)).all()


def test_normal_draws_are_standard_normal():
    drawn = Draws(0, ["a", "b"]).normal("x", np.array([20_000, 20_000]))
    assert abs(drawn.mean()) < 0.02
    assert abs(drawn.std() - 1.0) < 0.02
    assert abs(np.corrcoef(drawn[:20_000], drawn[20_000:])[0, 1]) < 0.03
    assert np.isfinite(drawn).all()


MODELS = {model.name: model for model in known_models()}


def test_it_joins_the_vocabularies():
    assert model_rows(["Resnet50Model128", "RESNET-50"]) == [5, 5]
    assert model_rows(["cifar10", "DeepspeechModel64", "bert"]) == [0, 3, 4]
    assert {model.mlfs for model in MODELS.values()} <= set(ALGORITHMS)
    for name, samples in SAMPLES.items():
        assert MODELS[name].samples == samples
        assert MODELS[name].batch_sizes == BATCH_SIZES[name]


def test_speedups_are_those_measured_then_a_power_of_the_gpus():
    resnet = MODELS["ResNet-18"]
    assert resnet.speedup(np.array([1, 2, 3, 4, 8])).tolist() == pytest.approx([1, 1.70, (1.70 + 3.26) / 2, 3.26, 5.35])
    assert resnet.speedup(np.array([16]))[0] == pytest.approx(5.35 * 5.35 / 3.26)
    assert MODELS["Recommendation"].speedup(np.array([4]))[0] == pytest.approx(2.0)


@given(st.sampled_from(list(MODELS.values())), st.integers(1, 2000))
def test_more_gpus_are_never_slower_and_never_beyond_perfect_by_much(model, gpus):
    less, more = model.speedup(np.array([gpus])), model.speedup(np.array([gpus + 1]))
    assert more >= less
    assert less <= gpus * 1.01
    alone, together = model.speedup(np.array([gpus])), model.speedup(np.array([gpus, 4096]))[0]
    assert alone[0] == pytest.approx(together, rel=1e-12)  # whatever the widest of the others


def test_published_step_times_are_met():
    # throughputs_tacc.csv, V100, one GPU: steps a second
    for name, size, steps_s in (("ResNet-50", 64, 3.108), ("ResNet-18", 128, 11.775), ("Transformer", 32, 4.5311)):
        assert 1 / float(MODELS[name].step_s(np.array(size), np.array(1))) == pytest.approx(steps_s, rel=0.13)
    assert float(MODELS["LM"].epoch_s(np.array(5), np.array(1))) == pytest.approx(59_675 / 5 * (0.0053 + 5 * 0.000467))


def test_beyond_a_speedup_that_fell_more_gpus_are_a_little_faster():
    falling = replace(known_models()[0], speedups=(1.8, 1.7))
    assert falling.knots(8)[1].tolist() == pytest.approx([1.0, 1.8, 1.7, 1.7 * 2.0**0.05])


def test_a_batch_gives_each_gpu_a_sample_and_no_more_than_it_must():
    model = known_models()[model_rows(["LM"])[0]]
    wide = model.batch_sizes[-1] * 16
    jobs = enriched_jobs(Trace.from_frame(frame_of([0.0], gpus=wide, model="LM"), name="t"), EnrichConfig(), 0)
    assert jobs.batch_size.tolist() == [wide]
