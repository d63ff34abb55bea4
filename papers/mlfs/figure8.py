"""MLFS, Figure 8 (section 4.2.2): what moving tasks off overloaded servers is worth."""

from pathlib import Path

from papers.mlfs.bench import Bench
from papers.mlfs.measures import ACCURACY, BANDWIDTH, JCT, OVERLOADS
from papers.mlfs.parts import Effect, without, write_parts

OFF = "without migration"
EFFECTS = (
    Effect(OFF, OVERLOADS, "36 to 60 %"),
    Effect(OFF, BANDWIDTH, "10 to 14 %", worsens=True),
    Effect(OFF, ACCURACY, "8 to 10 %"),
    Effect(OFF, JCT, "15 to 24 %"),
)
ABOUT = (
    "MLF-H that leaves tasks on overloaded servers (`--set migration=false`). Overloads: servers with an overloaded "
    "resource after a decision, added up over decisions."
)


def figure8(bench: Bench, out: Path) -> None:
    """Write the figure's page, table and plot into a folder."""
    write_parts(bench, out, "figure8", "Figure 8: migration", ABOUT, (without(OFF, "migration"),), EFFECTS)
