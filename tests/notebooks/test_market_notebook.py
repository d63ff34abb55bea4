"""The market's notebook runs from the first cell to the last, and its sentences say what its markets prove."""

import importlib.util
import os
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("cvxpy", reason="the market needs jobcast's extra `market`")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("market")]  # what they share is made once

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    spec = importlib.util.spec_from_file_location("execute_market_notebook", FOLDER / "execute.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    home = str(tmp_path_factory.mktemp("home"))
    clean = {name: value for name, value in os.environ.items() if not name.startswith("JOBCAST_")}
    few = {"JOBCAST_NOTEBOOK_MARKET_CHANCES": "3", "JUPYTER_PATH": "", "HOME": home}
    return module.execute(FOLDER / "market.py", {**clean, **few})


@pytest.fixture(scope="module")
def shown(executed):
    """What a tagged cell shows, as text."""

    def of(tag):
        (cell,) = (cell for cell in executed.cells if tag in cell.metadata.get("tags", []))
        data = [output.get("data", {}) for output in cell.outputs]
        return "\n".join(one.get(kind, "") for one in data for kind in ("text/html", "text/markdown", "image/svg+xml"))

    return of


def test_all_cells_run_and_none_complains(executed):
    code = [cell for cell in executed.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    complaints = [output for cell in code for output in cell.outputs if output.output_type in ("error", "stream")]
    assert complaints == []


def test_the_example_of_section_1(shown):
    assert re.findall(r">(\d+\.\d{3})</td>", shown("alone")) == ["20.000", "30.000"]


def test_prices_rise_when_more_jobs_double_than_late_rounds_can_serve(shown):
    cells = re.findall(r">([^<>]+)</td>", shown("prices"))
    rows = [cells[at : at + 5] for at in range(0, len(cells), 5)]
    assert [row[1:3] for row in rows] == [["0.500", "0.500"]] * 3 + [["0.400", "0.600"]] + [["0.333", "0.667"]] * 2
    assert "<svg" in shown("prices")


def test_only_the_static_market_is_unfair(shown):
    text = shown("static")
    said = re.search(r"([\d.]+) static, ([\d.]+) round by round, ([\d.]+) dynamic", text)
    static, round_by_round, dynamic = (float(found) for found in said.groups())
    assert static > 1.0 >= round_by_round >= dynamic
    assert "leaves a job with less than an equal share" in text


def test_uncertainty_is_worth_nothing_where_there_is_none(shown):
    assert "(difference 0.000 %)" in shown("uncertainty")
    assert float(re.search(r"([\d.]+) % of welfare over the plan", shown("uncertainty"))[1]) > 1.0
    assert "(2.00, 1.00), welfare 1.414" in shown("lots")
