"""Every figure of README and docs stands beside the command that makes it; a few cheap ones are made anew.

A figure is a table of measured numbers, most of whose cells begin with a number, or a paragraph with three measured
numbers or more (a number with a unit). Settings, limits and declared inputs are no figures. The command stands in the
same section, in its head (the text above its first subsection), or in the block before or after; it must exist.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import click
import pytest

from jobcast.pipelines.cli.main import cli, command_named

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NUMBER = re.compile(r"[*<>≤≥~±+−-]*\s*[.\d]")
MEASURED = re.compile(
    r"\d[\d,.]*\s?(?:%|ms|MB|GB|EUR|kWh|GPU-h|points?\b|hours?\b|minutes?\b|seconds?\b|(?:h|s|min)\b|times\b)"
)
DECLARED = re.compile(r"default|setting|`--set`|watch", re.IGNORECASE)
"""In the head of a table: values that somebody chose, or what may be."""
CHOSEN = re.compile(r"setting|assum|limits|choices|leaves open", re.IGNORECASE)
"""In a heading: the section declares, it does not measure."""
MOST_NUMBERS, SEVERAL = 0.4, 3


@dataclass(frozen=True)
class Block:
    """A paragraph, a table or a block of code of a page, and the headings above it, the outermost first."""

    page: str
    line: int
    heads: tuple[str, ...]
    text: str

    @property
    def cells(self) -> list[str]:
        """Of a table, beyond its first column."""
        return [one.strip() for row in self.text.splitlines()[2:] for one in row.strip().strip("|").split("|")[1:]]

    @property
    def is_figure(self) -> bool:
        if self.text.startswith("```") or any(CHOSEN.search(one) for one in self.heads[-1:]):
            return False
        if self.text.startswith("|"):
            numbers = sum(NUMBER.match(one) is not None for one in self.cells)
            return numbers >= MOST_NUMBERS * len(self.cells) > 0 and not DECLARED.search(self.text.splitlines()[0])
        # Code is no figure, nor is what a program is quoted to say.
        return len(MEASURED.findall(re.sub(r'`[^`]*`|"[^"]*"', "", self.text))) >= SEVERAL


def blocks(page: Path) -> list[Block]:
    found: list[Block] = []
    heads: list[tuple[int, str]] = []
    part: list[str] = []
    fenced = False

    def close(at: int) -> None:
        if part:
            found.append(Block(page.name, at - len(part), tuple(one for _, one in heads), "\n".join(part)))
            part.clear()

    lines = page.read_text(encoding="utf-8").splitlines()
    for at, line in enumerate([*lines, ""], 1):
        fence = line.startswith("```")
        if fence and not fenced:
            close(at)
        if fenced or fence:
            part.append(line)
            if fence and fenced:
                close(at + 1)
            fenced = fenced != fence
        elif heading := re.match(r"(#+) (.*)", line):
            close(at)
            heads[:] = [one for one in heads if one[0] < len(heading[1])] + [(len(heading[1]), heading[2])]
        elif line.strip():
            part.append(line)
        else:
            close(at)
    return found


def commands(text: str) -> Iterator[str]:
    """What looks like a command in spans and blocks of code, without variables before it and what it is piped to."""
    spans = re.findall(r"^```\w*\n(.*?)^```|`([^`]+)`|((?:^    .*\n)+)", text + "\n", re.DOTALL | re.MULTILINE)
    for block, span, indented in spans:
        for line in re.sub(r"\\\n\s*", "", block or indented or span.replace("\n", " ")).splitlines():
            line = re.sub(r"^(?:\s*\$ |[A-Z_]+=\S+ )+|(?:\s[|>;]|\s#).*$", "", line.strip())
            if re.match(r"jobcast |python -m (?:papers|tests|benchmarks|pytest)|python benchmarks/|make ", line):
                yield line


def complaint(line: str) -> str | None:
    """Why a command cannot be run, None where it can."""
    words = shlex.split(line)
    if words[0] == "jobcast":
        path, command = command_named(words[1:])
        rest = words[len(path.split()) :]
        # As below `jobcast`: a command keeps the names of its help as it is first asked for them.
        context = click.Context(
            command, parent=click.Context(cli, **cli.context_settings), info_name=path, resilient_parsing=True
        )
        try:
            if isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
                return f"no command {rest[0]}"
            command.make_parser(context).parse_args(args=rest)
        except click.UsageError as error:
            return error.format_message()
        return None
    if words[:3] == ["python", "-m", "pytest"]:
        missing = [one for one in words[3:4] if not (ROOT / one).exists()]
    elif words[:2] == ["python", "-m"]:
        package, items = words[2].replace(".", "/"), [one for one in words[3:4] if re.fullmatch(r"[a-z]\w+", one)]
        missing = [] if (ROOT / package).is_dir() or (ROOT / f"{package}.py").is_file() else [package]
        if package.startswith("papers/") and not missing:
            known = import_module(f"{words[2]}.__main__").ITEMS
            missing = [one for one in items if one not in known]
    elif words[0] == "python":
        missing = [one for one in words[1:2] if not (ROOT / one).is_file()]
    else:
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        missing = [one for one in words[1:2] if not re.search(rf"^{re.escape(one)}:", makefile, re.MULTILINE)]
    return f"there is no {missing[0]}" if missing else None


def makes_figures(line: str) -> bool:
    """Not a mere mention, as `jobcast drift`."""
    return not line.startswith("jobcast") or " --" in line or line.split()[1] == "run"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_figure_stands_beside_its_command(page):
    alone = []
    parts = blocks(page)
    for at, block in enumerate(parts):
        if not block.is_figure:
            continue
        # The section itself, the heads of those that it lies in, and what stands just before and after.
        near = [one for one in parts if one.heads and one.heads == block.heads[: len(one.heads)] and len(one.heads) > 1]
        near += parts[max(at - 1, 0) : at + 2]
        if not any(makes_figures(line) and not complaint(line) for one in near for line in commands(one.text)):
            alone.append(f"{block.page}:{block.line} {' > '.join(block.heads)}: {block.text[:70]!r}")
    assert not alone, "\n".join(alone)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_in_a_block_can_be_run(page):
    lines = [line for one in blocks(page) if one.text.startswith("```") for line in commands(one.text)]
    wrong = [f"{line}: {why}" for line in lines if (why := complaint(line))]
    assert not wrong, "\n".join(wrong)


def told(folder: Path, line: str) -> str:
    """What a command prints, run in a folder that is its home, too."""
    environment = {**os.environ, "JOBCAST_HOME": str(folder), "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        [sys.executable, "-m", *shlex.split(line)], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def rows_of(text: str) -> set[tuple[str, ...]]:
    """Lines as their cells, however these are parted."""
    return {tuple(re.split(r"\s{2,}|\s*\|\s*", line.strip("| "))) for line in text.splitlines()}


@pytest.mark.slow
def test_rows_of_the_backtest_of_every_scheduler(tmp_path):
    page = (ROOT / "docs" / "backtests.md").read_text(encoding="utf-8")
    before, cluster = re.search(
        r"^```\n([^`]*?)cat > cluster.yaml <<END\n(.*?)END$", page, re.DOTALL | re.MULTILINE
    ).groups()
    for line in before.splitlines():
        told(tmp_path, line)
    (tmp_path / "cluster.yaml").write_text(cluster, encoding="utf-8")
    policies = ("mmfs", "gssf‡", "las†‡")
    files = "--trace enriched/jobs.parquet --cluster cluster.yaml"
    out = told(tmp_path, f"jobcast backtest {files} --policies mmfs,gssf,las --forecasts oracle --quiet")
    made = {row for row in rows_of(out) if row[0] in policies}
    assert len(made) == len(policies)
    assert made <= rows_of(page)


@pytest.mark.slow
def test_a_row_of_the_closed_loop(tmp_path):
    page = (ROOT / "docs" / "closed-loop.md").read_text(encoding="utf-8")
    told(tmp_path, next(line for line in commands(page) if line.startswith("jobcast trace generate campus")))
    line = "jobcast simulate --trace jobs.parquet --pools pools.csv --from 2024-01-27 --policy mmfs --quiet --json -"
    cells: list[str] = []
    for option in ("", " --closed-loop"):
        found = json.loads(told(tmp_path, line + option))
        cells += [f"{found['speedup_gmean']:.2f}", f"{found['slowed_pct']:.2f} %", f"{found['mean_jct_s'] / 3600:.2f}"]
    assert any(row[:7] == ("`mmfs`", *cells) for row in rows_of(page)), cells


@pytest.mark.slow
def test_the_toy_of_pcs(tmp_path):
    told(tmp_path, f"papers.pcs figure1 --out {tmp_path}")
    made = (tmp_path / "figure1" / "figure1.md").read_text(encoding="utf-8")
    assert made == (ROOT / "docs" / "pcs" / "figure1" / "figure1.md").read_text(encoding="utf-8")
