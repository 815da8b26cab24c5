"""A Sphinx extension: docstrings are plain text with mathematics, not reStructuredText.

They write φ* and |w|, and set equations and sketches apart by indenting them. Before napoleon reads
the Google sections, this escapes what only looks like markup and makes such blocks literal.
"""

import re

from sphinx.util.inspect import TypeAliasForwardRef

SECTIONS = (
    "Args:",
    "Arguments:",
    "Attributes:",
    "Example:",
    "Examples:",
    "Note:",
    "Raises:",
    "Returns:",
    "Yields:",
)
BULLET = re.compile(r"([*-]|\d+\.) ")
MARKUP = re.compile(r"(\*|\||_(?=\W|$))")
NAMED = re.compile(r"(Source|Departs): \S")
CODE = re.compile(r"(`+[^`]*`+)")


def process(app, what, name, obj, options, lines: list[str]) -> None:
    """Rewrite the lines of one docstring in place; pages have separate tables."""
    lines[:] = rewritten([x for x in lines if what != "module" or not x.startswith("|")])


def joined(app, what, name, obj, options, lines: list[str]) -> None:
    """Undo what napoleon does to a property: it takes words before a colon for its type.

    Types that it adds to attributes are text: `NDArray[np.bool_]` has no link at its underscore.
    """
    lines[:] = [escaped(line) if line.startswith(":vartype ") else line for line in lines]
    types = [line for line in lines if line.startswith(":type: ")]
    if what in ("attribute", "data", "property") and types:
        text = [line for line in lines if line not in types]
        first = next(i for i, line in enumerate(text) if line.strip())
        text[first] = f"{types[0].removeprefix(':type: ')}: {text[first]}"
        lines[:] = text


def rewritten(lines: list[str]) -> list[str]:
    """The same docstring as reStructuredText with Google sections."""
    result: list[str] = []
    place = "text"  # or "section", "bullet", "block", "named"
    for line in lines:
        at_margin = bool(line) and not line[0].isspace()
        if line.strip() in SECTIONS and at_margin:
            place = "section"
        elif at_margin and BULLET.match(line):
            place = "bullet"
        elif line.startswith("|"):
            line = f"    {line}"
            at_margin = False
            place = "text" if place != "block" else place
        elif at_margin:
            if place == "block":
                result.append("")
            place = "named" if NAMED.match(line) else "text"
        if place == "named":  # a sentence that goes on, indented, on the next line
            line = line.strip()
        if line.strip() and not at_margin and place == "text":
            result += ["", "::", ""]
            place = "block"
        result.append(line if place == "block" else escaped(line))
    return result


def escaped(line: str) -> str:
    """Stars, bars and trailing underscores as themselves, outside of code in backticks."""
    bullet = re.match(r"\s*\* ", line)
    head, tail = (bullet[0], line[bullet.end() :]) if bullet else ("", line)
    parts = CODE.split(tail)
    parts[::2] = [MARKUP.sub(r"\\\1", text) for text in parts[::2]]
    return head + "".join(parts)


def skipped(app, what, name, obj, skip: bool, options) -> bool | None:
    """Skip in a namespace what the page of top-level names or of papers already documents."""
    import linkwise
    from linkwise import papers

    if (getattr(obj, "__doc__", None) or "").startswith("Alias for field number"):
        return True  # the class documents its fields
    if what != "module":
        return None
    module = app.env.temp_data.get("autodoc:module") or app.env.current_document.autodoc_module
    elsewhere = [linkwise] if module == "linkwise.papers" else [linkwise, papers]
    if any(name in page.__all__ and getattr(page, name) is obj for page in elsewhere):
        return True
    return None


def setup(app) -> dict[str, bool]:
    """Connect before napoleon (priority 500), which adds more markup."""
    app.connect("autodoc-process-docstring", process, priority=400)
    app.connect("autodoc-process-docstring", joined, priority=600)
    TypeAliasForwardRef.__repr__ = lambda self: self.name  # type aliases by their names
    app.connect("autodoc-skip-member", skipped)
    return {"parallel_read_safe": True}
