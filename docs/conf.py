"""Sphinx configuration. Build with `make docs`; warnings are errors."""

import importlib.util
import sys
from pathlib import Path

import linkwise

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "Linkwise"
author = "The Linkwise developers"
project_copyright = "The Linkwise developers, Apache-2.0"
release = linkwise.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "identity_table",
    "ledger_table",
    "plain_docstrings",
]
# The pages show their mathematics without a network, where MathJax is installed beside Sphinx.
if importlib.util.find_spec("sphinx-mathjax-offline"):
    extensions.append("sphinx-mathjax-offline")
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_type_aliases = {name: name for name in ("Array", "ArrayLike", "PoseLike")}
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
# Docstrings write `name` for code, as the source does.
default_role = "literal"

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "furo"
pygments_dark_style = "github-dark"
html_title = f"Linkwise {release}"
html_static_path = ["_theme"]
html_css_files = ["linkwise.css"]
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#2f6690",
        "color-brand-content": "#2f6690",
        "color-brand-visited": "#6d4f85",
    },
    "dark_css_variables": {
        "color-brand-primary": "#6fb1e0",
        "color-brand-content": "#6fb1e0",
        "color-brand-visited": "#c39ad6",
    },
}
