"""What the tutorials show is what their commands print. `python tests/test_tutorials.py` writes it anew.

A block of `console` is run line by line in a folder and a home of the page's own; one of `pycon` in one namespace.
"""

import code
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from contextlib import redirect_stdout
from pathlib import Path

import pytest

TUTORIALS = sorted((Path(__file__).resolve().parents[1] / "docs" / "tutorials").glob("*.md"))
HOME = "~/cluster"
"""What stands for the folder in which a page's commands ran."""
BLOCK = re.compile(r"^```(console|pycon)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def commands_of(block: str, prompt: str) -> list[str]:
    return [line.removeprefix(prompt) for line in block.splitlines() if line.startswith(prompt)]


def told_by_shell(line: str, folder: Path) -> str:
    environment = {**os.environ, "JOBCAST_HOME": str(folder), "COLUMNS": "120", "OMP_WAIT_POLICY": "passive"}
    line, _, into = line.partition(" > ")
    words = [sys.executable, "-m", *shlex.split(line)]
    told = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    assert told.returncode == 0, f"{line}: {told.stderr}"
    return "" if into else told.stdout


def told_by_python(line: str, console: code.InteractiveConsole) -> str:
    told = io.StringIO()
    with redirect_stdout(told):
        assert not console.push(line), f"{line}: not whole"
    return told.getvalue()


def printed(page: Path) -> str:
    """A page with its blocks as they come out now."""
    console = code.InteractiveConsole()
    console.showtraceback = lambda: pytest.fail(str(sys.exc_info()[1]))  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory() as room, pytest.MonkeyPatch.context() as patch:
        patch.setenv("JOBCAST_HOME", room)

        def anew(block: re.Match[str]) -> str:
            shell = block[1] == "console"
            prompt = "$ " if shell else ">>> "
            parts = []
            for line in commands_of(block[2], prompt):
                out = told_by_shell(line, Path(room)) if shell else told_by_python(line, console)
                parts.append(f"{prompt}{line}\n{out.rstrip().replace(room, HOME)}".rstrip())
            return f"```{block[1]}\n" + "\n".join(parts) + "\n```"

        return BLOCK.sub(anew, page.read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_shows_what_its_commands_print(page):
    assert printed(page) == page.read_text(encoding="utf-8")


if __name__ == "__main__":
    for given in [Path(name) for name in sys.argv[1:]] or TUTORIALS:
        given.write_text(printed(given), encoding="utf-8")
