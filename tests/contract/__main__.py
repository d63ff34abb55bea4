"""Milliseconds of CPU an experiment, by law and policy: `python -m tests.contract [FIRST [LAST [POLICY ...]]]`."""

import sys
import time

from tests.contract.test_contract import CHECKS, check_many

first, last = (int(word) for word in (*sys.argv[1:3], *("0", "10")[len(sys.argv[1:3]) :]))
for law, name in CHECKS:
    if not sys.argv[3:] or name in sys.argv[3:]:
        began_s = time.process_time()
        try:
            check_many(law, name, range(first, last))
        except Exception as error:  # told, and on to the next
            print(f"{law}, {name}: {type(error).__name__} {error} {error.__notes__}")
        print(f"{law}, {name}: {1e3 * (time.process_time() - began_s) / (last - first):.0f} ms", flush=True)
