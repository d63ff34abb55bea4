"""Table 1 and the figures of Shockwave, made anew: `python -m jobcast.pipelines.reproduce.shockwave`."""

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import click

from jobcast.domain.errors import ConfigError, UserError

DATA_VARIABLE = "JOBCAST_DATA"
DEFAULT_OUT = Path("docs", "shockwave")
RESULTS = "results.md"
ITEMS = (
    "table1", "figure2", "figure4", "figure5", "figure7", "figure8", "figure9", "figure10", "figure11", "figure12",
    "figure13", "figure16", "figure17",
)  # fmt: skip
"""Each is a module of this package, with a function of its name."""
Make = Callable[[Path, Path], None]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("figures", nargs=-1, metavar="[FIGURE]...")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=DEFAULT_OUT, show_default=True)
def main(figures: tuple[str, ...], out: Path) -> None:
    """Make Table 1 and the figures of Shockwave anew, all of them or those named.

    \b
    FIGURE: table1, figure2, figure4, figure5, figure7 ... figure13, figure16, figure17
    JOBCAST_DATA names the folder of traces.

    \b
    Example:
      JOBCAST_DATA=data/raw python -m jobcast.pipelines.reproduce.shockwave figure7 --out /tmp/figures
    """
    try:
        reproduce(figures or ITEMS, out, data_folder())
    except UserError as error:
        raise click.ClickException(str(error)) from None


def data_folder() -> Path:
    """The folder that JOBCAST_DATA names. Raises ConfigError when it names none."""
    named = os.environ.get(DATA_VARIABLE, "")
    if not named:
        raise ConfigError(f"{DATA_VARIABLE} is not set: point it at the folder that holds shockwave/, philly/, curves/")
    if not Path(named, "shockwave").is_dir():
        raise ConfigError(f"{DATA_VARIABLE}={named}: holds no folder shockwave; point it at the folder of traces")
    return Path(named)


def reproduce(names: tuple[str, ...], out: Path, data: Path) -> None:
    """Make some of `ITEMS`, each in a folder of its own that is complete or absent, then `results.md` of all there are.

    Raises ConfigError for an unknown name.
    """
    for name in names:
        if name not in ITEMS:
            raise ConfigError(f"{name}: no such figure; choose from {', '.join(ITEMS)}")
    for name in names:
        begin_s = time.monotonic()
        click.echo(f"{name} ...", err=True)
        _whole(out, name, data)
        write_results(out)
        click.echo(f"{name}: {out / name} ({time.monotonic() - begin_s:.0f} s)", err=True)


def _whole(out: Path, name: str, data: Path) -> None:
    make: Make = getattr(import_module(f"jobcast.pipelines.reproduce.{name}"), name)
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=out) as made:
        make(data, Path(made, name))
        shutil.rmtree(out / name, ignore_errors=True)
        Path(made, name).rename(out / name)


def write_results(out: Path) -> None:
    """Put the pages of all folders there are into one, in order."""
    pages = [(name, out / name / f"{name}.md") for name in ITEMS]
    parts = ["# Shockwave: what came out", "Written by `make reproduce-shockwave`."]
    parts += [_within(path.read_text(encoding="utf-8"), name) for name, path in pages if path.is_file()]
    (out / RESULTS).write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _within(page: str, name: str) -> str:
    """A page one heading deeper, its plots in a folder.

    >>> _within("# A\\n\\n![b](b.svg)\\n", "figure1")
    '## A\\n\\n![b](figure1/b.svg)'
    """
    lines = ("#" + line if line.startswith("#") else line.replace("](", f"]({name}/") for line in page.splitlines())
    return "\n".join(lines)


if __name__ == "__main__":
    main()
