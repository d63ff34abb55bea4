"""The report: a page that stands alone and says what its figures say."""

import dataclasses
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from jobcast.pipelines.experiments.choice import Replays, choose
from jobcast.pipelines.report.advice import advice, in_money
from jobcast.pipelines.report.backtest_finding import find, lead_of
from jobcast.pipelines.report.backtest_page import ReportInput, render_report, summary_table
from jobcast.pipelines.report.backtest_tables import (
    Slowed,
    main_tables,
    pool_tables,
    pools_table,
    slowed_of,
    slowed_table,
    summaries,
    versions_table,
)
from jobcast.pipelines.report.formatting import between, duration, number, unit_for
from jobcast.pipelines.report.gains import paired_gains
from jobcast.pipelines.report.predictor_tables import predictor_tables
from tests.shared import refused

DAY_S = 86400.0
BEGIN_S = 1_509_926_400.0  # 2017-11-06
BASELINES = {"runtime": "fcfs"}
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
    user = np.where(pool == "vision", "ann", None)
    duration_s = rng.lognormal(7, 2, count)
    wait_s = np.where(rng.random(count) < 0.6, rng.lognormal(9, 1.5, count), 0.0)
    found = {}
    for policy, kind, speedup, slowed in CONFIGURATIONS:
        mine_s = wait_s / (1 + (speedup - 1) * rng.lognormal(0, 1, count))
        if speedup > 1:
            mine_s += np.where(rng.random(count) < slowed, rng.lognormal(7, 1.5, count) + wait_s, 0.0)
        mine = {"submit_s": submit_s, "jct_s": mine_s + duration_s, "wait_s": mine_s, "pool": pool, "user": user}
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
    saved = {"saved_h_week": float((base_s - jct_s).sum() / 3600 * 7 / 20), "saved_gpu_h_week": 1.0}
    return row_like(policy, kind, plain, seed=seed, **saved)


def row_like(policy: str, kind: str | None, figures: dict, **rest) -> dict:
    """A row of a backtest; gssf ignores quotas, las stops jobs too."""
    told = {
        "label": label(policy, kind), "policy": policy, "forecasts": kind, "future": kind == "oracle", "law": "runtime",
        "scope": "cluster" if policy in ("gssf", "las") else "pool", "preempts": policy == "las", "window": 0,
        "seed": 0, "saved_h_week": None, "saved_gpu_h_week": None, "figures": figures,
    }  # fmt: skip
    return told | rest


def gain_like(one: str, other: str, ratio: float, low: float | None, high: float | None) -> dict:
    """A gain of one row over another, without the change in slowed jobs."""
    return {
        "label": one, "against": other, "metric": "speedup", "ratio": ratio, "low": low, "high": high, "jobs": 10,
        "days": 3, "left_out": 0, "confidence": 0.95, "mean_jct_change_s": -60.0,
    }  # fmt: skip


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
    gains = []
    for a, b in [*pairs, *((name, "fcfs") for name in names[1:])]:
        told = paired_gains(jobs[a]["jct_s"], jobs[b]["jct_s"], submit_s, seed=0, jct_baseline=base_s)
        ratio = [told.pop(f"speedup{end}") for end in ("", "_low", "_high")]
        gains.append(gain_like(a, b, *ratio) | told)
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
        baselines=BASELINES,
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
        choice=choice_of(jobs),
    )  # fmt: skip


def bare(rows, jobs, **more) -> ReportInput:
    """No more than what is asked about."""
    plain = {"title": "x", "trace": {"name": "x"}, "split": {}, "pools": []}
    return ReportInput(rows=rows, jobs=jobs, **plain | more)


def choice_of(jobs) -> dict:
    """What the rule recommends, of one window of 20 days."""
    base = jobs["fcfs"]
    rows = [
        Replays(
            label(policy, kind), policy, kind, {}, [jobs[label(policy, kind)]["jct_s"]], [base["jct_s"]],
            [base["submit_s"]], [20.0], kind == "oracle", kind == "random", [base["pool"]],
        )
        for policy, kind, *_ in CONFIGURATIONS
    ]  # fmt: skip
    return choose(rows, "fcfs", 1.0)


@pytest.fixture(scope="module")
def results() -> ReportInput:
    return sample()


@pytest.fixture(scope="module")
def page(results) -> str:
    return render_report(results)


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


def test_the_page_stands_alone(page):
    found = outline(page)
    assert not found.links
    # What browsers do with it is seen in test_pages_in_browser.
    assert found.tags.count("script") == 1 + found.tags.count("figure")
    assert "@import" not in page
    assert len(found.ids) == len(set(found.ids))


def test_the_page_is_accessible(page):
    found = outline(page)
    assert found.tags.count("h1") == 1
    assert found.tags.count("caption") == found.tags.count("table") >= 7
    assert found.tags.count("figure") == found.tags.count("figcaption") == page.count('class="plot" role="img"')
    assert found.tags.count("figure") == 12
    assert re.search(r'<html lang="en">', page)


def test_text_of_users_is_escaped(page):
    assert "<script>alert" not in page
    assert "&lt;script&gt;" in page
    assert "<b>robots</b>" not in page
    assert "&lt;b&gt;robots&lt;/b&gt;" in page
    assert "search &amp; ads" in page


def test_the_headline_holds_the_computed_figures(results):
    rows = {row["label"]: row for row in results.rows}
    finding = find(summaries(results.rows), results.gains, BASELINES, slowed_of(results.jobs, "sia registry", "fcfs"))
    champion, base = (rows[label]["figures"] for label in ("sia registry", "fcfs"))
    gain = next(one for one in results.gains if (one["label"], one["against"]) == ("sia registry", "fcfs"))
    unit, unit_s = unit_for([base["mean_jct_s"]])
    after, before = (f"{number(one['mean_jct_s'] / unit_s)} {unit}" for one in (champion, base))
    assert finding.lead == (
        f"Under sia with the champion's forecasts, jobs end after {after} on average instead of {before} under fcfs: "
        f"{champion['speedup_gmean']:.3g} times as fast (geometric mean; 95 % interval "
        f"{between(gain['low'], gain['high'])})."
    )
    told = " ".join(finding.sentences)
    saved, bound = rows["sia registry"]["saved_h_week"], rows["sia oracle"]["saved_h_week"]
    assert f"It saves {number(saved)} h of waiting for results a week against fcfs (JCT-hours" in told
    assert f"would save {number(bound)} h a week" in told
    assert f"gets {number(100 * saved / bound)} % of what better forecasts could give it" in told
    careful = [{**row, "saved_h_week": saved / 2} if row["label"] == "sia oracle" else row for row in results.rows]
    wanted = f"save {number(saved / 2)} h a week and slow 0 % of the jobs: sia with the champion's forecasts saves more"
    assert wanted in " ".join(find(summaries(careful), results.gains, BASELINES).sentences)
    late_s = results.jobs["sia registry"]["jct_s"] - results.jobs["fcfs"]["jct_s"]
    slowed = late_s[late_s > 0]
    assert f"It slows {len(slowed)} of 3,000 jobs ({100 * len(slowed) / 3000:.3g} %)" in told
    assert f"{duration(np.median(slowed))} in the median and {duration(slowed.max())} at worst; hit most: pools" in told
    assert "; users ann (" in told
    assert "tell good forecasts" not in told


def test_the_first_screen_advises_by_the_rule_and_says_why(results):
    told = advice(results.choice)
    by_label = {one["label"]: one for one in results.choice["candidates"]}
    taken = by_label["sia registry:will-jobs-arrive=2,new-load=1,job-duration=1"]
    assert told.lead == (
        "Run sia with the forecasts of will-jobs-arrive 2, new-load 1, job-duration 1 instead of fcfs: people wait "
        f"{number(taken['saved_h_week'])} hours a week less for results, and 0.400 % of the jobs end later."
    )
    assert dict(told.tiles)["people slowed on the whole"] == "0 of 4"
    # sia twice and the conservative one can be had and slow few; random and exact forecasts cannot be had.
    assert told.sentences[0].startswith("Why this one: Of 10 ways to schedule, replayed on the same 3,000 jobs, 3 can")
    assert told.sentences[2].startswith("Bolder: gssf would save")
    rows = [row for rows in told.drawing.chart.spec["datasets"].values() for row in rows]
    points = {row["label"]: row for row in rows if "label" in row}
    assert {label: one["series"] for label, one in points.items()} == {
        "fcfs": "in use now", taken["label"]: "recommended", "sia registry": "could be run",
        "sia conservative": "could be run", "sia oracle": "cannot be had", "sia_vc oracle": "cannot be had",
        "sia random": "cannot be had", "mmfs": "slows too many", "ssf": "slows too many", "gssf": "slows too many",
    }  # fmt: skip
    assert points["mmfs"]["command"] == "jobcast simulate --trace FILE --policy mmfs"
    axes = [layer["encoding"].get("x", {}).get("axis") for layer in told.drawing.chart.spec["layer"]]
    most = max(row["slowdown_h_week"] for row in points.values())
    assert [1.0, 10.0, 100.0, 1000.0, 10000.0][: int(np.log10(most)) + 1] == axes[1]["values"][1:]


def test_nothing_beyond_doubt_means_stay():
    jobs = jobs_of(300)
    base = jobs["fcfs"]
    times = ([base["jct_s"]], [base["jct_s"]], [base["submit_s"]], [20.0])
    rows = [Replays(name, name, None, {}, *times, False) for name in ("fcfs", "easy")]
    told = advice(choose(rows, "fcfs", 1.0))
    assert told.lead.startswith("Stay with fcfs: nothing that was replayed is faster beyond doubt")
    assert told.sentences == [
        "Why: Of 2 ways to schedule, replayed on the same 300 jobs, the best that slows few is easy, 1.00 times as "
        "fast (95 % interval 1.00 to 1.00): an interval that reaches 1 may be chance."
    ]


def test_without_days_for_an_interval_none_is_told():
    rows = [Replays(name, name, None, {}, *([np.ones(1)],) * 3, [1.0], False) for name in ("fcfs", "easy")]
    assert advice(choose(rows, "fcfs", 1.0)).sentences == [
        "Why: Of 2 ways to schedule, replayed on the same 1 job, the best that slows few is easy, 1.00 times as fast: "
        "too few days for an interval."
    ]


def test_what_is_cheaper_is_told_beside_what_is_sooner():
    """A week each: 10 EUR now, 4 under ps, 1 under what reads the future, which cannot be had."""
    prices = {"edf": 10.0, "ps": 4.0, "greedy": 1.0}
    rows = [
        Replays(name, name, None, {}, *([np.ones(1)],) * 3, [7.0], name == "greedy", eur=[eur])
        for name, eur in prices.items()
    ]
    about = "In money: the choice goes by waiting alone; energy and lateness cost"
    assert (
        in_money(choose(rows, "edf", 1.0))
        == f"{about} 10.0 EUR a week, under ps 4.00 EUR, with 0 % of the jobs ending later."
    )
    assert in_money(choose(rows[1:], "ps", 1.0)) == f"{about} 4.00 EUR a week."
    assert (
        advice(choose(rows[::-1], "greedy", 1.0)).sentences[-1]
        == f"{about} 1.00 EUR a week, no more than under any other."
    )
    assert in_money(choose([replace(row, eur=()) for row in rows], "edf", 1.0)) == ""


def test_versions_are_those_of_what_is_recommended(results):
    rows = [{**row, "versions": {"new-load": 7} if row["label"] == "sia registry" else {}} for row in results.rows]
    asked = {**results.choice, "choice": {**results.choice["choice"], "label": "sia registry"}}
    stay = {**results.choice, "switch": False, "choice": {**results.choice["choice"], "label": "fcfs"}}
    tile = '<dt>versions</dt><dd class="long">new-load 7</dd>'
    assert tile in render_report(dataclasses.replace(results, rows=rows, choice=asked))
    assert tile not in render_report(dataclasses.replace(results, rows=rows, choice=stay))


def rows_like(**kinds: tuple[float, float]) -> list[dict]:
    return [
        row_like("sia", kind, {"speedup_gmean": gmean, "slowed_pct": slowed}) for kind, (gmean, slowed) in kinds.items()
    ]


def found(rows: list[dict], gains=()):
    return find(summaries(rows), list(gains), BASELINES)


def test_a_window_that_tells_nothing_apart_is_called_so():
    finding = found(rows_like(registry=(1.5, 0.0), oracle=(1.55, 0.0), random=(1.5, 0.05)))
    assert "it cannot tell good forecasts from bad ones" in finding.sentences[-1]
    assert "It slows no job." in finding.sentences
    told = found(rows_like(registry=(1.5, 0.0), random=(1.5, 3.0))).sentences
    assert not any("cannot tell" in sentence for sentence in told)
    told = found(rows_like(registry=(1.5, 0.0))).sentences
    assert "No random forecasts were replayed" in told[-1]


def test_the_lead_is_the_first_that_can_be_had():
    def lead(*asked: tuple[str, str | None]) -> str:
        rows = [row_like(*one, {"speedup_gmean": 2.0}) for one in (("fcfs", None), *asked)]
        chosen = lead_of(summaries(rows), BASELINES)
        return chosen.label if chosen else ""

    assert lead(("las", None), ("pcs", "registry:regime=1"), ("sia", "registry")) == "pcs registry:regime=1"
    assert lead(("sia", "oracle"), ("sia", "random"), ("las", None)) == "las"
    assert lead(("sia", "oracle"), ("sia", "random")) == "sia oracle"
    assert lead() == ""
    assert found([]).lead == "Nothing was measured against a baseline."
    told = found(rows_like(oracle=(2.0, 0.0)))
    assert told.lead.endswith("exact coarse forecasts, jobs end beside fcfs 2.00 times as fast (geometric mean).")
    assert told.sentences[1].startswith("Its forecasts are read off the trace")


def test_what_is_faster_is_told_with_its_price():
    base = {"slowed_pct": 1.0, "slowdown_total_min": 60.0, "speedup_gmean": 2.0}
    lead = row_like("sia", "registry", base | {"mean_jct_s": 7200.0})
    dear = row_like("las", None, base | {"mean_jct_s": 3600.0, "slowed_pct": 20.0, "slowdown_total_min": 600.0})
    free = row_like("mmfs", None, base | {"mean_jct_s": 5400.0})
    slower = row_like("ssf", "registry", base | {"mean_jct_s": 9000.0})
    told = found([lead, dear, free, slower]).sentences
    assert told[1] == (
        "las ends jobs after 60.0 min on average, but slows 20.0 % of the jobs instead of 1.00 %, by 10.0 h in all "
        "instead of 1.00 h, stops jobs that run and ignores quotas."
    )
    assert told[2] == (
        "mmfs ends jobs after 90.0 min on average, and slows no more jobs than sia with the champion's forecasts."
    )
    assert not any(sentence.startswith("ssf") for sentence in told)


def test_without_versions_the_fastest_that_can_be_had_leads_and_gentler_ones_follow():
    def row(policy: str, jct_h: float, slowed: float, kind: str | None = None, law: str = "runtime") -> dict:
        figures = {"mean_jct_s": 3600 * jct_h, "slowed_pct": slowed, "speedup_gmean": 10 / jct_h}
        return row_like(policy, kind, figures, law=law)

    rows = [
        row("fcfs", 10, 0), row("mmfs", 5, 12), row("las", 2, 35), row("hived", 6, 0.5), row("gssf", 1, 3, "oracle"),
        row("elastic_fifo", 8, 0, law="speedup"), row("srsf", 4, 2, "oracle", "speedup"),
    ]  # fmt: skip
    finding = find(summaries(rows), [], {"runtime": "fcfs", "speedup": "elastic_fifo"})
    assert finding.lead.startswith("Under las, jobs end after 2.00 h on average instead of 10.0 h under fcfs: 5.00 ")
    assert list(finding.sentences) == [
        "It slows 35.0 % of the jobs.",
        "It stops jobs that run and ignores quotas.",
        "gssf with exact forecasts, which nobody has, would end jobs after 60.0 min on average.",
        "Of those that keep to quotas and stop no job mmfs is the fastest: jobs end after 5.00 h on average, 12.0 % "
        "are slowed.",
        "Of those that slow at most 1 % of the jobs hived is the fastest: jobs end after 6.00 h on average, 0.500 % "
        "are slowed.",
        "Where jobs progress by speedup, they end after 4.00 h on average under srsf with exact forecasts instead of "
        "8.00 h under elastic_fifo; 2.00 % are slowed.",
    ]


def test_versions_are_told_apart_only_where_their_interval_does():
    kinds = ("registry", "registry:new-load=1", "registry:new-load=2", "registry:new-load=3")
    gains = [
        gain_like("sia registry", "sia registry:new-load=1", 1.2, 1.1, 1.3),
        gain_like("sia registry", "sia registry:new-load=2", 0.8, 0.7, 0.9),
        gain_like("sia registry", "sia registry:new-load=3", 1.1, 0.9, 1.2),
    ]
    told = found(rows_like(**dict.fromkeys(kinds, (1.5, 0.0))), gains).sentences
    assert list(told[1:4]) == [
        "Its jobs end sooner than with registry:new-load=1: 1.20 × (1.10 to 1.30).",
        "Its jobs end later than with registry:new-load=2: 0.800 × (0.700 to 0.900).",
        "These days do not tell it from registry:new-load=3 (0.900 to 1.20).",
    ]


def test_the_main_table_by_hand():
    figures = {
        "speedup_gmean": 11.234, "slowed_pct": 0.1834, "slowdown_total_min": 5027.4, "slowdown_max_min": 163.0,
        "mean_jct_s": 7200.0, "utilization": 0.534, "cpu_s": 1.5,
    }  # fmt: skip
    rows = [
        row_like("fcfs", None, {"mean_jct_s": 36000.0, "speedup_gmean": 1.0}),
        row_like("sia", "registry:new-load=2", figures, versions={"new-load": 2, "job-duration": 4}, saved_h_week=12.0),
        row_like("las", None, {**figures, "mean_jct_s": 3600.0}),
        row_like("sia", "oracle", {**figures, "mean_jct_s": 5400.0}),
    ]
    (table,) = main_tables(summaries(rows), [gain_like("las", "fcfs", 11.2, 9.0, 12.0)], "fcfs", BASELINES)
    assert table.head == (
        "policy", "forecasts", "mean JCT (h)", "saved h/week", "speedup", "95 % interval", "slowed",
        "by (h)", "at worst (h)", "utilisation", "CPU (s)",
    )  # fmt: skip
    assert [row[:3] for row in table.rows] == [
        ("las†‡", "–", "1.00"),
        ("sia", "oracle*", "1.50"),
        ("sia", "registry:new-load=2 (job-duration 4)", "2.00"),
        ("fcfs (baseline)", "–", "10.0"),
    ]
    assert table.rows[2][3:] == ("+12.0", "11.2", "–", "0.183 %", "83.8", "2.72", "53.4 %", "1.50")
    assert table.rows[0][5] == "9.00 to 12.0"
    for told in ("† stops jobs", "‡ ignores quotas", "* reads the future off the trace"):
        assert told in table.note


def test_a_law_is_a_table_and_its_rows_are_not_compared_with_the_baseline():
    rows = [
        row_like("pcs", None, {"mean_jct_s": 60.0}, law="speedup"),
        row_like("fcfs", None, {"mean_jct_s": 36000.0, "speedup_gmean": 1.0}),
    ]
    home, other = main_tables(summaries(rows), [], "fcfs", BASELINES)
    assert home.caption == "Policies and forecasts: law runtime, each runs its time on the GPUs that it asked for"
    assert (other.head, other.rows) == (("policy", "mean JCT (s)"), [("pcs", "60.0")])
    assert other.note.startswith("No hours saved and no speedups: nobody here is a baseline")
    shown = summary_table({"rows": rows, "baseline": "fcfs", "baselines": BASELINES}).splitlines()
    assert shown[0].startswith("Policies and forecasts: law runtime, ")
    jobs = {name: {"jct_s": np.ones(count), "pool": ["a"] * count} for name, count in (("fcfs", 2), ("pcs", 3))}
    jobs["fcfs"]["wait_s"] = np.zeros(2)
    assert "law speedup" in render_report(bare(rows, jobs))


def test_each_law_has_its_own_baseline():
    rows = [
        row_like("fcfs", None, {"mean_jct_s": 36000.0, "speedup_gmean": 1.0}),
        row_like("elastic_fifo", None, {"mean_jct_s": 80.0, "speedup_gmean": 1.0}, law="speedup"),
        row_like("srsf", None, {"mean_jct_s": 60.0, "speedup_gmean": 1.5}, law="speedup"),
    ]
    gains = [gain_like("srsf", "elastic_fifo", 1.5, 1.4, 1.6)]
    bases = {"runtime": "fcfs", "speedup": "elastic_fifo"}
    home, other = main_tables(summaries(rows), gains, "fcfs", bases)
    assert home.rows == [("fcfs (baseline)", "10.0", "1.00")]
    assert other.rows == [("srsf", "60.0", "1.50", "1.40 to 1.60"), ("elastic_fifo (baseline)", "80.0", "1.00", "–")]
    assert home.note.startswith("Each job is compared with itself under fcfs. Saved are")
    assert other.note == "Each job is compared with itself under elastic_fifo."
    assert "Paired gains" not in render_report(bare(rows, {}, baselines=bases, gains=gains))


def test_versions_by_policy_are_a_matrix():
    kinds = ("registry:regime=1", "registry:regime=2")
    rows = [row_like(policy, kind, {}) for policy in ("shockwave", "ossp") for kind in kinds]
    gains = [gain_like(f"{name} {kinds[0]}", f"{name} {kinds[1]}", 1.2, 1.1, 1.3) for name in ("shockwave", "ossp")]
    table = versions_table(summaries(rows), gains)
    assert table is not None
    assert table.head == ("policy", "registry:regime=1 over registry:regime=2")
    assert table.rows == [("shockwave", "1.20 (1.10 to 1.30)"), ("ossp", "1.20 (1.10 to 1.30)")]
    assert versions_table(summaries(rows), gains[:1]) is None


def test_who_is_slowed_by_hand():
    jobs = {
        "fcfs": {"jct_s": np.full(5, 600.0), "pool": list("aabbb"), "user": ["x", None, "x", "y", "y"]},
        "sia": {"jct_s": np.array([900.0, 1200.0, 600.0, 660.0, np.nan]), "pool": list("aabbb")},
    }
    told = slowed_of(jobs, "sia", "fcfs")
    assert told == Slowed(3, 4, 300.0, 600.0, [("a", 2), ("b", 1)], [("x", 1), ("y", 1)])
    table = slowed_table(jobs, "fcfs")
    assert table is not None
    assert table.rows == [("sia", "a (2) and b (1)", "x (1) and y (1)", "3", "5.00", "10.0")]
    assert slowed_of(jobs, "mmfs", "fcfs") is None
    # Ends later by 10 and 20 days.
    jobs["sia"] = {"jct_s": np.array([864_600.0, 1_728_600.0, 600.0, 600.0, np.nan]), "pool": list("aabbb")}
    table = slowed_table(jobs, "fcfs")
    assert table is not None
    assert (table.head[-2:], table.rows[0][-2:]) == (("median (d)", "worst (d)"), ("15.0", "20.0"))


def test_waits_of_pools_are_in_a_unit_that_suits_them():
    jobs = {"fcfs": {"pool": ["a", "b"], "wait_s": [1.0, 3.0]}}
    table = pools_table([{"name": name, "gpus": 4} for name in ("a", "b", "c")], jobs, "fcfs")
    assert table is not None
    assert table.head[-1] == "mean wait under fcfs (s)"
    assert [row[-1] for row in table.rows] == ["1.00", "3.00", "–"]
    # Nodes without quotas are one pool, which no job names: 0 jobs were told as replayed.
    jobs = {"fcfs": {"pool": ["a", "b", "b"], "wait_s": [60.0, 120.0, 300.0]}}
    table = pools_table([{"name": "all", "gpus": 10}], jobs, "fcfs")
    assert table is not None
    assert (table.rows, table.head[-1]) == ([("all", "10", "3", "2.67")], "mean wait under fcfs (min)")


def test_what_was_skipped_and_assumed_is_told():
    trace = {"name": "x", "pools_origin": "quotas: pools file p.csv"}
    skipped = [{"policy": "mlfs", "lacks": "a table of tasks"}]
    known = {"trace": trace, "split": {"train_until_s": 0.0}, "assumptions": ["Scaling is assumed."]}
    page = render_report(bare([], {}, skipped=skipped, **known))
    shown = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))
    for piece in ("mlfs a table of tasks", "Scaling is assumed.", "Quotas: pools file p.csv."):
        assert piece in shown, piece
    assert "trained on" not in shown


def test_pool_tables_by_hand():
    pool = np.array(["a", "b", "a"])
    jobs = {
        "fcfs": {"jct_s": np.array([10.0, 10.0, 40.0]), "pool": pool},
        "sia": {"jct_s": np.array([5.0, 20.0, 5.0]), "pool": pool},
    }
    speedups, slowed = pool_tables(jobs, "fcfs")
    # a: sqrt(2 x 8) = 4; b: 0.5; all: (2 x 8 x 0.5) ** (1/3) = 2.
    assert speedups.head == ("configuration", "all", "a", "b")
    assert speedups.rows == [("sia", "2.00", "4.00", "0.500")]
    assert slowed.rows == [("sia", "33.3 %", "0 %", "100 %")]
    for one in jobs.values():
        one["pool"] = np.array(["all", "b", "all"])
    assert pool_tables(jobs, "fcfs")[0].rows == [("sia", "2.00", "4.00", "0.500")]
    # Of one pool they would tell what the main table does.
    jobs["fcfs"]["pool"] = np.array(["all"] * 3)
    assert pool_tables(jobs, "fcfs") == []


def test_other_jobs_than_the_baselines_are_refused():
    results = sample(50)
    jobs = {**results.jobs, "mmfs": {"jct_s": np.ones(3)}}
    refused(ValueError, "mmfs: 3 jobs but 50 under fcfs", render_report, dataclasses.replace(results, jobs=jobs))


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


def test_summary_table_fits_a_terminal():
    shown = summary_table({"rows": sample(300).rows, "baseline": "fcfs", "baselines": BASELINES})
    lines = shown.splitlines()
    assert max(map(len, lines)) <= 100
    assert "\x1b" not in shown
    assert sum(line.startswith("sia ") for line in lines) == 5
    heads = ("speedup", "slowed", "by (h)", "mean JCT (", "saved h/week")
    for piece in (*heads, "‡ ignores quotas", "registry:will-jobs-arrive=2"):
        assert piece in shown


def test_numbers_of_a_table_in_a_terminal_are_whole_beside_long_names():
    """Of rows that leave no room rich cut what stands at the right: 1,352 hours were told as 1,35."""
    given = {"mean_jct_s": 36000.0, "speedup_gmean": 1.0, "slowed_pct": 12.2, "slowdown_total_min": 81_120.0}
    rows = [
        row_like("energy_fifo", "registry:epoch-time=3412", given, law="epochs", saved_h_week=3.0),
        row_like("edf", "registry:epoch-time=3412", given, law="epochs", saved_h_week=3.0),
    ]
    told = {"rows": rows, "baseline": "fcfs", "baselines": {"epochs": "energy_fifo registry:epoch-time=3412"}}
    shown = summary_table(told)
    assert max(map(len, shown.splitlines())) <= 100
    assert shown.count("1,352") == 2
    assert "by (h)" in shown


def test_numbers():
    assert [number(x) for x in (9.996, 999.6, 99.96, 0.001, 1e-9, -1234.5)] == [
        "10.0", "1,000", "100", "0.00100", "under 0.0001", "−1,234"
    ]  # fmt: skip
    assert between(None, 1.0) == "–"
    assert unit_for([]) == ("s", 1.0)
