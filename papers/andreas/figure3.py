"""ANDREAS, Figure 3 (section V.B): the first scenario, nodes of two V100 or one T4."""

from pathlib import Path

from papers.andreas.bench import Bench
from papers.andreas.campaign import Scenario, write_campaign

FIRST = Scenario(1, 3, "nodes of two V100 or one T4", 62.0, 30.0, 100.0, always=True)


def figure3(bench: Bench, out: Path) -> None:
    """Write the figure's page, table and plot into a folder."""
    write_campaign(bench, out, FIRST)
