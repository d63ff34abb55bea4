"""The pictures of the docs: pages of jobcast in Chromium.

python docs/screenshots.py                 # makes the page by benchmarks/bench_own_cluster.py, writes docs/report.png
python docs/screenshots.py choice.html     # of a page that is there
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parent
BENCH = DOCS.parent / "benchmarks" / "bench_own_cluster.py"
PICTURE, WIDTH, HEIGHT = DOCS / "report.png", 1300, 1340
"""In pixels."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
DRAWING_MS = 20_000
"""Of the page's own clock, which does not wait for a busy machine."""


def main() -> int:
    """Make the page where none is named, take its picture."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        print(f"no browser here; install one of {', '.join(BROWSERS)}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="jobcast-docs-") as room:
        page = Path(room) / "choice.html"
        if len(sys.argv) > 1:
            shutil.copy(sys.argv[1], page)
        else:
            # Its exit code judges the machine's speed as well, which is none of the picture's business.
            subprocess.run([sys.executable, str(BENCH), "--page", str(page)], check=False)
        shot = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        shot += [f"--window-size={WIDTH},{HEIGHT}", f"--virtual-time-budget={DRAWING_MS}"]
        shot += [f"--user-data-dir={room}/profile", f"--screenshot={PICTURE}", page.as_uri()]
        subprocess.run(shot, check=True, stderr=subprocess.DEVNULL)
    print(PICTURE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
