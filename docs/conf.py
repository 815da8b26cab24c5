"""Sphinx configuration. Build with `make docs`; warnings are errors."""

import importlib.metadata
import re

project = "Linkwise"
author = "The Linkwise developers"
project_copyright = "The Linkwise developers, Apache-2.0"
release = importlib.metadata.version("linkwise")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]

myst_enable_extensions = ["amsmath", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_type_aliases = {"Array": "Array", "ArrayLike": "ArrayLike"}
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
# Docstrings write `name` for code, as the source does.
default_role = "literal"

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = f"Linkwise {release}"


def plain_mathematics(app, what, name, obj, options, lines: list[str]) -> None:
    """Docstrings write φ* and |w| as mathematics, not as markup; code in backticks stays."""
    for k, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...", "..")):
            parts = re.split(r"(`+[^`]*`+)", line)
            parts[::2] = [re.sub(r"(\*|\||_(?=\W|$))", r"\\\1", text) for text in parts[::2]]
            lines[k] = "".join(parts)


def setup(app) -> None:
    """Run before napoleon (priority 500), which adds markup of its own."""
    app.connect("autodoc-process-docstring", plain_mathematics, priority=400)
