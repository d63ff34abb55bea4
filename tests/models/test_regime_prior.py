"""The learned prior: what it learns from generated jobs, its updates, and how it is kept."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import RegistryError, TrainingError
from jobcast.domain.jobs import Job
from jobcast.domain.training import Progress, Regime, Training
from jobcast.models.evaluation.regimes import compare_rules
from jobcast.models.regimes import RegimePrior, Restatement
from jobcast.models.regimes.ahead import mean_regimes, running, shortest
from jobcast.models.regimes.guarded import ServedRegimePrior
from jobcast.models.regimes.numbers import NOTHING_KNOWN, Piece, survival
from jobcast.models.regimes.trajectories import progress_at
from tests.shared import kept, refused

SIZES = (16, 32, 64)
EPOCH_S = {16: 60.0, 32: 40.0, 64: 30.0}
STEPS, FEW = 4000, 450
"""Steps of learning; few need no C compiler, and are enough for all but the numbers themselves."""


def finished(jobs, seed):
    """Accordion at 30 % of the epochs, gns after 12 and 15 epochs, a model that never changes; sigma 0.2."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(jobs):
        kind, epochs = int(rng.integers(3)), int(rng.integers(60, 300))
        model = ("A", "B", "still")[kind]
        training = Training(model, 16, epochs, "gns" if kind == 1 else "accordion", EPOCH_S)
        lengths = ([0.3 * epochs], [12.0, 15.0], [])[kind]
        lengths = [length * float(np.exp(0.2 * rng.standard_normal())) for length in lengths]
        sizes = ((16, 64), SIZES, (16,))[kind]
        found.append((training, tuple(map(Regime, sizes, [*lengths, epochs - sum(lengths)]))))
    return found


def learned(steps):
    return RegimePrior(seed=1, steps=steps, calibration="open").fit(finished(120, 0), 5.0, 9.0)


@pytest.fixture(scope="module")
def prior():
    return learned(FEW)


def job_of(training, seq=0):
    return Job(seq, str(seq), "a", 0.0, 1, training=training)


@pytest.mark.slow
def test_learns_when_each_kind_changes():
    prior = learned(STEPS)
    start = Progress(0.0, (Regime(16, 0.0),))
    accordion = prior.left(Training("A", 16, 200, "accordion", EPOCH_S), start)
    assert accordion[0].epochs == pytest.approx(60, rel=0.15)
    gns = prior.left(Training("B", 16, 250, "gns", EPOCH_S), start)
    assert [regime.batch_size for regime in gns] == [16, 32, 64]
    first, second, *_ = prior.numbers_["gns", "B", "16"].pieces
    assert (first.kind, second.kind) == ("epochs", "epochs")
    assert first.middle == pytest.approx(12, rel=0.25)
    assert second.middle == pytest.approx(15, rel=0.25)


def test_unseen_batch_size_and_model_fall_back(prior):
    start = Progress(0.0, (Regime(32, 0.0),))
    of_model = prior.left(Training("A", 32, 200, "accordion", EPOCH_S), start)
    assert 0.15 * 200 < of_model[0].epochs < 0.5 * 200
    of_mode = prior.left(Training("new", 32, 200, "accordion", EPOCH_S), start)
    assert 0.0 < of_mode[0].epochs < 200.0


def test_beats_restatement_on_jobs_that_it_has_not_seen(prior):
    later = finished(60, 7)
    jobs = [job_of(training, seq) for seq, (training, _) in enumerate(later)]
    rules = compare_rules({"prior": prior, "restatement": Restatement()}, jobs, [t for _, t in later])["all"]["rules"]
    assert rules["prior"]["misplaced"] < 0.5 * rules["restatement"]["misplaced"]
    assert rules["prior"]["total_accuracy"] > 97
    assert 80 <= rules["prior"]["coverage_open"] <= 99


@pytest.mark.slow
def test_same_seed_same_bytes_and_same_answers(prior, tmp_path):
    assert kept(prior, tmp_path / "a") == kept(learned(FEW), tmp_path / "b")
    read = RegimePrior.load(tmp_path / "a")
    job, progress = job_of(Training("B", 16, 90, "gns", EPOCH_S)), Progress(4.0, (Regime(16, 4.0),))
    assert read.remaining_time(job, progress) == prior.remaining_time(job, progress)
    assert (read.trained_from_s_, read.trained_until_s_, read.jobs_) == (5.0, 9.0, 120)


def test_a_bar_in_a_models_name_is_kept(prior, tmp_path):
    named = RegimePrior.read(prior.as_dict())
    named.numbers_ = {(*key[:1], *(f"{part}|7%7C" for part in key[1:])): one for key, one in prior.numbers_.items()}
    named.trained_from_s_ = named.trained_until_s_ = 0.0
    named.save(tmp_path)
    assert RegimePrior.load(tmp_path).numbers_ == named.numbers_


def test_intervals_widen_with_the_level_and_hold_the_mean(prior):
    job, progress = job_of(Training("A", 16, 200, "accordion", EPOCH_S)), Progress(20.0, (Regime(16, 20.0),))
    half, most = (prior.remaining_time(job, progress, level) for level in (0.5, 0.9))
    assert most.low_s <= half.low_s <= half.mean_s <= half.high_s <= most.high_s
    assert most.mean_s == pytest.approx(job.training.run_time_s(prior.regimes(job, progress)))


def test_declared_number_of_regimes_ends_it(prior):
    training = Training("B", 16, 90, "gns", EPOCH_S, max_regimes=1)
    assert prior.left(training, Progress(4.0, (Regime(16, 4.0),))) == (Regime(16, 86.0),)


def test_served_rows(prior):
    served = ServedRegimePrior(prior)
    answer = served.predict(served.example())
    assert list(answer.columns) == list(served.outputs)
    assert answer["low_s"][0] <= answer["remaining_s"][0] <= answer["high_s"][0]
    bad = served.example().assign(regimes="[]")
    refused(RegistryError, "at least one batch size", served.predict, bad)


@given(
    which=st.sampled_from([("A", "accordion"), ("B", "gns"), ("still", "accordion"), ("new", "gns"), ("x", "else")]),
    epochs=st.integers(1, 2000),
    cut=st.floats(0.001, 0.999),
    share=st.floats(0.0, 1.0),
)
def test_what_is_left_adds_up(prior, which, epochs, cut, share):
    training = Training(which[0], 16, epochs, which[1], EPOCH_S)
    truth = (Regime(16, cut * epochs), Regime(32, (1 - cut) * epochs))
    progress = progress_at(truth, share * epochs)
    left = prior.regimes(job_of(training), progress)
    assert sum(regime.epochs for regime in left) == pytest.approx(max(0.0, epochs - progress.epochs), abs=1e-6)
    assert left[0].batch_size == progress.batch_size
    assert all(regime.epochs >= 0 and regime.batch_size in EPOCH_S for regime in left)
    time = prior.remaining_time(job_of(training), progress)
    assert 0 <= time.low_s <= time.mean_s <= time.high_s


def test_jobs_that_cannot_change_teach_nothing():
    static = [(Training("A", 16, 10, "static", EPOCH_S), (Regime(16, 10.0),))]
    refused(TrainingError, "no job could change", lambda: RegimePrior().fit(static))


def test_unknown_calibration():
    refused(RegistryError, "choose from open, all", RegimePrior, calibration="none")


def test_truncated_beta_by_hand():
    """Beta(2, 1) has density 2x: above 1/2 it holds 3/4, with mean (2/3)(1 - 1/8) / (3/4) = 7/9."""
    exceeds, mean = survival(2.0, 1.0, 0.5)
    assert exceeds == pytest.approx(0.75)
    assert mean == pytest.approx(7 / 9)
    assert survival(2.0, 1.0, 1.0)[0] == 0.0


def test_posterior_of_the_last_regime_by_hand():
    """Even odds before, a uniform share, half of the epochs over: (1/2 x 1/2) / (1/2 x 1/2 + 1/2) = 1/3."""

    class Even:
        def piece(self, order):
            return Piece("shares", 0.5, 2.0)

        def follows(self, order):
            return 0.5

    follows, mean = running(Even(), 0, 100.0, 50.0)
    assert follows == pytest.approx(1 / 3)
    assert mean == pytest.approx(75.0)
    training, progress = Training("A", 16, 100, "accordion", EPOCH_S), Progress(50.0, (Regime(16, 50.0),))
    left = mean_regimes(training, progress, Even(), (64,))
    assert [regime.epochs for regime in left] == pytest.approx([50 - 25 / 3, 25 / 3])


def test_epochs_and_shares_as_beta():
    a, b = Piece("epochs", 10.0, 0.5).beta(40.0)
    assert a / (a + b) == pytest.approx(0.25)
    assert 1 / a + 1 / b == pytest.approx(0.5**2)
    assert Piece("epochs", 50.0, 0.5).mean(40.0) == 0.9


def test_shortest_interval_is_the_atom_where_it_holds_enough():
    assert shortest(np.array([1.0, 5.0, 9.0]), np.array([0.04, 0.92, 0.04]), np.array([0.9])) == (5.0, 5.0)


def test_nothing_known_is_even():
    assert NOTHING_KNOWN.goes_on(0, 4.0) == pytest.approx(0.5)
