"""How well can a job's size be told when it is submitted? What `jct` draws from, beside another strong method.

Sizes of the jobs that `bench_intervals.py` scores are forecast twice: by the distribution that
`jct` draws from, and by LightGBM's quantile regression, which also learns from all other virtual clusters of Philly
(`philly/philly_jobs.csv` and `pcs/` in the folder JOBCAST_DATA). Both know who was submitted before, when, how wide,
and how large those are that have ended, or how long they have run. Jobs are taken to start at once: in a queue less is
known. Told are pinball losses of the natural logarithm at 5, 25, 75 and 95 %, as in `bench_intervals.py`.

    JOBCAST_DATA=DIR python benchmarks/bench_size_information.py [--traces 0e4a51,2869ce]
"""

import argparse
from typing import NamedTuple

import lightgbm
import numpy as np
import pandas as pd
import polars as pl
from bench_intervals import GPUS, HISTORY, SCORED, asked_about, data

from jobcast.models.completion.intervals import pinball
from jobcast.models.completion.job_completions import SizeDraws, SizeForecaster

LEVELS = (0.05, 0.25, 0.75, 0.95)
REFITS = 4
"""Times that LightGBM learns anew along a trace; jobs of its own count three times."""
FEWEST = 250
"""Jobs of a virtual cluster that is learnt from."""


class Jobs(NamedTuple):
    """In order of submission, (n,): seconds, seconds on one GPU, GPUs, and seconds again."""

    submit_s: np.ndarray
    size_s: np.ndarray
    width: np.ndarray
    end_s: np.ndarray

    @classmethod
    def at_once(cls, submit_s, size_s, width):
        """Jobs that start when they are submitted."""
        return cls(submit_s, size_s, width, submit_s + size_s / width)

    def known_at(self, now_s, count):
        """Of the first `count`: who has ended, and sizes, of others as far as they are done."""
        ended = self.end_s[:count] <= now_s
        return ended, np.where(ended, self.size_s[:count], (now_s - self.submit_s[:count]) * self.width[:count])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", default=",".join(GPUS))
    traces = {name: pcs_jobs(name) for name in parser.parse_args().traces.split(",")}
    others = {name: (features(jobs), logs(jobs)) for name, jobs in virtual_clusters().items()}
    print(f"{'trace':<7} {'jobs':>5} {'jct':>7} {'lightgbm':>9} {'change':>7}")
    for name, jobs in traces.items():
        first = int(HISTORY * len(jobs.size_s))
        asked = first + np.array(asked_about(len(jobs.size_s) - first, SCORED))
        actual = logs(jobs)[asked]
        mine = loss(actual, by_jct(jobs, asked))
        other = loss(actual, by_lightgbm(jobs, asked, [one for key, one in others.items() if key != name]))
        print(f"{name:<7} {len(asked):>5} {mine:>7.3f} {other:>9.3f} {other / mine - 1.0:>7.0%}", flush=True)


def virtual_clusters():
    """Name -> jobs, of Philly."""
    table = pl.read_csv(data().parent / "philly" / "philly_jobs.csv", try_parse_dates=True).sort("timestamp")
    found = {}
    for (name,), one in table.group_by("cluster", maintain_order=True):
        width, run_s = one["num_gpus"].to_numpy(), np.maximum(one["duration"].to_numpy(), 1.0)
        if len(width) >= FEWEST:
            found[name] = Jobs.at_once(one["timestamp"].dt.epoch("ms").to_numpy() / 1e3, run_s * width, width)
    return found


def pcs_jobs(name):
    """Of the trace of a cluster."""
    table = pl.read_csv(data() / f"trace_{name}.csv")
    submit_s, size_s = (table[one].to_numpy().astype(np.float64) for one in ("submit_time", "service"))
    return Jobs.at_once(submit_s, size_s, table["num_jobs"].to_numpy())


def logs(jobs):
    return np.log(np.maximum(jobs.size_s, 1.0))


def by_jct(jobs, asked):
    """(n_asked, n_levels) quantiles of logarithms, settings fitted anew every twenty jobs."""
    found = []
    for number, job in enumerate(asked.tolist()):
        now_s = float(jobs.submit_s[job])
        ended, so_far_s = jobs.known_at(now_s, job)
        if number % 20 == 0:
            forecaster = SizeForecaster().fit(jobs.size_s[:job][ended], jobs.width[:job][ended])
        sample = forecaster.sample(so_far_s, ended, jobs.width[:job])
        drawn = [
            SizeDraws(sample, np.random.default_rng((job, future))).draw(np.full(10, jobs.width[job]), np.zeros(10))
            for future in range(30)
        ]
        found.append(np.quantile(np.log(np.maximum(drawn, 1.0)), LEVELS))
    return np.array(found)


def by_lightgbm(jobs, asked, others):
    """The same; all jobs of other clusters are known, of its own those that had ended."""
    table, result, found = features(jobs), logs(jobs), []
    for part in np.array_split(asked, REFITS):
        own = jobs.known_at(float(jobs.submit_s[part[0]]), int(part[0]))[0]
        tables = pd.concat([*(one for one, _ in others), table[: len(own)][own]])
        sizes = np.concatenate([*(one for _, one in others), result[: len(own)][own]])
        # No cluster counts more than some thousand jobs would.
        weights = [np.full(len(one), min(1.0, 4_000 / len(one))) for one, _ in others]
        weight = np.concatenate([*weights, np.full(int(own.sum()), 3.0)])
        found.append(np.column_stack([quantile(tables, sizes, weight, level, table.iloc[part]) for level in LEVELS]))
    return np.sort(np.concatenate(found), axis=1)


def quantile(tables, sizes, weight, level, asked):
    model = lightgbm.LGBMRegressor(
        objective="quantile",
        alpha=level,
        n_estimators=150,
        num_leaves=15,
        learning_rate=0.05,
        min_child_samples=40,
        verbose=-1,
        n_jobs=1,
    )
    return model.fit(tables, sizes, sample_weight=weight).predict(asked)


def features(jobs):
    """One row a job: its width, the time, and what is known of the jobs before it, above all of its width."""
    rows, same = [], {}
    result = logs(jobs)
    for job, (now_s, width) in enumerate(zip(jobs.submit_s.tolist(), jobs.width.tolist(), strict=True)):
        alike = same.setdefault(width, [])
        near = np.arange(max(0, job - 200), job)
        rows.append(
            {
                "width": np.log(width),
                "hour": now_s / 3600 % 24,
                "weekday": now_s / 86400 % 7,
                "burst": int((now_s - jobs.submit_s[alike[-300:]] <= 60.0).sum()) if alike else 0,
                **group("all", jobs, result, near, now_s),
                **group("alike", jobs, result, np.array(alike[-30:], dtype=np.int64), now_s),
                **neighbours(jobs, result, alike, now_s),
            }
        )
        alike.append(job)
    return pd.DataFrame(rows)


def group(name, jobs, result, rows, now_s):
    """Of the last jobs of a group: share that has ended, their logarithms, the longest that is known to run."""
    found = {}
    for last in (5, 20, 100):
        mine = rows[-last:]
        ended = jobs.end_s[mine] <= now_s
        sizes = result[mine][ended]
        found |= {
            f"{name}_ended_{last}": ended.mean() if len(mine) else np.nan,
            f"{name}_mean_{last}": sizes.mean() if len(sizes) else np.nan,
            f"{name}_spread_{last}": sizes.std() if len(sizes) else np.nan,
            f"{name}_age_{last}": np.log1p(now_s - jobs.submit_s[mine][~ended].min()) if not ended.all() else np.nan,
        }
    return found


def neighbours(jobs, result, alike, now_s):
    """Of the last three of its width, and of the one that ended last: size, or how far, and how long ago."""
    found = {}
    for back in (1, 2, 3):
        job = alike[-back] if len(alike) >= back else None
        ended = job is not None and jobs.end_s[job] <= now_s
        ago_s = np.nan if job is None else now_s - jobs.submit_s[job]
        found |= {
            f"ago_{back}": np.log1p(ago_s),
            f"ended_{back}": float(ended),
            f"size_{back}": result[job] if ended else np.log1p(ago_s * (jobs.width[job] if job is not None else 1)),
        }
    ended = [one for one in alike[-30:] if jobs.end_s[one] <= now_s]
    last = max(ended, key=lambda one: jobs.end_s[one]) if ended else None
    return found | {
        "size_last_ended": np.nan if last is None else result[last],
        "ago_last_ended": np.nan if last is None else np.log1p(now_s - jobs.end_s[last]),
    }


def loss(actual, quantiles):
    """Mean over the levels."""
    return float(np.mean([pinball(actual, quantiles[:, place], level) for place, level in enumerate(LEVELS)]))


if __name__ == "__main__":
    main()
