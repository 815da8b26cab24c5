"""What a page shows as the output of its Python blocks is what they print.

`tests/test_docs_output.py` compares a fenced block `output` behind a fenced block `python` with
what that code prints. The blocks of a page run in order, in one namespace, in an empty folder.

    python docs/_ext/printed_output.py docs/explanation/algebra.md      # update the output
"""

import contextlib
import io
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


if __name__ == "__main__":
    for name in sys.argv[1:]:
        page = Path(name)
        page.write_text(updated(page.read_text(encoding="utf-8")), encoding="utf-8")
