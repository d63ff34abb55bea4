"""The pictures of the docs: pages of jobcast in Chromium, from a generated campus and a home of its own.

python docs/screenshots.py          # writes docs/report.png
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parent
COMMANDS = (
    "trace generate campus --out jobs.parquet --pools-out pools.csv --set weeks=4 --set pools=4 --set jobs=4000",
    "choose --trace jobs.parquet --pools pools.csv --policies easy,mmfs,ssf,sia --train --html choice.html",
)
PICTURES = {"report.png": ("choice.html", 1300, 1080)}
"""Picture -> page, width and height in pixels."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
DRAWING_MS = 8000
"""Of the page's own clock, which does not wait for a busy machine."""


def main() -> int:
    """Make the pages, take the pictures."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        print(f"no browser here; install one of {', '.join(BROWSERS)}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="jobcast-docs-") as room:
        for line in COMMANDS:
            environment = {**os.environ, "JOBCAST_HOME": room}
            subprocess.run([sys.executable, "-m", "jobcast", *line.split()], cwd=room, env=environment, check=True)
        for picture, (page, width, height) in PICTURES.items():
            shot = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
            shot += [f"--window-size={width},{height}", f"--virtual-time-budget={DRAWING_MS}"]
            shot += [f"--user-data-dir={room}/profile", f"--screenshot={DOCS / picture}", (Path(room) / page).as_uri()]
            subprocess.run(shot, check=True, stderr=subprocess.DEVNULL)
            print(DOCS / picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
