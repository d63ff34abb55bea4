"""Documents that Slurm never wrote, as its queue: each is read or refused in one line.

    PYTHONPATH=. python benchmarks/fuzz_squeue.py [--documents 100000] [--seed 1]

A few recorded jobs, in which fields are dropped, swapped or replaced by what nobody should write, and documents some
bytes of which are changed or cut off.
"""

import argparse
import gzip
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

from jobcast.domain.errors import TraceError
from jobcast.traces.files import FileBytes
from jobcast.traces.readers.slurm_queue import queued_jobs

RECORDED = Path(__file__).parents[1] / "tests" / "live" / "recorded" / "mixed" / "late.squeue.json.gz"
ODD: tuple[Any, ...] = (
    None, True, -1, 0, 2**32 - 1, 2**64 - 2, 1e308, float("nan"), "", "$(reboot)", "<b>\n\u202e", "gres/gpu=x",
    "gres/gpu=4", [], ["RUNNING"], {}, {"set": True, "infinite": False, "number": 7}, {"set": True}, [[[]]],
    "7_[1-99999999]", "\ud800",
)  # fmt: skip


def document(draw: random.Random, jobs: list[dict[str, Any]]) -> bytes:
    """One document."""
    rows = [dict(job) for job in draw.sample(jobs, draw.randint(0, 3))]
    for row in rows:
        for key in draw.sample(sorted(row), draw.randint(0, 6)):
            how = draw.random()
            if how < 0.2:
                del row[key]
            else:
                row[key] = draw.choice(ODD) if how < 0.9 else row.get(draw.choice(sorted(row)))
    data = bytearray(json.dumps({"jobs": rows}).encode("utf-8", "surrogatepass"))
    if draw.random() < 0.2:
        for _ in range(draw.randint(1, 4)):
            data[draw.randrange(len(data))] = draw.randrange(256)
    return bytes(data[: draw.randrange(len(data))] if draw.random() < 0.1 else data)


def main() -> None:
    """Count what came of all, and end with a traceback where one was neither read nor refused."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    draw, count = random.Random(asked.seed), Counter[str]()
    jobs = json.loads(gzip.decompress(RECORDED.read_bytes()))["jobs"]
    for _ in range(asked.documents):
        data = document(draw, jobs)
        try:
            queued_jobs(FileBytes("squeue --json", data))
            count["read"] += 1
        except TraceError as error:
            count["refused" if "\n" not in str(error) else "refused in several lines"] += 1
    print(json.dumps(count))


if __name__ == "__main__":
    main()
