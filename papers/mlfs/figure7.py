"""MLFS, Figure 7 (section 4.2.2): what bandwidth in placement and migration is worth."""

from pathlib import Path

from papers.mlfs.bench import Bench
from papers.mlfs.measures import BANDWIDTH, JCT
from papers.mlfs.parts import Effect, without, write_parts

OFF = "without bandwidth"
EFFECTS = (Effect(OFF, JCT, "5 to 15 %"), Effect(OFF, BANDWIDTH, "20 to 35 %"))
ABOUT = (
    "MLF-H that leaves the cost of bandwidth out when it chooses servers and tasks to move (`--set bandwidth=false`). "
    "The paper names equation 2 for it, which knows no bandwidth; the ideal virtual host and the ideal virtual task of "
    "section 3.3 do."
)


def figure7(bench: Bench, out: Path) -> None:
    """Write the figure's page, table and plot into a folder."""
    write_parts(bench, out, "figure7", "Figure 7: bandwidth", ABOUT, (without(OFF, "bandwidth"),), EFFECTS)
