"""A Sphinx extension: what a page shows as the output of its Python blocks is what they print.

A fenced block `output` behind a fenced block `python` is compared with what that code prints; a
difference is a warning, which fails the build. The blocks of a page run in order, in one namespace,
in an empty folder.

    python docs/_ext/printed_output.py docs/explanation/algebra.md      # writes the output anew
"""

import contextlib
import importlib.util
import io
import logging
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

PYTHON = re.compile(
    r"^```python[ \t]*\n(?P<code>.*?)^```[ \t]*\n"
    r"(?:\s*^```output[ \t]*\n(?P<shown>.*?)^```[ \t]*$)?",
    re.DOTALL | re.MULTILINE,
)

NEEDED = ("matplotlib", "scipy", "pyarrow", "h5py", "viser")
"""What the pages run with, besides Linkwise; the extra `docs` brings it."""


def printed(text: str) -> Iterator[tuple[re.Match[str], str]]:
    """Each Python block of a page, and what it prints."""
    names: dict[str, object] = {"__name__": "__docs__"}
    with tempfile.TemporaryDirectory() as folder:
        for block in PYTHON.finditer(text):
            out = io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.chdir(folder):
                exec(compile(block["code"], "<docs>", "exec"), names)
            yield block, out.getvalue()


def differences(text: str) -> list[str]:
    """Blocks whose output is not what the page shows."""
    result: list[str] = []
    for block, out in printed(text):
        if block["shown"] is not None and block["shown"].rstrip() != out.rstrip():
            line = text[: block.start("shown")].count("\n")
            result.append(
                f"line {line}: the page shows\n{block['shown']}\nbut the code prints\n{out}"
            )
    return result


def updated(text: str) -> str:
    """The page with the output of its blocks written anew."""
    parts, at = [], 0
    for block, out in printed(text):
        if block["shown"] is not None:
            parts += [text[at : block.start("shown")], out.rstrip() + "\n"]
            at = block.end("shown")
    return "".join([*parts, text[at:]])


def check(app, docname: str, source: list[str]) -> None:
    """Compare, when a page is read."""
    from sphinx.util import logging

    if "```output" in source[0]:
        for difference in differences(source[0]):
            logging.getLogger(__name__).warning(difference, location=docname)


def missing() -> list[str]:
    """Packages that pages need and that are not installed."""
    return [name for name in NEEDED if importlib.util.find_spec(name) is None]


def setup(app) -> dict[str, bool]:
    """Connect to the reading of pages; without what they need, nothing is begun."""
    if names := missing():  # an exception here would print a page about Sphinx
        sys.exit(f"The pages need {', '.join(names)}, not installed here: pip install -e '.[docs]'")
    logging.getLogger("matplotlib.mathtext").setLevel(logging.WARNING)  # of fonts it did not find
    app.connect("source-read", check)
    return {"parallel_read_safe": True}


if __name__ == "__main__":
    for name in sys.argv[1:]:
        page = Path(name)
        page.write_text(updated(page.read_text(encoding="utf-8")), encoding="utf-8")
