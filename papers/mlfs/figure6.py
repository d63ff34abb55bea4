"""MLFS, Figure 6 (section 4.2.2): what urgency and deadlines in priorities are worth."""

from pathlib import Path

from papers.mlfs.bench import Bench
from papers.mlfs.measures import DEADLINE, JCT, URGENT
from papers.mlfs.parts import Effect, without, write_parts

URGENCY_OFF, DEADLINE_OFF = "without urgency", "without deadlines"
ROWS = (without(URGENCY_OFF, "urgency"), without(DEADLINE_OFF, "deadline"))
EFFECTS = (
    Effect(URGENCY_OFF, URGENT, "22 to 30 %"),
    Effect(DEADLINE_OFF, DEADLINE, "13 to 25 %"),
    Effect(URGENCY_OFF, JCT, ""),
    Effect(DEADLINE_OFF, JCT, ""),
)
ABOUT = (
    "MLF-H whose priorities leave out the urgency of a job (equation 2, `--set urgency=false`) or its deadline "
    "(equation 4, `--set deadline=false`). Jobs above level 8 of 10 are urgent."
)


def figure6(bench: Bench, out: Path) -> None:
    """Write the figure's page, table and plot into a folder."""
    write_parts(bench, out, "figure6", "Figure 6: urgency and deadlines", ABOUT, ROWS, EFFECTS)
