"""The notebooks run from the first cell to the last, without a kernel installed and without touching the project."""

import importlib.util
import os
import re
import sys
from pathlib import Path

import jupytext
import pytest

from jobcast.models.registry import open_registry

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"


def run_once(test):
    """Tests of what one long run of the notebook shows."""
    return pytest.mark.slow(pytest.mark.xdist_group("notebooks")(test))


SMALL = {"WEEKS": "3", "CAMPUS_POOLS": "3", "JOBS": "2500", "RANDOM_SEEDS": "1"}


def _module():
    spec = importlib.util.spec_from_file_location("execute_notebooks", FOLDER / "execute.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def executor():
    return _module()


def _environment(home, **more):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("JOBCAST_")}
    settings = {f"JOBCAST_NOTEBOOK_{name}": value for name, value in {**SMALL, **more}.items()}
    # Nothing of Jupyter's own may be needed that a user has at home.
    return {**clean, **settings, "JOBCAST_HOME": str(home), "JUPYTER_PATH": "", "HOME": str(home)}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def executed(executor, home):
    return executor.execute(FOLDER / "compare_versions.py", _environment(home))


def _shown(cell):
    """What a cell shows: HTML, Markdown or SVG, as text."""
    parts = [output.get("data", {}) for output in cell.outputs]
    return "\n".join(data.get(kind, "") for data in parts for kind in ("text/html", "text/markdown", "image/svg+xml"))


def _tagged(notebook, tag):
    (cell,) = (cell for cell in notebook.cells if tag in cell.metadata.get("tags", []))
    return cell


def test_every_notebook_is_a_script_without_outputs(executor):
    assert [file.stem for file in executor.notebooks()] == ["compare_versions", "market"]
    assert not list(FOLDER.glob("*.ipynb"))
    for file in executor.notebooks():
        assert any(cell.cell_type == "markdown" for cell in jupytext.read(file).cells)


@run_once
def test_all_cells_run_and_none_complains(executed):
    code = [cell for cell in executed.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    complaints = [output for cell in code for output in cell.outputs if output.output_type in ("error", "stream")]
    assert complaints == []


@run_once
def test_two_versions_are_registered_in_the_home_that_was_given(executed, home):
    versions = open_registry(home).show("will-jobs-arrive").versions
    assert {(one.version, one.algorithm) for one in versions} == {(1, "lightgbm"), (2, "xgboost")}
    assert {one.name for one in open_registry(home).list()} == {"will-jobs-arrive", "new-load", "job-duration"}


@run_once
def test_worth_and_gains_are_shown_with_intervals(executed):
    worth, gains = _shown(_tagged(executed, "worth")), _shown(_tagged(executed, "gains"))
    for label in ("fcfs", "mmfs", "sia oracle", "sia random", "sia lightgbm (v1)", "sia xgboost (v2)"):
        assert f">{label}</td>" in worth
    # Each version against the other, and against the three that use none of them.
    assert gains.count(">sia lightgbm (v1)</td>") == 4
    assert gains.count(">sia xgboost (v2)</td>") == 4
    assert "95 % interval" in gains
    assert "<svg" in gains


@run_once
def test_closing_paragraph_says_what_to_do(executed):
    closing = _shown(_tagged(executed, "closing"))
    assert ("**Keep sia lightgbm (v1)**" in closing) != ("**Promote sia xgboost (v2)**" in closing)
    assert "nan" not in closing


@run_once
def test_page_holds_all_plots_and_loads_nothing(executor, executed):
    page = executor.as_page(executed, "compare_versions")
    shown = [output.get("data", {}) for cell in executed.cells for output in cell.get("outputs", [])]
    titles = re.findall(r'<img alt="([^"]+)"[^>]* src="data:image/svg', page)
    assert len(titles) == sum("image/svg+xml" in data for data in shown) == 10
    assert titles[-1] == "Paired gains with confidence intervals"
    for source in ('src="http', 'href="http', "import('http", '@import "http', "cdnjs"):
        assert source not in page


def test_failing_cell_leaves_the_old_page_and_exits_with_1(executor, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(executor, "HERE", tmp_path)
    (tmp_path / "broken.py").write_text("# %%\n1 / 0\n")
    out = tmp_path / "out"
    out.mkdir()
    (out / "broken.html").write_text("old")
    assert executor.main(["--out", str(out)]) == 1
    assert "ZeroDivisionError" in capsys.readouterr().err
    assert [file.read_text() for file in out.iterdir()] == ["old"]


def test_unknown_notebook_is_refused(executor, capsys):
    with pytest.raises(SystemExit) as left:
        executor.main(["nothing"])
    assert left.value.code == 2
    assert "no notebook 'nothing'" in capsys.readouterr().err
