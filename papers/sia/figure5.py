"""SIA, Figure 5 (section 4.1): the potential of anticipation on three synthetic workloads."""

from pathlib import Path

from papers.sia.bench import Bench
from papers.sia.potential import write_potential


def figure5(bench: Bench, out: Path) -> None:
    """Write the figure's page, table and plot into a folder."""
    variants = ("base", "more_queues", "higher_load")
    write_potential(bench, out, "figure5", "Figure 5: the potential of anticipation", variants)
