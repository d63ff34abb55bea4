"""SIA, Figure 24 (appendix C): the potential of anticipation on the base workload and eight variants."""

from pathlib import Path

from jobcast.traces.generators.sia import VARIANTS
from papers.sia.bench import Bench
from papers.sia.potential import write_potential


def figure24(bench: Bench, out: Path) -> None:
    """Write the figure's page, table and plot into a folder."""
    write_potential(bench, out, "figure24", "Figure 24: the potential on nine workloads", tuple(VARIANTS))
