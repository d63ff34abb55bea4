"""Draws that nothing was chosen on: pairs by draw, and the prior's own way to the scheduler."""

import csv

import pytest

from jobcast.models.regimes import Restatement
from papers.results import Replayed
from papers.shockwave import draws
from papers.shockwave.__main__ import PAPER
from papers.shockwave.runs import MAKESPAN
from papers.shockwave.workloads import drawn


def test_a_prior_that_restates_is_restatement(traces, tmp_path, monkeypatch):
    monkeypatch.setattr(draws, "SEEDS", (700, 706))
    monkeypatch.setattr(draws, "learned", lambda data: Restatement())
    monkeypatch.setattr(draws, "drawn", lambda data, seed, **sizes: drawn(data, seed, jobs=10, gpus=8))
    draws.draws(traces, PAPER.page("draws", tmp_path))
    told = csv.DictReader((tmp_path / "draws.csv").open(newline=""))
    rows = {(row.pop("case"), row.pop("policy")): row for row in told}
    assert len(rows) == 2 * 4
    for seed in (700, 706):
        plain, prior, exact = (rows[f"seed {seed}", name] for name in (draws.SHOCKWAVE, draws.PRIOR, draws.EXACT))
        assert prior == plain != exact
    page = (tmp_path / "draws.md").read_text()
    assert "| `shockwave, prior` against `shockwave` | 0.00 (0.00 to 0.00) | 0.00 (0.00 to 0.00) |" in page


def test_the_prior_learns_from_jobs_of_another_draw(traces, monkeypatch):
    asked, fitted = [], []
    few = drawn(traces, 3, jobs=5, gpus=8)
    monkeypatch.setattr(draws, "drawn", lambda data, seed, **sizes: asked.append((seed, sizes)) or few)
    monkeypatch.setattr(draws.RegimePrior, "fit", lambda self, jobs: fitted.extend(jobs) or self)
    draws.learned(traces)
    assert asked == [(600, {"jobs": 400, "gpus": 32})]
    assert 600 not in draws.SEEDS
    workload = few.workload
    truth = [outcome.regimes for outcome in workload.outcomes]
    assert fitted == list(zip([job.training for job in workload.jobs], truth, strict=True))


def made(case, name, value):
    return Replayed(case, name, {MAKESPAN.key: value}, log=None)


def test_differences_are_by_draw_and_relative_to_the_second():
    # 10 % more and 10 % less of unlike draws: 0 on average; t of one degree of freedom is 12.706.
    done = [made("a", "x", 110.0), made("a", "y", 100.0), made("b", "y", 10.0), made("b", "x", 9.0)]
    found = draws.differences(done, MAKESPAN, "x", "y")
    assert (found.mean, found.high) == (pytest.approx(0.0, abs=1e-9), pytest.approx(127.06, abs=0.01))
    assert draws.differences(done, MAKESPAN, "y", "x").mean == pytest.approx(50 * (100 / 110 - 1 + 10 / 9 - 1))


@pytest.mark.parametrize(("above", "enough"), [(2, True), (3, False)])
def test_nine_of_ten_draws_must_be_fair(above, enough):
    assert draws.fair_enough([1.3] * (20 - above) + [1.31] * above) is enough
