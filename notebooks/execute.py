"""Execute the notebooks of this folder and write what they show as pages that need no network.

    python notebooks/execute.py [NAME ...] [--out FOLDER]

The kernel is the interpreter that runs this script, so that no kernel needs to be installed on the machine.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jupytext
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbclient.util import run_sync
from nbconvert import HTMLExporter
from nbformat import NotebookNode

HERE = Path(__file__).resolve().parent
EXECUTED = HERE / "executed"
CELL_TIMEOUT_S = 600
"""For a single cell: the first one that builds features on a machine compiles them, which takes a minute."""
NOT_NOTEBOOKS = frozenset({Path(__file__).name})
PAGE = """{%- extends "index.html.j2" -%}
{%- block html_head_js -%}{%- endblock -%}
{%- block html_head_js_mathjax -%}{%- endblock -%}
{%- block html_head_js_mermaidjs -%}{%- endblock -%}
{%- block data_png -%}
<img alt="{{ output.metadata.alt | escape_html }}" src="data:image/png;base64,{{ output.data['image/png'] }}">
{%- endblock -%}"""
"""JupyterLab's page without the scripts that it would fetch, which nothing in our notebooks needs; plots have words."""
WAIT_ASLEEP = {"OMP_WAIT_POLICY": "passive"}
"""Threads of the boosters sleep while they wait for one another: on a busy machine they else take each other's time."""


class RunningInterpreter(KernelSpecManager):
    """Knows one kernel, whatever its name: this interpreter."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        """The specification that an installed kernel would bring."""
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}", "--log-level=ERROR"]
        return KernelSpec(argv=argv, display_name="Python 3", language="python")


def notebooks() -> list[Path]:
    """The notebooks of this folder, names ascending."""
    return [file for file in sorted(HERE.glob("*.py")) if file.name not in NOT_NOTEBOOKS]


def execute(file: Path, environment: Mapping[str, str] | None = None) -> NotebookNode:
    """Run a notebook in a new kernel, in the project's folder.

    Parameters
    ----------
    file : jupytext percent script
    environment : variables of the kernel, instead of this process's

    Returns
    -------
    The notebook with its outputs.

    Raises
    ------
    CellExecutionError
        A cell raises.
    """
    notebook: NotebookNode = jupytext.read(file)
    kernel = AsyncKernelManager(kernel_spec_manager=RunningInterpreter())
    client = NotebookClient(notebook, km=kernel, timeout=CELL_TIMEOUT_S, resources={"metadata": {"path": HERE.parent}})
    with tempfile.TemporaryDirectory(prefix="jobcast-kernel-") as scratch:
        # IPython keeps a profile and a history; neither is the user's business here.
        given = os.environ if environment is None else environment
        variables = {**WAIT_ASLEEP, **given, "IPYTHONDIR": scratch}
        try:
            client.execute(env=variables)
        finally:
            if kernel.has_kernel:
                run_sync(kernel.shutdown_kernel)(now=True)
    return notebook


def as_page(notebook: NotebookNode, title: str) -> str:
    """HTML of an executed notebook, self-contained."""
    exporter: Any = HTMLExporter(embed_images=True, raw_template=PAGE)
    page, _ = exporter.from_notebook_node(_with_words(notebook), resources={"metadata": {"name": title}})
    return str(page)


def _with_words(notebook: NotebookNode) -> NotebookNode:
    """Plots called as the heading above them, for readers who cannot see them."""
    heading = ""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            heading = next((line.lstrip("# ") for line in cell.source.splitlines() if line.startswith("#")), heading)
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                output.metadata["alt"] = heading
    return notebook


def main(arguments: Sequence[str] | None = None) -> int:
    """Execute the notebooks named, or all; 1 when a cell of one raises."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="notebooks, without .py; default: all")
    parser.add_argument("--out", type=Path, default=EXECUTED, metavar="FOLDER", help="default: notebooks/executed")
    given = parser.parse_args(arguments)
    known = {file.stem: file for file in notebooks()}
    unknown = [name for name in given.names if name not in known]
    if unknown:
        parser.error(f"no notebook {unknown[0]!r}; there are {', '.join(known)}")
    given.out.mkdir(parents=True, exist_ok=True)
    for name in given.names or known:
        began = time.perf_counter()
        try:
            notebook = execute(known[name])
        except CellExecutionError as error:
            print(f"{known[name]}: a cell failed\n{error}", file=sys.stderr)
            return 1
        page = given.out / f"{name}.html"
        draft = page.with_suffix(".html.draft")
        draft.write_text(as_page(notebook, name), encoding="utf-8")
        draft.replace(page)
        print(f"{page} ({time.perf_counter() - began:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
