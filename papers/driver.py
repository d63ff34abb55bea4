"""What the commands that make a paper's figures anew share: figures by name, each in a folder, and one page of all."""

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from jobcast.domain.errors import ConfigError, UserError

DATA_VARIABLE = "JOBCAST_DATA"
RESULTS = "results.md"
Make = Callable[[str, Path, Path], None]
"""Makes a figure: its name, the folder of traces, the folder to write into."""


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper whose figures are made anew.

    Attributes
    ----------
    name : in headings
    target : of make, which makes all of them: reproduce-NAME, whose figures go into docs/NAME
    package : below `papers`; each item is a module of it, with a function of its name
    items : names of the figures, in the order of the page
    folder : that JOBCAST_DATA must hold
    holds : what else it should hold, in words
    needing : items that need that folder; None: all
    """

    name: str
    target: str
    package: str
    items: tuple[str, ...]
    folder: str
    holds: str
    needing: tuple[str, ...] | None = None

    def item(self, name: str) -> Callable[..., None]:
        """What makes an item."""
        made: Callable[..., None] = getattr(import_module(f"papers.{self.package}.{name}"), name)
        return made


def count(name: str, default: int, about: str) -> click.Option:
    """An option of a number from 1 on."""
    return click.Option([f"--{name}"], type=click.IntRange(1), default=default, show_default=True, help=about)


def command_of(
    paper: Paper,
    reproduce: Callable[..., None],
    about: str,
    options: Sequence[click.Option] = (),
    *,
    word: str = "FIGURE",
    resuming: str = "Go on with the runs that are on file.",
) -> click.Command:
    """The command that makes a paper's figures anew, all of them or those named.

    Parameters
    ----------
    reproduce : called with names, the folder to write into, that of traces, and the options by name
    about : its help
    options : beside --out and --resume
    word : what the help calls an item
    resuming : what --resume does
    """

    def run(figures: tuple[str, ...], out: Path, resume: bool, **chosen: Any) -> None:
        names = figures or paper.items
        try:
            needed = paper.needing is None or set(names) & set(paper.needing)
            reproduce(names, out, data_folder(paper) if needed else Path(), resume=resume, **chosen)
        except UserError as error:
            raise click.ClickException(str(error)) from None

    default_out = Path("docs", paper.target.removeprefix("reproduce-"))
    return click.Command(
        paper.target,
        callback=run,
        help=about,
        context_settings={"help_option_names": ["-h", "--help"]},
        params=[
            click.Argument(["figures"], nargs=-1, metavar=f"[{word}]..."),
            click.Option(
                ["--out"], type=click.Path(path_type=Path, file_okay=False), default=default_out, show_default=True
            ),
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


def make_figures(
    paper: Paper, names: Sequence[str], out: Path, data: Path, make: Make, *, resume: bool = False
) -> None:
    """Make some figures, each in a folder of its own that is complete or absent, then the page of all there are.

    Parameters
    ----------
    names : of `paper.items`
    out, data : folders to write into and of traces
    make : of one figure
    resume : whether to leave those alone whose folder is there

    Raises ConfigError for an unknown name.
    """
    for name in names:
        if name not in paper.items:
            raise ConfigError(f"{name}: no such figure; choose from {', '.join(paper.items)}")
    for name in names:
        if resume and (out / name).is_dir():
            click.echo(f"{name}: {out / name} is there", err=True)
            continue
        begin_s = time.monotonic()
        click.echo(f"{name} ...", err=True)
        _whole(out, name, data, make)
        write_page_of_all(paper, out)
        click.echo(f"{name}: {out / name} ({time.monotonic() - begin_s:.0f} s)", err=True)


def _whole(out: Path, name: str, data: Path, make: Make) -> None:
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=out) as made:
        make(name, data, Path(made, name))
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
