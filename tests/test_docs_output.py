"""What the documentation shows as output is what its code prints."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.shipped

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
    text = page.read_text(encoding="utf-8")
    for library in ("pinocchio", "mujoco", "pydrake", "torch", "jax", "casadi"):
        if re.search(rf"(import|from) {library}\b", text):
            pytest.importorskip(library)
    differences = EXTENSION.differences(text)
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
