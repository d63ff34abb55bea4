"""ANDREAS, Figure 2 (section V.B): the second scenario, nodes of four V100 or two T4."""

from pathlib import Path

from papers.andreas.bench import Bench
from papers.andreas.campaign import Scenario, write_campaign

SECOND = Scenario(2, 2, "nodes of four V100 or two T4", 30.0, 25.0, 10.0, always=False)


def figure2(bench: Bench, out: Path) -> None:
    """Write the figure's page, table and plot into a folder."""
    write_campaign(bench, out, SECOND)
