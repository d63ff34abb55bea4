"""What mkdocs does to the pages: references made of the code, and names in place of links to files outside docs/."""

import inspect
import posixpath
import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import click
from mkdocs.structure.files import File, Files

import jobcast as jc
from jobcast.pipelines.cli.main import cli

OUTSIDE = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)#\s]+)[^)]*\)")
FENCE = "```"
TOP_FENCES = re.compile(r"(^```.*?^```)", re.DOTALL | re.MULTILINE)
NESTED = re.compile(r"^ {2,3}(?=\S)", re.MULTILINE)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of the reference."""
    for path, text in {"reference/commands.md": commands_page(), "reference/python.md": python_page()}.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Name files of the repository that are no pages; on a forge they are links."""
    folder = posixpath.dirname(page.file.src_uri)

    def named(link: re.Match[str]) -> str:
        place = posixpath.normpath(posixpath.join("docs", folder, link[2]))
        return link[0] if place.startswith("docs/") else f"{link[1]} (`{place}`)"

    # Lists below lists stand two spaces in, as forges have it; mkdocs asks for four.
    parts = TOP_FENCES.split(OUTSIDE.sub(named, markdown))
    return "".join(one if one.startswith(FENCE) else NESTED.sub("    ", one) for one in parts)


def commands_page() -> str:
    """The help of every command."""
    parts = ["# Command line", "What `--help` prints, of every command."]
    for name, command in commands(cli, "jobcast"):
        help_text = command.get_help(click.Context(command, info_name=name, terminal_width=100, max_content_width=100))
        parts += [f"## {name}", f"{FENCE}text\n{help_text}\n{FENCE}"]
    return "\n\n".join(parts)


def commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """A command and all below it, by full names."""
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for below in command.list_commands(context):
            yield from commands(command.get_command(context, below), f"{name} {below}")


def python_page() -> str:
    """The names of `import jobcast`, with what their docstrings say."""
    objects: Mapping[str, Any] = {name: getattr(jc, name) for name in jc.__all__ if not name.startswith("__")}
    parts = ["# Python", "The names of `import jobcast as jc`; [python.md](../python.md) shows their use."]
    for name, one in sorted(objects.items(), key=lambda item: item[0].lower()):
        summary, _, rest = (inspect.getdoc(one) or "").partition("\n\n")
        parts += [f"## {name}", f"{FENCE}python\n{name}{signature(one)}\n{FENCE}", summary]
        parts += [f"{FENCE}text\n{rest}\n{FENCE}"] if rest else []
    return "\n\n".join(parts)


def signature(one: Any) -> str:
    """Arguments, types by their own names; nothing of what takes none that are told."""
    try:
        text = re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Z])", "", str(inspect.signature(one)))
    except (TypeError, ValueError):
        return ""
    return textwrap.fill(text, 100, subsequent_indent="    ", break_long_words=False)
