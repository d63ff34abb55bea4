"""Whether starts and ends that the server tells of a replayed cluster hold, and what a round of futures costs.

    jobcast simulate --trace c.parquet --pools pools.csv --policy fcfs --forecasts oracle --baseline none --out sim.csv
    python benchmarks/bench_etas.py sim.csv pools.csv --from 2024-01-23 --until 2024-01-28 --every 3600

The events of a simulated trace are told to a server as they come. Every so often futures are played, and all jobs that
are there are asked about. All that was told counts, whenever it came. Champions are those of the home; events are kept
in a folder that goes away.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

from jobcast.domain.times import parse_time
from jobcast.live.event_log import END, LOOK, START, SUBMIT, Event, EventLog
from jobcast.live.job_record import by_submission
from jobcast.live.server.service import Service
from jobcast.live.state import LogReader
from jobcast.models.registry import open_registry
from jobcast.traces.pools import read_pools
from jobcast.traces.readers import read_trace


def events_of(trace):
    """All that happens in a trace, in order."""
    jobs, duration_s = trace.to_jobs()
    found = []
    for job, start_s, run_s in zip(jobs, trace.start_s.tolist(), duration_s.tolist(), strict=True):
        facts = {"pool": job.pool, "gpus": job.gpus, "user": job.user, "tag": job.tag}
        found.append(Event(job.submit_s, SUBMIT, job.job_id, job.submit_s, facts))
        found.append(Event(start_s, START, job.job_id, start_s))
        found.append(Event(start_s + run_s, END, job.job_id, start_s + run_s, {"duration_s": run_s}))
    return sorted(found, key=lambda one: one.known_s)


def held(told, came_s, kind):
    """Shares, %, of what was told of starts or ends that came within, below and above its intervals, by level."""
    rows = [(at_s, spread, came_s[kind, name]) for at_s, name, of, spread in told if of == kind]
    result = {"kind": kind, "told": len(rows)}
    for place, level in ((0, 50), (-1, 90)):
        ends = [(spread.intervals[place], came - at_s) for at_s, spread, came in rows]
        below, above = (np.array([test(*one) for one in ends]) for test in (_below, _above))
        shares = {"within": ~below & ~above, "below": below, "above": above}
        result |= {f"{name}_{level}_pct": round(100.0 * float(one.mean()), 1) for name, one in shares.items()}
    return result


def _below(interval, took_s):
    return not interval.holds(took_s) and took_s < interval.low_s


def _above(interval, took_s):
    return not interval.holds(took_s) and took_s > interval.high_s


def main():
    """Replay, and print shares that held."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace")
    parser.add_argument("pools")
    parser.add_argument("--from", dest="from_s", type=parse_time, required=True)
    parser.add_argument("--until", dest="until_s", type=parse_time, required=True)
    parser.add_argument("--every", type=float, default=3600.0)
    parser.add_argument("--policy", default="fcfs")
    asked = parser.parse_args()
    events, now_s, costs, there, told = events_of(read_trace(asked.trace)), asked.from_s, [], [], []
    came_s = {(one.kind, one.job_id): one.at_s for one in events}
    with tempfile.TemporaryDirectory() as folder:
        pools = read_pools(Path(asked.pools)).at(now_s)
        service = Service(LogReader(EventLog(Path(folder))), pools, open_registry(), lambda: now_s, asked.policy)
        for now_s in np.arange(asked.from_s, asked.until_s, asked.every).tolist():
            due = [one for one in events if one.known_s <= now_s]
            events = events[len(due) :]
            service.take([*due, Event(now_s, LOOK, "", now_s)])
            service.watch.poll()
            costs.append(service.refresh())
            active = [one.name for one in by_submission(service.state.active.values())]
            answers = {name: service.etas.of(name).answer for name in active}
            there.append(len(active))
            for name, answer in answers.items():
                spreads = {} if answer is None else {START: answer.start, END: answer.end}
                told += [(now_s, name, kind, one) for kind, one in spreads.items() if one is not None]
    answered = sum(kind == END for *_, kind, _ in told)
    print(f"{answered} of {sum(there)} answered; {np.mean(there):.0f} jobs at a time, most {max(there)}")
    print(f"a round of futures: {np.mean(costs):.2f} s of CPU, most {max(costs):.2f} s")
    for kind in (START, END):
        print(held(told, came_s, kind))


if __name__ == "__main__":
    main()
