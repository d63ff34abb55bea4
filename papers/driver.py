"""What the commands that make a paper's figures anew share: figures by name, each in a folder, and one page of all."""

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jobcast.domain.errors import ConfigError, UserError

if TYPE_CHECKING:
    from papers.results import Page

DATA_VARIABLE = "JOBCAST_DATA"
RESULTS = "results.md"


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper whose figures are made anew.

    Attributes
    ----------
    name : in headings
    package : below `papers`; each item is a function of its name, in a module of that name or of `within`
    items : names of the figures, in the order of the page
    holds : what the folder of traces should hold, in words; its first folder must be there
    needing : items that need that folder; None: all
    opened : what figures are made from, by the folder to write into, that of traces, and the options by name;
        by default from that of traces alone
    kept : whether figures whose folder is there are left alone when resuming; else their runs are on file
    planned : what is made for the items that are named, by them and the folder to write into; by default those
    within : modules of items that stand in one of another name; so does the template of a page that has none of its own
    """

    name: str
    package: str
    items: tuple[str, ...]
    holds: str
    needing: tuple[str, ...] | None = None
    opened: Callable[..., AbstractContextManager[Any]] = lambda out, data, resume: nullcontext(data)
    kept: bool = False
    planned: Callable[[Sequence[str], Path], tuple[str, ...]] = lambda names, out: tuple(names)
    within: Mapping[str, str] = field(default_factory=dict)

    @property
    def target(self) -> str:
        """Of make, which makes all of them."""
        return f"reproduce-{self.package}"

    @property
    def folder(self) -> str:
        """That JOBCAST_DATA must hold."""
        return self.holds.partition("/")[0]

    def item(self, name: str) -> Callable[..., None]:
        """What makes an item."""
        made: Callable[..., None] = getattr(import_module(f"papers.{self.package}.{self.within.get(name, name)}"), name)
        return made

    def page(self, name: str, out: Path) -> "Page":
        """Of an item, in a folder."""
        from papers.results import Page

        own, shared = (Path(__file__).with_name(self.package) / f"{one}.md" for one in (name, self.within.get(name)))
        return Page(name, out, own if own.is_file() else shared)


def count(name: str, default: int, about: str) -> click.Option:
    """An option of a number from 1 on."""
    return click.Option([f"--{name}"], type=click.IntRange(1), default=default, show_default=True, help=about)


JOBS = count("jobs", 2, "Runs at a time.")


def command_of(
    paper: Paper, about: str | None, options: Sequence[click.Option] = (), word: str = "ITEM"
) -> click.Command:
    """The command that makes a paper's figures anew, all of them or those named.

    Parameters
    ----------
    about : its help
    options : beside --out and --resume
    word : what the help calls an item
    """

    def run(figures: tuple[str, ...], out: Path, **chosen: Any) -> None:
        names = figures or paper.items
        try:
            needed = paper.needing is None or set(names) & set(paper.needing)
            reproduce(paper, names, out, data_folder(paper) if needed else Path(), **chosen)
        except UserError as error:
            raise click.ClickException(str(error)) from None

    folder = click.Path(path_type=Path, file_okay=False)
    resuming = "Leave figures alone whose folder is there." if paper.kept else "Go on with the runs that are on file."
    return click.Command(
        paper.target,
        callback=run,
        help=about,
        context_settings={"help_option_names": ["-h", "--help"]},
        params=[
            click.Argument(["figures"], nargs=-1, metavar=f"[{word}]..."),
            click.Option(["--out"], type=folder, default=Path("docs", paper.package), show_default=True),
            click.Option(["--resume"], is_flag=True, help=resuming),
            *options,
        ],
    )


def data_folder(paper: Paper) -> Path:
    """The folder that JOBCAST_DATA names. Raises ConfigError when it names none, or one without the paper's folder."""
    named = os.environ.get(DATA_VARIABLE, "")
    if not named:
        raise ConfigError(f"{DATA_VARIABLE} is not set: point it at the folder that holds {paper.holds}")
    if not Path(named, paper.folder).is_dir():
        raise ConfigError(f"{DATA_VARIABLE}={named}: holds no folder {paper.folder}; point it at the folder of traces")
    return Path(named)


def reproduce(
    paper: Paper, names: Sequence[str], out: Path, data: Path, *, resume: bool = False, **chosen: Any
) -> None:
    """Make some figures, each in a folder of its own that is complete or absent, then the page of all there are.

    Parameters
    ----------
    names : of `paper.items`
    out, data : folders to write into and of traces
    resume : whether what is there counts: figures where `paper.kept`, else the runs that are on file
    chosen : the paper's own options

    Raises ConfigError for an unknown name.
    """
    # Before anything is opened: a mistake must not cost a registry or what is on file.
    for name in names:
        if name not in paper.items:
            raise ConfigError(f"{name}: no such figure; choose from {', '.join(paper.items)}")
    with paper.opened(out, data, resume=resume, **chosen) as source:
        for name in paper.planned(names, out):
            if resume and paper.kept and (out / name).is_dir():
                click.echo(f"{name}: {out / name} is there", err=True)
                continue
            begin_s = time.monotonic()
            click.echo(f"{name} ...", err=True)
            _make_whole(paper, name, source, out)
            # After each, so that a command which is interrupted leaves a page of what it made.
            write_page_of_all(paper, out)
            click.echo(f"{name}: {out / name} ({time.monotonic() - begin_s:.0f} s)", err=True)


def _make_whole(paper: Paper, name: str, source: Any, out: Path) -> None:
    """Make a figure in another folder first: a run that fails leaves what was there."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=out) as made:
        paper.item(name)(source, paper.page(name, Path(made, name)))
        shutil.rmtree(out / name, ignore_errors=True)
        Path(made, name).rename(out / name)


def write_page_of_all(paper: Paper, out: Path) -> None:
    """Put the pages of all folders there are into one, in order."""
    pages = [(name, out / name / f"{name}.md") for name in paper.items]
    parts = [f"# {paper.name}: what came out", f"Written by `make {paper.target}`."]
    parts += [_within(path.read_text(encoding="utf-8"), name) for name, path in pages if path.is_file()]
    (out / RESULTS).write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _within(page: str, name: str) -> str:
    """A page one heading deeper, its plots in a folder.

    >>> _within("# A\\n\\n![b](b.svg)\\n", "figure1")
    '## A\\n\\n![b](figure1/b.svg)'
    """
    lines = ("#" + line if line.startswith("#") else line.replace("](", f"]({name}/") for line in page.splitlines())
    return "\n".join(lines)
