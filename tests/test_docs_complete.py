"""Pages that promise to list everything do: the reference, the gallery, the benchmarks."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

import linkwise as lw

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
DIRECTIVE = re.compile(
    r"^\.\. auto(?P<kind>\w+):: (?P<path>\S+)\n(?P<options>(?:[ ]{3}.*\n)*)", re.M
)


def reference_pages() -> str:
    pages = sorted((DOCS / "reference").glob("*.md"))
    return "\n".join(page.read_text(encoding="utf-8") for page in pages)


def documented() -> list[object]:
    """The objects that the directives of the reference pages name."""
    result: list[object] = []
    for directive in DIRECTIVE.finditer(reference_pages()):
        if directive["kind"] != "module":
            module, _, name = directive["path"].rpartition(".")
            result.append(getattr(importlib.import_module(module), name))
            continue
        module = importlib.import_module(directive["path"])
        result.append(module)
        members = re.search(r":members:(?P<names>.*)", directive["options"])
        if members is None:
            continue
        names = [name.strip() for name in members["names"].split(",") if name.strip()]
        result += [getattr(module, name) for name in names or public(module)]
    return result


def public(module: ModuleType) -> list[str]:
    """What `:members:` without names documents: what a module defines and does not hide."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    ours = [n for n, x in vars(module).items() if inspect.getmodule(x) is module]
    return [name for name in ours if not name.startswith("_")]


@pytest.fixture(scope="module")
def reference():
    for name in lw.__all__:  # made on first use, and checked at the front door from then on
        getattr(lw, name)
    return documented()


def test_reference_has_every_public_name(reference):
    """By identity: the very function or class, whichever module it is documented from."""
    missing = [
        name
        for name in lw.__all__
        if not (
            (DOCS / "reference" / f"{name}.md").is_file()
            if isinstance(thing := getattr(lw, name), ModuleType)
            else any(thing is known for known in reference)
        )
    ]
    assert not missing, f"docs/reference does not document {missing}"


def test_reference_is_read(reference):
    """The directives were found, and something that is not public is not among them."""
    assert any(thing is lw.forward_dynamics for thing in reference)
    assert any(thing is lw.Pose for thing in reference)
    assert not any(thing is re.compile for thing in reference)


@pytest.mark.parametrize("folder", ["examples", "docs/figures"])
def test_gallery_lists_every_script(folder):
    """Scripts with a main; helpers of figures have none."""
    text = (DOCS / "how_to" / "gallery.md").read_text(encoding="utf-8")
    scripts = sorted((ROOT / folder).glob("*.py"))
    scripts = [s for s in scripts if "def main" in s.read_text(encoding="utf-8")]
    assert scripts
    missing = [s.name for s in scripts if f"{folder}/{s.name}" not in text]
    assert not missing, f"docs/how_to/gallery.md does not show {missing}"


def test_gallery_names_no_script_that_is_gone():
    text = (DOCS / "how_to" / "gallery.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\b(?:examples|docs/figures)/\w+\.py", text))
    assert not [name for name in named if not (ROOT / name).is_file()]


def test_benchmarks_page_shows_every_result():
    text = (DOCS / "evidence" / "benchmarks.md").read_text(encoding="utf-8")
    results = sorted((ROOT / "benchmarks" / "results").glob("*.md"))
    assert results
    missing = [r.name for r in results if f"../../benchmarks/results/{r.name}" not in text]
    assert not missing, f"docs/evidence/benchmarks.md does not include {missing}"


def test_every_example_is_run_by_a_test():
    """As the gallery says: some test names the file of each."""
    tests = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    examples = [path.stem for path in (ROOT / "examples").glob("*.py")]
    missing = [e for e in examples if not any(re.search(rf"\b{e}\b", text) for text in tests)]
    assert not missing, f"no test runs {missing}"
