"""Renew the golden outcomes, and list what moved.

    python -m tests.goldens.record [--slow] [WORD ...]      # from the repository's root

Without words all fast cases are run, with words those whose names contain one of them. Slow cases are run with
`--slow`, those of real traces where JOBCAST_DATA names their folder; what is not run stays as it is, and cases that are
no more are dropped.

Goldens hold still while code moves. A commit that must move some does that alone: it changes the behaviour and the
file, and its message lists what this command prints.
"""

import argparse
import tempfile
import time
from pathlib import Path

from tests.goldens.cases import CASES, Case
from tests.goldens.runs import FILE, Bench, Outcome, differences, read_goldens, write_goldens

SHOWN = 3
"""Lines of a case that are printed."""


def main() -> None:
    """Run the cases asked for, print what moved, write the file."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("words", nargs="*", metavar="WORD")
    asked.add_argument("--slow", action="store_true", help="slow cases, too")
    given = asked.parse_args()
    known = read_goldens() if FILE.is_file() else {}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        found = {
            case.name: _renewed(bench, case, known.get(case.name))
            for case in CASES
            if _is_asked(case, given.words, given.slow) and not bench.lacks(case)
        }
    goldens = known | found
    write_goldens({case.name: goldens[case.name] for case in CASES if case.name in goldens})
    print(f"{len(found)} cases run, {FILE}: {FILE.stat().st_size / 1e3:.0f} kB")


def _is_asked(case: Case, words: list[str], slow: bool) -> bool:
    return (slow or not case.slow) and (not words or any(word in case.name for word in words))


def _renewed(bench: Bench, case: Case, known: Outcome | None) -> Outcome:
    began_s = time.process_time()
    found = bench.outcome(case)
    took = f"{time.process_time() - began_s:.1f} CPU s"
    if known is None:
        print(f"{case.name}: new, {len(found)} values, {took}", flush=True)
        return found
    moved = differences(known, found)
    if moved or known.keys() != found.keys():
        print(f"{case.name}: {len(moved)} of {len(known)} values moved, {len(found)} now, {took}", flush=True)
    for line in moved[:SHOWN]:
        print(f"  {line}", flush=True)
    return found


if __name__ == "__main__":
    main()
