"""Every Python block of the README and of the documentation runs, in order, file by file.

The blocks of one file share one namespace and run in an empty directory. A block that begins with
`>>>` prompts is checked as a doctest; any other is executed, so that its assertions count. Pages
that show output are run by `test_docs_output.py`.
"""

import doctest
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.shipped

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if "_build" not in page.parts]
BLOCK = re.compile(
    r"^```(?:python|\{doctest\}|pycon)[ \t]*\n(?P<code>.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE
)


def blocks(page: Path) -> list[tuple[int, str]]:
    """(line number, code) of each Python block of a page."""
    text = page.read_text(encoding="utf-8")
    return [(text[: m.start("code")].count("\n") + 1, m["code"]) for m in BLOCK.finditer(text)]


def shows_output(page: Path) -> bool:
    """Whether `test_docs_output.py` runs all blocks of a page, and compares what they print."""
    return "```output" in page.read_text(encoding="utf-8") and not any(
        code.lstrip().startswith(">>>") for _, code in blocks(page)
    )


README = ROOT / "README.md"
WITH_BLOCKS = [page for page in PAGES[1:] if blocks(page) and not shows_output(page)]


@pytest.mark.parametrize(
    "page",
    [README, *(pytest.param(page, marks=pytest.mark.prove) for page in WITH_BLOCKS)],
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for library in ("pinocchio", "mujoco", "pydrake", "torch", "jax", "casadi"):
        if any(re.search(rf"(import|from) {library}\b", code) for _, code in blocks(page)):
            pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__docs__"}
    for line, code in blocks(page):
        if code.lstrip().startswith(">>>"):
            test = doctest.DocTestParser().get_doctest(code, names, page.name, str(page), line - 1)
            runner = doctest.DocTestRunner(
                verbose=False, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            )
            report: list[str] = []
            runner.run(test, out=report.append, clear_globs=False)
            names.update(test.globs)
            assert runner.failures == 0, "".join(report)
        else:
            source = "\n" * (line - 1) + code  # so that a traceback shows the line of the page
            exec(compile(source, str(page), "exec"), names)


SHELL = re.compile(r"^```console\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)
ENTRY = "import sys; from linkwise.cli import main; sys.exit(main())"  # as the script does


def commands(page: Path) -> list[tuple[str, str]]:
    """The `$ linkwise ...` lines of the console blocks of a page, each with the output below it."""
    result: list[tuple[str, str]] = []
    for block in SHELL.finditer(page.read_text(encoding="utf-8")):
        for part in re.split(r"^\$ ", block["body"], flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            if command.startswith("linkwise "):
                result.append((command, output))
    return result


CONSOLE = [page for page in PAGES if commands(page)]


@pytest.mark.prove
@pytest.mark.parametrize("page", CONSOLE, ids=lambda p: str(p.relative_to(ROOT)))
def test_console_commands_run(page, tmp_path, monkeypatch):
    """`linkwise` commands print what the page shows, beside the files its Python blocks write."""
    test_blocks_run(page, tmp_path, monkeypatch)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    for command, shown in commands(page):
        arguments = shlex.split(command, comments=True)[1:]
        done = subprocess.run(
            [sys.executable, "-c", ENTRY, *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        if shown.strip():
            same = doctest.OutputChecker().check_output(shown, done.stdout, flags)
            assert same, f"{command}: {done.stdout}"


def test_readme_counts_the_corpus():
    """The README's numbers are the sums of the generated table."""
    corpus = (ROOT / "docs" / "evidence" / "corpus.md").read_text(encoding="utf-8")
    row = r"^(\d+) files: (\d+) load and agree to 1e-12, (\d+) are refused,.* (\d+) disagree"
    counts = [[int(x) for x in result] for result in re.findall(row, corpus, re.MULTILINE)]
    files, agree, refused, disagree = (sum(column) for column in zip(*counts, strict=True))
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f"Of {files} public model files, {agree} agree" in readme
    others = files - agree
    assert f"Of the other {others}, Linkwise refuses {refused} with line and reason" in readme
    assert f"loads {others - refused} that the reference refuses" in readme
    assert disagree == 0
