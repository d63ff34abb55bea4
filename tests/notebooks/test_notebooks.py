"""The notebooks are short, run from the first cell to the last without an installed kernel, and end in a verdict."""

import ast
import importlib.util
import os
import re
import sys
from pathlib import Path

import jupytext
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
NAMES = sorted(file.stem for file in FOLDER.glob("*.py") if file.name != "execute.py")
MOST_LINES = 80
IMPORTED = {"os", "tempfile", "pathlib", "jobcast", "pandas", "numpy", "matplotlib", "altair"}


@pytest.fixture(scope="module")
def executor():
    spec = importlib.util.spec_from_file_location("execute_notebooks", FOLDER / "execute.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _shown(cell):
    """What a cell prints."""
    return "".join(output.get("text", "") for output in cell.outputs)


@pytest.mark.parametrize("name", NAMES)
def test_each_is_a_short_script_that_names_its_data_and_ends_in_a_verdict(name):
    file = FOLDER / f"{name}.py"
    lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    assert sum(bool(line) and not line.startswith("#") for line in lines) < MOST_LINES
    roots = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) else []
        roots |= {one.split(".")[0] for one in names}
    assert roots <= IMPORTED
    cells = jupytext.read(file).cells
    assert cells[0].cell_type == "markdown"
    assert cells[0].source.startswith("# ")
    assert "**The data.**" in cells[0].source
    assert cells[-1].metadata.get("tags") == ["verdict"]


def test_the_readme_lists_them_all():
    listed = re.findall(r"^\| \[(\w+)\.py\]", (FOLDER / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == NAMES
    assert not list(FOLDER.glob("*.ipynb"))


@pytest.mark.slow
@pytest.mark.xdist_group("notebooks")
@pytest.mark.parametrize("name", NAMES)
def test_each_runs_and_its_page_holds_everything(executor, tmp_path, name):
    if name == "market":
        pytest.importorskip("cvxpy", reason="the market needs jobcast's extra `market`")
    clean = {key: value for key, value in os.environ.items() if not key.startswith("JOBCAST_")}
    # Nothing of Jupyter's own, and nothing of the project's, may be needed that a user has at home.
    executed = executor.execute(FOLDER / f"{name}.py", {**clean, "JUPYTER_PATH": "", "HOME": str(tmp_path)})
    code = [cell for cell in executed.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell.outputs]
    assert not [one for one in outputs if one.output_type == "error" or one.get("name") == "stderr"]
    verdict = _shown(code[-1])
    assert verdict.startswith("Verdict: ")
    assert re.search(r"\d", verdict)
    assert "nan" not in verdict
    page = executor.as_page(executed, name)
    pictures = sum("image/png" in one.get("data", {}) for one in outputs)
    assert pictures == len(re.findall(r'<img alt="[^"]+"[^>]* src="data:image/png', page)) >= 1
    for source in ('src="http', 'href="http', "import('http", '@import "http', "cdnjs"):
        assert source not in page


@pytest.mark.slow
@pytest.mark.xdist_group("notebooks")
@pytest.mark.parametrize("name", ["completion_times", "drift"])
def test_a_trace_without_users_and_tags_in_which_nobody_waits_will_do(executor, tmp_path, name):
    rows = [
        f"{hour},{'ab'[hour % 2]},2024-01-{1 + hour // 24:02}T{hour % 24:02}:00:00Z,{300 + hour % 7 * 400},1"
        for hour in range(28 * 24)
    ]
    trace = tmp_path / "plain.csv"
    trace.write_text("\n".join(["job_id,pool,submit_time,duration,gpus", *rows]))
    clean = {key: value for key, value in os.environ.items() if not key.startswith("JOBCAST_")}
    executed = executor.execute(FOLDER / f"{name}.py", {**clean, "JOBCAST_NOTEBOOK_TRACE": str(trace)})
    verdict = _shown(executed.cells[-1])
    assert verdict.startswith("Verdict: ")
    assert all(float(share) <= 100.0 for share in re.findall(r"([\d.]+)\s*%", verdict))


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
