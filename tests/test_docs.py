"""The pages: Python that they show runs, what it imports is there, and files that the page of the house names exist.

A block that begins with ```python is run, after those before it on its page; ```python no-run marks one that needs
files, a trained model or an installed package: it is compiled, and its imports are looked at, no more.
"""

import ast
import re
from importlib import import_module
from pathlib import Path

import matplotlib
import pytest

from jobcast.schedulers.registry import DECLARED

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```python( no-run)?\n(.*?)^```", re.DOTALL | re.MULTILINE)
WITH_CODE = [page for page in PAGES if "```python" in page.read_text(encoding="utf-8")]
ARCHITECTURE = ROOT / "docs" / "architecture.md"
ROW = re.compile(r"^\| ([^|]+) \| `([^`|]+)` \|(?: `(\w+)`)? \|$", re.MULTILINE)


def blocks(page: Path) -> list[tuple[bool, str]]:
    """Whether it is run, and the code, of each block."""
    return [(not kept, code) for kept, code in FENCE.findall(page.read_text(encoding="utf-8"))]


def named(page: Path) -> str:
    return page.stem


def test_every_block_of_python_says_whether_it_is_run():
    for page in WITH_CODE:
        fences = re.findall(r"^```python.*$", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert set(fences) <= {"```python", "```python no-run"}, page
        assert len(blocks(page)) == len(fences), page


@pytest.mark.parametrize("page", WITH_CODE, ids=named)
def test_what_a_page_imports_is_there(page):
    for _, code in blocks(page):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    import_module(alias.name)
            elif isinstance(node, ast.ImportFrom):
                module = import_module(node.module)
                assert not [alias.name for alias in node.names if not hasattr(module, alias.name)], page


@pytest.mark.parametrize("page", [one for one in WITH_CODE if any(run for run, _ in blocks(one))], ids=named)
def test_what_a_page_shows_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JOBCAST_HOME", str(tmp_path))
    matplotlib.use("agg")
    try:
        exec("\n".join(code for run, code in blocks(page) if run), {"__name__": "page"})
    finally:
        DECLARED.clear()
        from matplotlib import pyplot

        pyplot.close("all")


def names_in(path: Path) -> set[str]:
    """What a module defines at its top."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)}
    return found


def test_the_page_of_the_house_names_what_is_there():
    rows = ROW.findall(ARCHITECTURE.read_text(encoding="utf-8"))
    assert len(rows) >= 30
    for what, place, name in rows:
        path = ROOT / place
        assert path.is_dir() if place.endswith("/") else path.is_file(), f"{what}: {place}"
        assert not name or name in names_in(path), f"{what}: {name} is not in {place}"


def test_the_page_of_the_house_draws_every_room():
    text = ARCHITECTURE.read_text(encoding="utf-8")
    drawing = text[text.index("```") : text.index("## The life of a forecast")]
    rooms = {path.name for path in (ROOT / "src" / "jobcast").iterdir() if path.is_symlink()}
    assert not [room for room in {*rooms, "papers"} if room not in drawing]


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Places on a page: headings as forges name them, and what is named by hand."""
    text = prose(page)
    heads = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", one) for one in re.findall(r"^#+ (.*)$", text, re.MULTILINE)]
    slugs = {re.sub(r"[^\w\- ]", "", one.lower()).strip().replace(" ", "-") for one in heads}
    return slugs | {*re.findall(r'<a id="(\w+)">', text)}


def test_links_lead_to_pages_and_to_places_on_them():
    broken = []
    for page in [*PAGES, ROOT / "notebooks" / "README.md", *(ROOT / "docs").glob("*/**/*.md")]:
        for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
            if "://" in link:
                continue
            place, _, anchor = link.partition("#")
            to = (page.parent / place).resolve() if place else page
            if not to.exists() or (anchor and to.suffix == ".md" and anchor not in anchors(to)):
                broken.append(f"{page.relative_to(ROOT)}: {link}")
    assert not broken


def test_every_page_is_in_the_index():
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert not [page.name for page in PAGES[1:] if page.name != "index.md" and f"({page.name})" not in text]


def test_pictures_show_no_markup():
    """Text stays text in them, so that what matplotlib would typeset stands there as it is written."""
    pictures = (ROOT / "docs").rglob("*.svg")
    assert not [one.name for one in pictures if ">$\\mathdefault" in one.read_text(encoding="utf-8")]
