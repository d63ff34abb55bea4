"""The report: a page that stands alone and says what its figures say."""

import dataclasses
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from jobcast.pipelines.gains import paired_gains
from jobcast.pipelines.headline import find
from jobcast.pipelines.predictor_tables import predictor_tables
from jobcast.pipelines.report import ReportInput, render_report, summary_table
from jobcast.pipelines.report_tables import main_table, pool_tables
from jobcast.pipelines.summaries import summaries
from jobcast.pipelines.wording import between, number, unit_for

DAY_S = 86400.0
BEGIN_S = 1_509_926_400.0  # 2017-11-06
HORIZONS = ("5min", "60min", "720min")
POOLS = ("vision", "speech", "search & ads", "<b>robots</b>")
CONFIGURATIONS = (
    # policy, forecasts, typical speedup of a job that queues, share of jobs slowed
    ("fcfs", None, 1.0, 0.0),
    ("mmfs", None, 14.0, 0.117),
    ("ssf", None, 4.0, 0.09),
    ("gssf", None, 15.0, 0.03),
    ("sia_vc", "oracle", 20.0, 0.0),
    ("sia", "oracle", 19.0, 0.0),
    ("sia", "registry", 12.0, 0.002),
    ("sia", "registry:will-jobs-arrive=2,new-load=1,job-duration=1", 13.0, 0.004),
    ("sia", "random", 7.0, 0.03),
    ("sia", "conservative", 1.0, 0.0),
)


def label(policy: str, kind: str | None) -> str:
    return f"{policy} {kind}" if kind else policy


def jobs_of(count: int, seed: int = 0) -> dict[str, dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    submit_s = np.sort(BEGIN_S + rng.uniform(0, 20 * DAY_S, count))
    pool = rng.choice(POOLS, count, p=(0.5, 0.3, 0.15, 0.05))
    duration_s = rng.lognormal(7, 2, count)
    wait_s = np.where(rng.random(count) < 0.6, rng.lognormal(9, 1.5, count), 0.0)
    found = {}
    for policy, kind, speedup, slowed in CONFIGURATIONS:
        mine_s = wait_s / (1 + (speedup - 1) * rng.lognormal(0, 1, count))
        if speedup > 1:
            mine_s += np.where(rng.random(count) < slowed, rng.lognormal(7, 1.5, count) + wait_s, 0.0)
        mine = {"submit_s": submit_s, "jct_s": mine_s + duration_s, "wait_s": mine_s, "pool": pool}
        found[label(policy, kind)] = mine
    return found


def row_of(policy: str, kind: str | None, jobs, seed: int) -> dict:
    jct_s, base_s = jobs[label(policy, kind)]["jct_s"], jobs["fcfs"]["jct_s"]
    speedup, late_min = base_s / jct_s, np.maximum(jct_s - base_s, 0) / 60
    p5, p95 = np.quantile(speedup, (0.05, 0.95))
    figures = {
        "jobs": len(jct_s), "mean_jct_s": jct_s.mean(), "utilization": 0.534, "speedup_mean": speedup.mean(),
        "speedup_gmean": np.exp(np.log(speedup).mean()), "speedup_p5": p5, "speedup_p95": p95,
        "slowed_pct": 100 * (late_min > 0).mean(), "slowdown_total_min": late_min.sum(),
        "slowdown_max_min": late_min.max(),
    }  # fmt: skip
    plain = {key: float(value) for key, value in figures.items()}
    return {"label": label(policy, kind), "policy": policy, "forecasts": kind, "seed": seed, "window": 0, **plain}


def arrival_block(base_rate: float) -> dict:
    three = {"precision": 0.66, "recall": 0.85, "f1": 0.74}
    return {
        "n": 57600, "base_rate": base_rate, **three, "pr_auc": 0.8, "roc_auc": 0.91, "ece": 0.021, "threshold": 0.4,
        "baselines": {
            "always": {"precision": base_rate, "recall": 1.0, "f1": 2 * base_rate / (1 + base_rate)},
            "persistence": {"precision": 0.5, "recall": 0.5, "f1": 0.5},
            "yesterday": {"precision": 0.31, "recall": None, "f1": 0.3},
        },
        "by_pool": {}, "idle": three, "gate": {"miss_rate": 0.05, "freed_idle_share": 0.61},
    }  # fmt: skip


def sample(count: int = 3000) -> ReportInput:
    """A realistic input with hostile names in it."""
    jobs = jobs_of(count)
    names = [label(policy, kind) for policy, kind, *_ in CONFIGURATIONS]
    rows = [
        row_of(policy, kind, jobs, seed)
        for policy, kind, *_ in CONFIGURATIONS
        for seed in range(3 if kind == "random" else 1)
    ]
    pairs = [(names[6], names[8]), (names[6], names[7]), (names[7], names[8]), (names[5], names[6])]
    submit_s, base_s = jobs["fcfs"]["submit_s"], jobs["fcfs"]["jct_s"]
    gains = [
        {"a": a, "b": b}
        | paired_gains(jobs[a]["jct_s"], jobs[b]["jct_s"], submit_s, seed=0, jct_baseline=base_s).to_dict()
        for a, b in pairs
    ]
    grid = np.linspace(0.01, 1, 600)
    hours_s = BEGIN_S + 3600.0 * np.arange(24 * 20)
    rng = np.random.default_rng(1)
    day = 0.5 + 0.25 * np.sin(2 * np.pi * (hours_s - BEGIN_S) / DAY_S)
    bins = {"accuracy": 0.81, "macro_f1": 0.7, "log_loss": 0.5, "ece": 0.03, "under_predicted": 0.1, "n": 3000}
    return ReportInput(
        title="What forecasts are worth on campus <script>alert(1)</script>",
        trace={
            "name": "campus", "rows": 12345, "sha256": "0f" * 32, "jobs": 12000, "from": BEGIN_S - 40 * DAY_S,
            "until": BEGIN_S + 20 * DAY_S, "dropped": {"shorter than a second": 345},
            "pools_origin": "derived from the trace: max(widest job, ceil(GPU-time / span / 0.8)) GPUs a pool",
            "notes": ["times without an offset were read as UTC"],
        },
        split={"train_from_s": BEGIN_S - 40 * DAY_S, "train_until_s": BEGIN_S, "test_until_s": BEGIN_S + 20 * DAY_S},
        pools=[{"name": name, "gpus": 8 * (i + 1)} for i, name in enumerate(POOLS)],
        rows=rows,
        jobs=jobs,
        baseline_label="fcfs",
        gains=gains,
        evaluation={
            "will-jobs-arrive": {"horizons": {h: arrival_block(0.2 + 0.2 * i) for i, h in enumerate(HORIZONS)}},
            "new-load": {
                "horizons": {
                    h: {"coverage": 0.97, "coverage_nonzero": 0.9, "over": 3.1, "missed": 0.04, "worst_pool": 0.8}
                    for h in HORIZONS
                }
            },
            "job-duration": {**bins, "baselines": {"last 20 of tag, pool, width": {**bins, "accuracy": 0.66}}},
        },
        curves={
            "reliability": {
                h: [
                    {"forecast": p, "observed": float(np.clip(p + rng.normal(0, 0.04), 0, 1)), "n": 1000 - int(900 * p)}
                    for p in np.linspace(0.03, 0.97, 15)
                ]
                for h in HORIZONS
            },
            "precision_recall": {
                h: [{"recall": float(r), "precision": float(1 - (0.8 - 0.2 * i) * r**3)} for r in grid]
                for i, h in enumerate(HORIZONS)
            },
            "importance": {
                h: {f"arrivals_{i}h_ago_in_a_window": float(x) for i, x in enumerate(rng.exponential(size=30))}
                for h in HORIZONS
            },
        },
        utilisation={
            name: (hours_s, np.clip(day + rng.normal(0, 0.08, len(day)), 0, 1))
            for name in ("fcfs", "mmfs", "sia oracle", "sia registry")
        },
        models=[
            {
                "name": "will-jobs-arrive", "version": 1, "aliases": ["champion"], "algorithm": "lightgbm",
                "trained_until": BEGIN_S,
            },
            {"name": "new-load", "version": 1, "aliases": [], "algorithm": None, "trained_until": None},
        ],
        commands=["jobcast run --trace campus --out runs/campus", "jobcast report runs/campus"],
        notes=["forecasts are refreshed on a grid of five minutes"],
    )  # fmt: skip


@pytest.fixture(scope="module")
def page() -> str:
    return render_report(sample())


class Outline(HTMLParser):
    """What a page's structure is made of."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        named = dict(attrs)
        self.links += [value for key, value in named.items() if key in ("src", "href", "xlink:href")]
        self.ids += [named["id"]] if "id" in named else []


def outline(page: str) -> Outline:
    found = Outline()
    found.feed(page)
    return found


def text(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


def test_the_page_stands_alone(page):
    found = outline(page)
    assert "script" not in found.tags
    assert all(link.startswith("#") for link in found.links)
    assert not re.search(r"url\((?!#)", page)
    assert "@import" not in page
    assert len(found.ids) == len(set(found.ids))


def test_the_page_is_accessible(page):
    found = outline(page)
    assert found.tags.count("h1") == 1
    assert found.tags.count("caption") == found.tags.count("table") >= 7
    assert found.tags.count("svg") == found.tags.count("figcaption") == page.count('role="img"')
    assert found.tags.count("svg") == 10
    assert re.search(r'<html lang="en">', page)


def test_text_of_users_is_escaped(page):
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "<b>robots</b>" not in page
    assert "&lt;b&gt;robots&lt;/b&gt;" in page
    assert "search &amp; ads" in page


def test_the_page_tells_what_it_is_about(page):
    shown = text(page)
    for piece in (
        "0f" * 32, "12,345", "345 shorter than a second", "2017-11-06T00:00:00Z", "lightgbm", "champion",
        "times without an offset were read as UTC", "jobcast run --trace campus --out runs/campus", "open loop",
        "persistence: as in the window before", "derived from the trace", "grid of five minutes",
    ):  # fmt: skip
        assert piece in shown, piece


def test_the_headline_holds_the_computed_figures():
    results = sample()
    rows = {row["label"]: row for row in results.rows}
    finding = find(summaries(results.rows), results.gains, "fcfs")
    champion, oracle = rows["sia registry"], rows["sia oracle"]
    assert finding.lead == (
        f"sia with the champion's forecasts finishes jobs {champion['speedup_gmean']:.3g} times as fast as fcfs "
        f"(geometric mean) and slows {champion['slowed_pct']:.3g} % of them."
    )
    told = " ".join(finding.sentences)
    part = number(100 * champion["speedup_gmean"] / oracle["speedup_gmean"])
    assert f"reaches {part} % of that speedup" in told
    assert f"sia with random forecasts: {rows['sia random']['speedup_gmean']:.3g} times as fast" in told
    assert "sia registry is" in told
    assert "95 % interval" in told
    assert "Sharing without forecasts (mmfs)" in told
    assert "tell good forecasts" not in told


def rows_like(**kinds: tuple[float, float]) -> list[dict]:
    return [
        {"label": f"sia {kind}", "policy": "sia", "forecasts": kind, "speedup_gmean": gmean, "slowed_pct": slowed}
        for kind, (gmean, slowed) in kinds.items()
    ]


def test_a_window_that_tells_nothing_apart_is_called_so():
    finding = find(summaries(rows_like(registry=(1.5, 0.0), oracle=(1.55, 0.0), random=(1.5, 0.05))), [], "fcfs")
    assert "it cannot tell good forecasts from bad ones" in finding.sentences[-1]
    assert "slows no job" in finding.lead
    told = find(summaries(rows_like(registry=(1.5, 0.0), random=(1.5, 3.0))), [], "fcfs").sentences
    assert not any("cannot tell" in sentence for sentence in told)
    told = find(summaries(rows_like(registry=(1.5, 0.0))), [], "fcfs").sentences
    assert "No random forecasts were replayed" in told[-1]


def test_the_headline_of_a_backtest_without_registry_or_baseline():
    assert find(summaries(rows_like(oracle=(2.0, 0.0))), [], "fcfs").lead.startswith("sia with exact coarse forecasts")
    assert find([], [], "fcfs").lead == "Nothing was measured against a baseline."
    plain = [{"label": "mmfs", "policy": "mmfs", "forecasts": None, "speedup_gmean": 2.0, "slowed_pct": None}]
    assert find(summaries(plain), [], "fcfs").lead.startswith("mmfs finishes jobs 2.00 times as fast")


def test_seeds_are_put_together():
    one = {"label": "sia random", "policy": "sia", "forecasts": "random", "slowed_pct": 1.0}
    rows = [{**one, "seed": seed, "speedup_gmean": s, "slowdown_max_min": s} for seed, s in enumerate((1.0, 2.0, 4.0))]
    (summary,) = summaries(rows)
    assert (summary.runs, summary.forecasts) == (3, "random")
    assert summary.figures == {"slowed_pct": 1.0, "speedup_gmean": pytest.approx(2.0), "slowdown_max_min": 4.0}


def test_the_main_table_by_hand():
    figures = {
        "speedup_gmean": 11.234, "speedup_p5": 1.0, "speedup_p95": 357.6, "slowed_pct": 0.1834,
        "slowdown_total_min": 5027.4, "slowdown_max_min": 163.0, "mean_jct_s": 7200.0, "utilization": 0.534,
    }  # fmt: skip
    rows = [{"label": "sia random", "policy": "sia", "forecasts": "random", **figures}]
    table = main_table(summaries(rows), "fcfs")
    assert table is not None
    assert table.rows == [("sia", "random", "11.2", "1.00 to 358", "0.183 %", "5,027", "163", "2.00", "53.4 %", "1")]
    assert table.head[7] == "mean JCT (h)"


def test_pool_tables_by_hand():
    pool = np.array(["a", "b", "a"])
    jobs = {
        "fcfs": {"jct_s": np.array([10.0, 10.0, 40.0]), "pool": pool},
        "sia": {"jct_s": np.array([5.0, 20.0, 5.0]), "pool": pool},
    }
    speedups, slowed = pool_tables(jobs, "fcfs")
    # a: sqrt(2 x 8) = 4; b: 0.5; all: (2 x 8 x 0.5) ** (1/3) = 2.
    assert speedups.rows == [("a", "4.00"), ("b", "0.500"), ("all", "2.00")]
    assert slowed.rows == [("a", "0 %"), ("b", "100 %"), ("all", "33.3 %")]


def test_other_jobs_than_the_baselines_are_refused():
    results = sample(50)
    jobs = {**results.jobs, "mmfs": {"jct_s": np.ones(3)}}
    with pytest.raises(ValueError, match="mmfs: 3 jobs but 50 under fcfs"):
        render_report(dataclasses.replace(results, jobs=jobs))


def test_a_bare_backtest_still_makes_a_page():
    bare = ReportInput(title="bare", trace={"name": "x"}, split={}, pools=[], rows=[], jobs={})
    assert "Nothing was measured against a baseline." in render_report(bare)


def test_predictors_are_told_by_their_figures():
    tables = predictor_tables({
        "will-jobs-arrive:2": {"horizons": {"5min": arrival_block(0.25)}},
        "new-load": {
            "coverage": 0.9, "coverage_nonzero": 0.8, "over": 2.0, "missed": 0.1, "worst_pool": 0.5,
            "worst_pool_name": "speech", "baselines": {"most ever": {"coverage": 1.0}},
        },
        "job-duration": {"accuracy": 0.8, "by_bin": {}, "baselines": {"rule": {"accuracy": 0.5}}},
    })  # fmt: skip
    arrivals, idle, load, bins = tables
    assert arrivals.rows[0][:5] == ("5min", "will-jobs-arrive:2", "0.660", "0.850", "0.740")
    assert [row[1].partition(":")[0] for row in arrivals.rows[1:]] == ["always", "persistence", "yesterday"]
    assert (idle.rows[0][-3], idle.rows[0][-1]) == ("5.00 %", "61.0 %")
    assert load.rows[0] == ("all", "new-load", "speech", "50.0 %", "90.0 %", "80.0 %", "2.00", "10.0 %")
    assert load.rows[1][:5] == ("all", "most ever", "–", "–", "100 %")
    assert [row[:2] for row in bins.rows] == [("job-duration", "0.800"), ("rule", "0.500")]


def test_the_same_input_gives_the_same_page():
    small = sample(200)
    assert render_report(small) == render_report(small)


def test_a_large_backtest_stays_a_small_page():
    assert len(render_report(sample(20_000)).encode()) < 3_000_000


def test_summary_table_fits_a_terminal():
    shown = summary_table(sample(300).rows)
    lines = shown.splitlines()
    assert max(map(len, lines)) <= 100
    assert "\x1b" not in shown
    assert sum(line.startswith("sia ") for line in lines) == 5
    for piece in ("speedup (gmean)", "slowed", "slowdown (min)", "mean JCT (", "registry:will-jobs-arrive=2"):
        assert piece in shown


def test_brackets_in_a_label_are_no_markup():
    rows = [{"label": "sia [red]mine[/red]", "policy": "sia", "forecasts": "registry", "speedup_gmean": 2.0}]
    assert "[red]mine[/red]" in summary_table(rows)


def test_numbers():
    assert [number(x) for x in (9.996, 999.6, 99.96, 0.001, 1e-9, -1234.5)] == [
        "10.0", "1,000", "100", "0.00100", "under 0.0001", "−1,234"
    ]  # fmt: skip
    assert between(None, 1.0) == "–"
    assert unit_for([]) == ("s", 1.0)
