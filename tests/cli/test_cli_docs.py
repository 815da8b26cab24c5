"""docs/reference/command_line.md says what the parser knows, and its examples are understood."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path

import pytest

from linkwise.cli import parser

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "reference" / "command_line.md").read_text(encoding="utf-8")
COMMANDS = next(
    action.choices for action in parser()._actions if isinstance(action, argparse._SubParsersAction)
)
BLOCKS = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)
SHELL = [
    line.partition(" #")[0].strip()
    for page in ("reference/command_line.md", "how_to/show_and_plot.md")
    for block in BLOCKS.findall((DOCS / page).read_text(encoding="utf-8"))
    for line in block.splitlines()
    if line.startswith("linkwise ")
]
HELP = [
    line.strip()
    for command in COMMANDS.values()
    for line in (command.epilog or "").splitlines()
    if line.startswith("  linkwise ")
]


def options(command: argparse.ArgumentParser) -> set[str]:
    result = {name for action in command._actions for name in action.option_strings}
    return result - {"-h", "--help"}


def said_of(name: str) -> str:
    """The section of a command, or its line in the last table."""
    section = re.search(rf"^## {name}$(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE | re.I)
    row = re.search(rf"^\| `{name}` \|.*$", TEXT, re.MULTILINE)
    assert section or row, f"nothing is said of {name}"
    return (section[1] if section else "") + (row[0] if row else "")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_on_the_page_and_no_other(name):
    shown = set(re.findall(r"`(-{1,2}[a-z][a-z-]*)", said_of(name)))
    assert shown == options(COMMANDS[name])
    assert f"`linkwise {name}" in TEXT


@pytest.mark.parametrize("line", [*SHELL, *HELP])
def test_every_example_is_understood(line):
    """Explanations stand behind two spaces or a hash."""
    words = shlex.split(re.split(r"\s{2,}", line)[0])
    try:
        parser().parse_args(words[1:])
    except SystemExit:
        pytest.fail(f"not understood: {line}")


def test_there_are_examples():
    assert len(SHELL) > 10
    assert len(HELP) > 20


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_teaches(name):
    command = COMMANDS[name]
    assert "examples:" in (command.epilog or "")
    assert all(action.help for action in command._actions)
