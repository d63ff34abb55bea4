"""What an event of a running cluster costs where its log holds a long past: of the server, and of the advisor.

    PYTHONPATH=. python benchmarks/bench_events.py [--ended 200000] [--waiting 500] [--events 20]

A log is made up: jobs of a campus that have ended within a year, and some that wait. Predictors are fitted on its last
days. Told are seconds, CPU but where the name says otherwise, and GB in all after that step: of starting up, then per
event (median and longest) of posting it and of what is asked next. Every fifth event happened before others were known.

Of 200,000 jobs, ms in the median, where each event made all rows anew, and since a job that changes costs its own:

    taking an event in 1,800 to 2,700, 3; forecasts 4,400, 4; /metrics 66, 3; a look at the versions 4,200, 19
    a round of futures 8,100, 1,100; a look at Slurm 154, 6; advice 2,450, 8; until it is ready 17 s, 6 s

Of a million jobs since then: 3, 6, 12, 25, 1,000, 6, 7, 28 s; 1.6 GB when it is ready, 2.1 GB after the first round.
"""

import argparse
import json
import os
import resource
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from jobcast.domain.clock import DAY_S
from jobcast.domain.jobs import Pool
from jobcast.features.corpus import build_corpus
from jobcast.live.advisor import Advisor
from jobcast.live.champions import ARRIVALS, DURATIONS, LOADS, ChampionWatch
from jobcast.live.event_log import END, LOOK, START, SUBMIT, Event, EventLog, kept_for_good
from jobcast.live.forecasts import ChampionForecasts
from jobcast.live.server.access import Asker, Role
from jobcast.live.server.metrics import exposition
from jobcast.live.server.service import Service
from jobcast.live.state import LogReader
from jobcast.models.job_duration import JobDuration
from jobcast.models.new_load import NewLoad
from jobcast.models.registry import ModelCard, Registry, open_registry
from jobcast.models.will_jobs_arrive import WillJobsArrive
from jobcast.schedulers.registry import make_policy
from jobcast.traces.history import pool_histories
from jobcast.traces.table import Source, Trace
from tests.live.imagined_slurm import ImaginedSlurm

YEAR_S = 365 * DAY_S
POOLS = [Pool("ab"[row % 2] if row < 2 else f"pool{row:02}", 16) for row in range(12)]
HORIZONS_MIN = (5, 60)
KNOWN_DAYS = 4
SEEN = 0.25
"""Seconds from one event to the next, and from what happened until it is known."""


def campus(ended: int, waiting: int, now_s: float) -> Iterator[Event]:
    """Events by when they were known: jobs come by day, in bursts of their users."""
    draw = np.random.default_rng(1)
    submit_s = np.sort(now_s - 2 * DAY_S - draw.uniform(0.0, YEAR_S, ended)).round(3)
    start_s = np.round(submit_s + draw.exponential(600.0, ended) * (draw.uniform(size=ended) < 0.3), 3)
    run_s = np.clip(draw.lognormal(6.5, 2.0, ended), 1.0, DAY_S).round(3)
    who, what = draw.zipf(1.5, ended) % 300, draw.integers(0, 40, ended)
    gpus = draw.choice([1, 1, 1, 2, 4, 8], ended)
    rows = []
    for row in range(ended):
        name, user = f"{row}", f"u{who[row]}"
        pool = POOLS[int(who[row]) % len(POOLS)].name
        facts = {"pool": pool, "gpus": int(gpus[row]), "user": user, "tag": f"{user}-{what[row]}"}
        came_s, began_s, over_s = float(submit_s[row]), float(start_s[row]), float(start_s[row] + run_s[row])
        rows.append(Event(came_s, SUBMIT, name, came_s, facts))
        rows.append(Event(began_s, START, name, began_s, {"dedicated": True}))
        rows.append(Event(over_s, END, name, over_s, {"duration_s": float(run_s[row])}))
    rows.sort(key=lambda one: one.known_s)
    yield from rows
    for row in range(waiting):
        came_s = now_s - waiting + row
        facts = {"pool": POOLS[row % 12].name, "gpus": 8, "user": f"u{row % 50}", "tag": "t", "time_limit_s": 7_200.0}
        yield Event(came_s, SUBMIT, f"w{row}", came_s, facts)
        if row < 24:
            yield Event(came_s, START, f"w{row}", came_s, {"dedicated": True})


def fitted(events: list[Event], until_s: float) -> list[Any]:
    """Predictors from the last days of a log."""
    rows = [one for one in events if one.kind == SUBMIT and until_s - KNOWN_DAYS * DAY_S <= one.at_s < until_s]
    run_s = {one.job_id: one.facts["duration_s"] for one in events if one.kind == END}
    rows = [one for one in rows if one.job_id in run_s]
    at_us = pl.Series((np.array([one.at_s for one in rows]) * 1e6).astype(np.int64)).cast(pl.Datetime("us", "UTC"))
    table = {"job_id": [one.job_id for one in rows], "submit_time": at_us, "duration": [run_s[o.job_id] for o in rows]}
    table |= {name: [one.facts[name] for one in rows] for name in ("pool", "gpus", "user", "tag")}
    trace = Trace(pl.DataFrame(table), "campus", Source("campus.csv", "5" * 64, len(rows)), (), {})
    histories, from_s = pool_histories(trace), until_s - KNOWN_DAYS * DAY_S
    return [
        WillJobsArrive().fit(build_corpus(histories, from_s, until_s, HORIZONS_MIN), until_s),
        NewLoad("sliding-max").fit(histories, from_s, until_s, HORIZONS_MIN),
        JobDuration(HORIZONS_MIN).fit(trace, until_s),
    ]


def registered(home: Path, predictors: list[Any], until_s: float) -> Registry:
    """A registry whose champions they are."""
    registry = open_registry(home)
    for one in predictors:
        one.save(home / "drafts" / one.name)
        card = ModelCard(
            name=one.name, algorithm=one.algorithm, seed=1, trace_name="campus", trace_sha256="5" * 64, trace_rows=1,
            train_from_s=until_s - KNOWN_DAYS * DAY_S, train_until_s=until_s, feature_names=(), parameters={},
            metrics={},
        )  # fmt: skip
        registry.register(home / "drafts" / one.name, card)
    return registry


class Costs:
    """CPU seconds by step."""

    def __init__(self) -> None:
        self._took_s = defaultdict[str, list[float]](list)

    def of(self, name: str, work: Callable[[], Any]) -> Any:
        """Do it, and note what it took."""
        begun = time.thread_time()
        result = work()
        self._took_s[name].append(time.thread_time() - begun)
        return result

    def told(self) -> dict[str, Any]:
        """Milliseconds by step: median and longest."""
        return {
            name: {"p50_ms": 1e3 * float(np.median(one)), "max_ms": 1e3 * max(one)}
            for name, one in self._took_s.items()
        }


def gb() -> float:
    """Of memory that is held now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e9


def serve(home: Path, registry: Registry, now_s: float, events: int) -> dict[str, Any]:
    """A server's service: from its start until it is ready, and event after event."""
    at_s, result = [now_s], {"gb_before": gb()}
    begun = time.process_time()
    with kept_for_good():
        service = Service(LogReader(EventLog(home)), POOLS, registry, lambda: at_s[0], policy="fcfs")
    result["started_s"], result["gb_started"] = time.process_time() - begun, gb()
    service.take([Event(now_s, LOOK, "", now_s)])
    service.watch.poll()
    assert not service.forecasts(now_s).degraded, service.forecasts(now_s)
    result["ready_s"], result["gb_ready"] = time.process_time() - begun, gb()
    service.look()
    service.refresh()
    result["first_round_s"], result["gb_first_round"] = time.process_time() - begun, gb()
    costs, asker = Costs(), Asker(Role.ADVISE)
    for number in range(events):
        at_s[0] += SEEN
        name, known_s = f"n{number}", at_s[0]
        late_s = known_s - (2 * SEEN if number % 5 == 4 else 0.0)
        facts = {"pool": POOLS[number % 12].name, "gpus": 1, "user": "u1", "tag": "t"}
        kind, one = [
            ("submit", Event(known_s, SUBMIT, name, late_s, facts)),
            ("start", Event(known_s, START, f"n{number - 1}", late_s)),
            ("end", Event(known_s, END, f"n{number - 2}", known_s, {"duration_s": 0.5})),
        ][number % 3]
        costs.of(f"take a {kind}", lambda: service.take([one]))  # noqa: B023
        costs.of("forecasts", lambda: service.forecasts(at_s[0]))
        costs.of("eta of a known job", lambda: service.eta("w77", asker))
        costs.of("metrics", lambda: exposition(service, at_s[0]))
        costs.of("page", lambda: service.held(service.forecasts(at_s[0])))
    for _ in range(3):
        at_s[0] += 300.0
        service.take([Event(at_s[0], LOOK, "", at_s[0])])
        costs.of("look at the versions, five minutes later", service.look)
        costs.of("round of futures", service.refresh)
    return result | {"gb_after": gb(), "steps": costs.told()}


def advise(home: Path, registry: Registry, now_s: float, events: int) -> dict[str, Any]:
    """An advisor beside a Slurm in memory: from its start to its first advice, and look after look."""
    slurm, result = ImaginedSlurm(), {"gb_before": gb()}
    slurm.now_s = now_s
    begun = time.process_time()
    watch = ChampionWatch(registry, lambda _: None, needed=(ARRIVALS, LOADS, DURATIONS))
    watch.poll()
    with kept_for_good():
        advisor = Advisor(
            slurm, LogReader(EventLog(home)), ChampionForecasts(watch), lambda one: make_policy("sia", one)
        )
    result["started_s"], result["gb_started"] = time.process_time() - begun, gb()
    for number in range(4):
        slurm.submit(f"s{number}", "ab"[number % 2], 8)
    for number in range(500):
        slurm.jobs[f"q{number}"] = replace(
            slurm.jobs["s3"], job_id=f"q{number}", gpus=8, state="PENDING", reason="QOSGrpGRES",
            start_s=float("nan"),
        )  # fmt: skip
    advisor.advise(advisor.look(slurm.now_s))
    result["advised_s"], result["gb_advised"] = time.process_time() - begun, gb()
    costs = Costs()
    for number in range(events):
        slurm.pass_time(5.0)
        slurm.submit(f"t{number}", "ab"[number % 2], 1)
        snapshot = costs.of("look", lambda: advisor.look(slurm.now_s))
        costs.of("advice", lambda: advisor.advise(snapshot))  # noqa: B023
    return result | {"gb_after": gb(), "steps": costs.told()}


def main() -> None:
    """Measure, and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ended", type=int, default=200_000)
    parser.add_argument("--waiting", type=int, default=500)
    parser.add_argument("--events", type=int, default=30)
    parser.add_argument("--home", type=Path, help="where the log that is made up is kept, or is already")
    parser.add_argument("--of", choices=("serve", "advise"), default="serve")
    asked = parser.parse_args()
    now_s = 1_700_000_000.0
    with tempfile.TemporaryDirectory() as scratch:
        home, copy = asked.home or Path(scratch) / "home", Path(scratch) / "copy"
        if not home.exists():
            maker = os.fork()  # what making it up takes is not counted
            if maker == 0:
                rows = list(campus(asked.ended, asked.waiting, now_s))
                EventLog(home).append(rows)
                registered(home, fitted(rows, now_s - 3 * DAY_S), now_s)
                os._exit(0)
            assert os.waitpid(maker, 0)[1] == 0
        shutil.copytree(home, copy)
        measure = serve if asked.of == "serve" else advise
        print(json.dumps(measure(copy, open_registry(copy), now_s, asked.events), indent=2))


if __name__ == "__main__":
    main()
