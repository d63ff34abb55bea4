"""`jobcast simulate` for schedulers of energy: figures, tables, forecasts, settings, mistakes."""

import html
import re
import shlex

import polars as pl
import pytest

pytestmark = pytest.mark.usefixtures("untrained")
FIGURES = (
    *("makespan_s", "mean_jct_s", "utilization", "energy_kwh", "energy_eur", "tardiness_eur", "total_eur", "late_pct"),
)
COLUMNS = [
    *("job_id", "pool", "submit_time", "start_time", "end_time", "gpus", "duration", "preemptions"),
    *("migrations", "energy_kwh", "energy_eur", "tardiness_s", "tardiness_eur", "deadline"),
]
FEW = ("--set", "max_iterations=30")


@pytest.fixture
def words(campaign):
    """The command that simulates the campaign under a policy."""

    def of(policy, *more):
        files = ("--trace", campaign / "energy.jobs.parquet", "--cluster", campaign / "energy.yaml")
        profiles = f"--set=profiles={campaign / 'profiles.csv'}"
        return ("simulate", *files, "--forecasts", "oracle", "--policy", policy, profiles, *more)

    return of


def test_commands_of_pages_replay_the_rows_that_they_stand_beside(shell, campaign, tmp_path):
    """They named no table of `--set`, nothing of how the trace is read or counted, and the report no cluster."""
    files = ("--trace", campaign / "energy.jobs.parquet", "--cluster", campaign / "energy.yaml")
    facts = ("--set", f"profiles={campaign / 'profiles.csv'}", *FEW, "--warmup", "0.001", "--known-after-s", "5")
    words = (*files, "--forecasts", "oracle", *facts, "--drop-outliers", "--policies", "andreas,energy_fifo")
    told = shell.json("backtest", *words, "--baseline", "edf", "--out", tmp_path / "out")
    commands = commands_of(tmp_path / "out" / "report.html")
    replays = [shell.json(*command) for command in commands]
    kept = {one["policy"]: one for one in replays if "max_iterations" not in one["configuration"]["settings"]}
    assert (len(commands), set(kept)) == (4, {"edf", "andreas", "energy_fifo"})
    plain = {row["policy"]: row["figures"] for row in told["rows"] if "settings" not in row}
    for policy, figures in plain.items():
        assert {name: figures[name] for name in FIGURES} == {name: kept[policy][name] for name in FIGURES}
    page = tmp_path / "choice.html"
    shell.works("choose", *words, "--now", "edf", "--windows", 2, "--html", page)
    assert commands_of(page) == commands
    assert "in 2 windows, each begun anew, so its figures differ" in page.read_text(encoding="utf-8")


def commands_of(page):
    """The command lines of `simulate` on a page, without the name of the program."""
    text = html.unescape(page.read_text(encoding="utf-8"))
    return sorted({tuple(shlex.split(line)[1:]) for line in re.findall(r'"(jobcast simulate [^"]*)"', text)})


def test_an_invoice_charges_all_energy(shell, words, tmp_path):
    """Jobs' shares, and a row for what nodes drew for none, make the whole; a CSV is told to the microwatt-hour."""
    for name, slack in (("log.parquet", 1e-12), ("log.csv", 1e-5)):
        told = shell.json(*words("edf", "--out", tmp_path / name))
        bill = shell.json("invoice", "--out", tmp_path / name)
        for figure in ("energy_kwh", "energy_eur"):
            for rows in (bill["users"], bill["pools"], [bill["total"]]):
                assert sum(row[figure] for row in rows) == pytest.approx(told[figure], rel=slack)
    assert any("quotas" in note for note in bill["notes"])


@pytest.mark.parametrize("shift_s", [1e-6, 1e6])
def test_random_numbers_hang_on_no_clock(shell, words, campaign, tmp_path, shift_s):
    """A microsecond or eleven days later the same moves, as much later: nodes cost the same at any hour."""
    jobs = pl.read_parquet(campaign / "energy.jobs.parquet")
    later = pl.duration(microseconds=round(shift_s * 1e6))
    jobs.with_columns(pl.col("submit_time", "deadline") + later).write_parquet(tmp_path / "later.parquet")
    for trace, out in ((campaign / "energy.jobs.parquet", "now"), (tmp_path / "later.parquet", "then")):
        shell.works(*words("andreas", *FEW), "--trace", trace, "--set", f"segments={out}.parquet")
    now, then = (pl.read_parquet(tmp_path / f"{out}.parquet").sort("job_id", "from") for out in ("now", "then"))
    assert then.select("job_id", "node", "gpus").equals(now.select("job_id", "node", "gpus"))
    assert len(now) > 24  # some jobs move
    for name in ("from", "until"):
        assert (then[name].to_numpy() - now[name].to_numpy()).tolist() == pytest.approx([shift_s] * len(now), abs=2e-6)


def test_one_row_a_job_and_stretches_that_agree_with_it(shell, words):
    told = shell.json(*words("andreas", *FEW, "--out", "jobs.csv", "--set", "segments=segments.csv"))
    names = {"job_id": pl.String}
    rows, segments = (pl.read_csv(f"{name}.csv", schema_overrides=names) for name in ("jobs", "segments"))
    assert rows.columns[:8] == COLUMNS[:8]
    assert set(COLUMNS) < set(rows.columns)
    assert len(rows) == rows["job_id"].n_unique() == 24
    assert rows["energy_eur"].sum() == pytest.approx(told["energy_eur"], rel=1e-4)
    assert rows["tardiness_eur"].sum() == pytest.approx(told["tardiness_eur"], abs=1e-4)
    assert segments.columns == ["job_id", "node", "gpus", "from", "until"]
    for row in rows.to_dicts():
        mine = segments.filter(job_id=row["job_id"])
        assert mine["from"].min() == pytest.approx(row["start_time"], abs=1e-5)
        assert mine["until"].max() == pytest.approx(row["end_time"], abs=1e-5)
        assert len(mine) == 1 + row["migrations"] + row["preemptions"]
    first = rows["job_id"][0]
    held = shell.json("explain", "--out", "jobs.csv", "--job", first)["held"]
    gpu_s = segments.filter(job_id=first).select((pl.col("gpus") * (pl.col("until") - pl.col("from"))).sum()).item()
    assert sum(one["gpus"] * (one["until_s"] - one["from_s"]) for one in held) == pytest.approx(gpu_s)
    assert set(segments["node"]) <= {f"node-{at}" for at in range(1, 5)}


def test_what_profiling_takes_is_told(shell, words):
    plain, asked = (shell.json(*words("edf", *more)) for more in ((), ("--set", "profile_s=30")))
    assert "profiles" not in plain
    assert asked["profiles"] > 0
    assert 0 < asked["profiling_gpu_h"] <= asked["profiles"] * 2 * 30 / 3600
    assert asked["mean_wait_s"] > plain["mean_wait_s"]
    assert "setting profile_s must be" in shell.refuses(*words("edf", "--set", "profile_s=-1"))


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (("--set", "perod_s=3"), "setting perod_s: not known; did you mean period_s"),
        (("--set", "segments=s.txt"), "--set segments=s.txt: end the name in .csv or .parquet"),
        (("--set", "segments=s.csv", "--out", "./s.csv"), "is --out too"),
        (("--set", "known=p.csv"), "--set known: points that --forecasts registry goes by, not oracle"),
        (("--forecasts", "random"), "--forecasts random: forecasts no seconds an epoch; choose oracle, registry"),
        (("--forecasts", "registry"), "epoch-time"),
    ],
)
def test_mistakes_are_one_line(shell, words, more, line):
    assert line in shell.refuses(*words("andreas", *more))


def test_a_backtest_writes_no_segments(shell, campaign):
    files = ("--trace", campaign / "energy.jobs.parquet", "--cluster", campaign / "energy.yaml")
    settings = (f"--set=profiles={campaign / 'profiles.csv'}", "--set", "segments=s.csv")
    assert "--set segments: `simulate` writes them" in shell.refuses("backtest", *files, "--policies", "edf", *settings)
