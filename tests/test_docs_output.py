"""What the documentation shows as output is what its code prints."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGES = [p for p in sorted(DOCS.rglob("*.md")) if "_build" not in p.parts]
PAGES = [p for p in PAGES if "```output" in p.read_text(encoding="utf-8")]


def _extension():
    path = DOCS / "_ext" / "printed_output.py"
    spec = importlib.util.spec_from_file_location("printed_output", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


EXTENSION = _extension()


@pytest.mark.prove
@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_output_is_what_the_code_prints(page):
    differences = EXTENSION.differences(page.read_text(encoding="utf-8"))
    assert not differences, "\n".join(differences)


def test_every_page_with_output_is_found():
    assert DOCS / "explanation" / "algebra.md" in PAGES


TEXT = """```python
print(6 * 7)
```

```output
41
```

```python
print("not shown")
```
"""


def test_a_difference_is_found_and_mended():
    (difference,) = EXTENSION.differences(TEXT)
    assert difference.startswith("line 5: the page shows\n41\n")
    assert EXTENSION.updated(TEXT) == TEXT.replace("41", "42")
    assert not EXTENSION.differences(EXTENSION.updated(TEXT))


def test_what_pages_need_is_in_the_extra_of_the_documentation():
    """Extras name extras: those of `docs`, opened one by one."""
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found, extras = set[str](), ["docs"]
    while extras:
        for line in project["optional-dependencies"][extras.pop()]:
            own = re.fullmatch(r"linkwise\[(.*)\]", line)
            if own:
                extras += own[1].split(",")
            else:
                found.add(re.split(r"[^\w-]", line)[0])
    assert set(EXTENSION.NEEDED) <= found


def test_a_build_without_what_pages_need_does_not_begin(monkeypatch):
    monkeypatch.setattr(EXTENSION, "NEEDED", ("numpy", "viser_that_is_not_there"))
    with pytest.raises(SystemExit, match=r"need viser_that_is_not_there, .*\.\[docs\]"):
        EXTENSION.setup(None)
